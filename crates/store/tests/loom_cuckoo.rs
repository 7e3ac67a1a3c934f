//! Loom explores the shipped cuckoo index by itself: what a reader finds in an item's buckets while
//! the item is moved from one to the other, and back.
#![cfg(loom)]

use glimmer_base::sync::Ordering::Acquire;
use glimmer_base::sync::{explore, fence};
use glimmer_store::index::cuckoo::{LINE_BUCKETS, Segment, Slot, SlotAt, alternate, line_at};
use glimmer_store::memory::{LINE_WORDS, PagePolicy, Pool};
use loom::thread;
use std::sync::Arc;

/// Two lines.
const BUCKETS: u32 = 2 * LINE_BUCKETS as u32;
/// The item's place in memory.
const OFFSET: usize = 77;

fn segment(pool: &Pool) -> Segment<'_> {
    Segment::at(pool, 0, BUCKETS)
}

/// The first slot of a bucket.
fn first_slot(pool: &Pool, bucket: u32) -> SlotAt {
    let (line, bucket) = segment(pool).locate(bucket);
    SlotAt {
        line,
        bucket,
        place: 0,
    }
}

/// A reader that finds both lines unchanged has found the item once, and where it lies in memory.
#[test]
fn an_item_that_is_moved_is_found_once() {
    // A tag whose buckets are on different lines.
    let tag = (1..=255).find(|&tag| alternate(0, tag, BUCKETS) >= LINE_BUCKETS as u32);
    let tag = tag.unwrap();
    let homes = [0, alternate(0, tag, BUCKETS)];
    explore(2, move || {
        let pool = Arc::new(Pool::new(1, 2 * LINE_WORDS, PagePolicy::Small, None).unwrap());
        let [first, second] = homes.map(|bucket| first_slot(&pool, bucket));
        line_at(&pool, first.line).set(first.bucket, first.place, tag, Slot::new(OFFSET));
        let reading = {
            let pool = pool.clone();
            thread::spawn(move || {
                let lines = [first, second].map(|at| line_at(&pool, at.line));
                let [Some(one), Some(other)] = lines.map(|line| line.read_begin()) else {
                    return;
                };
                let candidates = segment(&pool).candidates(homes, tag);
                let found: Vec<usize> = candidates.map(|(_, slot)| slot.offset()).collect();
                fence(Acquire);
                if lines[0].read_unchanged(one) && lines[1].read_unchanged(other) {
                    assert_eq!(found, [OFFSET]);
                }
            })
        };
        segment(&pool).relocate(first, second, true);
        segment(&pool).relocate(second, first, true);
        reading.join().unwrap();
    });
}
