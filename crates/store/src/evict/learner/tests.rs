use super::*;
use glimmer_seeds::each_seed;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

const WORDS: u64 = 100_000;

fn learner() -> Learner {
    let learner = Learner::following(Objective::Hits, 0);
    learner.add_partition(WORDS as usize, 1_000);
    learner
}

/// A hash that spreads numbers.
fn keyhash(number: u64) -> Keyhash {
    let mixed = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    Keyhash((mixed ^ mixed >> 31).wrapping_mul(0xbf58_476d_1ce4_e5b9))
}

/// Requests without sense, of sizes from nothing to more than there is: what is followed stays
/// within its bounds, and the books agree.
#[test]
fn any_requests_leave_the_books_right() {
    each_seed(&[], |seed| {
        let mut rng = SmallRng::seed_from_u64(seed);
        let bits = rng.random_range(0..5);
        let objective = [Objective::Hits, Objective::Bytes][rng.random_range(0..2)];
        let learner = Learner::following(objective, bits);
        learner.add_partition(rng.random_range(0..1 << 20), rng.random_range(0..1 << 16));
        let keys = 1 << rng.random_range(1..20);
        for turn in 0..20_000 {
            let keyhash = keyhash(rng.random_range(0..keys));
            if !learner.follows(keyhash) {
                continue;
            }
            match rng.random_range(0..100) {
                0..45 => learner.read(keyhash, rng.random()),
                45..90 => {
                    let words = 1 << rng.random_range(0..24);
                    learner.write(keyhash, rng.random_range(0..words));
                }
                90..99 => learner.remove(keyhash),
                _ if turn % 1_000 == 0 => learner.clear(),
                _ => {}
            }
        }
        let learned = learner.learned().unwrap();
        assert!(learned.keys <= sample::KEYS_MAX, "{seed}: {learned:?}");
        if let Some(found) = learned.found {
            let is_share = |&share: &f64| (0.0..=1.0 + 1e-9).contains(&share);
            assert!(found.iter().all(is_share), "{seed}: {found:?}");
        }
        learner.learning.lock().unwrap().caches.audit();
    });
}

/// While a small sample grows, what was stored before it held a key does not count as missed: each
/// item is read once, when half of the memory has been written after it, and FIFO keeps it.
#[test]
fn a_sample_that_grows_does_not_count_what_it_could_not_know() {
    const ITEM: usize = 100;
    let learner = Learner {
        bits_min: 0,
        ..Learner::following(Objective::Hits, 4)
    };
    learner.add_partition(WORDS as usize, 1_000);
    let turnover = WORDS / ITEM as u64;
    for turn in 0..20 * turnover {
        let stored = keyhash(turn);
        if learner.follows(stored) {
            learner.write(stored, ITEM);
        }
        if turn > turnover / 2 {
            let read = keyhash(turn - turnover / 2);
            if learner.follows(read) {
                learner.read(read, true);
            }
        }
        if let Some(found) = learner.learned().and_then(|it| it.found) {
            assert!(found[0] > 1.0 - 1e-9, "after {turn} stores: {found:?}");
        }
    }
    assert!(learner.learned().unwrap().one_in < 16, "it has not grown");
}

/// Under a constant load the setting comes to rest; after another load has misled it, it comes back
/// within two turnovers of the memory.
#[test]
fn it_comes_to_rest_and_recovers() {
    const ITEM: usize = 100;
    let turnover = WORDS / ITEM as u64;
    each_seed(&[], |seed| {
        let learner = learner();
        let mut rng = SmallRng::seed_from_u64(seed);
        // A loop that is larger than the memory: what was read must stay, and nothing new.
        for turn in 0..40 * turnover {
            let keyhash = keyhash(turn % (turnover * 3 / 2));
            learner.read(keyhash, false);
            learner.write(keyhash, ITEM);
        }
        let misled = learner.learned().unwrap();
        let share = SETTINGS[misled.in_use].1.direct_percent;
        assert!(
            share < 100,
            "{seed}: new items push out the loop: {misled:?}"
        );
        // Items that are read once, later. Whether they are found is for the table to say.
        let lag = rng.random_range(turnover / 4..turnover * 3 / 4);
        let mut first_right = None;
        for turn in 0..40 * turnover {
            learner.write(keyhash(1 << 40 | turn), ITEM);
            if turn >= lag {
                learner.read(keyhash(1 << 40 | (turn - lag)), true);
            }
            let is_right = learner.setting().direct_percent == 100;
            first_right = first_right.or(is_right.then_some(turn));
        }
        let took = first_right.unwrap_or(u64::MAX);
        assert!(
            took < lag + 2 * turnover,
            "{seed}: lag {lag}, {took} of {turnover}"
        );
        let changes = learner.learned().unwrap().changes - misled.changes;
        assert!(changes <= 3, "{seed}: {changes} changes");
    });
}

#[test]
fn of_few_items_more_are_followed_and_of_many_fewer() {
    const ITEM: usize = 100;
    for (items, one_in) in [(2_000, 16), (100_000, 128), (4_000_000, 4_096)] {
        let learner = Learner::new(Objective::Hits);
        learner.add_partition(items * ITEM, 1_000);
        for turn in 0..4 * items as u64 {
            let keyhash = keyhash(turn % (2 * items as u64));
            if learner.follows(keyhash) {
                learner.read(keyhash, false);
                learner.write(keyhash, ITEM);
            }
        }
        assert_eq!(learner.learned().unwrap().one_in, one_in, "{items} items");
    }
}

#[test]
fn for_bytes_sizes_do_not_count() {
    let learner = Learner::new(Objective::Bytes);
    learner.add_partition(WORDS as usize, 1_000);
    (0..10_000).for_each(|number| learner.write(Keyhash(number << 7), 1 << (number % 8)));
    assert_eq!(learner.setting().usual, None);
    assert!(Learner::fixed(Setting::S3_FIFO).learned().is_none());
}
