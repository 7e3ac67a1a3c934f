//! Floor 3: the client library for C, and for every language that calls C. `include/glimmer.h` is made from this file (cbindgen).
//!
//! A client belongs to one thread at a time. Keys and values are any bytes, with their lengths; nothing ends with a zero but the names of servers. What a
//! function returns is a [`Outcome`]; what else it tells goes to where the caller points.

mod outcome;
mod settings;

pub use outcome::Outcome;
pub use settings::Settings;

use glimmer_client as native;
use outcome::stored;
use std::ffi::{CStr, c_char};
use std::ptr::NonNull;

/// A client of one server or of several. After a fork parent and child may both go on with it: the child finds the servers anew, and is another client.
pub struct Client(native::Client);

/// Some bytes of the caller's.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Bytes {
    /// The first of them; may be null if there are none.
    pub data: *const u8,
    /// How many.
    pub length: usize,
}

/// An item that was read. Its value is to be given back to glimmer_item_free.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Item {
    /// The value; null if there is no item.
    pub value: *mut u8,
    /// Bytes of the value.
    pub value_bytes: usize,
    /// The 32 bits that were stored with it.
    pub flags: u32,
    /// What glimmer_compare_and_swap compares; 0 if it was not asked for.
    pub cas: u64,
}

/// One of several servers.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// Its host, as other clients name it; ends with a zero.
    pub host: *const c_char,
    /// Its TCP port, by which keys are placed, too.
    pub port: u16,
    /// Its first native port.
    pub native_port: u16,
    /// Its share of the keys, in relation to the others'.
    pub weight: u32,
}

/// Which of several servers has a key. Functions take it as a number, since C does not keep its callers from others.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// libmemcached's MEMCACHED_BEHAVIOR_KETAMA.
    Ketama = 0,
    /// libmemcached's MEMCACHED_BEHAVIOR_KETAMA_WEIGHTED.
    KetamaWeighted = 1,
    /// Rendezvous hashing.
    Rendezvous = 2,
}

impl Placement {
    fn of(number: u32) -> Option<native::Placement> {
        let all = [
            (Placement::Ketama, native::Placement::Ketama),
            (Placement::KetamaWeighted, native::Placement::KetamaWeighted),
            (Placement::Rendezvous, native::Placement::Rendezvous),
        ];
        let placement = all.into_iter().find(|&(known, _)| known as u32 == number);
        placement.map(|(_, placement)| placement)
    }
}

const NONE: Item = Item {
    value: std::ptr::null_mut(),
    value_bytes: 0,
    flags: 0,
    cas: 0,
};

/// Finds a server by the name or address of its host, which ends with a zero, and its native port. `settings` may be null, for the usual ones. Null if it
/// does not answer; then the reason is where `outcome` points, unless that is null.
///
/// # Safety
///
/// `host` points at a string that ends with a zero; `settings` is null or points at settings; `outcome` is null or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn glimmer_connect(
    host: *const c_char,
    native_port: u16,
    settings: *const Settings,
    outcome: *mut Outcome,
) -> *mut Client {
    // SAFETY: the caller's promise.
    let (host, settings) = unsafe { (text(host), settings::of(settings)) };
    let connected = host
        .ok_or(Outcome::Argument)
        .and_then(|host| Ok(native::Client::connect_with((host, native_port), settings)?));
    // SAFETY: the caller's promise.
    unsafe { hand_out(connected, outcome) }
}

/// Finds several servers, among which keys are placed as a glimmer_placement says. Null if none answers; see glimmer_connect.
///
/// # Safety
///
/// `members` points at `count` members, whose hosts are strings that end with a zero; `settings` is null or points at settings; `outcome` is null or
/// may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn glimmer_connect_to_all(
    members: *const Member,
    count: usize,
    placement: u32,
    settings: *const Settings,
    outcome: *mut Outcome,
) -> *mut Client {
    // SAFETY: the caller's promise.
    let (members, settings) = unsafe { (slice(members, count), settings::of(settings)) };
    let members = members.iter().map(|member| {
        // SAFETY: the caller's promise.
        let host = unsafe { text(member.host) }?;
        Some(native::Member {
            host: host.to_owned(),
            port: member.port,
            native_port: member.native_port,
            weight: member.weight,
        })
    });
    let members: Option<Vec<_>> = members.collect();
    let asked = members.zip(Placement::of(placement));
    let connected = asked
        .ok_or(Outcome::Argument)
        .and_then(|(members, placement)| {
            let client = native::Client::connect_to_all(&members, placement, settings);
            Ok(client?)
        });
    // SAFETY: the caller's promise.
    unsafe { hand_out(connected, outcome) }
}

