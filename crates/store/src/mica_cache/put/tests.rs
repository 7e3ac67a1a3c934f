//! Updates in place, and what lies after them.

use crate::access::Erew;
use crate::evict::FIFO;
use crate::heap::{Header, History, NewItem, write_filler};
use crate::index::LogId;
use crate::memory::PagePolicy;
use crate::mica_cache::{Owner, PartitionConfig};
use crate::table::{Stored, Table, TableWriter};
use glimmer_base::{Expiry, Moment, Seed};

const SEED: Seed = Seed(3);
const NOW: Moment = Moment {
    ms: 2_000,
    epoch_unix_ms: 0,
};
const ITEM_WORDS_MAX: usize = 64;

/// An item with every optional field: 28 bytes, a key of one word, and the value.
fn item<'a>(key: &'a [u8; 8], value: &'a [u8]) -> NewItem<'a> {
    NewItem {
        key,
        value: [value, &[]],
        flags: u32::MAX,
        expiry: Expiry::at_ms(u64::from(u32::MAX)),
        history: History {
            accessed_s: 1,
            ..History::NEW
        },
    }
}

/// The filler that updates leave after an item reaches as far as the item once did. If it reached
/// further, as it would where the space of two items became one, the largest item would have a
/// filler all the same. That filler lies outside the place that an item is read from.
#[test]
fn an_update_to_the_largest_size_marks_what_is_left_behind_it() {
    let config = PartitionConfig {
        log_bytes: 32 << 10,
        main_buckets: 8,
        spare_buckets: 0,
        item_bytes_max: 8 * ITEM_WORDS_MAX,
        pages: PagePolicy::Small,
        hasher: SEED.into(),
        ..PartitionConfig::default()
    };
    let mut owner = Owner::<Erew>::new(&config, FIFO).unwrap();
    let mut writer = owner.enter(0);
    let [grows, goes, comes] = [b"it grows", b"it goes.", b"it comes"];
    let largest = [7; 8 * ITEM_WORDS_MAX - 36];
    assert_eq!(item(grows, &largest).layout().words(), ITEM_WORDS_MAX);

    let put = |writer: &mut super::Writer<'_, Erew>, key: &[u8; 8], value: &[u8]| {
        let stored = writer.put(SEED.keyhash(key), &item(key, value), NOW);
        assert!(matches!(stored, Stored::Yes(_)));
        let found = writer.lookup(SEED.keyhash(key), key, NOW).unwrap();
        let mut read = Vec::new();
        found.item.value().append_to(&mut read);
        assert_eq!(read, value);
        let offset = found.entry.offset();
        (
            writer.position(LogId::Main, offset) as usize,
            found.item.words(),
        )
    };
    let (at, words) = put(&mut writer, grows, &[1; 60]);
    let (next, next_words) = put(&mut writer, goes, &largest);
    assert_eq!(next, at + words);
    assert!(writer.remove(SEED.keyhash(goes), goes, NOW));
    write_filler(writer.log(LogId::Main).place(next), next_words as u64);

    assert_eq!(put(&mut writer, grows, &largest), (at, ITEM_WORDS_MAX));
    let behind = Header::read(writer.log(LogId::Main).place(at + ITEM_WORDS_MAX));
    assert!(behind.is_filler());
    assert_eq!(behind.filler_words(), words as u64);
    writer.audit();

    // The head comes by: what lies in the log has no gap. The live item stays, as all else is dead.
    for _ in 0..3 * config.log_bytes / 8 / ITEM_WORDS_MAX {
        let (_, now) = put(&mut writer, comes, &largest);
        assert_eq!(now, ITEM_WORDS_MAX);
        writer.remove(SEED.keyhash(comes), comes, NOW);
    }
    writer.audit();
    assert!(writer.lookup(SEED.keyhash(grows), grows, NOW).is_some());
    let counts = owner.figures().counts(0);
    assert_eq!((counts.in_place_updates, counts.evictions), (1, 0));
}
