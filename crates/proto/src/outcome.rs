//! The result of a request, independent of any protocol. The engine produces an [`Outcome`], and
//! the protocol of the request writes it ([`Emit`]).
//!
//! An emitter writes those parts of an outcome that its protocol shows. The text protocol shows
//! neither a new CAS unique nor the flags of a touched item; a meta command shows what its flags
//! name. The item of a read stays in the table. An emitter sees it as an [`ItemView`], which reads
//! each field only on demand, and copies the value once, into the reply.
//!
//! A command with several keys is one request per key. Its reply is written part by part, in the
//! order of the keys. What comes before the first part and after the last depends on the request
//! (`last` in the text protocol). Where a protocol answers such a command with one sum, each part
//! contributes its [`OutcomeKind`].

use crate::{Request, Sum};
use glimmer_base::limits::LENT_BYTES_MIN;
use glimmer_base::{Expiry, Moment};

/// Bytes that the head of a reply reserves for a value of this length. A large one may be lent, so
/// that it is not in the reply buffer. If it is not, it makes room for itself.
#[inline(always)]
pub(crate) fn room_for(value_bytes: usize) -> usize {
    match value_bytes < LENT_BYTES_MIN {
        true => value_bytes,
        false => 0,
    }
}

/// An item as replies show it.
pub trait ItemView: Copy {
    /// The client's 32-bit flags.
    fn flags(&self) -> u32;
    /// The CAS unique.
    fn cas(&self) -> u64;
    /// The expiry time.
    fn expiry(&self) -> Expiry;
    /// Length of the value in bytes.
    fn value_bytes(&self) -> usize;
    /// Appends the value.
    fn append_value(&self, out: &mut Vec<u8>);
    /// Appends up to `bytes` bytes of the value, starting at `from`.
    fn append_part(&self, from: usize, bytes: usize, out: &mut Vec<u8>);
    /// Bytes that the item occupies in the table.
    fn heap_bytes(&self) -> usize;
    /// The item's state for the meta commands.
    fn state(&self) -> ItemState;
    /// Whether a meta command that reads the item must also change it: to win the right to recache
    /// it, or to record the access.
    fn changes_with_read(&self, now: Moment) -> bool;
}

/// The state that the meta commands keep on an item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ItemState {
    /// The key was given in base64 and is shown so.
    pub has_binary_key: bool,
    /// The value is stale.
    pub is_stale: bool,
    /// A client has been told to recache the value.
    pub is_won: bool,
}

impl ItemState {
    /// Whether replies to meta commands have to say that the value is out of date, or that another
    /// client makes it again.
    #[inline(always)]
    pub fn is_marked(self) -> bool {
        self.is_stale || self.is_won
    }
}

/// An item that a request shows.
#[derive(Clone, Copy, Debug)]
pub struct Found<I> {
    /// The item before the request, or the item that the request created.
    pub item: I,
    /// The time at which the request is executed.
    pub now: Moment,
    /// Details that only some requests ask for.
    pub details: Details,
}

/// Details of a reply that are not stored in the item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Details {
    /// The request created the item.
    pub is_new: bool,
    /// This client is to recache the value.
    pub wins: bool,
    /// Whether the item had been read before. Set only if the request asks.
    pub was_fetched: bool,
    /// Seconds since the last access. Set only if the request asks.
    pub idle_s: u64,
}

impl<I> Found<I> {
    /// An item that was read, without details.
    #[inline(always)]
    pub fn read(item: I, now: Moment) -> Found<I> {
        Found {
            item,
            now,
            details: Details::default(),
        }
    }
}

/// The result of a request for one key.
#[derive(Clone, Copy, Debug)]
pub enum Outcome<I = NoItem> {
    /// The requested item.
    Value(Found<I>),
    /// A read found no item.
    Miss,
    /// The item was stored.
    Stored {
        /// Its CAS unique.
        cas: u64,
        /// Length of its value in bytes.
        value_bytes: usize,
    },
    /// The condition of a store was not met, or the item could not be changed as requested.
    NotStored,
    /// The item has a different CAS unique than the request names.
    Exists,
    /// There is no item to change or compare.
    NotFound,
    /// The item was deleted, emptied or marked as stale.
    Deleted,
    /// The item has its new expiry time.
    Touched {
        /// The item's client flags, if the request [shows](Request::shows_touched) them.
        flags: u32,
        /// The item's CAS unique, under the same condition.
        cas: u64,
    },
    /// The item holds a new number.
    Counted(Counted),
    /// The value to be incremented or decremented is not a number.
    NotANumber,
    /// The sum needs more than 64 bits.
    Overflow,
    /// The item is larger than the limit.
    TooLarge,
    /// The server has no memory for the item.
    OutOfMemory,
}