/// Ends a client; null is none.
///
/// # Safety
///
/// The client comes from glimmer_connect or glimmer_connect_to_all and is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn glimmer_free(client: *mut Client) {
    if !client.is_null() {
        // SAFETY: the caller's promise: it is the box that was handed out.
        drop(unsafe { Box::from_raw(client) });
    }
}

/// Reads an item into `item`.
///
/// # Safety
///
/// The client is one that was handed out, the key is as long as it says, and `item` may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn glimmer_get(client: &mut Client, key: Bytes, item: &mut Item) -> Outcome {
    // SAFETY: the caller's promise.
    let found = client.0.get(unsafe { key.slice() });
    give(found, item)
}

/// Reads an item with its CAS unique into `item`.
///
/// # Safety
///
/// As for glimmer_get.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn glimmer_get_for_swap(
    client: &mut Client,
    key: Bytes,
    item: &mut Item,
) -> Outcome {
    // SAFETY: the caller's promise.
    let found = client.0.get_for_swap(unsafe { key.slice() });
    give(found, item)
}

/// Reads many items with requests that leave together: the item of each key into the place of the same number, and what came of it into `outcomes`.
/// Returns GLIMMER_OUTCOME_OK, or what ended all of it.
///
/// # Safety
///
/// As for glimmer_get; there are `count` keys, and room for as many items and outcomes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn glimmer_get_many(
    client: &mut Client,
    keys: *const Bytes,
    count: usize,
    items: *mut Item,
    outcomes: *mut Outcome,
) -> Outcome {
    // SAFETY: the caller's promise.
    let keys = unsafe { slice(keys, count) };
    // SAFETY: the same.
    let keys: Vec<&[u8]> = keys.iter().map(|key| unsafe { key.slice() }).collect();
    let found = match client.0.get_many(&keys) {
        Ok(found) => found,
        Err(_) => return Outcome::Socket,
    };
    for (index, found) in found.into_iter().enumerate() {
        let mut item = NONE;
        let outcome = give(found, &mut item);
        // SAFETY: there is an answer for each key, and the caller promises as many places, which may hold anything yet.
        unsafe {
            items.add(index).write(item);
            outcomes.add(index).write(outcome);
        }
    }
    Outcome::Ok
}

/// Gives an item's value back, and leaves an item without one.
///
/// # Safety
///
/// The item is as one of the functions above left it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn glimmer_item_free(item: &mut Item) {
    let Item {
        value, value_bytes, ..
    } = std::mem::replace(item, NONE);
    if !value.is_null() {
        let value = std::ptr::slice_from_raw_parts_mut(value, value_bytes);
        // SAFETY: the caller's promise: it is the box that `give` took apart.
        drop(unsafe { Box::from_raw(value) });
    }
}

/// Stores an item. `expiry` is memcached's: 0 is never, up to 30 days is in seconds from now, and more is seconds since 1970.
///
/// # Safety
///
/// The client is one that was handed out; key and value are as long as they say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn glimmer_put(
    client: &mut Client,
    key: Bytes,
    value: Bytes,
    flags: u32,
    expiry: u32,
) -> Outcome {
    // SAFETY: the caller's promise.
    let (key, value) = unsafe { (key.slice(), value.slice()) };
    stored(client.0.put(key, value, flags, expiry).map(|()| true))
}

/// Stores an item if there is none; GLIMMER_OUTCOME_NOT_STORED if there is.
///
/// # Safety
///
/// As for glimmer_put.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn glimmer_add(
    client: &mut Client,
    key: Bytes,
    value: Bytes,
    flags: u32,
    expiry: u32,
) -> Outcome {
    // SAFETY: the caller's promise.
    let (key, value) = unsafe { (key.slice(), value.slice()) };
    stored(client.0.add(key, value, flags, expiry))
}

