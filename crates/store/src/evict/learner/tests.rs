use super::*;
use glimmer_seeds::each_seed;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

const WORDS: u64 = 100_000;
const NOW: Moment = Moment {
    ms: 2_000,
    epoch_unix_ms: 0,
};

fn item(words: u64) -> Seen {
    Seen {
        words,
        expiry: Expiry::NEVER,
    }
}

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
        for turn in 0..20_000u64 {
            let keyhash = keyhash(rng.random_range(0..keys));
            if !learner.follows(keyhash) {
                continue;
            }
            match rng.random_range(0..100) {
                0..90 => {
                    let words = 1 << rng.random_range(0..24);
                    let seen = Seen {
                        words: rng.random_range(0..words),
                        expiry: Expiry::at_ms(rng.random_range(0..40_000)),
                    };
                    let now = Moment { ms: turn, ..NOW };
                    match rng.random_range(0..3) {
                        0 => learner.read(keyhash, None, now),
                        1 => learner.read(keyhash, Some(seen), now),
                        _ => learner.write(keyhash, seen, now),
                    }
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
    const ITEM: u64 = 100;
    let learner = Learner {
        few_bits: 4,
        ..Learner::following(Objective::Hits, 4)
    };
    learner.add_partition(WORDS as usize, 1_000);
    let turnover = WORDS / ITEM;
    for turn in 0..20 * turnover {
        let stored = keyhash(turn);
        if learner.follows(stored) {
            learner.write(stored, item(ITEM), NOW);
        }
        if turn > turnover / 2 {
            let read = keyhash(turn - turnover / 2);
            if learner.follows(read) {
                learner.read(read, Some(item(ITEM)), NOW);
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
    const ITEM: u64 = 100;
    let turnover = WORDS / ITEM;
    each_seed(&[], |seed| {
        let learner = learner();
        let mut rng = SmallRng::seed_from_u64(seed);
        // A loop that is larger than the memory: what was read must stay, and nothing new.
        for turn in 0..40 * turnover {
            let keyhash = keyhash(turn % (turnover * 3 / 2));
            learner.read(keyhash, None, NOW);
            learner.write(keyhash, item(ITEM), NOW);
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
            learner.write(keyhash(1 << 40 | turn), item(ITEM), NOW);
            if turn >= lag {
                learner.read(keyhash(1 << 40 | (turn - lag)), Some(item(ITEM)), NOW);
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
    const ITEM: u64 = 100;
    for (items, one_in) in [(2_000, 16), (100_000, 128), (4_000_000, 4_096)] {
        let learner = Learner::new(Objective::Hits);
        learner.add_partition(items * ITEM as usize, 1_000);
        for turn in 0..4 * items as u64 {
            let keyhash = keyhash(turn % (2 * items as u64));
            if learner.follows(keyhash) {
                learner.read(keyhash, None, NOW);
                learner.write(keyhash, item(ITEM), NOW);
            }
        }
        assert_eq!(learner.learned().unwrap().one_in, one_in, "{items} items");
    }
}

#[test]
fn for_bytes_sizes_do_not_count() {
    let learner = Learner::new(Objective::Bytes);
    learner.add_partition(WORDS as usize, 1_000);
    (0..10_000)
        .for_each(|number| learner.write(Keyhash(number << 7), item(1 << (number % 8)), NOW));
    assert_eq!(learner.setting().usual, None);
    assert!(Learner::fixed(Setting::S3_FIFO).learned().is_none());
}

/// An item that has expired is found under no setting, though no cache has given it up.
#[test]
fn no_setting_finds_what_has_expired() {
    let learner = learner();
    for turn in 0..10_000 {
        let (keyhash, lives) = (keyhash(turn % 100), turn % 100 < 50);
        let now = Moment {
            ms: NOW.ms + turn,
            ..NOW
        };
        let expiry = match lives {
            true => Expiry::NEVER,
            false => Expiry::at_ms(now.ms + 50),
        };
        let seen = Seen { words: 1, expiry };
        if turn >= 100 && lives {
            learner.read(keyhash, Some(seen), now);
        } else {
            learner.read(keyhash, None, now);
            learner.write(keyhash, seen, now);
        }
    }
    let found = learner.learned().unwrap().found.unwrap();
    let is_half = |share: &f64| (0.45..0.51).contains(share);
    assert!(found.iter().all(is_half), "{found:?}");
}

/// Items that the table has kept since before their keys were followed are read again and again:
/// every setting finds some of them again, if clients write what they miss.
#[test]
fn what_the_table_has_kept_is_learned_when_it_is_read() {
    for is_aside in [false, true] {
        let learner = learner();
        for turn in 0..10_000 {
            learner.read(keyhash(turn % 100), Some(item(500)), NOW);
            let new = keyhash(1_000 + turn);
            if is_aside {
                learner.read(new, None, NOW);
            }
            learner.write(new, item(500), NOW);
        }
        let found = learner.learned().unwrap().found.unwrap();
        let most = if is_aside { 0.2..0.51 } else { 0.0..0.01 };
        assert!(found.iter().all(|share| most.contains(share)), "{found:?}");
    }
}
