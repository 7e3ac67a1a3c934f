//! Values that are lent, beside random operations of the writer: they stay as they were.

use crate::oracle::SEED;
use glimmer_base::limits::{DRAFT_BYTES_MIN, LOANS_MAX, MEDIUM_BYTES_MIN};
use glimmer_base::{Expiry, Moment};
use glimmer_store::batches::Batches;
use glimmer_store::heap::{History, Item, NewItem};
use glimmer_store::table::{
    Asides, Counts, Large, LentValue, Stored, Table, TableReader, TableWriter, Whereabouts,
};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

/// Keys of large values.
const KEYS: u16 = 30;
/// Keys of small values, by which an index grows.
const SMALL_KEYS: u16 = 400;
const STEPS: u32 = 20_000;
/// Values that come to be lent at a time, at least.
const LENT_AT_A_TIME: usize = 32;
const EXPIRY_MS_MAX: u64 = 300;

/// Values that were lent, with what they were.
#[derive(Default)]
struct Held {
    values: Vec<(Box<dyn LentValue>, Vec<u8>)>,
    /// How many there have been.
    lent: u32,
    /// The most at a time.
    most: usize,
    /// How many were found lost.
    lost: u32,
}

impl Held {
    fn take<T>(&mut self, lent: Option<(T, Box<dyn LentValue>)>, whole: Vec<u8>) {
        let Some((_, value)) = lent else {
            return;
        };
        assert!(value.bytes() <= whole.len() && whole.len() < value.bytes() + 8);
        self.values.push((value, whole));
        self.lent += 1;
        self.most = self.most.max(self.values.len());
        assert!(self.most <= LOANS_MAX);
    }

    /// Looks at a part of one value.
    fn check(&mut self, rng: &mut SmallRng) {
        if self.values.is_empty() {
            return;
        }
        let (value, whole) = &self.values[rng.random_range(0..self.values.len())];
        let from = rng.random_range(0..value.bytes());
        let to = rng.random_range(from..=value.bytes().min(from + 4_000));
        self.lost += u32::from(!check(&**value, whole, from..to));
    }

    /// Looks at all of a value and gives it back.
    fn end(&mut self, rng: &mut SmallRng) {
        if !self.values.is_empty() {
            let nth = rng.random_range(0..self.values.len());
            let (value, whole) = self.values.swap_remove(nth);
            self.lost += u32::from(!check(&*value, &whole, 0..value.bytes()));
        }
    }
}

/// Looks at some of a value, which is as it was. Says whether it is there.
fn check(value: &dyn LentValue, whole: &[u8], range: std::ops::Range<usize>) -> bool {
    let mut look = |part: &[u8]| assert!(part == &whole[range.clone()], "{range:?} has changed");
    let is_there = value.with(range.clone(), &mut look);
    assert_ne!(is_there, matches!(value.whereabouts(), Whereabouts::Lost));
    // There is no other thread that could use it now.
    assert_eq!(value.try_with(range.clone(), &mut look), is_there);
    is_there
}

/// The writer, with its clock and the flushes that it knows of.
struct Hand<T> {
    owner: T,
    now: Moment,
    flushes: u64,
    /// The next chain that is looked through for what has expired.
    chain: usize,
    rng: SmallRng,
}

impl<T: Table> Hand<T> {
    /// Does something with an item, most often a large one.
    fn change(&mut self) {
        let key = self.rng.random_range(0..KEYS).to_le_bytes();
        let (keyhash, now) = (SEED.keyhash(&key), self.now);
        match self.rng.random_range(0..64) {
            0..40 => {
                let bytes = match self.rng.random_bool(0.2) {
                    true => self.rng.random_range(0..1_000),
                    // Few sizes, so that many values fit where others lay.
                    false => {
                        let unit = [MEDIUM_BYTES_MIN, DRAFT_BYTES_MIN][self.rng.random_range(0..2)];
                        unit * self.rng.random_range(1..4) + self.rng.random_range(0..3)
                    }
                };
                let value = vec![self.rng.random(); bytes];
                self.put(&key, &value);
            }
            40..50 => {
                let more = vec![self.rng.random(); self.rng.random_range(0..300)];
                let item = NewItem {
                    value: [&[], &more],
                    flags: 1,
                    ..NewItem::new(&key, &[])
                };
                self.owner.enter(self.flushes).extend(keyhash, &item, now);
            }
            50..56 => {
                let expiry = Expiry::at_ms(now.ms + self.rng.random_range(1..EXPIRY_MS_MAX));
                self.owner
                    .enter(self.flushes)
                    .touch(keyhash, &key, expiry, now);
            }
            56..60 => drop(self.owner.enter(self.flushes).remove(keyhash, &key, now)),
            60..62 => {
                let (_, next) = self.owner.enter(self.flushes).expire(self.chain, now);
                self.chain = next.unwrap_or(0);
            }
            62 => self.put_small_ones(),
            _ => self.flushes += u64::from(self.rng.random_bool(0.2)),
        }
        self.now.ms += self.rng.random_range(0..3);
    }

