//! What became of a request, in the words of no protocol: the engine produces an [`Outcome`], and
//! the protocol that the request came by writes it ([`Emit`]).
//!
//! An emitter takes from an outcome what its protocol shows: the text protocol neither a new CAS
//! unique nor the flags of a touched item, a meta command whatever its flags name. The item of a
//! read stays where the table has it. An emitter sees it as an [`ItemView`], which reads a field
//! only when it is asked for, and copies the value once, into the reply.
//!
//! A command that names several keys is one request per key. Its reply is written part by part, in
//! the order of the keys: what comes before the first part and after the last depends on the request
//! (`last` of the text protocol). Where a protocol answers such a command with one sum, each part
//! adds its [`Kind`].

use crate::Request;
use glimmer_base::{Expiry, Moment};

/// An item as replies show it.
pub trait ItemView: Copy {
    /// The client's own 32 bits.
    fn flags(&self) -> u32;
    /// The CAS unique.
    fn cas(&self) -> u64;
    /// When it expires.
    fn expiry(&self) -> Expiry;
    /// Bytes of the value.
    fn value_bytes(&self) -> usize;
    /// Appends the value.
    fn append_value(&self, out: &mut Vec<u8>);
    /// Appends up to `bytes` bytes of the value, from `from` on.
    fn append_part(&self, from: usize, bytes: usize, out: &mut Vec<u8>);
    /// Bytes that the item takes in the table.
    fn heap_bytes(&self) -> usize;
    /// What the meta commands have left on it.
    fn state(&self) -> ItemState;
    /// Whether a meta command that reads the item has to change it: to win the right to make the
    /// value again, or to note the access.
    fn changes_with_read(&self, now: Moment) -> bool;
}

/// What the meta commands leave on an item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ItemState {
    /// The key came in base64 and is shown so.
    pub has_binary_key: bool,
    /// The value is out of date.
    pub is_stale: bool,
    /// Another client has been told to make the value again.
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
    /// The item as it was before the request, or as the request has made it.
    pub item: I,
    /// When the request is executed.
    pub now: Moment,
    /// What only some requests ask for.
    pub details: Details,
}

/// What a reply shows of an item that the item itself does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Details {
    /// The request has made the item.
    pub is_new: bool,
    /// This client is to make the value again.
    pub wins: bool,
    /// The item had been read before; only if the request asks.
    pub was_fetched: bool,
    /// Seconds since the last access; only if the request asks.
    pub idle_s: u64,
}

impl<I> Found<I> {
    /// An item that was read and nothing else.
    #[inline(always)]
    pub fn read(item: I, now: Moment) -> Found<I> {
        Found {
            item,
            now,
            details: Details::default(),
        }
    }
}

/// What became of a request for one key.
#[derive(Clone, Copy, Debug)]
pub enum Outcome<I = NoItem> {
    /// The item that was asked for.
    Value(Found<I>),
    /// A read found no item.
    Miss,
    /// The item is there.
    Stored {
        /// Its CAS unique.
        cas: u64,
        /// Bytes of its value.
        value_bytes: usize,
    },
    /// The condition of a store did not hold, or the item could not be changed as asked.
    NotStored,
    /// The item has another CAS unique than the request names.
    Exists,
    /// There is no item that could be changed or compared.
    NotFound,
    /// The item was removed, emptied or marked as out of date.
    Deleted,
    /// The item has its new expiry time.
    Touched {
        /// Its client flags, if the request [shows](Request::shows_touched) them.
        flags: u32,
        /// Its CAS unique, as above.
        cas: u64,
    },
    /// The item holds a new number.
    Counted(Counted),
    /// The value to add to or subtract from is not a number.
    NotANumber,
    /// The item is larger than the limit.
    TooLarge,
    /// There is no memory for the item.
    OutOfMemory,
}

/// A number that an item holds now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// The number.
    pub number: u64,
    /// The item's CAS unique.
    pub cas: u64,
    /// When the item expired before the request; never, if the request has made it.
    pub expiry: Expiry,
    /// The request has made the item.
    pub is_new: bool,
    /// When the request is executed.
    pub now: Moment,
}

/// An [`Outcome`] without what it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
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
    /// See [`Outcome::TooLarge`].
    TooLarge,
    /// See [`Outcome::OutOfMemory`].
    OutOfMemory,
}

impl<I> Outcome<I> {
    /// Which outcome this is.
    #[inline]
    pub fn kind(&self) -> Kind {
        match self {
            Outcome::Value(_) => Kind::Value,
            Outcome::Miss => Kind::Miss,
            Outcome::Stored { .. } => Kind::Stored,
            Outcome::NotStored => Kind::NotStored,
            Outcome::Exists => Kind::Exists,
            Outcome::NotFound => Kind::NotFound,
            Outcome::Deleted => Kind::Deleted,
            Outcome::Touched { .. } => Kind::Touched,
            Outcome::Counted(_) => Kind::Counted,
            Outcome::NotANumber => Kind::NotANumber,
            Outcome::TooLarge => Kind::TooLarge,
            Outcome::OutOfMemory => Kind::OutOfMemory,
        }
    }
}

/// How one protocol writes outcomes. What a request carries for its reply, its
/// [`Form`](crate::Form), implements this once per protocol.
pub trait Emit {
    /// Appends the reply to one request; nothing, if the client wants no answer.
    fn emit<I: ItemView>(&self, request: &Request<'_>, outcome: Outcome<I>, out: &mut Vec<u8>);

    /// Appends the item of a read, unless the read has to change the item first; says whether it
    /// did. Only reads of the meta commands leave anything on an item.
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

/// The item of an outcome that has none.
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
