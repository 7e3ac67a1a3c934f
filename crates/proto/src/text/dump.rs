//! Lists items: `lru_crawler metadump`, `lru_crawler mgdump` and `stats cachedump`.

use crate::meta::base64;
use glimmer_base::shown;
use std::io::Write;

/// The slab class of every item in listings and statistics.
pub const CLASS: u32 = 1;

/// The data of one listed item.
#[derive(Clone, Copy, Debug)]
pub struct Listing<'a> {
    /// The key.
    pub key: &'a [u8],
    /// When it expires, in seconds since 1970; `None` means never.
    pub expiry_unix_s: Option<u64>,
    /// When it was last accessed, in seconds since 1970; `None` if that is unknown.
    pub accessed_unix_s: Option<u64>,
    /// The CAS unique.
    pub cas: u64,
    /// Whether a client has fetched it.
    pub is_fetched: bool,
    /// The client's flags.
    pub flags: u32,
    /// Length of the value in bytes.
    pub value_bytes: usize,
    /// Bytes that it occupies in total.
    pub bytes: usize,
}

/// Appends a line of `lru_crawler metadump`, which ends with a space as in memcached. An unknown
/// access time is shown as 0, and all items are in class 1.
pub fn metadump(out: &mut Vec<u8>, item: &Listing<'_>) {
    out.extend_from_slice(b"key=");
    shown::put_uri(out, item.key);
    match item.expiry_unix_s {
        Some(seconds) => put(out, format_args!(" exp={seconds}")),
        None => put(out, format_args!(" exp=-1")),
    }
    let accessed = item.accessed_unix_s.unwrap_or(0);
    let fetched = if item.is_fetched { "yes" } else { "no" };
    put(
        out,
        format_args!(
            " la={accessed} cas={} fetch={fetched} cls=1 size={} flags={} \n",
            item.cas, item.bytes, item.flags
        ),
    );
}

/// Appends a line of `lru_crawler mgdump`: a command that reads the item. The key is in base64 if a
/// line cannot show it as it is.
pub fn mgdump(out: &mut Vec<u8>, item: &Listing<'_>) {
    out.extend_from_slice(b"mg ");
    if shown::is_visible(item.key) {
        out.extend_from_slice(item.key);
    } else {
        base64::encode(item.key, out);
        out.extend_from_slice(b" b");
    }
    out.extend_from_slice(b"\r\n");
}

/// Appends a line of `stats cachedump`. Returns false, and appends nothing, if a line cannot
/// show the key as it is.
pub fn cachedump(out: &mut Vec<u8>, item: &Listing<'_>) -> bool {
    if !shown::is_visible(item.key) {
        return false;
    }
    out.extend_from_slice(b"ITEM ");
    out.extend_from_slice(item.key);
    let expiry = item.expiry_unix_s.unwrap_or(0);
    put(
        out,
        format_args!(" [{} b; {expiry} s]\r\n", item.value_bytes),
    );
    true
}

fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("memory takes every byte");
}

#[cfg(test)]
mod tests {
    use super::*;

    const ITEM: Listing<'_> = Listing {
        key: b"a#b",
        expiry_unix_s: None,
        accessed_unix_s: Some(1_700_000_000),
        cas: 7,
        is_fetched: true,
        flags: 5,
        value_bytes: 9,
        bytes: 24,
    };

    fn line(write: fn(&mut Vec<u8>, &Listing<'_>), item: &Listing<'_>) -> String {
        let mut out = Vec::new();
        write(&mut out, item);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn lines_are_memcacheds() {
        assert_eq!(
            line(metadump, &ITEM),
            "key=a%23b exp=-1 la=1700000000 cas=7 fetch=yes cls=1 size=24 flags=5 \n"
        );
        let mortal = Listing {
            expiry_unix_s: Some(1_800_000_000),
            accessed_unix_s: None,
            is_fetched: false,
            ..ITEM
        };
        assert_eq!(
            line(metadump, &mortal),
            "key=a%23b exp=1800000000 la=0 cas=7 fetch=no cls=1 size=24 flags=5 \n"
        );
        assert_eq!(line(mgdump, &ITEM), "mg a#b\r\n");
        let binary = Listing {
            key: b"a b\r\nset x",
            ..ITEM
        };
        assert_eq!(line(mgdump, &binary), "mg YSBiDQpzZXQgeA== b\r\n");
        let dumped = |item: &Listing<'_>| {
            let mut out = Vec::new();
            cachedump(&mut out, item).then(|| String::from_utf8(out).unwrap())
        };
        assert_eq!(dumped(&binary), None);
        assert_eq!(dumped(&ITEM).unwrap(), "ITEM a#b [9 b; 0 s]\r\n");
        assert_eq!(dumped(&mortal).unwrap(), "ITEM a#b [9 b; 1800000000 s]\r\n");
    }
}
