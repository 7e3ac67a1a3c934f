//! A walk over the lines of the index that misses nothing, though items are moved meanwhile.
//!
//! An item has two lines, and a cuckoo path moves it from one to the other. If the walk has yet to
//! come to the first and has passed the second, it would not meet the item. So the key of each item
//! that is moved so is noted. A split leaves each item in a line of the same number, of the segment
//! or of a new one that the walk comes to later, so it needs no note.

use super::Writer;
use crate::access::Access;
use crate::heap::{Item, Put};
use crate::index::cuckoo::{BUCKET_SLOTS, HomeBucket, LINE_BUCKETS, line_at};
use crate::table::Index;
use glimmer_base::Moment;
use glimmer_base::limits::{KEY_BYTES_MAX, MOVED_PAST_MAX};

/// Where a walk stands.
pub(super) struct Walk {
    /// The number of the line that comes next.
    next: usize,
    /// Keys of items that were moved past it since its last step.
    moved: Vec<Box<[u8]>>,
    /// There were more.
    is_overrun: bool,
}

impl Walk {
    fn note(&mut self, item: &Item<'_>) {
        self.is_overrun |= self.moved.len() == MOVED_PAST_MAX;
        if !self.is_overrun {
            let mut key = [0; KEY_BYTES_MAX + 6];
            self.moved.push(item.key(&mut key).into());
        }
    }
}

impl<A: Access> Writer<'_, A> {
    /// See [`TableWriter::walk_on`](crate::table::TableWriter::walk_on).
    pub(super) fn walk_on(&mut self, chain: Option<usize>, visit: &mut dyn FnMut(&[u8])) -> bool {
        let Some(walk) = &mut self.state.walk else {
            self.state.walk = chain.map(|next| {
                Box::new(Walk {
                    next,
                    moved: Vec::new(),
                    is_overrun: false,
                })
            });
            return true;
        };
        walk.moved.drain(..).for_each(|key| visit(&key));
        let is_sound = !std::mem::take(&mut walk.is_overrun);
        match chain {
            Some(next) => walk.next = next,
            None => self.state.walk = None,
        }
        is_sound
    }

    /// Items of the segment with this home have been moved along the path.
    #[cold]
    pub(super) fn note_moves(&mut self, home: &HomeBucket) {
        let index = &self.shared.index;
        let Some(at) = self.line_of_walk_in(home) else {
            return;
        };
        let segment = index.segment(home);
        let state = &mut *self.state;
        let (Some(walk), path) = (&mut state.walk, &state.path) else {
            return;
        };
        let line = |bucket: u32| bucket as usize / LINE_BUCKETS;
        for hop in path.windows(2) {
            if line(hop[0].bucket) >= at && line(hop[1].bucket) < at {
                let (first_word, bucket) = segment.locate(hop[1].bucket);
                let line = line_at(self.shared.pool(), first_word);
                let slot = line.slot(bucket, hop[1].place as usize);
                if let Some(item) = self.shared.item(slot) {
                    walk.note(&item);
                }
            }
        }
    }

    /// Items of the segment with this home have been moved along the path. A sweep may miss them.
    #[cold]
    pub(super) fn note_moves_of_dead(&mut self, home: &HomeBucket) {
        let (shared, state) = (self.shared, &mut *self.state);
        let segment = shared.index.segment(home);
        for to in state.path.iter().skip(1) {
            let (first_word, bucket) = segment.locate(to.bucket);
            let slot = line_at(shared.pool(), first_word).slot(bucket, to.place as usize);
            let item = shared.item(slot);
            state.has_moved_dead |=
                item.is_some_and(|item| shared.common.has_ended(&item, Moment::default()));
        }
    }

    /// An item that was evicted for its new version is named by another slot than before.
    #[cold]
    pub(super) fn note_moved(&mut self, put: &Put<'_>) {
        let home = self.shared.index.home(put.keyhash);
        let item = self.shared.find(home, put.keyhash, put.item.key);
        if self.line_of_walk_in(&home).is_some()
            && let (Some(walk), Some(found)) = (&mut self.state.walk, item)
        {
            walk.note(&found.item);
        }
    }

    /// Which line of the segment with this home the walk comes to next, if it is in that segment.
    fn line_of_walk_in(&self, home: &HomeBucket) -> Option<usize> {
        let walk = self.state.walk.as_ref()?;
        let directory = &self.shared.index.directory;
        let lines = directory.slots_per_segment() / (LINE_BUCKETS * BUCKET_SLOTS);
        let run = directory.run(home.entry, home.page);
        run.contains(&(walk.next / lines))
            .then(|| walk.next % lines)
    }
}
