//! The bytes of an item in memcached 1.4.13, and in the three caches that MemC3's authors derived
//! from it (NSDI'13 §5.3).
//!
//! `Item` has the fields of `struct _stritem` in `memcached.h` of that version, in order and with
//! their types, as C lays them out. The paper says which fields a cache does without: cuckoo
//! hashing needs no pointer for a chain, and CLOCK needs neither the two pointers of a list nor the
//! reference count. The published code of MemC3 (`efficient/memc3`) leaves out the same fields.
//! What follows the header, and how a slab class is chosen, are those of `items.c` and `slabs.c`,
//! which both have in common.

use super::{IndexKind, Kind, ReplacementKind};

/// Bytes of a pointer.
const POINTER: usize = size_of::<usize>();
/// Bytes of a version of an item (`cas`), which follows the header unless that is switched off.
const CAS_BYTES: usize = size_of::<u64>();
/// Chunks have a multiple of this length (`CHUNK_ALIGN_BYTES`).
const CHUNK_ALIGN_BYTES: usize = 8;
/// Length of a page that is divided into chunks: the largest item.
const PAGE_BYTES: usize = 1 << 20;

/// The header: `LINKS` pointers, and a reference count or none.
#[repr(C)]
struct Item<const LINKS: usize, Count> {
    links: [*const u8; LINKS],
    time: u32,
    exptime: u32,
    nbytes: i32,
    refcount: Count,
    nsuffix: u8,
    it_flags: u8,
    slabs_clsid: u8,
    nkey: u8,
    /// The version, or the first byte of the key.
    data: [u64; 0],
}

/// What chooses the lengths of chunks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slabs {
    /// The least length of what follows an item's header (`chunk_size`).
    pub least: usize,
    /// The length of a chunk over that of the class below (`factor`).
    pub factor: f64,
    /// Whether items have versions.
    pub with_cas: bool,
}

impl Slabs {
    /// What a server starts with, unless its flags say otherwise.
    pub const DEFAULT: Slabs = Slabs {
        least: 48,
        factor: 1.25,
        with_cas: true,
    };
    /// What the benchmark of caches in MemC3's code sets, for keys of 16 bytes and values of 32.
    pub const PAPER: Slabs = Slabs {
        least: 64,
        factor: 1.25,
        with_cas: false,
    };
}

/// The parts of an item, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The header without a version.
    pub header: usize,
    /// The fields that keep an item in a strict order of use: the list's pointers and the count.
    pub order: usize,
    /// Everything that is stored of an item.
    pub item: usize,
    /// The chunk that it lies in.
    pub chunk: usize,
}

impl Layout {
    /// An item of one of the paper's caches.
    pub fn of(kind: Kind, key_bytes: usize, value_bytes: usize, slabs: Slabs) -> Layout {
        let chain = matches!(kind.index, IndexKind::Chaining | IndexKind::ChainingByWords);
        let (header, order) = match (kind.replacement, chain) {
            (ReplacementKind::Lru, true) => (size_of::<Item<3, u16>>(), ORDER_BYTES),
            (ReplacementKind::Lru, false) => (size_of::<Item<2, u16>>(), ORDER_BYTES),
            (_, true) => (size_of::<Item<1, ()>>(), 0),
            (_, false) => (size_of::<Item<0, ()>>(), 0),
        };
        // The key ends with a zero, the value with CR LF. The flags and the length between them
        // are the text that a reply to `get` has.
        let suffix = format!(" 0 {value_bytes}\r\n");
        let cas = if slabs.with_cas { CAS_BYTES } else { 0 };
        let item = header + cas + key_bytes + 1 + suffix.len() + value_bytes + 2;
        Layout {
            header,
            order,
            item,
            chunk: chunk_for(item, header, slabs),
        }
    }

    /// How many of these items lie in this much memory.
    pub fn items_in(self, bytes: usize) -> usize {
        bytes / PAGE_BYTES * (PAGE_BYTES / self.chunk)
    }
}

/// Two pointers and a count of two bytes.
const ORDER_BYTES: usize = 2 * POINTER + size_of::<u16>();

/// The chunk of the first class that an item fits into.
fn chunk_for(item: usize, header: usize, slabs: Slabs) -> usize {
    let mut chunk = (header + slabs.least).next_multiple_of(CHUNK_ALIGN_BYTES);
    while chunk < item {
        let next = (chunk as f64 * slabs.factor) as usize;
        chunk = next.next_multiple_of(CHUNK_ALIGN_BYTES);
    }
    chunk
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store_alone::mirror::LockKind;

    const CACHES: [(IndexKind, ReplacementKind); 4] = [
        (IndexKind::Chaining, ReplacementKind::Lru),
        (IndexKind::CuckooTags, ReplacementKind::Lru),
        (IndexKind::ChainingByWords, ReplacementKind::Clock),
        (IndexKind::CuckooTags, ReplacementKind::Clock),
    ];

    fn kinds() -> [Kind; 4] {
        CACHES.map(|(index, replacement)| Kind {
            index,
            replacement,
            locks: LockKind::Optimistic,
            huge_pages: false,
        })
    }

    #[test]
    fn the_header_with_a_version_has_the_56_bytes_that_the_paper_states() {
        let layout = Layout::of(Kind::MEMCACHED, 16, 32, Slabs::DEFAULT);
        assert_eq!(layout.header + CAS_BYTES, 56);
        assert_eq!(layout.order, 18);
        // What memcached's manual has for its classes: 96, 120, 152.
        assert_eq!((layout.item, layout.chunk), (114, 120));
    }

    /// The chunks of our copies of the tables are those of the code.
    #[test]
    fn copies_have_the_chunks_of_the_code() {
        for kind in kinds() {
            let layout = Layout::of(kind, 16, 32, Slabs::PAPER);
            assert_eq!(layout.chunk, kind.chunk_bytes(16, 32), "{kind}");
        }
    }

    /// MemC3's Table 3: million items in a gibibyte.
    #[test]
    fn a_gibibyte_holds_as_many_items_as_the_paper_counts() {
        let held = kinds().map(|kind| Layout::of(kind, 16, 32, Slabs::PAPER).items_in(1 << 30));
        let millions = held.map(|items| format!("{:.2}", items as f64 / 1e6));
        assert_eq!(millions, ["9.59", "10.32", "12.20", "13.42"]);
    }
}
