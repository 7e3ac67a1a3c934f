//! The simulated caches, one for each setting.

use super::queue::{Queue, Record};
use super::sample::{At, KEYS_MAX, Node, Place, QUEUES, Sample};
use super::{ANY_SIZE, COUNT, SETTINGS, Seen};
use crate::evict::{Budget, Probation, Setting, SizeLog, setting::USES_MAX};
use glimmer_base::{Keyhash, Moment};
use std::collections::VecDeque;

/// The small log has this part (1 / n) of the memory.
const SMALL_PART: u64 = 10;
/// A write follows from a miss if no more requests of sampled keys lie between them.
const ASIDE_WITHIN: u32 = 1_000;
/// The sample is doubled if fewer keys are followed than this.
const KEYS_FEW: usize = KEYS_MAX / 8;

/// See the module's text.
pub(super) struct Caches {
    sample: Sample,
    caches: [Cache; COUNT],
    /// Keys that were missed and are not in any cache, the oldest first.
    visitors: VecDeque<u16>,
    /// The sample holds one key in 2^bits.
    bits: u32,
    /// Of one key in 2^known_bits it has been told everything. Of the others it has not been told
    /// what was stored before the sample held them,
    known_bits: u32,
    /// which has gone or was stored again when so many more words were written.
    unknown_words: u64,
    /// Words of all logs of the table.
    table_words: u64,
    sizes: Sizes,
    /// Requests of sampled keys.
    now: u32,
    /// Whether the last write followed from a miss. It speaks for keys of which that is not known.
    is_aside: bool,
}

/// What the caches have in common.
#[derive(Clone, Copy)]
struct Sizes {
    /// The time of the request.
    moment: Moment,
    small_words: u64,
    main_words: u64,
    /// The largest item for the table's small log. It enters those of the caches, too, which are
    /// smaller, and is alone there for a while.
    small_item_words_max: u64,
}

/// An item that a cache takes.
#[derive(Clone, Copy)]
struct New {
    /// Of its key.
    number: u16,
    words: u64,
    /// Uses that it begins with, as the cache counts them.
    uses: u8,
}

impl New {
    fn of(number: u16, words: u64) -> New {
        New {
            number,
            words,
            uses: 0,
        }
    }
}

/// One cache: what it holds is noted in the sample's places.
struct Cache {
    number: usize,
    setting: Setting,
    /// By [`At`].
    queues: [Queue; QUEUES],
    /// Hundredths of the next new item that are to go to the main log.
    direct_due: u32,
    draws: u32,
    probation: Probation,
    /// Words that have entered the main log in this lap of it.
    appended: u64,
}

impl Caches {
    /// Caches for one key in 1 << `bits`.
    pub fn new(bits: u32) -> Caches {
        let cache = |number| Cache {
            number,
            setting: SETTINGS[number].1,
            queues: Default::default(),
            direct_due: 0,
            draws: 0,
            probation: Probation::default(),
            appended: 0,
        };
        Caches {
            sample: Sample::default(),
            caches: std::array::from_fn(cache),
            visitors: VecDeque::new(),
            bits,
            known_bits: bits,
            unknown_words: 0,
            table_words: 0,
            sizes: Sizes {
                moment: Moment::default(),
                small_words: 0,
                main_words: 0,
                small_item_words_max: 0,
            },
            now: 0,
            is_aside: false,
        }
    }

    pub fn keys(&self) -> usize {
        self.sample.len()
    }

    pub fn one_in(&self) -> u64 {
        1 << self.bits
    }

    pub fn set_usual(&mut self, usual: Option<SizeLog>) {
        for (cache, (_, setting)) in self.caches.iter_mut().zip(SETTINGS) {
            let usual = usual.filter(|_| cache.number != ANY_SIZE);
            cache.setting = Setting { usual, ..setting };
        }
    }

