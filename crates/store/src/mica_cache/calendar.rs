//! When the items of a log were stored. No item keeps its time: a few notes say where the log's
//! tail was at the beginning of a second. The younger an item, the more exactly they tell its time.

use crate::heap::{Geometry, Offset};
use glimmer_base::Moment;

/// Most notes of one log. When there are more, every other one of the older notes is forgotten.
const NOTES_MAX: usize = 64;
/// The newest notes, none of which is forgotten.
const NOTES_NEW: usize = 16;

/// The notes of one log, the oldest first.
#[derive(Default)]
pub(super) struct Calendar {
    notes: Vec<Note>,
    /// When the next second begins, in milliseconds since the epoch.
    next_ms: u64,
}

struct Note {
    second: u32,
    tail: Offset,
}

impl Calendar {
    /// An item is about to be put at the tail. Returns whether it is the first in its second.
    #[inline(always)]
    pub fn note(&mut self, tail: Offset, now: Moment) -> bool {
        let is_first = now.ms >= self.next_ms;
        if is_first {
            self.turn_page(tail, now);
        }
        is_first
    }

    #[cold]
    fn turn_page(&mut self, tail: Offset, now: Moment) {
        if self.notes.len() == NOTES_MAX {
            let mut number = 0;
            self.notes.retain(|_| {
                number += 1;
                number > NOTES_MAX - NOTES_NEW || number % 2 == 1
            });
        }
        let second = now.ms / 1000;
        self.next_ms = (second + 1) * 1000;
        let second = second as u32;
        self.notes.push(Note { second, tail });
    }

    /// The second, counted from the server's epoch, in which the item at `offset` was put there, or
    /// an earlier one; `head` is the log's. None if nothing has been put there.
    pub fn second_of(&self, offset: Offset, head: Offset, geometry: Geometry) -> Option<u32> {
        let distance = geometry.distance(head, offset);
        let is_behind = |note: &Note| {
            geometry.is_live(note.tail, head) && geometry.distance(head, note.tail) > distance
        };
        let ahead = self.notes.iter().take_while(|note| !is_behind(note));
        let note = ahead.last().or(self.notes.first())?;
        Some(note.second)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn at(second: u64) -> Moment {
        Moment {
            ms: 1000 * second + 7,
            epoch_unix_ms: 0,
        }
    }

    /// Items of one word, ten in a second, for longer than there are notes and than the log is.
    #[test]
    fn the_young_are_known_exactly_and_the_old_roughly() {
        let geometry = Geometry::new(1000, 20);
        let (mut calendar, mut tail) = (Calendar::default(), Offset::from_raw(0));
        let (mut head, mut items) = (tail, std::collections::VecDeque::new());
        assert_eq!(calendar.second_of(tail, head, geometry), None);
        for second in 1..=500 {
            for _ in 0..10 {
                if items.len() == 1000 {
                    items.pop_front();
                    head = geometry.advance(head, 1);
                }
                calendar.note(tail, at(second));
                items.push_back((tail, second as u32));
                tail = geometry.advance(tail, 1);
            }
            for &(offset, stored) in &items {
                let told = calendar.second_of(offset, head, geometry).unwrap();
                let age = second as u32 - stored;
                assert!(told <= stored, "{told} for {stored} at {second}");
                assert!(stored - told <= age / 4, "{told} for {stored} at {second}");
            }
        }
        assert!(calendar.notes.len() <= NOTES_MAX);
    }
}
