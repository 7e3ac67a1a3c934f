//! Writing items into a heap, as [`layout`](super::layout) lays them out: whole words with relaxed
//! stores, so that an optimistic reader may be looking.
//!
//! The header is written last, so that the place of an item that is not yet whole does not begin
//! with it. Where an item is written over, its place is first marked as a filler
//! ([`unsettle`]). If the process ends in between, and the memory lies in a
//! [file](crate::memory::MemoryFile), the next process finds an entry that names no item.

use super::bytes;
use super::history::{CAS_MAX, History};
use super::in_place::store_beside;
use super::item::Item;
use super::layout::{
    ALL_FIELDS_BYTES, BORN_BYTES_MAX, EXPIRY, EXPIRY_BYTES, EXTRA, FLAGS, KEY_AT, Layout, RESERVED,
    WIDE, flags_field,
};
use super::put::{NewItem, Put};
use super::word_sink::WordSink;
use crate::memory::Words;
use crate::work;
use glimmer_base::Expiry;
use glimmer_base::sync::Ordering::{Relaxed, Release};
use glimmer_base::sync::{in_program_order, weakened};

/// Writes an item at the beginning of a place that is reserved for it.
#[inline(always)]
pub(crate) fn write_item(place: Words<'_>, put: &Put<'_>) {
    let Put { item, cas, .. } = *put;
    if !put.is_plain {
        return write_item_of_all_fields(place, put);
    }
    let layout = Layout {
        key_len: item.key.len(),
        value_len: item.value[0].len(),
        flags_bytes: 0,
        expiry: false,
        extra: false,
    };
    let mut sink = WordSink::new(place.range(1, put.words - 1));
    sink.bytes(item.key);
    sink.bytes(item.value[0]);
    sink.finish();
    settle(place, header_of(layout, item.history.marks.bits(), cas));
}

/// Marks the place of an item that is about to be written over. Readers of it see that its chain is
/// being changed.
#[inline(always)]
pub(crate) fn unsettle(place: Words<'_>, words: usize) {
    if !weakened("torn_by_a_kill") {
        place.word(0).store((words as u64) << 24, Relaxed);
    }
    in_program_order();
}

/// Makes an item of what was written at a place. What names the item is stored after that, also
/// where there is no reader.
#[inline(always)]
fn settle(place: Words<'_>, header: u64) {
    in_program_order();
    place.word(0).store(header, Release);
    in_program_order();
}

/// [`write_item`] where the key has an item now, whose value the new one may keep. The place may be
/// the old item's own, or overlap it.
#[inline(always)]
pub(crate) fn write_over(place: Words<'_>, put: &Put<'_>, old: &Item<'_>) {
    match put.kept {
        None => write_item(place, put),
        Some(_) => write_around(place, put, *old),
    }
}

/// Writes an item over an old one that it [replaces](NewItem::replaces_plain). The key is there.
#[inline(always)]
pub(crate) fn write_value_over(old: &Item<'_>, item: &NewItem<'_>, cas: u64) {
    debug_assert!(item.replaces_plain(old) && old.key_is(item.key));
    let (place, layout) = (old.place, item.layout());
    unsettle(place, old.words());
    let (first, skip) = (layout.value_at() / 8, layout.value_at() % 8);
    let mut sink = WordSink::new(place.range(first, old.words() - first));
    if skip > 0 {
        // The last bytes of the key are in the word in which the value begins.
        let begun = sink.words.first().map_or(0, |word| word.load(Relaxed));
        sink.partial = begun & ((1 << (8 * skip)) - 1);
        sink.filled = skip;
    }
    sink.bytes(item.value[0]);
    sink.finish();
    settle(place, header_of(layout, item.history.marks.bits(), cas));
}

/// Writes an item around the value of the old one.
#[inline(never)]
fn write_around(place: Words<'_>, put: &Put<'_>, old: Item<'_>) {
    let (item, kept) = (put.item, old.layout.value_len);
    debug_assert_eq!(put.kept, Some(kept));
    let layout = put.layout_around(kept);
    let [before, after] = item.value;
    let (first, place) = (layout.value_at(), Words::of(place.range(0, put.words)));
    let kept_at = first + before.len();
    // Before anything else is written, as that may lie where the old value does.
    bytes::shift((old.place, old.layout.value_at()), (place, kept_at), kept);
    work::copied(kept / 8);
    bytes::store(place, KEY_AT, item.key);
    if layout.is_wide() {
        bytes::store(place, layout.length_at(), &layout.length_bytes());
    }
    bytes::store(place, first, before);
    bytes::store(place, kept_at + kept, after);
    write_fields_behind(place, layout, put);
    settle(place, header_of(layout, item.history.marks.bits(), put.cas));
}