    fn put(&mut self, key: &[u8], value: &[u8]) {
        let keyhash = SEED.keyhash(key);
        let large = Large {
            key,
            keyhash,
            value,
            now: self.now,
        };
        let draft = (self.owner).draft(T::HomeBucket::default(), self.flushes, &large, |_| true);
        let item = NewItem {
            flags: 1,
            history: History::NEW,
            ..NewItem::new(key, value)
        };
        let mut writer = self.owner.enter(self.flushes);
        writer.bring(draft);
        writer.put(keyhash, &item, self.now);
        writer.bring(None);
    }

    /// Stores many small items, for which an index grows, or removes them.
    fn put_small_ones(&mut self) {
        let stays = self.rng.random_bool(0.7);
        for n in KEYS..KEYS + self.rng.random_range(0..SMALL_KEYS) {
            let key = n.to_le_bytes();
            match stays {
                true => self.put(&key, &[1; 30]),
                false => {
                    let mut writer = self.owner.enter(self.flushes);
                    writer.remove(SEED.keyhash(&key), &key, self.now);
                }
            }
        }
    }

    fn lend_one(&mut self, held: &mut Held) {
        let n = self.rng.random_range(0..KEYS);
        self.lend(n, held);
    }

    fn lend(&mut self, n: u16, held: &mut Held) {
        let (key, mut whole) = (n.to_le_bytes(), Vec::new());
        let take = |item: &Item<'_>| item.value().append_to(&mut whole);
        let (keyhash, flushes) = (SEED.keyhash(&key), self.flushes);
        let lent = self.owner.lend(keyhash, &key, self.now, flushes, take);
        held.take(lent, whole);
    }
}

fn hand<T: Table>(owner: T) -> Hand<T> {
    let now = Moment {
        ms: 2_000,
        epoch_unix_ms: 0,
    };
    Hand {
        owner,
        now,
        flushes: 0,
        chain: 0,
        rng: SmallRng::seed_from_u64(glimmer_seeds::seed()),
    }
}

/// Stores, extends, touches, deletes and flushes items, most of them large, and lets them expire,
/// while values are lent. Returns the table's figures at the end.
pub fn values_stay<T: Table>(owner: T) -> Counts {
    let (counts, lost) = lend_beside_changes(owner);
    assert_eq!(lost, 0, "copies have all memory");
    counts
}

/// The same where copies have too little memory: values get lost, and those that do not stay.
pub fn values_get_lost<T: Table>(owner: T) {
    let (_, lost) = lend_beside_changes(owner);
    assert!(lost > 0);
}

fn lend_beside_changes<T: Table>(owner: T) -> (Counts, u32) {
    let mut hand = hand(owner);
    let mut held = Held::default();
    for step in 0..STEPS {
        // Time and again as many values are lent as may be.
        let hoards = step / 1_000 % 2 == 0;
        match hand.rng.random_range(0..100) {
            0..60 => hand.change(),
            60..84 => hand.lend_one(&mut held),
            _ if !hoards => held.end(&mut hand.rng),
            _ => {}
        }
        held.check(&mut hand.rng);
    }
    while !held.values.is_empty() {
        held.end(&mut hand.rng);
    }
    let counts = hand.owner.figures().counts(hand.flushes);
    println!(
        "{} values were lent, {} at a time: {counts:?}",
        held.lent, held.most
    );
    assert!(held.most >= LENT_AT_A_TIME, "{} at a time", held.most);
    (counts, held.lost)
}

/// Fills a table with `count` values and lends them. Every second one leaves, and small items are
/// stored for which an index grows. Returns the table's figures.
pub fn values_stay_where_an_index_grows<T: Table>(owner: T, count: u16) -> Counts {
    let (mut hand, mut held) = (hand(owner), Held::default());
    for n in 0..count {
        hand.put(&n.to_le_bytes(), &[n as u8; DRAFT_BYTES_MIN]);
        hand.lend(n, &mut held);
    }
    for n in (0..count).step_by(2) {
        let key = n.to_le_bytes();
        let mut writer = hand.owner.enter(0);
        assert!(writer.remove(SEED.keyhash(&key), &key, hand.now));
    }
    for n in KEYS..KEYS + SMALL_KEYS / 2 {
        hand.put(&n.to_le_bytes(), &[1; 30]);
    }
    assert_eq!(held.values.len(), usize::from(count));
    for (value, whole) in &held.values {
        assert!(check(&**value, whole, 0..value.bytes()));
    }
    hand.owner.figures().counts(0)
}

