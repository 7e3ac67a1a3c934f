//! The request of each operation and the meaning of its answer. The blocking client and the client
//! for tasks share them.

use crate::answer::{self, Answer, Item};
use crate::error::{CountError, GetError, RemoveError, StoreError};
use crate::{Ask, What};
use glimmer_proto::StoreMode;
use glimmer_proto::native::request::{Change, Exptime};

/// A request for a key and the conversion of its answer.
pub struct Operation<'a, T, E> {
    what: What<'a>,
    shows_cas: bool,
    understand: fn(Answer) -> Result<T, E>,
}

impl<T, E> Operation<'_, T, E> {
    /// The request for this key.
    pub fn ask<'k>(&'k self, key: &'k [u8]) -> Ask<'k> {
        Ask {
            key,
            what: self.what,
            shows_cas: self.shows_cas,
        }
    }

    /// Converts the answer into the operation's result.
    pub fn understand(&self, answer: Answer) -> Result<T, E> {
        (self.understand)(answer)
    }
}

/// Reads an item, optionally with its CAS unique.
pub fn get(shows_cas: bool) -> Operation<'static, Option<Item>, GetError> {
    Operation {
        what: What::Get,
        shows_cas,
        understand: answer::found,
    }
}

/// Stores an item. The result is whether it was stored.
pub fn store(
    mode: StoreMode,
    value: &[u8],
    flags: u32,
    expiry: Exptime,
) -> Operation<'_, bool, StoreError> {
    let change = Change::Store {
        mode,
        expiry,
        flags,
        value,
    };
    changing(change, answer::stored)
}

/// Adds to a number. The result is the new number.
pub fn increment(delta: u64) -> Operation<'static, Option<u64>, CountError> {
    changing(Change::Increment { delta }, answer::counted)
}

/// Subtracts from a number. The result is the new number.
pub fn decrement(delta: u64) -> Operation<'static, Option<u64>, CountError> {
    changing(Change::Decrement { delta }, answer::counted)
}

/// Deletes an item. The result is whether there was one.
pub fn delete() -> Operation<'static, bool, RemoveError> {
    changing(Change::Delete, answer::removed)
}

/// Sets an item's expiry time. The result is whether there is an item.
pub fn touch(expiry: Exptime) -> Operation<'static, bool, RemoveError> {
    changing(Change::Touch { expiry }, answer::removed)
}

fn changing<T, E>(
    change: Change<'_>,
    understand: fn(Answer) -> Result<T, E>,
) -> Operation<'_, T, E> {
    Operation {
        what: What::Change(change),
        shows_cas: false,
        understand,
    }
}