/// The new number in an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// The number; of a signed one, its 64 bits.
    pub number: u64,
    /// The item's CAS unique.
    pub cas: u64,
    /// The expiry before the request; never, if the request created the item.
    pub expiry: Expiry,
    /// The request created the item.
    pub is_new: bool,
    /// The time at which the request is executed.
    pub now: Moment,
}

/// The variant of an [`Outcome`], without its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OutcomeKind {
    /// See [`Outcome::Value`].
    Value,
    /// See [`Outcome::Miss`].
    Miss,
    /// See [`Outcome::Stored`].
    Stored,
    /// See [`Outcome::NotStored`].
    NotStored,
    /// See [`Outcome::Exists`].
    Exists,
    /// See [`Outcome::NotFound`].
    NotFound,
    /// See [`Outcome::Deleted`].
    Deleted,
    /// See [`Outcome::Touched`].
    Touched,
    /// See [`Outcome::Counted`].
    Counted,
    /// See [`Outcome::NotANumber`].
    NotANumber,
    /// See [`Outcome::Overflow`].
    Overflow,
    /// See [`Outcome::TooLarge`].
    TooLarge,
    /// See [`Outcome::OutOfMemory`].
    OutOfMemory,
}

impl<I> Outcome<I> {
    /// The variant of this outcome.
    #[inline]
    pub fn kind(&self) -> OutcomeKind {
        match self {
            Outcome::Value(_) => OutcomeKind::Value,
            Outcome::Miss => OutcomeKind::Miss,
            Outcome::Stored { .. } => OutcomeKind::Stored,
            Outcome::NotStored => OutcomeKind::NotStored,
            Outcome::Exists => OutcomeKind::Exists,
            Outcome::NotFound => OutcomeKind::NotFound,
            Outcome::Deleted => OutcomeKind::Deleted,
            Outcome::Touched { .. } => OutcomeKind::Touched,
            Outcome::Counted(_) => OutcomeKind::Counted,
            Outcome::NotANumber => OutcomeKind::NotANumber,
            Outcome::Overflow => OutcomeKind::Overflow,
            Outcome::TooLarge => OutcomeKind::TooLarge,
            Outcome::OutOfMemory => OutcomeKind::OutOfMemory,
        }
    }
}

impl Sum {
    /// Adds a part.
    pub fn add(&mut self, kind: OutcomeKind) {
        match kind {
            OutcomeKind::Value
            | OutcomeKind::Stored
            | OutcomeKind::Deleted
            | OutcomeKind::Touched => self.done += 1,
            OutcomeKind::OutOfMemory | OutcomeKind::TooLarge => self.failed += 1,
            _ => {}
        }
    }
}

/// How one protocol writes outcomes. The [`Form`](crate::Form) of a request implements this once
/// per protocol.
pub trait Emit {
    /// Appends the reply to one request. Appends nothing if the client wants no reply.
    fn emit<I: ItemView>(&self, request: &Request<'_>, outcome: Outcome<I>, out: &mut Vec<u8>);

    /// Whether the request is a part of a command that is answered with one [`Sum`], and has no
    /// reply of its own. [`Control::Sum`](crate::Control::Sum) follows the last part.
    #[inline(always)]
    fn is_part(&self) -> bool {
        false
    }

    /// Appends the item of a read and returns true, unless the read must change the item first.
    /// Only meta commands change items when they read.
    #[inline(always)]
    fn emit_read<I: ItemView>(
        &self,
        request: &Request<'_>,
        found: Found<I>,
        out: &mut Vec<u8>,
    ) -> bool {
        self.emit(request, Outcome::Value(found), out);
        true
    }
}

/// The item type of an outcome that has no item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoItem {}

impl ItemView for NoItem {
    fn flags(&self) -> u32 {
        match *self {}
    }

    fn cas(&self) -> u64 {
        match *self {}
    }

    fn expiry(&self) -> Expiry {
        match *self {}
    }

    fn value_bytes(&self) -> usize {
        match *self {}
    }

    fn append_value(&self, _out: &mut Vec<u8>) {
        match *self {}
    }

    fn append_part(&self, _from: usize, _bytes: usize, _out: &mut Vec<u8>) {
        match *self {}
    }

    fn heap_bytes(&self) -> usize {
        match *self {}
    }

    fn state(&self) -> ItemState {
        match *self {}
    }

    fn changes_with_read(&self, _now: Moment) -> bool {
        match *self {}
    }
}

#[cfg(test)]
mod tests;
