//! Reads of large values whose replies are made slice by slice, with other requests between the
//! slices.
//!
//! Where the table [lends](glimmer_store::table::LentValue) values, the slices leave from where the
//! value lies: a [`LentReply`]. Elsewhere they are copied first, and the reply leaves when it is
//! complete.
//!
//! Each slice that is copied is a read of its own: it finds the key's item again, and copies its
//! part only if this is still the item of which the slices before were copied. So nothing is held
//! between slices, and a value that changes, moves, expires or leaves meanwhile never mixes with
//! another one.
//!
//! **Why slices that are copied are of one value.** An item is recognised by its CAS unique and the
//! length of its value. A table gives a new unique to each value that it stores. Values that bear a
//! unique of a client's choice are counted ([`GivenUniques`]) before they are stored, and a slice
//! is valid only if none was counted since the read began. Items without a unique are not copied in
//! slices.

use glimmer_base::sync::AtomicU64;
use glimmer_base::sync::Ordering::Relaxed;
use glimmer_store::table::LentValue;

/// How far a read in slices has come.
#[derive(Debug, Default)]
pub struct SlicedRead {
    /// The reply so far: it ends with the last slice that was copied.
    pub reply: Vec<u8>,
    /// What follows the value in the reply.
    pub(crate) tail: Vec<u8>,
    /// Bytes of the value that have been copied.
    pub(crate) copied: usize,
    /// The item's CAS unique.
    pub(crate) cas: u64,
    /// Bytes of the value.
    pub(crate) value_bytes: usize,
    /// [`GivenUniques::count`] before the first slice.
    pub(crate) given: u64,
}

impl SlicedRead {
    /// A read that has not begun, whose reply goes into this empty buffer.
    pub fn into(reply: Vec<u8>) -> SlicedRead {
        SlicedRead {
            reply,
            ..SlicedRead::default()
        }
    }

    /// Bytes of the value; zero before the first slice.
    pub fn value_bytes(&self) -> usize {
        self.value_bytes
    }
}

/// A reply whose value is lent by the table.
pub struct LentReply {
    /// Most of the value.
    pub value: Box<dyn LentValue>,
    /// Where in the reply buffer it belongs.
    pub at: usize,
    /// Bytes of the whole value. Its last ones may be in the reply buffer.
    pub value_bytes: usize,
}

/// What became of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sliced {
    /// It has been copied, and is not the last one.
    More,
    /// It was the last one: the reply is complete.
    Done,
    /// The request is not one that is executed in slices, or its item is not the one that the read
    /// began with: it is to be executed as a whole. What has been copied is worth nothing.
    Whole,
}

/// Counts the values that bear a CAS unique of a client's choice.
///
/// A worker counts before it stores, and a reader loads the number after it has validated a copy. A
/// validated copy of the value synchronises with the store, so that the load sees it counted.
/// Relaxed operations are therefore enough.
#[derive(Debug, Default)]
pub(crate) struct GivenUniques(AtomicU64);

impl GivenUniques {
    /// Such a value is about to be stored.
    #[cold]
    pub fn note(&self) {
        self.0.fetch_add(1, Relaxed);
    }

    /// How many there were.
    pub fn count(&self) -> u64 {
        self.0.load(Relaxed)
    }
}
