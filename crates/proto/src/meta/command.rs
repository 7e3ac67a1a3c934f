//! The meta commands, and their limits.

/// A meta command that does more than read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// `mg` with a flag that changes the item or asks for something that only the owner knows.
    Get,
    /// `ms`.
    Store,
    /// `md`.
    Delete,
    /// `ma`.
    Arithmetic,
    /// `me`.
    Debug,
}

/// Longest opaque in bytes, including the `O`.
pub const OPAQUE_BYTES_MAX: usize = 32;

/// Maximum number of words of a meta command, including its name.
pub const WORDS_MAX: usize = 20;
