//! The commands' numbers, and what a number says about the reply.

/// Read a value.
pub const GET: u8 = 0x00;
/// Store.
pub const SET: u8 = 0x01;
/// Store where nothing is.
pub const ADD: u8 = 0x02;
/// Store where something is.
pub const REPLACE: u8 = 0x03;
/// Remove.
pub const DELETE: u8 = 0x04;
/// Add to a number.
pub const INCREMENT: u8 = 0x05;
/// Subtract from a number.
pub const DECREMENT: u8 = 0x06;
/// Close the connection.
pub const QUIT: u8 = 0x07;
/// Make everything invisible.
pub const FLUSH: u8 = 0x08;
/// [`GET`] that is silent on a miss.
pub const GETQ: u8 = 0x09;
/// Do nothing and say so.
pub const NOOP: u8 = 0x0a;
/// The server's version.
pub const VERSION: u8 = 0x0b;
/// [`GET`] that shows the key.
pub const GETK: u8 = 0x0c;
/// [`GETK`] that is silent on a miss.
pub const GETKQ: u8 = 0x0d;
/// Put a value behind the one that is there.
pub const APPEND: u8 = 0x0e;
/// Put a value before the one that is there.
pub const PREPEND: u8 = 0x0f;
/// Figures.
pub const STAT: u8 = 0x10;
/// [`SET`] that is silent on success.
pub const SETQ: u8 = 0x11;
/// [`ADD`] that is silent on success.
pub const ADDQ: u8 = 0x12;
/// [`REPLACE`] that is silent on success.
pub const REPLACEQ: u8 = 0x13;
/// [`DELETE`] that is silent on success.
pub const DELETEQ: u8 = 0x14;
/// [`INCREMENT`] that is silent on success.
pub const INCREMENTQ: u8 = 0x15;
/// [`DECREMENT`] that is silent on success.
pub const DECREMENTQ: u8 = 0x16;
/// [`QUIT`] without an answer.
pub const QUITQ: u8 = 0x17;
/// [`FLUSH`] without an answer.
pub const FLUSHQ: u8 = 0x18;
/// [`APPEND`] that is silent on success.
pub const APPENDQ: u8 = 0x19;
/// [`PREPEND`] that is silent on success.
pub const PREPENDQ: u8 = 0x1a;
/// Give an item a new expiry time.
pub const TOUCH: u8 = 0x1c;
/// Read a value and give it a new expiry time.
pub const GAT: u8 = 0x1d;
/// [`GAT`] that is silent on a miss.
pub const GATQ: u8 = 0x1e;
/// Which ways there are to say who one is.
pub const SASL_LIST_MECHANISMS: u8 = 0x20;
/// Say who one is.
pub const SASL_AUTH: u8 = 0x21;
/// Go on saying who one is.
pub const SASL_STEP: u8 = 0x22;
/// [`GAT`] that shows the key.
pub const GATK: u8 = 0x23;
/// [`GATK`] that is silent on a miss.
pub const GATKQ: u8 = 0x24;

/// Whether the usual outcome is not answered: a miss of a read, the success of anything else.
#[inline]
pub const fn is_quiet(opcode: u8) -> bool {
    matches!(opcode, GETQ | GETKQ | SETQ..=PREPENDQ | GATQ | GATKQ)
}

/// Whether the reply repeats the key.
#[inline]
pub const fn shows_key(opcode: u8) -> bool {
    matches!(opcode, GETK | GETKQ | GATK | GATKQ)
}

/// The command of which this is the quiet form; the same command if it is none.
#[inline]
pub const fn loud(opcode: u8) -> u8 {
    match opcode {
        GETQ => GET,
        GETKQ => GETK,
        SETQ => SET,
        ADDQ => ADD,
        REPLACEQ => REPLACE,
        DELETEQ => DELETE,
        INCREMENTQ => INCREMENT,
        DECREMENTQ => DECREMENT,
        QUITQ => QUIT,
        FLUSHQ => FLUSH,
        APPENDQ => APPEND,
        PREPENDQ => PREPEND,
        GATQ => GAT,
        GATKQ => GATK,
        other => other,
    }
}
