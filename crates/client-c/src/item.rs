//! The buffer into which values are read.

use crate::Bytes;
use glimmer_client as native;
use std::ptr::null;

/// The result of a read. glimmer_item_new creates one, any number of successive reads may use it,
/// and glimmer_item_free frees it.
pub struct Item(native::Item);

impl Item {
    const EMPTY: native::Item = native::Item {
        value: Vec::new(),
        flags: 0,
        cas: 0,
    };

    /// Replaces the result of the previous read.
    pub(crate) fn set(&mut self, found: Option<native::Item>) {
        self.0 = found.unwrap_or(Item::EMPTY);
    }
}

/// Creates an empty item. Never returns null.
#[unsafe(no_mangle)]
pub extern "C" fn glimmer_item_new() -> *mut Item {
    Box::into_raw(Box::new(Item(Item::EMPTY)))
}

/// Frees an item and its value. Null is allowed.
///
/// # Safety
///
/// The item is null or comes from glimmer_item_new, and is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn glimmer_item_free(item: *mut Item) {
    if !item.is_null() {
        // SAFETY: the caller guarantees that it is a box from this library.
        drop(unsafe { Box::from_raw(item) });
    }
}

/// The value that was read; no bytes if there is none. It is valid until the item is used for
/// another read or freed.
///
/// # Safety
///
/// The item is null or comes from glimmer_item_new.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn glimmer_item_value(item: *const Item) -> Bytes {
    // SAFETY: the caller guarantees it.
    let item = unsafe { item.as_ref() };
    let value = item.map(|item| item.0.value.as_slice());
    Bytes {
        data: value.map_or(null(), <[u8]>::as_ptr),
        length: value.map_or(0, <[u8]>::len),
    }
}

/// The 32-bit flags stored with the value.
///
/// # Safety
///
/// As for glimmer_item_value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn glimmer_item_flags(item: *const Item) -> u32 {
    // SAFETY: the caller guarantees it.
    unsafe { item.as_ref() }.map_or(0, |item| item.0.flags)
}

/// The CAS unique for glimmer_compare_and_swap; 0 if it was not requested.
///
/// # Safety
///
/// As for glimmer_item_value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn glimmer_item_cas(item: *const Item) -> u64 {
    // SAFETY: the caller guarantees it.
    unsafe { item.as_ref() }.map_or(0, |item| item.0.cas)
}
