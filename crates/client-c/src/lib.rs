//! Floor 3: the client library for C, and for every language that calls C. cbindgen generates
//! `include/glimmer.h` from this crate.
//!
//! A client belongs to one thread at a time. Keys and values are arbitrary bytes with a length;
//! only host names are NUL-terminated. Each function returns an [`Outcome`] and writes other
//! results through pointers. Pointers that must not be null are checked. A panic becomes
//! [`Outcome::Internal`], if the build unwinds (`--profile library`).

mod call;
mod connect;
mod item;
mod message;
mod milliseconds;
mod operations;
mod outcome;
mod settings;

pub use connect::{Member, Placement, glimmer_connect, glimmer_connect_to_all, glimmer_free};
pub use item::{
    Item, glimmer_item_cas, glimmer_item_flags, glimmer_item_free, glimmer_item_new,
    glimmer_item_value,
};
pub use message::glimmer_message;
pub use milliseconds::*;
pub use operations::*;
pub use outcome::{Outcome, glimmer_outcome_text};
pub use settings::{Settings, glimmer_settings_default};

use glimmer_client as native;
use native::boundary::Guarded;

/// A client of one server or of several. After a fork, the parent and the child may both keep using
/// it: the child connects again, as a new client.
pub struct Client(Guarded<native::Client>);

/// A byte string.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Bytes {
    /// The first byte; may be null if the length is 0.
    pub data: *const u8,
    /// The number of bytes.
    pub length: usize,
}

#[cfg(test)]
mod tests;