/// Bytes of the copies of all values of [`are_copied_once`].
pub const COPIED_BYTES: usize = COPIED * DRAFT_BYTES_MIN;
const COPIED: usize = 3;

/// Several readers borrow each of some values, in turns, and all places are given up at a time.
/// There is memory for one copy of each value. The last reader of a value frees its copy.
pub fn are_copied_once<T: Table>(owner: T, asides: &Asides) {
    const READERS: usize = 4;
    let (mut hand, mut held) = (hand(owner), Held::default());
    let keys = 0..COPIED as u16;
    for n in keys.clone() {
        hand.put(&n.to_le_bytes(), &[n as u8; DRAFT_BYTES_MIN]);
    }
    for _ in 0..READERS {
        keys.clone().for_each(|n| hand.lend(n, &mut held));
    }
    hand.flushes += 1;
    drop(hand.owner.enter(hand.flushes));
    // A log gives them up when its head comes round.
    let mut n = COPIED as u16;
    while asides.bytes() == 0 {
        hand.put(&n.to_le_bytes(), &[0; DRAFT_BYTES_MIN]);
        n += 1;
    }
    assert_eq!(held.values.len(), READERS * COPIED);
    let mut shares = 0;
    for (value, whole) in &held.values {
        assert!(check(&**value, whole, 0..value.bytes()));
        match value.whereabouts() {
            Whereabouts::Aside { bytes, .. } => shares += bytes,
            at => panic!("{at:?}"),
        }
    }
    let bytes = asides.bytes();
    assert!(bytes <= COPIED_BYTES && (bytes..bytes + held.values.len()).contains(&shares));
    for left in (0..READERS).rev() {
        assert_eq!(asides.bytes(), bytes);
        held.values.truncate(left * COPIED);
    }
    assert_eq!(asides.bytes(), 0);
}

/// Length of a value before it is appended to. The first byte of the length changes when it grows.
const GROWN_FROM: usize = if cfg!(miri) {
    500
} else {
    2 * MEDIUM_BYTES_MIN - 12
};
/// Bytes of the largest item where it grows.
pub const GROWN_ITEM_BYTES_MAX: usize = GROWN_FROM + 300;

/// Appends to a value while another thread borrows it and looks at it.
pub fn grows<T: Table>(owner: T) {
    const KEY: &[u8] = b"ab";
    let mut hand = hand(owner);
    let (batches, participants) = Batches::new(1);
    hand.owner.join(&batches, 1);
    let reader = hand.owner.reader().expect("others may read");
    let (keyhash, now) = (SEED.keyhash(KEY), hand.now);
    // What is appended last fits where the item lies then, in every table.
    hand.put(KEY, &[7; GROWN_FROM - 40]);
    let appended = |hand: &mut Hand<T>, bytes: usize| {
        let more = [7; 40];
        let item = NewItem {
            value: [&[], &more[..bytes]],
            flags: 1,
            ..NewItem::new(KEY, &[])
        };
        let stored = hand.owner.enter(0).extend(keyhash, &item, now);
        assert!(matches!(stored, Some(Stored::Yes(_))), "{stored:?}");
    };
    appended(&mut hand, 40);
    let first = hand.owner.lend(keyhash, KEY, now, 0, |_| ());
    let ((), first) = first.expect("the value is there");
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let is_over = &is_over;
        scope.spawn(move || {
            let look_at = |lent: &dyn LentValue| {
                let mut look = |bytes: &[u8]| assert!(bytes.iter().all(|&byte| byte == 7));
                assert!(lent.with(0..lent.bytes(), &mut look));
                // A writer may use it now.
                lent.try_with(0..lent.bytes(), &mut look);
            };
            let [mut participant] = participants.try_into().ok().expect("one of them reads");
            look_at(&*first);
            while !is_over.load(Relaxed) {
                let batch = participant.begin();
                let lent = reader.lend(&batch, keyhash, KEY, now, 0, |_| ());
                drop(batch);
                thread::yield_now();
                if let Ok(Some(((), lent))) = lent {
                    look_at(&*lent);
                }
                look_at(&*first);
            }
        });
        for _ in 0..6 {
            thread::yield_now();
            appended(&mut hand, 3);
        }
        is_over.store(true, Relaxed);
    });
    assert!(hand.owner.figures().counts(0).in_place_updates > 0);
}
