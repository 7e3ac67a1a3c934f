//! Large values are copied while no lock is held.
//!
//! Where several threads may write to a partition, a store of a large value comes in four steps:
//!
//! 1. Under the lock, room is made, a little at a time. Between two steps others may enter.
//! 2. Under the lock, a place is reserved. It is neither an item nor free.
//! 3. Without the lock, key and value are copied there. This is the [`Draft`].
//! 4. Under the lock, the request is executed as any other. If it stores the value, the draft
//!    becomes the item ([`Ledger::draft`](super::Ledger::draft)). If it does not, the table takes
//!    the place back before the lock is given up.
//!
//! **Invariant.** While a draft is being copied, its place belongs to the thread that copies. A
//! writer that is about to give the place to others waits for the end of the copy
//! ([`Drafts::wait_for`]), which does not wait for anything. The end is a release store and the
//! wait an acquire load, so that what the writer stores comes after the copy. After that the place
//! may be given to others at any time. So the thread asks under the lock whether it still has the
//! place, and copies the value under the lock if not.
//!
//! An optimistic reader may still be reading what lay in the place before. The thread that copies
//! has reserved the place itself, so the release fences of its entering and of its head lie before
//! its stores (see [`Table::enter_at`](super::Table::enter_at)).

use super::LOAN_WORDS_MIN;
use crate::evict::{Budget, StepBudget};
use crate::heap::{BIRTH_WORDS_MAX, Put, draft_layout};
use glimmer_base::limits::{
    DRAFTS_MAX, ROOM_BYTES_PER_HOLD, ROOM_RETAKEN_BYTES_MAX, ROOM_TRIES_FACTOR,
};
use glimmer_base::sync::Ordering::{Acquire, Relaxed, Release};
use glimmer_base::sync::{AtomicU64, weakened, yield_now};
use glimmer_base::{Keyhash, Moment};

/// Items of at least this many words are drafted, and not updated in place beside readers. The
/// model checker takes small ones.
pub(crate) const DRAFT_WORDS_MIN: usize = if cfg!(any(loom, miri)) {
    8
} else {
    glimmer_base::limits::DRAFT_BYTES_MIN / 8
};

/// Words by which room grows in one step.
const ROOM_WORDS_PER_HOLD: u64 = if cfg!(any(loom, miri)) {
    8
} else {
    ROOM_BYTES_PER_HOLD as u64 / 8
};

/// A step counts as this many more items than it passes, because it also scans a part of the index:
/// where items are tiny, some 160 buckets, one after the other.
const ITEMS_PER_STEP: u64 = 32;

/// A key and a large value that may be stored under it.
#[derive(Clone, Copy, Debug)]
pub struct Large<'a> {
    /// 1 to 250 bytes.
    pub key: &'a [u8],
    /// The hash of the key.
    pub keyhash: Keyhash,
    /// The value.
    pub value: &'a [u8],
    /// When it is stored.
    pub now: Moment,
}

/// A place that is neither an item nor free.
#[derive(Clone, Copy, Debug)]
pub struct Reserved {
    /// Where it is, as the table names places.
    pub(crate) at: u64,
    /// Its length.
    pub(crate) words: u64,
}

/// Key and value at the place where their item is to lie.
#[derive(Debug)]
pub struct Draft {
    /// The place.
    pub(crate) place: Reserved,
    /// Where the value was copied from, and its length.
    value: (usize, usize),
    keyhash: Keyhash,
}

impl Draft {
    /// The draft of a value, which is at this place or about to be copied there.
    pub(crate) fn at(place: Reserved, keyhash: Keyhash, value: &[u8]) -> Draft {
        Draft {
            place,
            value: place_of(value),
            keyhash,
        }
    }