/// Whether an item is an old one of its key with bytes after its value: neither the key nor a byte
/// of the old value changes its place. [`write_behind`] and [`write_grown`] then write the item
/// where the old one lies.
pub(crate) fn only_grows(put: &Put<'_>, old: &Item<'_>) -> bool {
    put.item.value[0].is_empty()
        && put.kept == Some(old.layout.value_len)
        && put.layout_around(old.layout.value_len).value_at() == old.layout.value_at()
}

/// Whether [`write_grown`] stores to words in which the old value may begin: those of its length.
pub(crate) fn changes_length(put: &Put<'_>, old: &Item<'_>) -> bool {
    let grown = put.layout_around(old.layout.value_len);
    grown.length_bytes() != old.layout.length_bytes()
}

/// Writes the part of the new bytes that lies after the words of the old item, where no reader
/// looks. Until [`write_grown`] has written the rest the old item is what it was.
pub(crate) fn write_behind(place: Words<'_>, put: &Put<'_>, old: &Item<'_>) {
    let end = 8 * old.words();
    if let Some(behind) = put.item.value[1].get(end - old.layout.flags_at()..) {
        bytes::store(place, end, behind);
    }
}

/// Writes what is left to be written after [`write_behind`]. Bytes of the old value stay as they
/// are. The words that are stored to are those of the header and of the value's length, and those
/// from the one on in which the old value ended.
pub(crate) fn write_grown(place: Words<'_>, put: &Put<'_>, old: &Item<'_>) {
    let layout = put.layout_around(old.layout.value_len);
    let (at, more) = (old.layout.flags_at(), put.item.value[1]);
    unsettle(place, old.words());
    if layout.is_wide() && changes_length(put, old) {
        bytes::store(place, layout.length_at(), &layout.length_bytes());
    }
    bytes::store(place, at, &more[..more.len().min(8 * old.words() - at)]);
    write_fields_behind(place, layout, put);
    settle(
        place,
        header_of(layout, put.item.history.marks.bits(), put.cas),
    );
}

/// [`write_item`] for whatever fields the item has.
#[inline(never)]
fn write_item_of_all_fields(place: Words<'_>, put: &Put<'_>) {
    let (item, cas, layout) = (put.item, put.cas, put.layout());
    let mut sink = WordSink::new(place.range(1, layout.words() - 1));
    let (length, flags, expiry, extra) = (
        layout.length_bytes(),
        flags_field(item.flags, put.birth),
        item.expiry.ms().to_le_bytes(),
        item.history.extra(),
    );
    let if_there = |is_there: bool, bytes| if is_there { bytes } else { &[][..] };
    let fields = [
        item.key,
        if_there(layout.is_wide(), &length),
        item.value[0],
        item.value[1],
        &flags[..usize::from(layout.flags_bytes)],
        if_there(layout.expiry, &expiry[..EXPIRY_BYTES]),
        if_there(layout.extra, &extra),
    ];
    for field in fields {
        sink.long_bytes(field);
    }
    sink.finish();
    settle(place, header_of(layout, item.history.marks.bits(), cas));
}

#[inline(always)]
fn header_of(layout: Layout, marks: u64, cas: u64) -> u64 {
    let fields = u64::from(layout.is_wide()) * WIDE
        + u64::from(layout.flags_bytes != 0) * FLAGS
        + u64::from(layout.expiry) * EXPIRY
        + u64::from(layout.extra) * EXTRA;
    (cas & CAS_MAX) << 24
        | (layout.value_len as u64 & 0xFF) << 16
        | (layout.key_len as u64) << 8
        | (fields + marks)
}

/// Whether [`write_amended`] can give the item this expiry and this history: whether it has the
/// room for them, no less and no more.
pub(crate) fn can_amend(item: &Item<'_>, expiry: Expiry, history: &History) -> bool {
    item.layout.expiry == (expiry != Expiry::NEVER) && item.layout.extra == history.is_extra()
}

