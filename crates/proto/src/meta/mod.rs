//! Memcached's meta commands, which are part of the text protocol: `mg`, `ms`, `md`, `ma`, `me` (`mn` names no key and is read with the
//! administrative commands).
//!
//! | file | idea |
//! | --- | --- |
//! | [`flags`] | the words behind the key: checked when the line is read, read again by whoever wants to know what they say |
//! | `read` | a line, for `ms` with its value, to a request |
//! | [`base64`] | keys that hold bytes which a line cannot |
//! | [`emit`] | the parts of a reply |
//! | `outcome` | outcomes in the words of the meta commands |
//!
//! A meta command says by up to seventeen flags what it does and what its reply holds, in that order. A request does not hold all that: it
//! borrows the flags as they stood in the line, and whoever executes it walks them, once to learn what to do and once for the reply. The
//! `mg` that clients send most often, of which the reply is all they say, is executed as any other read ([`crate::Verb::Get`]).
//!
//! The behaviour is that of memcached 1.6.45. Two things differ on purpose: an opaque that is too long is noticed before anything is done,
//! not after, and an item that `mg` makes under a base64 key is known to have one.

pub mod base64;
pub mod emit;
pub mod flags;
mod outcome;
mod read;

pub use flags::{Flags, Options};
pub(crate) use read::{plain_get, read};

/// What a meta command does, where it takes more than reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// `mg` with a flag that changes the item or asks what only its owner knows.
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

/// Longest opaque in bytes, the `O` in front of it included.
pub const OPAQUE_BYTES_MAX: usize = 32;

/// Words that a meta command may have, its name included.
pub const WORDS_MAX: usize = 20;