    /// Whether this is a draft of the item.
    pub(crate) fn is_of(&self, put: &Put<'_>) -> bool {
        let [value, rest] = put.item.value;
        self.keyhash == put.keyhash
            && self.value == place_of(value)
            // With a birth, a value that was copied may have a larger item.
            && put.words as u64 <= self.place.words
            && rest.is_empty()
            && !put.keeps_value()
    }
}

fn place_of(value: &[u8]) -> (usize, usize) {
    (value.as_ptr().addr(), value.len())
}

/// What a place is reserved for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A value that is there, and is copied at once.
    Draft,
    /// A value that has yet to arrive.
    Upload,
}

/// A place that is wanted for a large value, and what has been done for it.
pub struct Reservation<'a> {
    pub(crate) purpose: Purpose,
    pub(crate) key: &'a [u8],
    pub(crate) keyhash: Keyhash,
    pub(crate) now: Moment,
    /// Words of the place: enough for every optional field.
    pub(crate) words: u64,
    /// Items that may be passed now.
    items_left: u64,
    effort: Effort,
    /// Others have had their turn since the last step.
    goes_on: bool,
}

/// What has been done to make room for a large value.
#[derive(Clone, Copy, Debug)]
struct Effort {
    /// Words that may yet be passed in steps. After that room is made at once.
    words_left: u64,
    /// What the item may spend on others.
    budget: Budget,
    /// Words of appends that the table has yet to be paid for.
    unpaid: u64,
    /// What the last step left.
    left: Option<RoomLeft>,
    /// Words of the room that others have taken, and that have not been made again.
    retaken: u64,
}

/// The room at the tail of a log after a step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoomLeft {
    /// The tail, as the table names places.
    pub tail: u64,
    pub free_words: u64,
}

/// Room that is made for an upload, over as many turns as that takes.
#[derive(Clone, Copy, Debug)]
pub struct Headway {
    /// Items that may be passed in this turn. Those that are passed are subtracted.
    pub items_left: u64,
    effort: Option<Effort>,
}

impl Headway {
    /// No room so far. This many items may be passed in the first turn.
    pub fn new(items_left: u64) -> Headway {
        Headway {
            items_left,
            effort: None,
        }
    }

    /// What has been done so far is of no use any more.
    pub(crate) fn forget(&mut self) {
        self.effort = None;
    }
}

/// What became of one step.
pub enum Step {
    /// The place is reserved.
    Reserved(Reserved),
    /// Others may enter, and then there is more to do.
    Again,
    /// The value has to be copied under the lock.
    Never,
}

impl<'a> Reservation<'a> {
    /// A place for a value of this many bytes. None for drafts that are copied under the lock, and
    /// for uploads that are received as a whole.
    pub(crate) fn of(
        purpose: Purpose,
        (key, keyhash): (&'a [u8], Keyhash),
        value_bytes: usize,
        now: Moment,
    ) -> Option<Reservation<'a>> {
        let layout = draft_layout(key, value_bytes);
        let words = layout.words_with_all() as u64;
        let least = match purpose {
            Purpose::Draft => DRAFT_WORDS_MIN,
            Purpose::Upload => LOAN_WORDS_MIN,
        };
        (layout.words() >= least).then_some(Reservation {
            purpose,
            key,
            keyhash,
            now,
            words,
            items_left: u64::MAX,
            effort: Effort {
                words_left: words * ROOM_TRIES_FACTOR as u64,
                budget: Budget::for_words(words),
                unpaid: words,
                left: None,
                retaken: 0,
            },
            goes_on: false,
        })
    }

    /// Has the place take the birth of an item, too, as far as an item of `most` words goes.
    pub(crate) fn grow_for_birth(&mut self, most: u64) {
        let more = BIRTH_WORDS_MAX.min(most.saturating_sub(self.words));
        self.words += more;
        self.effort.unpaid += more;
    }

    /// Goes on with what was done in earlier turns.
    pub(crate) fn go_on(&mut self, headway: &Headway) {
        self.items_left = headway.items_left;
        if let Some(effort) = headway.effort {
            self.effort = effort;
            self.goes_on = true;
        }
    }

