//! Loom explores the shipped chained index by itself: what a reader finds while buckets are split
//! and merged, and while the memory that a merged one leaves is put to other use.
#![cfg(loom)]

use glimmer_base::Keyhash;
use glimmer_base::sync::Ordering::Relaxed;
use glimmer_base::sync::{AtomicU64, explore};
use glimmer_store::batches::{Batches, Participant, Seat};
use glimmer_store::heap::Offset;
use glimmer_store::index::chained::{BUCKET_WORDS, Border, ChainedIndex, FreeList, HomeBucket};
use glimmer_store::index::{BUCKET_ENTRIES, Entry, LogId, Slot};
use glimmer_store::memory::{PagePolicy, ZeroedSlice};
use glimmer_store::table::Index;
use loom::thread;
use std::sync::Arc;

/// Two tags: the first split divides them.
const STAYS: u16 = 2;
const GOES: u16 = 3;
/// The tag of entries that no reader looks for.
const OTHER: u16 = 4;

fn entry(tag: u16, at: u64) -> Entry {
    Entry::new(tag, LogId::Main, Offset::from_raw(at), 0)
}

/// An index of one main bucket that holds an entry of each tag, with room for three more.
fn index() -> (Arc<ChainedIndex>, ZeroedSlice<AtomicU64>) {
    let memory = ZeroedSlice::new(4 * BUCKET_WORDS, PagePolicy::Small, None).unwrap();
    let index = ChainedIndex::new(memory.clone(), 1, (0, 1));
    for (place, tag) in [STAYS, GOES].into_iter().enumerate() {
        let slot = Slot {
            bucket: index.main(0),
            entry: place,
        };
        index.set(slot, entry(tag, tag.into()));
    }
    (Arc::new(index), memory)
}

/// A reader that looks for the entry with a tag, in a thread of its own: it finds that, or that it
/// was disturbed.
fn reader(index: &Arc<ChainedIndex>, tag: u16) -> thread::JoinHandle<()> {
    let index = index.clone();
    thread::spawn(move || {
        let keyhash = Keyhash(tag.into());
        let found = index.try_read(HomeBucket::default(), keyhash, |home| {
            (index.candidates(home, keyhash))
                .next()
                .map(|(_, found)| found)
        });
        if let Some(found) = found {
            assert_eq!(found, Some(entry(tag, tag.into())));
        }
    })
}

#[test]
fn entries_are_found_while_their_bucket_is_split() {
    for tag in [STAYS, GOES] {
        explore(2, move || {
            let (index, _) = index();
            let reading = reader(&index, tag);
            let grown = index.grow(0, &mut FreeList::default(), |_| true, true);
            assert_eq!(grown, Some(0));
            reading.join().unwrap();
        });
    }
}

/// A bucket is merged into another one. Its memory becomes an item of which every word looks like
/// the entry that the reader has found. The reader finds the right entry, and notes its read in no
/// item.
#[test]
fn entries_are_found_while_their_bucket_is_merged_and_overwritten() {
    for tag in [STAYS, GOES] {
        explore(2, move || {
            let (index, memory) = index();
            let mut spares = FreeList::default();
            index.grow(0, &mut spares, |_| true, true).unwrap();
            let mut border = Border::of(&index);
            let before = border.open();
            let (batches, mut participants) = Batches::new(1);
            let (seat, participant) = (Seat::new(&batches, 1), participants.remove(0));
            let reading = marking_reader(
                &index,
                participant,
                Keyhash(tag.into()),
                entry(tag, tag.into()),
            );
            let freed = index.shrink(&mut spares, |_| true, true);
            assert_eq!(freed, Some(0));
            border.follow(&index, &seat);
            let opened = before..border.open();
            for word in &memory[opened.clone()] {
                word.store(entry(tag, tag.into()).raw(), Relaxed);
            }
            reading.join().unwrap();
            for word in &memory[opened] {
                let word = word.load(Relaxed);
                assert_eq!(word, entry(tag, tag.into()).raw(), "an item was changed");
            }
            border.follow(&index, &seat);
            assert_eq!(border.open(), index.border());
        });
    }
}

/// A bucket is merged into another one, and at once that is split again. Memory that the index
/// takes again waits for no reader: one that knows of the bucket from before finds its entry, or
/// learns that the shape has changed.
#[test]
fn entries_are_found_while_their_bucket_is_merged_and_split_again() {
    for tag in [STAYS, GOES] {
        explore(1, move || {
            let (index, _) = index();
            let mut spares = FreeList::default();
            index.grow(0, &mut spares, |_| true, true).unwrap();
            let reading = reader(&index, tag);
            assert_eq!(index.shrink(&mut spares, |_| true, true), Some(0));
            assert_eq!(index.grow(0, &mut spares, |_| true, true), Some(0));
            reading.join().unwrap();
        });
    }
}