/// Stores an item if there is one; GLIMMER_OUTCOME_NOT_STORED if there is none.
///
/// # Safety
///
/// As for glimmer_put.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn glimmer_replace(
    client: &mut Client,
    key: Bytes,
    value: Bytes,
    flags: u32,
    expiry: u32,
) -> Outcome {
    // SAFETY: the caller's promise.
    let (key, value) = unsafe { (key.slice(), value.slice()) };
    stored(client.0.replace(key, value, flags, expiry))
}

/// Stores an item if the one that is there has this CAS unique; GLIMMER_OUTCOME_NOT_STORED if there is none, or another.
///
/// # Safety
///
/// As for glimmer_put.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn glimmer_compare_and_swap(
    client: &mut Client,
    key: Bytes,
    cas: u64,
    value: Bytes,
    flags: u32,
    expiry: u32,
) -> Outcome {
    // SAFETY: the caller's promise.
    let (key, value) = unsafe { (key.slice(), value.slice()) };
    stored(client.0.compare_and_swap(key, cas, value, flags, expiry))
}

/// Adds to a decimal number, wrapping at 2^64; the result goes to `number`.
///
/// # Safety
///
/// As for glimmer_get; `number` may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn glimmer_increment(
    client: &mut Client,
    key: Bytes,
    delta: u64,
    number: &mut u64,
) -> Outcome {
    // SAFETY: the caller's promise.
    let counted = client.0.increment(unsafe { key.slice() }, delta);
    tell(counted, number)
}

/// Subtracts from a decimal number, stopping at zero; the result goes to `number`.
///
/// # Safety
///
/// As for glimmer_increment.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn glimmer_decrement(
    client: &mut Client,
    key: Bytes,
    delta: u64,
    number: &mut u64,
) -> Outcome {
    // SAFETY: the caller's promise.
    let counted = client.0.decrement(unsafe { key.slice() }, delta);
    tell(counted, number)
}

/// Removes an item.
///
/// # Safety
///
/// The client is one that was handed out, and the key is as long as it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn glimmer_delete(client: &mut Client, key: Bytes) -> Outcome {
    // SAFETY: the caller's promise.
    Outcome::of_found(client.0.delete(unsafe { key.slice() }))
}

/// Gives an item a new expiry time; see glimmer_put.
///
/// # Safety
///
/// As for glimmer_delete.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn glimmer_touch(client: &mut Client, key: Bytes, expiry: u32) -> Outcome {
    // SAFETY: the caller's promise.
    Outcome::of_found(client.0.touch(unsafe { key.slice() }, expiry))
}

/// A glimmer_outcome in words, which end with a zero and are not to be freed.
#[unsafe(no_mangle)]
pub extern "C" fn glimmer_outcome_text(outcome: u32) -> *const c_char {
    let text = Outcome::of_number(outcome).map_or(c"no outcome of this library", Outcome::text);
    text.as_ptr()
}

impl Bytes {
    /// # Safety
    ///
    /// They are as long as they say, for as long as the slice is used.
    unsafe fn slice<'a>(self) -> &'a [u8] {
        // SAFETY: the caller's promise.
        unsafe { slice(self.data, self.length) }
    }
}

/// # Safety
///
/// There are `count` values at `first`, unless `count` is zero, for as long as the slice is used.
unsafe fn slice<'a, T>(first: *const T, count: usize) -> &'a [T] {
    match count {
        0 => &[],
        // SAFETY: the caller's promise.
        count => unsafe { std::slice::from_raw_parts(first, count) },
    }
}

/// # Safety
///
/// It is null, or a string that ends with a zero and stays for as long as the text is used.
unsafe fn text<'a>(string: *const c_char) -> Option<&'a str> {
    let string = NonNull::new(string.cast_mut())?;
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(string.as_ptr()) }.to_str().ok()
}