    /// Whether a key is in the sample.
    pub fn follows(
        &mut self,
        keyhash: Keyhash,
        table_words: u64,
        small_item_words_max: u64,
    ) -> bool {
        if self.table_words != table_words {
            self.table_words = table_words;
            self.resize();
        }
        self.sizes.small_item_words_max = small_item_words_max;
        let follows = keyhash.0 & ((1 << self.bits) - 1) == 0;
        self.now = self.now.wrapping_add(follows.into());
        follows
    }

    fn resize(&mut self) {
        let words = self.table_words >> self.bits;
        self.sizes.small_words = words / SMALL_PART;
        self.sizes.main_words = words - self.sizes.small_words;
    }

    /// A key was read, and the table had this item, or none. Adds what each cache found, and
    /// returns what was asked for: the item's words, unless every item counts as one unit; nothing
    /// if no cache could find it, because the sample did not hold its key when it was stored.
    pub fn read(
        &mut self,
        key: u64,
        (item, moment): (Option<Seen>, Moment),
        unit: Option<u64>,
        found: &mut [u64; COUNT],
    ) -> u64 {
        self.sizes.moment = moment;
        let Some(number) = self.sample.find(key) else {
            match item {
                None => self.visit(key),
                Some(item) if self.is_aside => self.meet(key, item),
                Some(_) if self.unknown_words > 0 && !self.is_known(key) => return 0,
                Some(_) => {}
            }
            return unit.unwrap_or(item.map_or(0, |item| item.words));
        };
        match item {
            Some(item) => self.sample.node(number).expiry = item.expiry,
            None => self.expire(number, moment),
        }
        let is_hit = item.is_some();
        let node = self.sample.node(number);
        let (words, is_aside) = (u64::from(node.words), node.is_aside);
        let gain = unit.unwrap_or(words);
        if !is_hit {
            node.missed_at = Some(self.now);
        }
        let new = New::of(number, words);
        for (cache, found) in self.caches.iter_mut().zip(found) {
            let place = &mut self.sample.node(number).places[cache.number];
            if matches!(place.at, At::Small | At::Main) {
                place.uses = (place.uses + 1).min(USES_MAX);
                *found += gain;
            } else if is_hit && is_aside {
                // The client has the item and will not write it, as it would if it had missed it.
                cache.write(&mut self.sample, &self.sizes, new);
            }
        }
        self.sample.forget_unless_used(number);
        gain
    }

    fn is_known(&self, key: u64) -> bool {
        key & ((1 << self.known_bits) - 1) == 0
    }

    /// The table has an item of a key that no cache knows. It kept it since before the sample held
    /// the key. Each cache has missed it, and the client would have written it then.
    #[cold]
    fn meet(&mut self, key: u64, item: Seen) {
        let Some(number) = self.add(key) else {
            return;
        };
        let node = self.sample.node(number);
        node.is_aside = true;
        self.enter_all(number, item);
    }

    /// Takes the item of a key out of the caches if it has expired. What is remembered of it stays.
    fn expire(&mut self, number: u16, moment: Moment) {
        if self.sample.get(number).expiry.is_due(moment) {
            for cache in &mut self.caches {
                if self.sample.get(number).places[cache.number].at != At::Ghost {
                    cache.take(&mut self.sample, number);
                }
            }
        }
    }

    /// Stores the item of a key that is in no cache.
    fn enter_all(&mut self, number: u16, item: Seen) {
        let words = item.words.min(u32::MAX.into());
        let node = self.sample.node(number);
        (node.words, node.expiry) = (words as u32, item.expiry);
        let new = New::of(number, words);
        for cache in &mut self.caches {
            cache.enter(&mut self.sample, &self.sizes, new, false);
        }
        self.sample.forget_unless_used(number);
    }

    /// A key that no cache knows was missed: it may be written soon.
    fn visit(&mut self, key: u64) {
        if self.visitors.len() >= KEYS_FEW
            && let Some(oldest) = self.visitors.pop_front()
        {
            self.sample.node(oldest).is_visitor = false;
            self.sample.forget_unless_used(oldest);
        }
        let now = self.now;
        if let Some(number) = self.add(key) {
            let node = self.sample.node(number);
            (node.missed_at, node.is_visitor) = (Some(now), true);
            self.visitors.push_back(number);
        }
    }

