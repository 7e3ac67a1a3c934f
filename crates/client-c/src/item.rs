//! Where values are read into.

use crate::Bytes;
use glimmer_client as native;
use std::ptr::null;

/// Where a value is read into. glimmer_item_new makes one, any number of reads may use it one after
/// another, and glimmer_item_free ends it.
pub struct Item(native::Item);

impl Item {
    const EMPTY: native::Item = native::Item {
        value: Vec::new(),
        flags: 0,
        cas: 0,
    };

    /// Replaces what was read before.
    pub(crate) fn set(&mut self, found: Option<native::Item>) {
        self.0 = found.unwrap_or(Item::EMPTY);
    }
}

/// An item that nothing has been read into. It is never null.
#[unsafe(no_mangle)]
pub extern "C" fn glimmer_item_new() -> *mut Item {
    Box::into_raw(Box::new(Item(Item::EMPTY)))
}

/// Ends an item, and with it its value; null is allowed.
///
/// # Safety
///
/// The item is null or comes from glimmer_item_new, and is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn glimmer_item_free(item: *mut Item) {
    if !item.is_null() {
        // SAFETY: the caller's promise: it is the box that was handed out.
        drop(unsafe { Box::from_raw(item) });
    }
}

/// The value that was read, until the item is read into again or freed; no bytes if there is none.
///
/// # Safety
///
/// The item is null or comes from glimmer_item_new.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn glimmer_item_value(item: *const Item) -> Bytes {
    // SAFETY: the caller's promise.
    let item = unsafe { item.as_ref() };
    let value = item.map(|item| item.0.value.as_slice());
    Bytes {
        data: value.map_or(null(), <[u8]>::as_ptr),
        length: value.map_or(0, <[u8]>::len),
    }
}

/// The 32 bits that were stored with the value.
///
/// # Safety
///
/// As for glimmer_item_value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn glimmer_item_flags(item: *const Item) -> u32 {
    // SAFETY: the caller's promise.
    unsafe { item.as_ref() }.map_or(0, |item| item.0.flags)
}

/// What glimmer_compare_and_swap compares; 0 if it was not asked for.
///
/// # Safety
///
/// As for glimmer_item_value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn glimmer_item_cas(item: *const Item) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { item.as_ref() }.map_or(0, |item| item.0.cas)
}
