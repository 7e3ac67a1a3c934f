//! Compaction: items slide to other places of the heap, so that free space comes together.

use super::name::Name;
use super::{Shared, Writer};
use crate::access::Access;
use crate::heap::Item;
use crate::heap::segregated_fits::{
    Behind, DROPPING, Effort, Gathering, HEAP_WORDS_MAX, PASSING, sliding,
};
use crate::index::{Entry, Slot};
use crate::memory::{Record, Slide};
use crate::table::{Heap, Index};
use crate::work;
use glimmer_base::sync::Ordering::Relaxed;
use glimmer_base::sync::{in_program_order, weakened};
use glimmer_base::{Keyhash, Moment};

/// Free space that is being gathered, because a store was refused for want of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pending {
    words: usize,
    /// Times that the gathering still comes to the top.
    rounds_left: u8,
}

/// Rounds until it is given up unless another store is refused: the first may begin anywhere, the
/// second meets all that was free when it began.
const ROUNDS: u8 = 2;

/// What every eighth insert does for a gathering: some microseconds.
const EFFORT_OF_INSERTS: usize = 800;

/// Of the effort that a store may make for a gathering, what the search for a good beginning may
/// take.
const SEARCH_SHARE: usize = 4;

/// Items whose entries are fetched ahead.
const FETCHED_AHEAD: usize = 16;

impl Pending {
    /// This many words together, and what others wait for.
    pub fn for_words(words: usize, others: Option<Pending>) -> Pending {
        Pending {
            words: words.max(others.map_or(0, |others| others.words)),
            rounds_left: ROUNDS,
        }
    }

    /// Everything that is free together at the top, where the index can have it.
    pub fn to_the_top() -> Pending {
        Pending {
            words: HEAP_WORDS_MAX,
            rounds_left: ROUNDS,
        }
    }

    /// Words that are wanted together.
    pub fn words(self) -> usize {
        self.words
    }
}

