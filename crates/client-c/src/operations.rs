//! What is asked of a client.

use crate::call::{Called, argument, failed, on, slice, tell};
use crate::{Bytes, Client, Item, Outcome};
use glimmer_client as native;
use native::{CountError, GetError, RemoveError, StoreError};

/// Reads an item into `item`. Unless the outcome is GLIMMER_OUTCOME_OK, it has no value afterwards.
///
/// # Safety
///
/// The client is null or was handed out; the key is as long as it says; `item` is null or comes from
/// glimmer_item_new.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn glimmer_get(client: *mut Client, key: Bytes, item: *mut Item) -> Outcome {
    // SAFETY: the caller's promise.
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
    // SAFETY: the caller's promise.
    unsafe { read(client, key, item, native::Client::get_for_swap) }
}

/// Reads many items with requests that leave together: the item of each key into the item of the
/// same number, and what came of it into `outcomes`. Returns GLIMMER_OUTCOME_OK, or what ended all
/// of it; then nothing is written.
///
/// # Safety
///
/// As for glimmer_get; there are `count` keys and as many items, none of them twice, and room for as
/// many outcomes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn glimmer_get_many(
    client: *mut Client,
    keys: *const Bytes,
    count: usize,
    items: *const *mut Item,
    outcomes: *mut Outcome,
) -> Outcome {
    let call = |client: &mut native::Client| {
        // SAFETY: the caller's promise.
        let (keys, items) = unsafe { (slice(keys, count)?, slice(items, count)?) };
        if count > 0 && outcomes.is_null() {
            return Err(argument("the outcomes are null"));
        }
        if items.iter().any(|item| item.is_null()) {
            return Err(argument("an item is null"));
        }
        // SAFETY: the caller's promise.
        let keys = keys.iter().map(|key| unsafe { key.slice() });
        let keys = keys.collect::<Result<Vec<_>, _>>()?;
        let found = client
            .get_many(&keys)
            .map_err(|error| failed(GetError::Socket(error)))?;
        for (index, found) in found.into_iter().enumerate() {
            // SAFETY: there is an answer for each key, and the caller promises as many outcomes,
            // which may hold anything yet, and items, of which none is null.
            unsafe {
                let outcome = give(found, items[index]).unwrap_or_else(|outcome| outcome);
                tell(outcomes.add(index), outcome);
            }
        }
        Ok(Outcome::Ok)
    };
    // SAFETY: the caller's promise.
    unsafe { on(client, call) }
}

/// Stores an item. `expiry` is memcached's: 0 is never, up to 30 days is in seconds from now, and
/// more is seconds since 1970.
///
/// # Safety
///
/// The client is null or was handed out; key and value are as long as they say.
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
    // SAFETY: the caller's promise.
    unsafe { store(client, key, value, put) }
}

/// Stores an item if there is none; GLIMMER_OUTCOME_NOT_STORED if there is.
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
    // SAFETY: the caller's promise.
    unsafe { store(client, key, value, add) }
}

/// Stores an item if there is one; GLIMMER_OUTCOME_NOT_STORED if there is none.
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
    // SAFETY: the caller's promise.
    unsafe { store(client, key, value, replace) }
}

/// Stores an item if the one that is there has this CAS unique; GLIMMER_OUTCOME_NOT_STORED if there
/// is none, or another.
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
    // SAFETY: the caller's promise.
    unsafe { store(client, key, value, swap) }
}

/// Adds to a decimal number, wrapping at 2^64; the result goes to `number`, unless that is null.
///
/// # Safety
///
/// The client is null or was handed out; the key is as long as it says; `number` is null or may be
/// written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn glimmer_increment(
    client: *mut Client,
    key: Bytes,
    delta: u64,
    number: *mut u64,
) -> Outcome {
    // SAFETY: the caller's promise.
    unsafe {
        count(client, key, number, |client, key| {
            client.increment(key, delta)
        })
    }
}

/// Subtracts from a decimal number, stopping at zero; the result goes to `number`, unless that is
/// null.
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
    // SAFETY: the caller's promise.
    unsafe {
        count(client, key, number, |client, key| {
            client.decrement(key, delta)
        })
    }
}

/// Removes an item.
///
/// # Safety
///
/// The client is null or was handed out, and the key is as long as it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn glimmer_delete(client: *mut Client, key: Bytes) -> Outcome {
    // SAFETY: the caller's promise.
    unsafe { remove(client, key, |client, key| client.delete(key)) }
}

/// Gives an item a new expiry time; see glimmer_put.
///
/// # Safety
///
/// As for glimmer_delete.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn glimmer_touch(client: *mut Client, key: Bytes, expiry: u32) -> Outcome {
    // SAFETY: the caller's promise.
    unsafe { remove(client, key, |client, key| client.touch(key, expiry)) }
}

/// Panics, for tests of what a bug in the library does to a program.
///
/// cbindgen:ignore
///
/// # Safety
///
/// The client is null or was handed out.
#[cfg(feature = "planted-panic")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn glimmer_planted_panic(client: *mut Client) -> Outcome {
    // SAFETY: the caller's promise.
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
        // SAFETY: the caller's promise.
        let found = get(client, unsafe { key.slice() }?);
        // SAFETY: the caller's promise; it is not null. The key, which may lie in the item's value,
        // is not used any more.
        unsafe { give(found, item) }
    };
    // SAFETY: the caller's promise.
    unsafe { on(client, call) }
}

/// # Safety
///
/// The item comes from `glimmer_item_new`.
unsafe fn give(found: Result<Option<native::Item>, GetError>, item: *mut Item) -> Called {
    // SAFETY: the caller's promise.
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
unsafe fn store(
    client: *mut Client,
    key: Bytes,
    value: Bytes,
    store: impl FnOnce(&mut native::Client, &[u8], &[u8]) -> Result<bool, StoreError>,
) -> Outcome {
    let call = |client: &mut native::Client| {
        // SAFETY: the caller's promise.
        let (key, value) = unsafe { (key.slice()?, value.slice()?) };
        let is_stored = store(client, key, value).map_err(failed)?;
        Ok(match is_stored {
            true => Outcome::Ok,
            false => Outcome::NotStored,
        })
    };
    // SAFETY: the caller's promise.
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
        // SAFETY: the caller's promise.
        let counted = count(client, unsafe { key.slice() }?).map_err(failed)?;
        Ok(match counted {
            Some(counted) => {
                // SAFETY: the caller's promise.
                unsafe { tell(number, counted) };
                Outcome::Ok
            }
            None => Outcome::NotFound,
        })
    };
    // SAFETY: the caller's promise.
    unsafe { on(client, call) }
}

/// # Safety
///
/// As for [`glimmer_delete`].
unsafe fn remove(
    client: *mut Client,
    key: Bytes,
    remove: impl FnOnce(&mut native::Client, &[u8]) -> Result<bool, RemoveError>,
) -> Outcome {
    let call = |client: &mut native::Client| {
        // SAFETY: the caller's promise.
        let was_there = remove(client, unsafe { key.slice() }?).map_err(failed)?;
        Ok(match was_there {
            true => Outcome::Ok,
            false => Outcome::NotFound,
        })
    };
    // SAFETY: the caller's promise.
    unsafe { on(client, call) }
}