    /// Adds a key. If there is no room, fewer keys are followed from now on, and this may not be
    /// one of them.
    fn add(&mut self, key: u64) -> Option<u16> {
        let number = self.sample.add(key);
        if number.is_none() {
            self.follow_fewer();
        }
        number
    }

    /// A key was stored, in an item like this.
    pub fn write(&mut self, key: u64, item: Seen, moment: Moment) {
        self.sizes.moment = moment;
        let Some(number) = self.sample.find(key).or_else(|| self.add(key)) else {
            return;
        };
        let now = self.now;
        self.unknown_words = self.unknown_words.saturating_sub(item.words);
        let words = item.words.min(u32::MAX.into());
        let node = self.sample.node(number);
        let missed_at = node.missed_at.take();
        node.is_aside = missed_at.is_some_and(|at| now.wrapping_sub(at) <= ASIDE_WITHIN);
        self.is_aside = node.is_aside;
        if node.holders == 0 {
            return self.enter_all(number, item);
        }
        let is_aside = node.is_aside;
        let before = u64::from(node.words);
        (node.words, node.expiry) = (words as u32, item.expiry);
        let new = New::of(number, words);
        for cache in &mut self.caches {
            let place = self.sample.node(number).places[cache.number];
            let is_there = matches!(place.at, At::Small | At::Main);
            cache.note_size(place.at, before, words);
            if !is_there {
                cache.write(&mut self.sample, &self.sizes, new);
            } else if is_aside {
                // Had it been found, the client would not have written it.
            } else if before == words {
                let place = &mut self.sample.node(number).places[cache.number];
                place.uses = (place.uses + 1).min(USES_MAX);
            } else {
                cache.write(&mut self.sample, &self.sizes, new);
            }
        }
        self.sample.forget_unless_used(number);
    }

    /// A key has gone.
    pub fn remove(&mut self, key: u64) {
        if let Some(number) = self.sample.find(key) {
            for cache in &mut self.caches {
                cache.take(&mut self.sample, number);
            }
            self.sample.forget_unless_used(number);
        }
    }

    pub fn clear(&mut self) {
        self.sample = Sample::default();
        self.visitors.clear();
        for cache in &mut self.caches {
            cache.queues = Default::default();
        }
    }

    /// Follows more keys, up to one in 1 << `bits_min`, if there are few although the caches are
    /// full.
    pub fn balance(&mut self, bits_min: u32) {
        let queues = &self.caches[0].queues;
        let held = queues[At::Small as usize].words + queues[At::Main as usize].words;
        let is_full = held >= (self.table_words >> self.bits) / 2;
        if self.bits > bits_min && is_full && self.sample.len() < KEYS_FEW {
            if self.unknown_words == 0 {
                self.known_bits = self.bits;
            }
            self.bits -= 1;
            self.resize();
            self.unknown_words = self.table_words >> self.bits;
        }
    }

    /// Panics if the queues and the sample disagree.
    #[cfg(all(test, not(any(loom, miri))))]
    pub fn audit(&mut self) {
        let numbers = self.sample.numbers();
        for cache in &mut self.caches {
            for at in [At::Small, At::Main, At::Ghost] {
                let nodes = numbers.iter().map(|&(_, number)| self.sample.get(number));
                let (keys, words) = nodes
                    .filter(|node| node.places[cache.number].at == at)
                    .fold((0, 0), |(keys, words), node| {
                        (keys + 1, words + u64::from(node.words))
                    });
                let queue = cache.queue(at).expect("it is a queue");
                assert_eq!((queue.keys, queue.words), (keys, words), "{at:?}");
            }
        }
        for (_, number) in numbers {
            let node = self.sample.get(number);
            let places = node.places.iter();
            let held = places.filter(|place| place.at != At::Nowhere).count();
            assert_eq!(usize::from(node.holders), held);
            assert!(held > 0 || node.is_visitor, "nobody needs it");
        }
    }

