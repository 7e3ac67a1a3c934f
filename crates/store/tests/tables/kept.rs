//! What store mode promises beyond what every table does: nothing goes unless a client says so or
//! it expires, a refused store changes nothing, and space that is freed can be used again. After
//! random operations heap and index are walked from end to end.

use glimmer_base::{Expiry, Moment, Seed};
use glimmer_store::access::{Access, Crcw, Crew, Erew};
use glimmer_store::heap::NewItem;
use glimmer_store::memory::PagePolicy;
use glimmer_store::mica_store::{Owner, StoreConfig};
use glimmer_store::table::Table;
use glimmer_store::table::{Counts, Stored, TableWriter};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::HashMap;

const SEED: Seed = Seed(7);

fn fresh_rng() -> SmallRng {
    SmallRng::seed_from_u64(glimmer_seeds::seed())
}

/// A partition and the map that says what must be in it.
struct Run<A: Access> {
    owner: Owner<A>,
    oracle: HashMap<u32, (Vec<u8>, Expiry)>,
    now: Moment,
    flushes: u64,
    rng: SmallRng,
}

impl<A: Access> Run<A> {
    fn new(bytes: usize, roots: Option<usize>, item_bytes_max: usize) -> Self {
        let config = StoreConfig {
            bytes,
            roots,
            item_bytes_max,
            hasher: SEED.into(),
            pages: PagePolicy::Small,
            ..StoreConfig::default()
        };
        Run {
            owner: Owner::new(&config).unwrap(),
            oracle: HashMap::new(),
            now: Moment {
                ms: 2_000,
                epoch_unix_ms: 0,
            },
            flushes: 0,
            rng: fresh_rng(),
        }
    }

    fn put(&mut self, n: u32, len: usize, expiry: Expiry) -> bool {
        let value: Vec<u8> = (0..len).map(|_| self.rng.random()).collect();
        let key = n.to_le_bytes();
        let item = NewItem {
            expiry,
            ..NewItem::new(&key, &value)
        };
        let mut writer = self.owner.enter(self.flushes);
        match writer.put(SEED.keyhash(&key), &item, self.now) {
            Stored::Yes(_) => {
                self.oracle.insert(n, (value, expiry));
                true
            }
            Stored::OutOfMemory => false,
            Stored::TooLarge => panic!("{len} bytes are within the limit"),
        }
    }

    fn check(&mut self, n: u32) {
        let key = n.to_le_bytes();
        let mut writer = self.owner.enter(self.flushes);
        let found = writer.read(SEED.keyhash(&key), &key, self.now, |item| {
            let mut value = Vec::new();
            item.value().append_to(&mut value);
            (value, item.expiry())
        });
        let expected = self.oracle.get(&n).cloned();
        let expected = expected.filter(|(_, expiry)| !expiry.is_due(self.now));
        assert_eq!(found, expected, "key {n}");
    }

    fn remove(&mut self, n: u32) {
        let key = n.to_le_bytes();
        let mut writer = self.owner.enter(self.flushes);
        let there = writer.remove(SEED.keyhash(&key), &key, self.now);
        let expected = self.oracle.remove(&n);
        let expected = expected.is_some_and(|(_, expiry)| !expiry.is_due(self.now));
        assert_eq!(there, expected, "removal of key {n}");
    }

    fn touch(&mut self, n: u32, expiry: Expiry) {
        let key = n.to_le_bytes();
        let mut writer = self.owner.enter(self.flushes);
        let keyhash = SEED.keyhash(&key);
        if writer.touch(keyhash, &key, expiry, self.now) {
            let (_, old) = self.oracle.get_mut(&n).expect("a touched item is there");
            assert!(!old.is_due(self.now));
            *old = expiry;
        }
    }

    fn audit(&mut self) {
        self.owner.enter(self.flushes).audit();
        let keys: Vec<u32> = self.oracle.keys().copied().collect();
        for n in keys {
            self.check(n);
        }
        let due = |(_, expiry): &(Vec<u8>, Expiry)| expiry.is_due(self.now);
        let unexpired = self.oracle.values().filter(|item| !due(item)).count();
        assert!(self.counts().items >= unexpired as u64);
    }

