//! Finding a cuckoo path before anything is moved (MemC3 §3.2): the sequence of items that have to
//! go to their other bucket, each to the place of the next, so that the last one's goes to an empty
//! slot.

use super::line::{BUCKET_SLOTS, first_empty};
use glimmer_base::limits::CUCKOO_HOPS_MAX;

/// An item to be moved, or, at the end of a path, the empty slot: bucket by number, and place in
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The bucket's number in its segment.
    pub bucket: u32,
    /// Which of its slots.
    pub place: u32,
}

/// What a search needs to know of a segment.
pub trait View {
    /// The four tags of a bucket.
    fn tags(&self, bucket: u32) -> u32;
    /// The other bucket of an item with this tag.
    fn alternate(&self, bucket: u32, tag: u8) -> u32;
}

/// A way to search for paths.
pub trait Search: Send + 'static {
    /// Finds a path from a full bucket of `homes` to an empty slot, no bucket of which occurs
    /// twice, and puts it into `path`; says whether there is one within the search's bounds.
    fn find(&mut self, segment: &impl View, homes: [u32; 2], path: &mut Vec<Step>) -> bool;
}

#[inline(always)]
fn tag_at(tags: u32, place: u32) -> u8 {
    (tags >> (8 * place)) as u8
}

/// Breadth first from both home buckets: every item of a full bucket begins a path of its own. The
/// path found is a shortest one, so few items are moved.
#[derive(Default)]
pub struct Breadth {
    queue: Vec<Node>,
}

#[derive(Clone, Copy)]
struct Node {
    bucket: u32,
    /// Place in `queue` of the bucket whose item would come here; [`ROOT`] for none.
    parent: u32,
    /// Which of the parent's items.
    place: u16,
    /// Hops from a home bucket to here.
    hops: u16,
}

const ROOT: u32 = u32::MAX;

impl Breadth {
    /// Buckets looked at before the segment counts as full.
    pub const BUCKETS_MAX: usize = 1_000;

    fn on_path(&self, mut node: usize, bucket: u32) -> bool {
        loop {
            let Node {
                bucket: passed,
                parent,
                ..
            } = self.queue[node];
            if passed == bucket {
                return true;
            }
            if parent == ROOT {
                return false;
            }
            node = parent as usize;
        }
    }
}

impl Search for Breadth {
    fn find(&mut self, segment: &impl View, homes: [u32; 2], path: &mut Vec<Step>) -> bool {
        self.queue.clear();
        self.queue.extend(homes.map(|bucket| Node {
            bucket,
            parent: ROOT,
            place: 0,
            hops: 0,
        }));
        let mut at = 0;
        while at < self.queue.len() {
            let bucket = self.queue[at].bucket;
            let tags = segment.tags(bucket);
            if let Some(place) = first_empty(tags) {
                path.clear();
                path.push(Step {
                    bucket,
                    place: place as u32,
                });
                while self.queue[at].parent != ROOT {
                    let Node { parent, place, .. } = self.queue[at];
                    at = parent as usize;
                    path.push(Step {
                        bucket: self.queue[at].bucket,
                        place: place.into(),
                    });
                }
                path.reverse();
                return true;
            }
            let hops = self.queue[at].hops + 1;
            if usize::from(hops) > CUCKOO_HOPS_MAX {
                return false;
            }
            for place in 0..BUCKET_SLOTS as u16 {
                let next = segment.alternate(bucket, tag_at(tags, place.into()));
                if self.queue.len() < Self::BUCKETS_MAX && !self.on_path(at, next) {
                    self.queue.push(Node {
                        bucket: next,
                        parent: at as u32,
                        place,
                        hops,
                    });
                }
            }
            at += 1;
        }
        false
    }
}

/// The paper's search: several paths at once, each of which goes on from a random item of the
/// bucket that it has come to. The first to come to an empty slot is taken.
pub struct Walks {
    paths: Vec<Vec<Step>>,
    random: u64,
}

impl Walks {
    /// Displacements of all paths together before the segment counts as full (§5.2).
    pub const DISPLACEMENTS_MAX: usize = 500;

    /// This many paths at once.
    pub fn new(paths: usize) -> Walks {
        Walks {
            paths: vec![Vec::new(); paths],
            random: 0x9E37_79B9_7F4A_7C15,
        }
    }

    fn random_place(&mut self) -> u32 {
        // Xorshift: any choice will do that does not favour a slot.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 32) as u32 % BUCKET_SLOTS as u32
    }
}

impl Search for Walks {
    fn find(&mut self, segment: &impl View, homes: [u32; 2], path: &mut Vec<Step>) -> bool {
        for (number, walk) in self.paths.iter_mut().enumerate() {
            walk.clear();
            walk.push(Step {
                bucket: homes[number % 2],
                place: 0,
            });
        }
        let walks = self.paths.len();
        for displacement in 0..Self::DISPLACEMENTS_MAX {
            let walk = displacement % walks;
            let end = self.paths[walk].len() - 1;
            let bucket = self.paths[walk][end].bucket;
            let tags = segment.tags(bucket);
            if let Some(place) = first_empty(tags) {
                self.paths[walk][end].place = place as u32;
                path.clear();
                path.extend_from_slice(&self.paths[walk]);
                return true;
            }
            let place = self.random_place();
            self.paths[walk][end].place = place;
            let next = segment.alternate(bucket, tag_at(tags, place));
            let walk = &mut self.paths[walk];
            // A walk that comes back to a bucket goes on from there as if it had never left: what
            // was to be moved in between stays where it is.
            match walk.iter().position(|step| step.bucket == next) {
                Some(before) => walk.truncate(before + 1),
                None => walk.push(Step {
                    bucket: next,
                    place: 0,
                }),
            }
        }
        false
    }
}