    /// Follows no more than one key in 1 << `bits`.
    pub fn follow_at_most(&mut self, bits: u32) {
        while self.bits < bits {
            self.follow_fewer();
        }
    }

    /// Follows half of the keys, and gives the caches half of the memory.
    fn follow_fewer(&mut self) {
        self.bits += 1;
        self.resize();
        let bit = 1 << (self.bits - 1);
        let is_out = |&(key, _): &(u64, u16)| key & bit != 0;
        for (_, number) in self.sample.numbers().into_iter().filter(is_out) {
            for cache in &mut self.caches {
                cache.take(&mut self.sample, number);
            }
            self.sample.node(number).is_visitor = false;
            self.sample.forget_unless_used(number);
        }
        let sample = &mut self.sample;
        self.visitors
            .retain(|&number| sample.node(number).is_visitor);
    }
}

impl Cache {
    /// Stores an item, which takes the place of the one that the cache holds.
    fn write(&mut self, sample: &mut Sample, sizes: &Sizes, new: New) {
        let is_known = matches!(self.take(sample, new.number), At::Ghost | At::Main);
        self.enter(sample, sizes, new, is_known);
    }

    /// Stores an item of a key that is in no queue. `is_known`: it has proved itself.
    fn enter(&mut self, sample: &mut Sample, sizes: &Sizes, new: New, is_known: bool) {
        let uses = Setting::first_uses(self.setting.doublings(new.words));
        let new = New { uses, ..new };
        if new.words > sizes.main_words {
            return;
        }
        let is_large = new.words > sizes.small_item_words_max;
        if is_known {
            self.enter_main(sample, sizes, new);
        } else if is_large || self.is_next_direct() {
            self.probation.enter(new.words);
            self.enter_main(sample, sizes, new);
        } else {
            self.enter_small(sample, sizes, new);
        }
    }

    fn is_next_direct(&mut self) -> bool {
        const WHOLE: u32 = 100 * SMALL_PART as u32;
        self.direct_due += u32::from(self.setting.direct_percent) * (SMALL_PART as u32 - 1);
        let is_direct = self.direct_due >= WHOLE;
        if is_direct {
            self.direct_due -= WHOLE;
        }
        is_direct
    }

    fn enter_main(&mut self, sample: &mut Sample, sizes: &Sizes, new: New) {
        if self.words(At::Main) + new.words > sizes.main_words {
            self.make_room_in_main(sample, sizes, new.words);
        }
        self.put(sample, At::Main, new);
        self.note_appended(sizes, new.words);
    }

    /// Something has come to the tail of the main log.
    fn note_appended(&mut self, sizes: &Sizes, words: u64) {
        self.appended += words;
        if self.appended >= sizes.main_words {
            self.probation.end_lap(self.appended);
            self.appended = 0;
        }
    }

    fn make_room_in_main(&mut self, sample: &mut Sample, sizes: &Sizes, words: u64) {
        let mut budget = Budget::for_words(words);
        while self.words(At::Main) + words > sizes.main_words {
            let Some(number) = self.next(sample, At::Main) else {
                break;
            };
            let node = sample.node(number);
            let (words, uses) = (u64::from(node.words), node.places[self.number].uses);
            let is_dead = node.expiry.is_due(sizes.moment);
            let doublings = self.setting.doublings(words);
            let ages = self.probation.is_short();
            self.take(sample, number);
            let is_kept = !is_dead && self.setting.keeps(uses, doublings);
            if is_kept && budget.spare_item(words) {
                self.draws = self.draws.wrapping_add(1);
                let draw = self.draws.wrapping_mul(0x9e37_79b9) >> 16;
                let uses = self.setting.uses_after_lap(uses, doublings, (draw, ages));
                let again = New {
                    number,
                    words,
                    uses,
                };
                self.put(sample, At::Main, again);
                self.note_appended(sizes, words);
            } else {
                sample.forget_unless_used(number);
            }
        }
    }

