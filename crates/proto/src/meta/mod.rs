//! Memcached's meta commands, which are part of the text protocol: `mg`, `ms`, `md`, `ma`, `me`.
//! (`mn` has no key and is read with the administrative commands.)
//!
//! | file | idea |
//! | --- | --- |
//! | `command` | the commands, and their limits |
//! | [`flags`] | the words after the key: checked when a line is read, parsed where needed |
//! | `plain` | the most frequent form of `mg`, inlined into the caller |
//! | `read` | parses a line, and the value of `ms`, into a request |
//! | [`base64`] | keys with bytes that a line cannot contain |
//! | [`emit`] | the parts of a reply |
//! | `outcome` | writes outcomes as replies to meta commands |
//!
//! The flags of a meta command, up to seventeen, say what it does and what its reply contains, in
//! that order. A request does not store them parsed: it borrows them from the line. The engine
//! walks them twice, once to execute the command and once for the reply. The most common form of
//! `mg`, whose flags concern only the reply, is executed like any other read
//! ([`crate::Verb::Get`]).
//!
//! The behaviour is that of memcached 1.6.45, with three deliberate differences: an opaque that is
//! too long is refused before the command is executed, not after, an item that `mg` creates under a
//! base64 key is marked as having one, and the flag `m` has expiry times count milliseconds.

pub mod base64;
pub(crate) mod command;
pub mod emit;
pub mod flags;
mod outcome;
pub(crate) mod plain;
mod read;

pub use command::{Command, OPAQUE_BYTES_MAX, WORDS_MAX};
pub use flags::{Flags, Options};
pub(crate) use read::read;
