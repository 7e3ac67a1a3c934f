//! The operations that give an item a lifetime, with lifetimes in milliseconds.

use crate::operations::{remove, store};
use crate::{Bytes, Client, Outcome};
use glimmer_client as native;
use glimmer_client::Exptime;

/// Like glimmer_put, for an item that expires this many milliseconds from now, or never if they are
/// 0. A server that does not know milliseconds does not answer.
///
/// # Safety
///
/// As for glimmer_put.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn glimmer_put_ms(
    client: *mut Client,
    key: Bytes,
    value: Bytes,
    flags: u32,
    expiry_ms: u32,
) -> Outcome {
    let put = |client: &mut native::Client, key: &[u8], value: &[u8]| {
        client
            .put(key, value, flags, Exptime::ms(expiry_ms))
            .map(|()| true)
    };
    // SAFETY: the caller guarantees it.
    unsafe { store(client, key, value, put) }
}

/// Like glimmer_add; see glimmer_put_ms.
///
/// # Safety
///
/// As for glimmer_put.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn glimmer_add_ms(
    client: *mut Client,
    key: Bytes,
    value: Bytes,
    flags: u32,
    expiry_ms: u32,
) -> Outcome {
    let add = |client: &mut native::Client, key: &[u8], value: &[u8]| {
        client.add(key, value, flags, Exptime::ms(expiry_ms))
    };
    // SAFETY: the caller guarantees it.
    unsafe { store(client, key, value, add) }
}

/// Like glimmer_replace; see glimmer_put_ms.
///
/// # Safety
///
/// As for glimmer_put.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn glimmer_replace_ms(
    client: *mut Client,
    key: Bytes,
    value: Bytes,
    flags: u32,
    expiry_ms: u32,
) -> Outcome {
    let replace = |client: &mut native::Client, key: &[u8], value: &[u8]| {
        client.replace(key, value, flags, Exptime::ms(expiry_ms))
    };
    // SAFETY: the caller guarantees it.
    unsafe { store(client, key, value, replace) }
}

/// Like glimmer_compare_and_swap; see glimmer_put_ms.
///
/// # Safety
///
/// As for glimmer_put.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn glimmer_compare_and_swap_ms(
    client: *mut Client,
    key: Bytes,
    cas: u64,
    value: Bytes,
    flags: u32,
    expiry_ms: u32,
) -> Outcome {
    let swap = |client: &mut native::Client, key: &[u8], value: &[u8]| {
        client.compare_and_swap(key, cas, value, flags, Exptime::ms(expiry_ms))
    };
    // SAFETY: the caller guarantees it.
    unsafe { store(client, key, value, swap) }
}

/// Like glimmer_touch; see glimmer_put_ms.
///
/// # Safety
///
/// As for glimmer_delete.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn glimmer_touch_ms(
    client: *mut Client,
    key: Bytes,
    expiry_ms: u32,
) -> Outcome {
    let touch = |client: &mut native::Client, key: &[u8]| client.touch(key, Exptime::ms(expiry_ms));
    // SAFETY: the caller guarantees it.
    unsafe { remove(client, key, touch) }
}