/// Changes the expiry and the history of an item that has room for them.
pub(crate) fn write_amended(item: &Item<'_>, expiry: Expiry, history: &History) {
    debug_assert!(can_amend(item, expiry, history));
    let cas = history.cas.unwrap_or_else(|| item.cas());
    let header = item.place.word(0);
    let kept =
        header.load(Relaxed) & 0xFFFF00 | header.load(Relaxed) & (WIDE | FLAGS | EXPIRY | EXTRA);
    unsettle(item.place, item.words());
    if item.layout.expiry {
        let expiry = expiry.ms().to_le_bytes();
        bytes::store(item.place, item.layout.expiry_at(), &expiry[..EXPIRY_BYTES]);
    }
    if item.layout.extra {
        let history = History {
            cas: Some(cas),
            ..*history
        };
        bytes::store(item.place, item.layout.extra_at(), &history.extra());
    }
    let header = (cas & CAS_MAX) << 24 | kept | history.marks.bits();
    settle(item.place, header);
}

/// Writes what is known of a large item before it is stored: all but the header and the fields
/// after the value. The place is reserved, and its first word stays as it is.
pub(crate) fn write_draft(place: Words<'_>, key: &[u8], value: &[u8]) {
    let layout = draft_layout(key, value.len());
    let mut sink = WordSink::new(place.range(1, layout.words() - 1));
    sink.bytes(key);
    if layout.is_wide() {
        sink.bytes(&layout.length_bytes());
    }
    sink.long_bytes(value);
    sink.finish();
}

/// Writes what is known of a large item before its value arrives, which takes this many bytes. The
/// place is reserved, and its first word stays as it is.
pub(crate) fn write_announced(place: Words<'_>, key: &[u8], value_bytes: usize) {
    let layout = draft_layout(key, value_bytes);
    let mut sink = WordSink::new(place.range(1, layout.words() - 1));
    sink.bytes(key);
    if layout.is_wide() {
        sink.bytes(&layout.length_bytes());
    }
    sink.finish();
}

/// The sizes of an item of which nothing but the key and the length of its value are known.
pub(crate) fn draft_layout(key: &[u8], value_bytes: usize) -> Layout {
    Layout {
        key_len: key.len(),
        value_len: value_bytes,
        flags_bytes: 0,
        expiry: false,
        extra: false,
    }
}

/// Makes an item of what [`write_draft`] has written for it, or of what has arrived. The item's
/// value may be at the place, where it is borrowed: none of its bytes is stored to.
pub(crate) fn write_drafted(place: Words<'_>, put: &Put<'_>) {
    let (item, layout) = (put.item, put.layout_around(0));
    let (mut fields, mut end) = ([0; ALL_FIELDS_BYTES + BORN_BYTES_MAX], 0);
    let mut add = |field: &[u8]| {
        fields[end..end + field.len()].copy_from_slice(field);
        end += field.len();
    };
    add(&flags_field(item.flags, put.birth)[..usize::from(layout.flags_bytes)]);
    if layout.expiry {
        add(&item.expiry.ms().to_le_bytes()[..EXPIRY_BYTES]);
    }
    if layout.extra {
        let history = History {
            cas: Some(put.cas),
            ..item.history
        };
        add(&history.extra());
    }
    store_beside(place, layout.flags_at(), &fields[..end]);
    settle(place, header_of(layout, item.history.marks.bits(), put.cas));
}

/// Writes the fields that follow the value.
fn write_fields_behind(place: Words<'_>, layout: Layout, put: &Put<'_>) {
    let Put { item, cas, .. } = *put;
    let flags = &flags_field(item.flags, put.birth)[..usize::from(layout.flags_bytes)];
    bytes::store(place, layout.flags_at(), flags);
    if layout.expiry {
        let expiry = item.expiry.ms().to_le_bytes();
        bytes::store(place, layout.expiry_at(), &expiry[..EXPIRY_BYTES]);
    }
    if layout.extra {
        let history = History {
            cas: Some(cas),
            ..item.history
        };
        bytes::store(place, layout.extra_at(), &history.extra());
    }
}

/// Marks `words` words at the beginning of a place as reserved: a filler that no item may grow
/// into.
pub(crate) fn write_reserved(place: Words<'_>, words: u64) {
    place.word(0).store(words << 24 | RESERVED, Relaxed);
}