    fn enter_small(&mut self, sample: &mut Sample, sizes: &Sizes, new: New) {
        while self.words(At::Small) + new.words > sizes.small_words {
            let Some(number) = self.next(sample, At::Small) else {
                break;
            };
            let node = sample.node(number);
            let (words, uses) = (u64::from(node.words), node.places[self.number].uses);
            let is_dead = node.expiry.is_due(sizes.moment);
            self.take(sample, number);
            if is_dead {
                sample.forget_unless_used(number);
                continue;
            }
            let main_has_room = self.words(At::Main) + words <= sizes.main_words;
            let doublings = self.setting.doublings(words);
            let oldest = |uses| New {
                number,
                words,
                uses,
            };
            if main_has_room || self.setting.keeps(uses, doublings) {
                self.enter_main(sample, sizes, oldest(Setting::first_uses(doublings)));
            } else {
                self.remember(sample, sizes, oldest(0));
            }
        }
        self.put(sample, At::Small, new);
    }

    /// A key has left the small log unread. A large item is remembered for as long as one of the
    /// usual size is, or not at all.
    fn remember(&mut self, sample: &mut Sample, sizes: &Sizes, oldest: New) {
        let doublings = self.setting.doublings(oldest.words);
        if self.setting.laps_remembered(doublings) == 0 {
            return sample.forget_unless_used(oldest.number);
        }
        self.put(sample, At::Ghost, oldest);
        let most = sizes.small_words * u64::from(self.setting.ghost_laps);
        while self.words(At::Ghost) > most {
            let Some(oldest) = self.next(sample, At::Ghost) else {
                break;
            };
            self.take(sample, oldest);
            sample.forget_unless_used(oldest);
        }
    }

    /// Words of the keys in a queue.
    #[inline]
    fn words(&self, at: At) -> u64 {
        self.queues[at as usize].words
    }

    #[inline]
    fn queue(&mut self, at: At) -> Option<&mut Queue> {
        self.queues.get_mut(at as usize)
    }

    /// The key that has been in a queue for longest.
    fn next(&mut self, sample: &mut Sample, at: At) -> Option<u16> {
        let number = self.number;
        loop {
            let record = self.queue(at)?.pop()?;
            if is_current(sample.get(record.node), number, at, record) {
                return Some(record.node);
            }
        }
    }

    /// Puts a key that the cache does not know into a queue.
    fn put(&mut self, sample: &mut Sample, at: At, new: New) {
        let (own, number, uses) = (self.number, new.number, new.uses);
        let node = sample.node(number);
        debug_assert!(node.places[own].at == At::Nowhere);
        let turn = node.places[own].turn.wrapping_add(1);
        node.places[own] = Place { at, uses, turn };
        node.holders += 1;
        let record = Record { node: number, turn };
        if let Some(queue) = self.queue(at) {
            queue.push(record, new.words);
            if queue.has_many_that_left() {
                queue.tidy(|it| is_current(sample.get(it.node), own, at, it));
            }
        }
    }

    /// Takes a key out, and says where it was.
    fn take(&mut self, sample: &mut Sample, number: u16) -> At {
        let node = sample.node(number);
        let at = std::mem::take(&mut node.places[self.number].at);
        let words = u64::from(node.words);
        if let Some(queue) = self.queue(at) {
            queue.left(words);
            node.holders -= 1;
        }
        at
    }

    /// The item of a key has another size now.
    fn note_size(&mut self, at: At, before: u64, words: u64) {
        if let Some(queue) = self.queue(at) {
            queue.words = queue.words - before + words;
        }
    }
}

fn is_current(node: &Node, cache: usize, at: At, record: Record) -> bool {
    let place = node.places[cache];
    place.at == at && place.turn == record.turn
}
