//! Why a request is denied that is well formed.

use crate::text::lines;

/// Why a request is not carried out, although it is well formed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denial {
    /// The user lacks the right.
    Command,
    /// The user has the right, but not for this key.
    Key,
    /// The user or the address has asked for too much for too long.
    OverLimit,
}

impl Denial {
    /// The line of the text protocol.
    pub const fn line(self) -> &'static str {
        match self {
            Denial::Command => lines::COMMAND_DENIED,
            Denial::Key => lines::KEY_DENIED,
            Denial::OverLimit => lines::OVER_LIMIT,
        }
    }
}