impl<A: Access> Writer<'_, A> {
    /// Brings `words` words of free space together where that is cheap, if anywhere it is; says
    /// whether it was.
    pub(super) fn gather_at_once(
        &mut self,
        words: usize,
        effort: &mut Effort,
        now: Moment,
    ) -> bool {
        let shared = self.shared;
        let (space, limit) = (shared.space(), self.state.border.open());
        let allowed = effort.left() / SEARCH_SHARE;
        let mut search = Effort::new(allowed);
        let fits = &mut self.state.fits;
        let most = Effort::new(effort.left() - allowed);
        let gathering = fits.gather(space, words, limit, most, &mut search);
        effort.spend(allowed - search.left());
        let Some(gathering) = gathering else {
            return false;
        };
        self.slide_all(gathering, effort, now);
        self.has_room(words)
    }

    /// Goes on with the gathering that is pending.
    pub(super) fn compact(&mut self, effort: &mut Effort, now: Moment) {
        let Some(mut pending) = self.state.pending else {
            return;
        };
        let gathering = self.state.fits.resume(pending.words);
        if self.slide_all(gathering, effort, now) {
            // A round without a step would be no round.
            effort.spend(PASSING);
            pending.rounds_left -= 1;
        }
        let is_over = pending.rounds_left == 0 || self.has_room(pending.words);
        self.state.pending = (!is_over).then_some(pending);
    }

    /// What inserts do for a gathering that is pending.
    #[inline(never)]
    pub(super) fn compact_after_insert(&mut self, now: Moment) {
        self.compact(&mut Effort::new(EFFORT_OF_INSERTS), now);
    }

    /// Goes through the heap and frees items that have expired, until `words` words are free,
    /// together or not; says whether they are.
    pub(super) fn sweep(&mut self, words: usize, effort: &mut Effort, now: Moment) -> bool {
        let space = self.shared.space();
        while self.free_words() < words {
            if effort.is_spent() || !self.has_to_scan(now) {
                return false;
            }
            effort.spend(PASSING);
            let Some(Some(at)) = self.state.fits.pass(space) else {
                continue;
            };
            let item = Item::read(space.place(at)).expect("an item lies there");
            if self.shared.common.had_ended(&item, now) {
                effort.spend(DROPPING);
                self.drop_expired(at, item, now);
            }
        }
        true
    }

    /// Slides the items after a gathering until it has what it wants, or the effort is spent. Items
    /// that have expired go. Says whether it has come to the end of the heap.
    fn slide_all(&mut self, mut gathering: Gathering, effort: &mut Effort, now: Moment) -> bool {
        let space = self.shared.space();
        let mut fetched_until = 0;
        while !effort.is_spent()
            && let Behind::Item { from, to } = self.state.fits.behind(space, &mut gathering)
        {
            let item = Item::read(space.place(from)).expect("an item lies there");
            let words = item.words();
            if self.shared.common.had_ended(&item, now) {
                effort.spend(DROPPING);
                self.drop_expired(from, item, now);
                continue;
            }
            if from == to {
                effort.spend(PASSING);
            } else {
                if from >= fetched_until {
                    fetched_until = self.prefetch_entries(from);
                }
                effort.spend(sliding(words));
                self.slide(from, to);
            }
            self.state.fits.slid(&mut gathering, words);
        }
        self.state.fits.finish(space, gathering)
    }

    /// Fetches the entries of the items that lie next; returns where the last of them lies.
    fn prefetch_entries(&self, from: usize) -> usize {
        let (shared, fits) = (self.shared, &self.state.fits);
        let mut until = from;
        for at in fits.items_from(shared.space(), from, FETCHED_AHEAD) {
            let item = Item::read(shared.space().place(at)).expect("an item lies there");
            let keyhash = shared.common.keyhash(&item);
            shared.index.prefetch(self.shared.index.home(keyhash));
            until = at;
        }
        until + 1
    }

    /// Copies an item to a place further left, which may reach into its own, and makes its entry
    /// name that. The chain is locked while the item is in neither place.
    fn slide(&mut self, from: usize, to: usize) {
        let shared = self.shared;
        let item = Item::read(shared.space().place(from)).expect("an item lies there");
        let (home, slot) = self.entry_of(from, &item);
        let words = item.words();
        let entry = shared.index.get(slot);
        let is_shared = A::SHARED_READS && !weakened("slide_version");
        shared.index.change(home, is_shared, || {
            shared.give_up(from, words);
            let record = shared.index.record().filter(|_| to + words > from);
            if let Some(record) = record {
                record.begin_slide(Slide {
                    entry: entry.raw(),
                    to: to as u64,
                    words: words as u64,
                    steps: 0,
                });
            }
            shared.copy_left((from, to), words, 0, record);
            shared.index.set(slot, moved_to(entry, to));
            if let Some(record) = record {
                record.end_slide();
            }
        });
        shared.common.counters.moved.add(1);
        work::moved(words);
    }

    /// Frees an item that has expired, on the way.
    fn drop_expired(&mut self, at: usize, item: Item<'_>, now: Moment) {
        let (home, slot) = self.entry_of(at, &item);
        let entry = self.shared.index.get(slot);
        let found = self.shared.found(home, (slot, entry), item);
        self.reclaim_expired(found, now);
        self.shorten_chain(home);
    }

    /// The chain and the slot whose entry names the item.
    fn entry_of(&self, at: usize, item: &Item<'_>) -> (usize, Slot) {
        let shared = self.shared;
        let is_its = |entry| shared.heap.is_live(entry) && Name::of(entry).at == at;
        let entry_under = |keyhash: Keyhash| {
            let home = shared.index.home(keyhash);
            let mut candidates = shared.index.candidates(home, keyhash);
            let (slot, _) = candidates.find(|&(_, entry)| is_its(entry))?;
            Some((shared.index.chain_of(home), slot))
        };
        entry_under(shared.common.keyhash(item))
            .or_else(|| entry_under(shared.common.second_of(item)))
            .expect("an item in use has an entry")
    }
}

/// The entry of the same item at another place.
pub(super) fn moved_to(entry: Entry, at: usize) -> Entry {
    let name = Name {
        at,
        ..Name::of(entry)
    };
    name.entry(entry.tag()).with_fetched(entry.is_fetched())
}

impl Shared {
    /// Copies an item to a place further left, from a number of steps on. Each step is as long as
    /// the way: it writes to words that were read by the step before, and reads none that another
    /// step writes to. A record learns of each step that reaches into the item, so that the next
    /// process can go on with it.
    pub(super) fn copy_left(
        &self,
        (from, to): (usize, usize),
        words: usize,
        steps_done: usize,
        record: Option<&Record>,
    ) {
        let (old, new) = (self.space().place(from), self.space().place(to));
        let step_words = match record {
            Some(_) => from - to,
            None => words,
        };
        for step in steps_done..words.div_ceil(step_words) {
            if let Some(record) = record {
                record.note_steps(step as u64);
            }
            let first = step * step_words;
            let count = step_words.min(words - first);
            let (old, new) = (old.range(first, count), new.range(first, count));
            for (old, new) in old.iter().zip(new) {
                new.store(old.load(Relaxed), Relaxed);
            }
        }
        in_program_order();
    }
}
