//! Floor 3: the client library for C, and for every language that calls C. `include/glimmer.h` is
//! made from this crate (cbindgen).
//!
//! A client belongs to one thread at a time. Keys and values are any bytes, with their lengths; only
//! the names of servers end with a zero. Each function returns an [`Outcome`], and writes what else
//! it has to tell where its caller points. A pointer that may not be null is checked, and a panic
//! becomes [`Outcome::Internal`], in a build that unwinds (`--profile library`).

mod call;
mod connect;
mod item;
mod message;
mod operations;
mod outcome;
mod settings;

pub use connect::{Member, Placement, glimmer_connect, glimmer_connect_to_all, glimmer_free};
pub use item::{
    Item, glimmer_item_cas, glimmer_item_flags, glimmer_item_free, glimmer_item_new,
    glimmer_item_value,
};
pub use message::glimmer_message;
pub use operations::*;
pub use outcome::{Outcome, glimmer_outcome_text};
pub use settings::{Settings, glimmer_settings_default};

use glimmer_client as native;
use native::boundary::Guarded;

/// A client of one server or of several. After a fork, parent and child may both go on with it: the
/// child looks for the servers again, and is another client.
pub struct Client(Guarded<native::Client>);

/// A number of bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Bytes {
    /// The first of them; may be null if there are none.
    pub data: *const u8,
    /// How many there are.
    pub length: usize,
}

#[cfg(test)]
mod tests;
