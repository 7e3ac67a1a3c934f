//! The operations of a client.

use crate::call::{Called, argument, failed, on, slice, tell};
use crate::{Bytes, Client, Item, Outcome};
use glimmer_client as native;
use native::{CountError, GetError, RemoveError, StoreError};

/// Reads an item into `item`. Unless the outcome is GLIMMER_OUTCOME_OK, the item has no value
/// afterwards.
///
/// # Safety
///
/// The client is null or comes from this library; the key has the given length; `item` is null or
/// comes from glimmer_item_new.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn glimmer_get(client: *mut Client, key: Bytes, item: *mut Item) -> Outcome {
    // SAFETY: the caller guarantees it.
    unsafe { read(client, key, item, native::Client::get) }
}

/// Reads an item with its CAS unique into `item`; see glimmer_get.
///
/// # Safety
///
/// As for glimmer_get.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn glimmer_get_for_swap(
    client: *mut Client,
    key: Bytes,
    item: *mut Item,
) -> Outcome {
    // SAFETY: the caller guarantees it.
    unsafe { read(client, key, item, native::Client::get_for_swap) }
}

/// Reads many items with requests that are sent together. The item of each key goes into the
/// element of `items` with the same index, and its outcome into `outcomes`. Returns
/// GLIMMER_OUTCOME_OK, or the failure that ended the whole call; nothing is written in that case.
/// All keys have one deadline.
///
/// # Safety
///
/// As for glimmer_get. There are `count` keys, `count` distinct items, and room for `count`
/// outcomes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn glimmer_get_many(
    client: *mut Client,
    keys: *const Bytes,
    count: usize,
    items: *const *mut Item,
    outcomes: *mut Outcome,
) -> Outcome {
    let call = |client: &mut native::Client| {
        // SAFETY: the caller guarantees it.
        let (keys, items) = unsafe { (slice(keys, count)?, slice(items, count)?) };
        if count > 0 && outcomes.is_null() {
            return Err(argument("the outcomes are null"));
        }
        if items.iter().any(|item| item.is_null()) {
            return Err(argument("an item is null"));
        }
        // SAFETY: the caller guarantees it.
        let keys = keys.iter().map(|key| unsafe { key.slice() });
        let keys = keys.collect::<Result<Vec<_>, _>>()?;
        let found = client
            .get_many(&keys)
            .map_err(|error| failed(GetError::Socket(error)))?;
        for (index, found) in found.into_iter().enumerate() {
            // SAFETY: there is one answer per key. The caller guarantees room for as many outcomes,
            // which may be uninitialised, and as many items, none of which is null.
            unsafe {
                let outcome = give(found, items[index]).unwrap_or_else(|outcome| outcome);
                tell(outcomes.add(index), outcome);
            }
        }
        Ok(Outcome::Ok)
    };
    // SAFETY: the caller guarantees it.
    unsafe { on(client, call) }
}

/// Stores an item. `expiry` follows memcached: 0 means never, up to 30 days counts seconds from
/// now, and larger values are seconds since 1970.
///
/// # Safety
///
/// The client is null or comes from this library; key and value have the given lengths.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn glimmer_put(
    client: *mut Client,
    key: Bytes,
    value: Bytes,
    flags: u32,
    expiry: u32,
) -> Outcome {
    let put = |client: &mut native::Client, key: &[u8], value: &[u8]| {
        client.put(key, value, flags, expiry).map(|()| true)
    };
    // SAFETY: the caller guarantees it.
    unsafe { store(client, key, value, put) }
}

/// Stores an item only if the key has none; otherwise returns GLIMMER_OUTCOME_NOT_STORED.
///
/// # Safety
///
/// As for glimmer_put.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn glimmer_add(
    client: *mut Client,
    key: Bytes,
    value: Bytes,
    flags: u32,
    expiry: u32,
) -> Outcome {
    let add = |client: &mut native::Client, key: &[u8], value: &[u8]| {
        client.add(key, value, flags, expiry)
    };
    // SAFETY: the caller guarantees it.
    unsafe { store(client, key, value, add) }
}

/// Stores an item only if the key has one already; otherwise returns GLIMMER_OUTCOME_NOT_STORED.
///
/// # Safety
///
/// As for glimmer_put.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn glimmer_replace(
    client: *mut Client,
    key: Bytes,
    value: Bytes,
    flags: u32,
    expiry: u32,
) -> Outcome {
    let replace = |client: &mut native::Client, key: &[u8], value: &[u8]| {
        client.replace(key, value, flags, expiry)
    };
    // SAFETY: the caller guarantees it.
    unsafe { store(client, key, value, replace) }
}

/// Stores an item only if the current item has this CAS unique; otherwise returns
/// GLIMMER_OUTCOME_NOT_STORED.
///
/// # Safety
///
/// As for glimmer_put.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn glimmer_compare_and_swap(
    client: *mut Client,
    key: Bytes,
    cas: u64,
    value: Bytes,
    flags: u32,
    expiry: u32,
) -> Outcome {
    let swap = |client: &mut native::Client, key: &[u8], value: &[u8]| {
        client.compare_and_swap(key, cas, value, flags, expiry)
    };
    // SAFETY: the caller guarantees it.
    unsafe { store(client, key, value, swap) }
}

