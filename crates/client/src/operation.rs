//! Each operation: what it asks, and what its answer means. The client that waits and the one for tasks have them in common.

use crate::answer::{self, Answer, Item};
use crate::error::{CountError, GetError, RemoveError, StoreError};
use crate::{Ask, What};
use glimmer_proto::StoreMode;
use glimmer_proto::native::request::Change;

/// What is asked of a key, and what comes of it.
pub struct Operation<'a, T, E> {
    what: What<'a>,
    shows_cas: bool,
    understand: fn(Answer) -> Result<T, E>,
}

impl<T, E> Operation<'_, T, E> {
    /// The request.
    pub fn ask<'k>(&'k self, key: &'k [u8]) -> Ask<'k> {
        Ask {
            key,
            what: self.what,
            shows_cas: self.shows_cas,
        }
    }

    /// What its answer means.
    pub fn understand(&self, answer: Answer) -> Result<T, E> {
        (self.understand)(answer)
    }
}

/// Reads an item, with its CAS unique if that is wanted.
pub fn get(shows_cas: bool) -> Operation<'static, Option<Item>, GetError> {
    Operation {
        what: What::Get,
        shows_cas,
        understand: answer::found,
    }
}

/// Stores an item; the answer is whether it did.
pub fn store(
    mode: StoreMode,
    value: &[u8],
    flags: u32,
    expiry: u32,
) -> Operation<'_, bool, StoreError> {
    let change = Change::Store {
        mode,
        expiry,
        flags,
        value,
    };
    changing(change, answer::stored)
}

/// Adds to a number; the answer is the result.
pub fn increment(delta: u64) -> Operation<'static, Option<u64>, CountError> {
    changing(Change::Increment { delta }, answer::counted)
}

/// Subtracts from a number; the answer is the result.
pub fn decrement(delta: u64) -> Operation<'static, Option<u64>, CountError> {
    changing(Change::Decrement { delta }, answer::counted)
}

/// Removes an item; the answer is whether there was one.
pub fn delete() -> Operation<'static, bool, RemoveError> {
    changing(Change::Delete, answer::removed)
}

/// Gives an item a new expiry time; the answer is whether there is one.
pub fn touch(expiry: u32) -> Operation<'static, bool, RemoveError> {
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