/// A chain gives up its spare bucket, which another chain takes at once for an entry with the same
/// tag. The reader's entry moves from there to the main bucket, and is never absent.
#[test]
fn entries_are_found_while_their_spare_bucket_changes_chains() {
    explore(1, || {
        let memory = ZeroedSlice::new(3 * BUCKET_WORDS, PagePolicy::Small, None).unwrap();
        let index = Arc::new(ChainedIndex::new(memory, 2, (1, 2)));
        let mut spares = FreeList::default();
        let [home, other] = [0, 1].map(|main| index.main(main));
        let dead = entry(OTHER, OTHER.into());
        index.set(
            Slot {
                bucket: home,
                entry: 0,
            },
            dead,
        );
        link_spare(&index, &mut spares, home, entry(STAYS, STAYS.into()));
        let reading = reader(&index, STAYS);
        let freed = index.shorten(home, &mut spares, |entry| entry != dead, true);
        assert_eq!(freed, 1);
        link_spare(&index, &mut spares, other, entry(STAYS, 7));
        reading.join().unwrap();
    });
}

/// Stores an entry in a spare bucket, as a writer does that finds its main bucket full.
fn link_spare(index: &ChainedIndex, spares: &mut FreeList, home: usize, entry: Entry) {
    let bucket = spares.take(index, home).expect("there is one");
    let main = index.bucket(home);
    main.write_begin(true);
    main.set_next(Some(bucket));
    index.set(Slot { bucket, entry: 0 }, entry);
    main.write_end(true);
}

/// A main bucket leaves the index, and with it a spare bucket that a third chain uses, which gets
/// another one. The memory of both becomes an item of which every word looks like the entry that
/// the reader has found. The reader finds the right entry, and notes its read in no item.
#[test]
fn entries_are_found_while_their_spare_bucket_leaves_the_index() {
    explore(1, || {
        // Two main buckets, and one more that has been added, each with a spare one.
        let memory = ZeroedSlice::new(6 * BUCKET_WORDS, PagePolicy::Small, None).unwrap();
        let index = Arc::new(ChainedIndex::new(memory.clone(), 2, (1, 1)));
        let mut spares = FreeList::default();
        index.grow(0, &mut spares, |_| true, true).unwrap();
        // The second main bucket is full, and the last spare one is in its chain. Another is free.
        let keyhash = Keyhash(1 << 47 | u64::from(STAYS));
        let home = index.chain_of(index.home(keyhash));
        assert_eq!(home, index.main(1), "the keyhash names the second bucket");
        let [free, _, last] = [(); 3].map(|()| spares.take(&index, home).unwrap());
        spares.give_back(&index, free);
        index.bucket(home).set_next(Some(last));
        let others = (0..BUCKET_ENTRIES).map(|place| (home, place, entry(OTHER, OTHER.into())));
        let wanted = entry(STAYS, STAYS.into());
        for (bucket, entry, it) in others.chain([(last, 0, wanted)]) {
            index.set(Slot { bucket, entry }, it);
        }
        let mut border = Border::of(&index);
        let before = border.open();
        let (batches, mut participants) = Batches::new(1);
        let (seat, participant) = (Seat::new(&batches, 1), participants.remove(0));
        let reading = marking_reader(&index, participant, keyhash, wanted);
        let freed = index.shrink(&mut spares, |_| true, true);
        assert_eq!(freed, Some(0));
        border.follow(&index, &seat);
        let opened = before..border.open();
        for word in &memory[opened.clone()] {
            word.store(wanted.raw(), Relaxed);
        }
        reading.join().unwrap();
        for word in &memory[opened] {
            let word = word.load(Relaxed);
            assert_eq!(word, wanted.raw(), "an item was changed");
        }
    });
}

/// A bucket is merged into another one, of which the first entry is dead: the entry after it moves
/// forwards, and those of the merged bucket take its place.
#[test]
fn entries_are_found_while_others_take_their_slots() {
    explore(2, || {
        let (index, _) = index();
        let mut spares = FreeList::default();
        index.grow(0, &mut spares, |_| true, true).unwrap();
        let dead = entry(OTHER, OTHER.into());
        for (place, entry) in [dead, entry(STAYS, STAYS.into())].into_iter().enumerate() {
            let slot = Slot {
                bucket: index.main(0),
                entry: place,
            };
            index.set(slot, entry);
        }
        let reading = reader(&index, STAYS);
        let freed = index.shrink(&mut spares, |entry| entry != dead, true);
        assert_eq!(freed, Some(0));
        reading.join().unwrap();
    });
}

/// A reader as above, which notes its read in the entry that it has found.
fn marking_reader(
    index: &Arc<ChainedIndex>,
    mut participant: Participant,
    keyhash: Keyhash,
    wanted: Entry,
) -> thread::JoinHandle<()> {
    let index = index.clone();
    thread::spawn(move || {
        let _batch = participant.begin();
        let found = index.try_read(HomeBucket::default(), keyhash, |home| {
            index.candidates(home, keyhash).next()
        });
        if let Some(found) = found {
            let (slot, seen) = found.expect("the entry is never absent");
            assert!(seen.same_item(wanted));
            index.count_read(index.cell(slot), seen, 0);
        }
    })
}
