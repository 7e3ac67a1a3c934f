//! Loom explores the shipped chained index by itself: what a reader finds while buckets are split and merged, and while the memory that a
//! merged one leaves is put to other use.
#![cfg(loom)]

use glimmer_base::Keyhash;
use glimmer_base::sync::AtomicU64;
use glimmer_base::sync::Ordering::Relaxed;
use glimmer_store::heap::Offset;
use glimmer_store::index::chained::{BUCKET_WORDS, ChainedIndex, FreeList};
use glimmer_store::index::{Entry, LogId, Slot};
use glimmer_store::memory::{PagePolicy, ZeroedSlice};
use loom::thread;
use std::sync::Arc;

/// Two tags: the first split divides them.
const STAYS: u16 = 2;
const GOES: u16 = 3;

fn explore(test: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = model.preemption_bound.or(Some(2));
    model.max_branches = 100_000;
    model.check(test);
}

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

/// A reader that looks for the entry with a tag, in a thread of its own: it finds that, or that it was disturbed.
fn reader(index: &Arc<ChainedIndex>, tag: u16) -> thread::JoinHandle<()> {
    let index = index.clone();
    thread::spawn(move || {
        let found = index.try_read(Keyhash(tag.into()), |home| {
            index.candidates(home, tag).next().map(|(_, found)| found)
        });
        if let Some(found) = found {
            assert_eq!(found, Some(entry(tag, tag.into())));
        }
    })
}

#[test]
fn entries_are_found_while_their_bucket_is_split() {
    for tag in [STAYS, GOES] {
        explore(move || {
            let (index, _) = index();
            let reading = reader(&index, tag);
            let grown = index.grow(0, &mut FreeList::default(), |_| true, true);
            assert_eq!(grown, Some(0));
            reading.join().unwrap();
        });
    }
}

/// What is written where the bucket was looks like an entry with the tag.
#[test]
fn entries_are_found_while_their_bucket_is_merged_and_overwritten() {
    for tag in [STAYS, GOES] {
        explore(move || {
            let (index, memory) = index();
            let mut spares = FreeList::default();
            index.grow(0, &mut spares, |_| true, true).unwrap();
            let border = index.border();
            let reading = reader(&index, tag);
            let freed = index.shrink(&mut spares, |_| true, true);
            assert_eq!(freed, Some(0));
            assert!(index.border() > border);
            for word in &memory[border..index.border()] {
                word.store(entry(tag, 77).raw(), Relaxed);
            }
            reading.join().unwrap();
        });
    }
}