    fn counts(&self) -> Counts {
        self.owner.figures().counts(self.flushes)
    }
}

/// Puts, removes, touches, lets expire and flushes at random, and walks the partition every so
/// often.
fn random_operations<A: Access>(
    (bytes, roots): (usize, usize),
    keys: u32,
    value_max: usize,
    steps: u32,
) -> Counts {
    let mut run = Run::<A>::new(bytes, Some(roots), value_max + 300);
    for step in 0..steps {
        let n = run.rng.random_range(0..keys);
        match run.rng.random_range(0..10_000) {
            0..4_500 => {
                let len = match run.rng.random_range(0..4) {
                    0 => run.rng.random_range(0..=value_max),
                    _ => run.rng.random_range(0..=value_max / 20),
                };
                let expiry = match run.rng.random_range(0..20) {
                    0 => Expiry::at_ms(run.now.ms + run.rng.random_range(1..3_000)),
                    1 => Expiry::AT_ONCE,
                    _ => Expiry::NEVER,
                };
                run.put(n, len, expiry);
            }
            4_500..7_000 => run.check(n),
            7_000..9_500 => run.remove(n),
            9_500..9_990 => {
                let soon = Expiry::at_ms(run.now.ms + 2_000);
                let expiry = [Expiry::NEVER, soon][run.rng.random_range(0..2)];
                run.touch(n, expiry);
            }
            9_990..9_999 => run.now.ms += run.rng.random_range(0..1_000),
            _ => {
                run.flushes += 1;
                run.oracle.clear();
            }
        }
        if step % 997 == 0 {
            run.audit();
        }
    }
    run.audit();
    let counts = run.counts();
    println!("{}: {counts:?}", A::NAME);
    assert!(counts.evictions == 0 && counts.index_evictions == 0);
    assert!(counts.expired_reclaimed > 0 && counts.in_place_updates > 0);
    counts
}

/// More than fits: the heap is full most of the time.
fn full_heap<A: Access>() {
    let counts = random_operations::<A>((256 << 10, 4), 4_000, 1_500, 60_000);
    assert!(counts.refused > 100, "{counts:?}");
}

/// Small items, so that the index grows from one bucket to hundreds.
fn growing_index<A: Access>() {
    let counts = random_operations::<A>((512 << 10, 1), 6_000, 60, 60_000);
    assert!(counts.buckets_added > 100, "{counts:?}");
}

macro_rules! in_every_mode {
    ($($test:ident)+) => { $(
        mod $test {
            use super::*;

            #[test]
            fn erew() { super::$test::<Erew>(); }
            #[test]
            fn crew() { super::$test::<Crew>(); }
            #[test]
            fn crcw() { super::$test::<Crcw>(); }
        }
    )+ };
}

in_every_mode! { full_heap growing_index }

/// Random sizes of 50 to 2,000 bytes until nine tenths of the heap are in use; then everything is
/// replaced by items of other sizes, ten times over. What is freed must be good for what comes.
#[test]
fn freed_space_is_usable_space() {
    let mut run = Run::<Erew>::new(32 << 20, None, 1 << 20);
    let random_len = |run: &mut Run<Erew>| run.rng.random_range(50..=2_000);
    let full = |run: &Run<Erew>| {
        let heap_bytes = run.owner.figures().heap_bytes();
        run.counts().bytes * 100 / heap_bytes
    };
    let mut keys = 0;
    while full(&run) < 90 {
        let len = random_len(&mut run);
        assert!(run.put(keys, len, Expiry::NEVER));
        keys += 1;
    }
    for _ in 0..10 * keys {
        let n = run.rng.random_range(0..keys);
        // The sum of random sizes wanders; it is kept where it is.
        let len = match full(&run) {
            90.. => run.oracle[&n].0.len() / 2,
            _ => random_len(&mut run),
        };
        assert!(run.put(n, len, Expiry::NEVER), "{:?}", run.counts());
    }
    run.audit();
    assert_eq!(run.counts().refused, 0);
}