    /// What has been done, for the next turn.
    pub(crate) fn headway(&self) -> Headway {
        Headway {
            items_left: self.items_left,
            effort: Some(self.effort),
        }
    }

    /// Whether more items may be passed now.
    pub(crate) fn may_pass(&self) -> bool {
        self.items_left > 0
    }

    /// Whether room is made in steps. It no longer is if others take it again and again.
    pub(crate) fn is_stepwise(&self) -> bool {
        self.effort.words_left > 0
    }

    /// What the last step left, if others have had their turn since.
    pub(crate) fn before(&self) -> Option<RoomLeft> {
        self.effort.left.filter(|_| self.goes_on)
    }

    /// A step begins, before which others have taken `retaken` words of the room.
    pub(crate) fn begin_step(&mut self, retaken: u64) {
        let most = (ROOM_RETAKEN_BYTES_MAX / 8) as u64;
        self.goes_on = false;
        self.effort.retaken = (self.effort.retaken + retaken).min(most);
        self.effort.budget.begin_step(StepBudget {
            words: ROOM_WORDS_PER_HOLD,
            items: self.items_left,
            free_words: self.effort.retaken,
        });
    }

    /// What the item may spend on others, and a step on what it passes.
    pub(crate) fn budget(&mut self) -> &mut Budget {
        &mut self.effort.budget
    }

    /// The step has ended.
    pub(crate) fn end_step(&mut self, room: RoomLeft) {
        let effort = &mut self.effort;
        let left = effort.budget.step();
        let passed = ROOM_WORDS_PER_HOLD - left.words;
        effort.words_left = effort.words_left.saturating_sub(passed);
        effort.retaken = left.free_words;
        effort.left = Some(room);
        if self.items_left != u64::MAX {
            self.items_left = left.items.saturating_sub(ITEMS_PER_STEP);
        }
    }

    /// Words that are to be paid for in this step: of `bounded` steps, a part of the item's.
    pub(crate) fn pay(&mut self, bounded: bool) -> u64 {
        let words = match bounded {
            true => self.effort.unpaid.min(ROOM_WORDS_PER_HOLD),
            false => self.effort.unpaid,
        };
        self.effort.unpaid -= words;
        words
    }

    /// Whether all has been paid for.
    pub(crate) fn is_paid(&self) -> bool {
        self.effort.unpaid == 0
    }
}

/// The drafts of a table that are being copied.
#[derive(Default)]
pub(crate) struct Drafts {
    /// One more than the name of a draft's place, or zero.
    places: [AtomicU64; if cfg!(loom) { 2 } else { DRAFTS_MAX }],
}

impl Drafts {
    /// The number of one draft more; none if there are as many as there may be. Only for the
    /// writer.
    pub fn next(&self) -> Option<usize> {
        let is_free = |place: &AtomicU64| place.load(Relaxed) == 0;
        self.places.iter().position(is_free)
    }

    /// The draft of this number, which is the [next](Self::next), is about to be copied to this
    /// place. Only for the writer.
    pub fn begin(&self, number: usize, at: u64) {
        self.places[number].store(at + 1, Relaxed);
    }

    /// The draft of this number has been copied.
    pub fn end(&self, number: usize) {
        self.places[number].store(0, Release);
    }

    /// Waits until no draft is being copied to this place. Only for the writer, so that none
    /// begins.
    #[cold]
    #[inline(never)]
    pub fn wait_for(&self, at: u64) {
        if weakened("draft_wait") {
            return;
        }
        for place in &self.places {
            while place.load(Acquire) == at + 1 {
                yield_now();
            }
        }
    }

    /// Waits until no draft is being copied. Only for the writer.
    pub fn wait_for_all(&self) {
        if weakened("draft_flush_wait") {
            return;
        }
        for place in &self.places {
            while place.load(Acquire) != 0 {
                yield_now();
            }
        }
    }
}
