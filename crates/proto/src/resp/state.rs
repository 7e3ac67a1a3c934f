//! Where the parser stands.

use super::form::Version;
use super::frame::Style;
use crate::text::Limits;

/// Reads one connection's bytes as RESP. Small and `Copy`, as [`crate::text::Parser`] is and for
/// the same reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parser {
    pub(super) limits: Limits,
    pub(super) state: State,
    pub(super) version: Version,
    pub(super) caching: Caching,
    pub(super) multi: Multi,
    /// The value that the last step asked room for will not be received.
    pub(super) no_memory: bool,
}

/// Where in the stream the parser stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Between two commands.
    Start,
    /// In an array of `count` arguments, of which `seen` have been found good. The next begins `at`
    /// bytes after the beginning of the array.
    Array { count: u32, seen: u32, at: u32 },
    /// In an array whose argument after `nth` others the caller has taken out of the input.
    Taken { nth: u8 },
    /// At a key of a command with several keys, all of which have been found good.
    Keys(Keys),
    /// In a command with several keys that are handed out as they arrive.
    Pieces(Pieces),
    /// In a command that was refused, or that is queued apart: these bytes of an argument, and this
    /// many arguments more.
    Pass { bytes: u32, arguments: u32 },
}

/// Whether a transaction is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Multi {
    /// No.
    Off,
    /// This many commands are queued, in this many bytes at the front of the input.
    Queueing { count: u32, at: u32 },
    /// This many commands are queued, and lie with the caller.
    Apart { count: u32 },
    /// It will be given up, because there was no memory for commands that had been answered. The
    /// next command to be queued is refused for that.
    NoMemory,
    /// It will be given up, because a command of it was refused.
    Spoilt,
    /// This many commands of it are left, and then the `EXEC`, of this many bytes; none if the
    /// commands come from the caller.
    Executing { left: u32, tail: u32 },
}

/// What is left of a command with several keys that is executed in pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pieces {
    /// Arguments that have yet to be looked at.
    pub left: u32,
    /// Bytes of the last argument that are passed over.
    pub skip: u32,
    pub each: Each,
    /// The next argument is the value of a key that no item can have.
    pub skips_value: bool,
    /// The caller has taken the value of the next key out of the input.
    pub taken: bool,
    /// What is said in place of the sum.
    pub fault: Option<PieceFault>,
}

/// Why a value of such a command was not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PieceFault {
    /// No item can have its key.
    BadKey,
    /// It is larger than any item.
    TooLarge,
    /// There is no memory for it.
    NoMemory,
}

/// Whether the client keeps what it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Caching {
    /// No.
    Off,
    /// It says so before each command whose reply it keeps.
    OptIn,
    /// It keeps the reply to the next command that is no `CLIENT`.
    Next,
    /// The same, and the last command was a `CLIENT`.
    StillNext,
    /// It has to be told to forget that reply, which the last byte of the command stands for.
    Due,
}

/// What is left of a command with several keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Keys {
    /// Bytes up to the next command.
    pub rest: u32,
    /// Arguments that have yet to be handed out.
    pub left: u32,
    pub style: Style,
    pub each: Each,
}

/// What is done with each key of a command with several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Each {
    /// It is read; the first reply begins an array of this many elements.
    Get { array: Option<u32> },
    /// It is removed, and counted.
    Delete,
    /// It is looked at, and counted.
    Look,
    /// Its value follows, and is stored.
    Set,
}

impl Parser {
    /// A parser at the start of a connection.
    pub fn new(limits: Limits) -> Parser {
        Parser {
            limits,
            state: State::Start,
            version: Version::Two,
            caching: Caching::Off,
            multi: Multi::Off,
            no_memory: false,
        }
    }
}