/// Most items that one store may slide: each costs 8 of its 30,000 units of effort at least, and it
/// may have been an insert whose turn it was to pay for others.
const MOVED_BY_ONE_STORE_MAX: u64 = 30_000 / 8 + 800 / 8;

/// Stores an item, trying again and again; says how many tries it took. The partition is walked
/// after every one.
fn tries_to_put<A: Access>(run: &mut Run<A>, n: u32, len: usize, tries_max: usize) -> usize {
    for tries in 1..=tries_max {
        let before = run.counts();
        let stored = run.put(n, len, Expiry::NEVER);
        let after = run.counts();
        assert!(after.moved - before.moved <= MOVED_BY_ONE_STORE_MAX);
        run.owner.enter(run.flushes).audit();
        if stored {
            return tries;
        }
        let expired = after.expired_reclaimed - before.expired_reclaimed;
        assert_eq!((after.items + expired, after.evictions), (before.items, 0));
    }
    panic!("refused {tries_max} times: {:?}", run.counts());
}

/// Fills a partition of this many bytes with items of 12 bytes.
fn filled_with_tiny_items<A: Access>(bytes: usize, expiry: Expiry) -> (Run<A>, u32) {
    let mut run = Run::<A>::new(bytes, None, 1 << 20);
    let mut n = 0;
    while run.put(n, 12, expiry) {
        n += 1;
    }
    (run, n)
}

/// Of tiny items a random half goes, so that no two words are free side by side beyond chance: the
/// largest item finds room all the same.
fn room_among_tiny_items<A: Access>() {
    // Half of the words are items that have to be slid: as many as the wanted item has, three or
    // four words each.
    const TRIES_MAX: usize = 16;
    let (mut run, held) = filled_with_tiny_items::<A>(4 << 20, Expiry::NEVER);
    for n in 0..held {
        if run.rng.random_range(0..2) == 0 {
            run.remove(n);
        }
    }
    let tries = tries_to_put(&mut run, held, 1_000 << 10, TRIES_MAX);
    println!("{}: {tries} tries", A::NAME);
    assert!(tries > 1, "one store alone does not do all of that");
    run.audit();
}

/// The same where the tiny items have all expired, but no request has asked for them.
fn room_among_expired_items<A: Access>() {
    const TRIES_MAX: usize = 24;
    let (mut run, held) = filled_with_tiny_items::<A>(4 << 20, Expiry::at_ms(10_000));
    run.now.ms = 10_000;
    let tries = tries_to_put(&mut run, held, 1_000 << 10, TRIES_MAX);
    println!("{}: {tries} tries", A::NAME);
    run.audit();
}

/// Small stores pay for what a large one was refused for: it need not try again and again.
fn stores_pay_for_a_gathering_that_is_pending<A: Access>() {
    let (mut run, held) = filled_with_tiny_items::<A>(6 << 20, Expiry::NEVER);
    for n in (0..held).step_by(2) {
        run.remove(n);
    }
    assert!(!run.put(held, 1_000 << 10, Expiry::NEVER));
    for n in (0..held / 8).map(|n| 2 * n) {
        assert!(run.put(n, 12, Expiry::NEVER));
    }
    assert!(run.put(held, 1_000 << 10, Expiry::NEVER));
    run.audit();
}

/// Large items go, and tiny ones come: the index finds room to grow, although it is not where the
/// heap ends that there is some.
fn room_for_the_index_among_large_items<A: Access>() {
    const TRIES_MAX: u64 = 24;
    let mut run = Run::<A>::new(6 << 20, None, 1 << 20);
    let mut held = 0;
    while run.put(held, 30_000, Expiry::NEVER) {
        held += 1;
    }
    for n in (0..held).step_by(2) {
        run.remove(n);
    }
    for n in held..held + 30_000 {
        run.put(n, 12, Expiry::NEVER);
    }
    let counts = run.counts();
    assert!(counts.refused <= 1 + TRIES_MAX, "{counts:?}");
    run.audit();
}

in_every_mode! {
    room_among_tiny_items
    room_among_expired_items
    stores_pay_for_a_gathering_that_is_pending
    room_for_the_index_among_large_items
}

