//! The opcodes, and what an opcode says about the reply.

/// Read a value.
pub const GET: u8 = 0x00;
/// Store a value.
pub const SET: u8 = 0x01;
/// Store a value if there is no item.
pub const ADD: u8 = 0x02;
/// Store a value if there is an item.
pub const REPLACE: u8 = 0x03;
/// Delete an item.
pub const DELETE: u8 = 0x04;
/// Add to a number.
pub const INCREMENT: u8 = 0x05;
/// Subtract from a number.
pub const DECREMENT: u8 = 0x06;
/// Close the connection.
pub const QUIT: u8 = 0x07;
/// Flush all items.
pub const FLUSH: u8 = 0x08;
/// [`GET`] that is silent on a miss.
pub const GETQ: u8 = 0x09;
/// Do nothing; the reply shows that the server is there.
pub const NOOP: u8 = 0x0a;
/// The server's version.
pub const VERSION: u8 = 0x0b;
/// [`GET`] that shows the key.
pub const GETK: u8 = 0x0c;
/// [`GETK`] that is silent on a miss.
pub const GETKQ: u8 = 0x0d;
/// Append to a value.
pub const APPEND: u8 = 0x0e;
/// Prepend to a value.
pub const PREPEND: u8 = 0x0f;
/// Statistics.
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
/// [`QUIT`] without a reply.
pub const QUITQ: u8 = 0x17;
/// [`FLUSH`] without a reply.
pub const FLUSHQ: u8 = 0x18;
/// [`APPEND`] that is silent on success.
pub const APPENDQ: u8 = 0x19;
/// [`PREPEND`] that is silent on success.
pub const PREPENDQ: u8 = 0x1a;
/// Set an item's expiry time.
pub const TOUCH: u8 = 0x1c;
/// Read a value and set the item's expiry time.
pub const GAT: u8 = 0x1d;
/// [`GAT`] that is silent on a miss.
pub const GATQ: u8 = 0x1e;
/// List the SASL mechanisms.
pub const SASL_LIST_MECHANISMS: u8 = 0x20;
/// Start a SASL authentication.
pub const SASL_AUTH: u8 = 0x21;
/// Continue a SASL authentication.
pub const SASL_STEP: u8 = 0x22;
/// [`GAT`] that shows the key.
pub const GATK: u8 = 0x23;
/// [`GATK`] that is silent on a miss.
pub const GATKQ: u8 = 0x24;

/// Whether the usual outcome has no reply: a miss for a read, success for other commands.
#[inline]
pub const fn is_quiet(opcode: u8) -> bool {
    matches!(opcode, GETQ | GETKQ | SETQ..=PREPENDQ | GATQ | GATKQ)
}

/// Whether the reply repeats the key.
#[inline]
pub const fn shows_key(opcode: u8) -> bool {
    matches!(opcode, GETK | GETKQ | GATK | GATKQ)
}

/// The command of which this is the quiet form, or the opcode itself.
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