/// Adds to a decimal number, wrapping at 2^64. Writes the new number to `number` unless that is
/// null.
///
/// # Safety
///
/// The client is null or comes from this library; the key has the given length; `number` is null or
/// may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn glimmer_increment(
    client: *mut Client,
    key: Bytes,
    delta: u64,
    number: *mut u64,
) -> Outcome {
    // SAFETY: the caller guarantees it.
    unsafe {
        count(client, key, number, |client, key| {
            client.increment(key, delta)
        })
    }
}

/// Subtracts from a decimal number, stopping at zero. Writes the new number to `number` unless that
/// is null.
///
/// # Safety
///
/// As for glimmer_increment.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn glimmer_decrement(
    client: *mut Client,
    key: Bytes,
    delta: u64,
    number: *mut u64,
) -> Outcome {
    // SAFETY: the caller guarantees it.
    unsafe {
        count(client, key, number, |client, key| {
            client.decrement(key, delta)
        })
    }
}

/// Deletes an item.
///
/// # Safety
///
/// The client is null or comes from this library, and the key has the given length.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn glimmer_delete(client: *mut Client, key: Bytes) -> Outcome {
    // SAFETY: the caller guarantees it.
    unsafe { remove(client, key, |client, key| client.delete(key)) }
}

/// Sets an item's expiry time; see glimmer_put.
///
/// # Safety
///
/// As for glimmer_delete.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn glimmer_touch(client: *mut Client, key: Bytes, expiry: u32) -> Outcome {
    // SAFETY: the caller guarantees it.
    unsafe { remove(client, key, |client, key| client.touch(key, expiry)) }
}

/// Panics, to test the effect of a bug in the library on a program.
///
/// cbindgen:ignore
///
/// # Safety
///
/// The client is null or comes from this library.
#[cfg(feature = "planted-panic")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn glimmer_planted_panic(client: *mut Client) -> Outcome {
    // SAFETY: the caller guarantees it.
    unsafe { on(client, |_| panic!("planted")) }
}

/// # Safety
///
/// As for [`glimmer_get`].
unsafe fn read(
    client: *mut Client,
    key: Bytes,
    item: *mut Item,
    get: impl FnOnce(&mut native::Client, &[u8]) -> Result<Option<native::Item>, GetError>,
) -> Outcome {
    if item.is_null() {
        return argument("the item is null");
    }
    let call = |client: &mut native::Client| {
        // SAFETY: the caller guarantees it.
        let found = get(client, unsafe { key.slice() }?);
        // SAFETY: the caller guarantees it, and `item` is not null. The key, which may lie in the
        // item's value, is no longer used.
        unsafe { give(found, item) }
    };
    // SAFETY: the caller guarantees it.
    let outcome = unsafe { on(client, call) };
    if outcome != Outcome::Ok {
        // SAFETY: as above. The call may have ended before its result was there.
        unsafe { &mut *item }.set(None);
    }
    outcome
}

/// # Safety
///
/// The item comes from `glimmer_item_new`.
unsafe fn give(found: Result<Option<native::Item>, GetError>, item: *mut Item) -> Called {
    // SAFETY: the caller guarantees it.
    let item = unsafe { &mut *item };
    item.set(None);
    match found.map_err(failed)? {
        Some(found) => {
            item.set(Some(found));
            Ok(Outcome::Ok)
        }
        None => Ok(Outcome::NotFound),
    }
}

/// # Safety
///
/// As for [`glimmer_put`].
pub(crate) unsafe fn store(
    client: *mut Client,
    key: Bytes,
    value: Bytes,
    store: impl FnOnce(&mut native::Client, &[u8], &[u8]) -> Result<bool, StoreError>,
) -> Outcome {
    let call = |client: &mut native::Client| {
        // SAFETY: the caller guarantees it.
        let (key, value) = unsafe { (key.slice()?, value.slice()?) };
        let is_stored = store(client, key, value).map_err(failed)?;
        Ok(match is_stored {
            true => Outcome::Ok,
            false => Outcome::NotStored,
        })
    };
    // SAFETY: the caller guarantees it.
    unsafe { on(client, call) }
}

/// # Safety
///
/// As for [`glimmer_increment`].
unsafe fn count(
    client: *mut Client,
    key: Bytes,
    number: *mut u64,
    count: impl FnOnce(&mut native::Client, &[u8]) -> Result<Option<u64>, CountError>,
) -> Outcome {
    let call = |client: &mut native::Client| {
        // SAFETY: the caller guarantees it.
        let counted = count(client, unsafe { key.slice() }?).map_err(failed)?;
        Ok(match counted {
            Some(counted) => {
                // SAFETY: the caller guarantees it.
                unsafe { tell(number, counted) };
                Outcome::Ok
            }
            None => Outcome::NotFound,
        })
    };
    // SAFETY: the caller guarantees it.
    unsafe { on(client, call) }
}

/// # Safety
///
/// As for [`glimmer_delete`].
pub(crate) unsafe fn remove(
    client: *mut Client,
    key: Bytes,
    remove: impl FnOnce(&mut native::Client, &[u8]) -> Result<bool, RemoveError>,
) -> Outcome {
    let call = |client: &mut native::Client| {
        // SAFETY: the caller guarantees it.
        let was_there = remove(client, unsafe { key.slice() }?).map_err(failed)?;
        Ok(match was_there {
            true => Outcome::Ok,
            false => Outcome::NotFound,
        })
    };
    // SAFETY: the caller guarantees it.
    unsafe { on(client, call) }
}