/// A store that finds no room leaves the old value, and every other one.
#[test]
fn a_refused_store_changes_nothing() {
    let mut run = Run::<Crew>::new(256 << 10, None, 16 << 10);
    let mut n = 0;
    while run.put(n, 500, Expiry::NEVER) {
        n += 1;
    }
    let before = run.counts();
    for n in 0..n {
        assert!(!run.put(n, 12_000, Expiry::NEVER), "there is no such room");
    }
    run.audit();
    let after = run.counts();
    let of = |counts: &Counts| (counts.items, counts.bytes, counts.stored);
    assert_eq!(of(&after), of(&before));
    assert_eq!(after.refused - before.refused, u64::from(n));
    // Room that one item leaves is enough for another of its size.
    run.remove(n / 2);
    assert!(run.put(n + 1, 500, Expiry::NEVER));
}

/// Neighbours that go leave room for an item as large as all of them.
#[test]
fn neighbours_that_go_make_room_for_a_large_item() {
    let mut run = Run::<Erew>::new(4 << 20, None, 1 << 20);
    let mut n = 0;
    while run.put(n, 500, Expiry::NEVER) {
        n += 1;
    }
    for n in 0..n / 2 {
        run.remove(n);
    }
    assert!(run.put(n, 1_000 << 10, Expiry::NEVER) && run.put(n + 1, 500 << 10, Expiry::NEVER));
    run.audit();
}

/// An item may grow into the free space beside it, and into the place it has itself, although
/// there is no room for both the old and the new one.
#[test]
fn an_item_grows_where_it_lies_if_nowhere_else() {
    let mut run = Run::<Crcw>::new(256 << 10, None, 110 << 10);
    assert!(run.put(0, 100 << 10, Expiry::NEVER));
    let mut n = 1;
    while run.put(n, 1_000, Expiry::NEVER) {
        n += 1;
    }
    for n in 1..n.min(30) {
        run.remove(n);
    }
    assert!(run.put(0, 106 << 10, Expiry::NEVER));
    run.audit();
}

/// Expired items give their memory back although no request asks for them.
#[test]
fn expired_items_make_room() {
    let mut run = Run::<Erew>::new(1 << 20, None, 16 << 10);
    let mut n = 0;
    while run.put(n, 300, Expiry::at_ms(10_000)) {
        n += 1;
    }
    let held = n;
    run.now.ms = 10_000;
    // The last few may be in chains that no store has had the time to look at.
    for n in held..held + held / 10 * 9 {
        assert!(run.put(n, 300, Expiry::NEVER), "item {n} of {held}");
    }
    run.audit();
}

/// A flush frees everything at once, and goes on doing so when its numbers start again.
#[test]
fn a_flush_frees_everything() {
    let mut run = Run::<Crew>::new(256 << 10, Some(3), 16 << 10);
    let mut held = 0;
    while run.put(held, 300, Expiry::NEVER) {
        held += 1;
    }
    for round in 0..9_000u32 {
        run.flushes += 1;
        run.oracle.clear();
        assert!(run.put(round, 15 << 10, Expiry::NEVER));
        run.check(held / 2);
        if round % 1_000 == 0 {
            run.audit();
        }
    }
    run.flushes += 1;
    run.oracle.clear();
    for n in 0..held {
        assert!(run.put(n, 300, Expiry::NEVER), "item {n} of {held}");
    }
    run.audit();
}

/// Items of 20 bytes and items of 100 KB fit under the same settings, and use the memory well.
#[test]
fn one_setting_serves_tiny_and_huge_items() {
    const BYTES: usize = 64 << 20;
    for (len, share) in [(12, 0.30), (100, 0.75), (100 << 10, 0.97)] {
        let mut run = Run::<Erew>::new(BYTES, None, 1 << 20);
        let mut n = 0;
        while run.put(n, len, Expiry::NEVER) {
            n += 1;
        }
        let stored = n as usize * (len + 4);
        println!("{n} items of {len} bytes: {:?}", run.counts());
        assert!(stored as f64 > share * BYTES as f64, "{n} items of {len}");
    }
}