/// Marks `words` unused words at the beginning of a place.
pub(crate) fn write_filler(place: Words<'_>, words: u64) {
    place.word(0).store(words << 24, Relaxed);
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use glimmer_base::sync::AtomicU64;
    use glimmer_base::{Keyhash, Moment};

    const NOW: Moment = Moment {
        ms: 2_000,
        epoch_unix_ms: 0,
    };

    /// Every way in which keys, values and fields of all lengths meet within words.
    #[test]
    fn what_was_written_is_read_and_nothing_behind_it_is_touched() {
        const GUARD: u64 = 0xDEAD_BEEF_DEAD_BEEF;
        let bytes: Vec<u8> = (0..600u32).map(|i| (i * 7 + 1) as u8).collect();
        let words: Vec<AtomicU64> = (0..128).map(|_| AtomicU64::new(GUARD)).collect();
        let value_lens = (0..34).chain([255, 256, 257, 300]);
        let flags = [1, 254, 255, 256, 0xF1A6_0001, u32::MAX];
        let cases = value_lens.flat_map(|value| (1..34).chain([249]).map(move |key| (key, value)));
        for (key_len, value_len) in cases {
            // Miri takes one set of fields for each pair of lengths, and few lengths.
            if cfg!(miri) && (key_len % 16 != 1 || value_len % 16 != 1) {
                continue;
            }
            let all = if cfg!(miri) { 15 } else { 0 };
            for fields in all..16u32 {
                let has = |bit: u32| fields >> bit & 1 == 1;
                let (key, value) = (&bytes[..key_len], &bytes[300..300 + value_len]);
                let middle = if has(3) { value_len / 2 } else { value_len };
                let item = NewItem {
                    key,
                    value: [&value[..middle], &value[middle..]],
                    flags: if has(0) {
                        flags[key_len % flags.len()]
                    } else {
                        0
                    },
                    expiry: match has(1) {
                        true => Expiry::at_ms(123_456_789),
                        false => Expiry::NEVER,
                    },
                    history: History {
                        accessed_s: if has(2) { 77 } else { 0 },
                        ..History::NEW
                    },
                };
                let new = Put {
                    cas: 42,
                    ..Put::of(&item, Keyhash(0), NOW)
                };
                write_item(Words::of(&words), &new);
                let (count, layout) = (item.layout().words(), item.layout());
                assert_eq!(
                    (new.words, new.words_with_all),
                    (count, layout.words_with_all())
                );
                assert!(count <= layout.words_with_all());
                assert!(
                    words[count..]
                        .iter()
                        .all(|word| word.load(Relaxed) == GUARD)
                );

                let read = Item::of_key(Words::of(&words[..count]), key).unwrap();
                assert_eq!((read.words(), read.layout()), (count, item.layout()));
                assert_eq!((read.cas(), read.flags()), (42, item.flags));
                assert_eq!(
                    (read.expiry(), read.accessed_s()),
                    (item.expiry, item.history.accessed_s)
                );
                let mut out = vec![9];
                read.value().append_to(&mut out);
                assert_eq!(out, [&[9], value].concat());
                let value_of = |len| (value_len == len).then_some(value);
                let short = read.value().short_bytes(&mut [0; 32]).map(<[u8]>::to_vec);
                assert_eq!(short, (value_len <= 24).then(|| value.to_vec()));
                let array = read.value().array::<16>();
                assert_eq!(array.as_ref().map(<[u8; 16]>::as_slice), value_of(16));
                let array = read.value().array::<8>();
                assert_eq!(array.as_ref().map(<[u8; 8]>::as_slice), value_of(8));

                let mut other = key.to_vec();
                other[key_len - 1] ^= 1;
                assert!(!read.key_is(&other) && read.key_is(key));
                assert!(Item::of_key(Words::of(&words), &other).is_none());
                assert!(Item::of_key(Words::of(&words), &bytes[..key_len + 1]).is_none());
                assert!(Item::of_key(Words::of(&words[..count - 1]), key).is_none() || count == 2);
                words.iter().for_each(|word| word.store(GUARD, Relaxed));
            }
        }
    }

    /// The lengths on either side of each of the length's bytes.
    #[test]
    fn long_values_keep_their_length() {
        let lengths = [255, 256, 65_535, 65_536, 16_777_215, 16_777_216];
        for len in &lengths[..if cfg!(miri) { 2 } else { 6 }] {
            let value = vec![7; *len];
            let item = NewItem::new(b"a key of twenty byte", &value);
            let new = Put::of(&item, Keyhash(0), NOW);
            let bytes = 8 + 20 + len + if *len < 256 { 0 } else { 3 };
            assert_eq!(new.words, bytes.div_ceil(8));
            let words: Vec<AtomicU64> = (0..new.words).map(|_| AtomicU64::new(0)).collect();
            write_item(Words::of(&words), &new);
            let read = Item::of_key(Words::of(&words), item.key).unwrap();
            assert_eq!(read.value().len(), *len);
            let mut out = Vec::new();
            read.value().append_to(&mut out);
            assert!(out == value);
            // A reader that races with a writer may meet such a header in too small a place.
            for end in 2..new.words.min(6) {
                assert!(Item::read(Words::of(&words[..end])).is_none());
            }
        }
    }
}