/// # Safety
///
/// `told` is null or may be written to.
unsafe fn hand_out(connected: Result<native::Client, Outcome>, told: *mut Outcome) -> *mut Client {
    let (client, outcome) = match connected {
        Ok(client) => (Box::into_raw(Box::new(Client(client))), Outcome::Ok),
        Err(outcome) => (std::ptr::null_mut(), outcome),
    };
    if !told.is_null() {
        // SAFETY: the caller's promise.
        unsafe { told.write(outcome) };
    }
    client
}

fn give(found: Result<Option<native::Item>, native::GetError>, item: &mut Item) -> Outcome {
    *item = NONE;
    match found {
        Ok(Some(found)) => {
            let value = Box::leak(found.value.into_boxed_slice());
            *item = Item {
                value_bytes: value.len(),
                value: value.as_mut_ptr(),
                flags: found.flags,
                cas: found.cas,
            };
            Outcome::Ok
        }
        Ok(None) => Outcome::NotFound,
        Err(error) => error.into(),
    }
}

fn tell(counted: Result<Option<u64>, native::CountError>, number: &mut u64) -> Outcome {
    match counted {
        Ok(Some(counted)) => {
            *number = counted;
            Outcome::Ok
        }
        Ok(None) => Outcome::NotFound,
        Err(error) => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::ptr::null;

    /// What the header is made of; with GLIMMER_BLESS in the environment the test writes it.
    #[test]
    fn the_header_is_this_crates() {
        let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let config = cbindgen::Config::from_file(crate_folder.join("cbindgen.toml")).unwrap();
        let made = cbindgen::Builder::new()
            .with_config(config)
            .with_src(crate_folder.join("src/outcome.rs"))
            .with_src(crate_folder.join("src/settings.rs"))
            .with_src(crate_folder.join("src/lib.rs"))
            .generate()
            .unwrap();
        let mut header = Vec::new();
        made.write(&mut header);
        let file = crate_folder.join("include/glimmer.h");
        if std::env::var_os("GLIMMER_BLESS").is_some() {
            std::fs::write(&file, &header).unwrap();
        }
        let committed = std::fs::read_to_string(&file).unwrap();
        let header = String::from_utf8(header).unwrap();
        assert!(
            committed == header,
            "run this test with GLIMMER_BLESS=1 to bring include/glimmer.h up to date"
        );
    }

    #[test]
    fn nobody_there_is_an_outcome() {
        let mut outcome = Outcome::Ok;
        // SAFETY: a null host is no string, and the outcome may be written to.
        let client = unsafe { glimmer_connect(null(), 1, null(), &mut outcome) };
        assert!(client.is_null() && outcome == Outcome::Argument);
        // SAFETY: there are no members.
        let client = unsafe { glimmer_connect_to_all(null(), 0, 0, null(), &mut outcome) };
        assert!(client.is_null() && outcome == Outcome::NoAddress);
        // SAFETY: there are no members.
        let client = unsafe { glimmer_connect_to_all(null(), 0, 3, null(), &mut outcome) };
        assert!(client.is_null() && outcome == Outcome::Argument);
        // SAFETY: null is no client.
        unsafe { glimmer_free(client) };
    }

    #[test]
    fn every_outcome_has_words_and_no_other_number_has() {
        // SAFETY: what is handed out ends with a zero and stays.
        let text = |number| unsafe { CStr::from_ptr(glimmer_outcome_text(number)) };
        let unknown = text(u32::MAX);
        let known: Vec<u32> = (0..100).filter(|&number| text(number) != unknown).collect();
        let numbers = [0, 1, 2]
            .into_iter()
            .chain(Outcome::Key as u32..=Outcome::Away as u32);
        assert!(known.into_iter().eq(numbers));
    }

    #[test]
    fn an_empty_value_is_a_value() {
        let found = native::Item {
            value: Vec::new(),
            flags: 3,
            cas: 0,
        };
        let mut item = NONE;
        assert_eq!(give(Ok(Some(found)), &mut item), Outcome::Ok);
        assert!(!item.value.is_null() && item.value_bytes == 0 && item.flags == 3);
        for _ in 0..2 {
            // SAFETY: it is as `give` left it, and then without a value.
            unsafe { glimmer_item_free(&mut item) };
            assert!(item.value.is_null());
        }
    }
}
