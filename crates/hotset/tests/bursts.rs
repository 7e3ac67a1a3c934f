//! Keys that are changed, evenly or in bursts: the share of their reads that is answered has no
//! cliff, and the accelerator never costs more than it saves, whatever the number of reads to a
//! change, the prices, and how late a body reports its hits. Everything is in virtual time, and
//! every run prints its seed.
#![cfg(not(loom))]

use glimmer_base::Keyhash;
use glimmer_hotset::policies::Counting;
use glimmer_hotset::{AfterChange, Decision, Incumbent, Policy, Prices, SampledRead, Sampler};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

const KEYS: usize = 4;
const REQUESTS_PER_MS: u64 = 20;
/// What happens earlier does not count: a body that reports late has to have reported a few times.
const WARM_UP_MS: u64 = 5_000;
/// What a late body reports is as old as this at most.
const REPORT_MS: u64 = 250;
const HIT_NS: u64 = 4000;

/// How the changes lie, and when hits are known.
#[derive(Clone, Copy, Debug)]
struct Load {
    /// Reads to a change.
    ratio: f64,
    /// Changes in a row, which the reads follow.
    burst: u64,
    /// What a change costs in hits.
    price: f64,
    is_late: bool,
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default)]
struct Outcome {
    reads: u64,
    hits: u64,
    /// Fills, and changes that were carried out in slots.
    written: u64,
    /// Keys that were put into quarantine.
    leaves: u64,
    /// Reads that were sampled.
    samples: u64,
}

impl Outcome {
    fn since(self, before: Outcome) -> Outcome {
        Outcome {
            reads: self.reads - before.reads,
            hits: self.hits - before.hits,
            written: self.written - before.written,
            leaves: self.leaves - before.leaves,
            samples: self.samples - before.samples,
        }
    }

    fn share(self) -> f64 {
        self.hits as f64 / self.reads as f64
    }
}

/// Slots of which each belongs to one key.
struct Body {
    policy: Counting,
    sampler: Sampler,
    live: [bool; KEYS],
    hits: [u64; KEYS],
    reported: [u64; KEYS],
    is_late: bool,
    done: Outcome,
    now_ms: u64,
}

impl Body {
    fn incumbent(&self, key: usize) -> Incumbent {
        let hits = if self.is_late {
            self.reported[key]
        } else {
            self.hits[key]
        };
        Incumbent {
            slot: key,
            keyhash: keyhash(key),
            hits,
        }
    }

    fn read(&mut self, key: usize) {
        self.done.reads += 1;
        if self.live[key] {
            self.done.hits += 1;
            self.hits[key] += 1;
            return;
        }
        if !self.sampler.takes() {
            return;
        }
        self.done.samples += 1;
        let read = SampledRead {
            keyhash: keyhash(key),
            key: &[key as u8],
            value_bytes: 64,
        };
        self.policy.read(&read, self.now_ms);
        while let Some(decision) = self.policy.poll() {
            assert!(matches!(decision, Decision::Offer(_)));
            self.live[key] = true;
            self.done.written += 1;
            let incumbent = self.incumbent(key);
            self.policy.filled(&incumbent, self.now_ms);
        }
    }

    fn change(&mut self, key: usize) {
        if !self.live[key] {
            return;
        }
        let incumbent = self.incumbent(key);
        match self.policy.changed(&incumbent, self.now_ms) {
            AfterChange::Refill => self.done.written += 1,
            AfterChange::Evict => {
                self.live[key] = false;
                self.done.leaves += 1;
            }
        }
    }
}

fn keyhash(key: usize) -> Keyhash {
    Keyhash((key as u64 + 1) << 40)
}

/// Reads and changes of a few keys at random: this many requests after the warm-up. Returns what
/// came of them, and what came of all.
fn run(load: Load, length: u64, seed: u64) -> [Outcome; 2] {
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut policy = Counting::new(KEYS, 0);
    policy.priced(Prices::new((HIT_NS as f64 * load.price) as u64, HIT_NS));
    let mut body = Body {
        sampler: Sampler::new(policy.sample_every(), rng.random()),
        policy,
        live: [false; KEYS],
        hits: [0; KEYS],
        reported: [0; KEYS],
        is_late: load.is_late,
        done: Outcome::default(),
        now_ms: 0,
    };
    let (mut requests, mut owed) = (0, 0.0);
    let mut begin = Outcome::default();
    while requests < REQUESTS_PER_MS * WARM_UP_MS + length {
        owed += load.burst as f64 * load.ratio;
        let reads_now = owed as u64;
        owed -= reads_now as f64;
        for nth in 0..load.burst + reads_now {
            if requests % (REQUESTS_PER_MS * REPORT_MS) == 0 {
                body.reported = body.hits;
            }
            if requests == REQUESTS_PER_MS * WARM_UP_MS {
                begin = body.done;
            }
            body.now_ms = requests / REQUESTS_PER_MS;
            requests += 1;
            let key = rng.random_range(0..KEYS);
            match nth < load.burst {
                true => body.change(key),
                false => body.read(key),
            }
        }
    }
    [body.done.since(begin), body.done]
}

/// What a change costs in hits: with a packet program, in between, and the most that is assumed.
const PRICES: [f64; 3] = [0.15, 1.0, 8.0];
/// Requests of the longest run, after the warm-up.
const LENGTH_MAX: u64 = 400_000;
/// From even changes to bursts that are longer than what a purse of one key pays.
const BURSTS: [u64; 4] = [1, 32, 200, 100_000];

/// Every case but the ratio, with the outcome for each of these ratios.
fn curves(ratios: impl Fn(f64) -> Vec<f64>, mut judge: impl FnMut(&str, Load, [Outcome; 2], f64)) {
    let seed = glimmer_seeds::seed();
    for is_late in [false, true] {
        for price in PRICES {
            for burst in BURSTS {
                let mut before = 0.0;
                for ratio in ratios(price) {
                    let load = Load {
                        ratio,
                        burst,
                        price,
                        is_late,
                    };
                    let bursts = burst as f64 * (1.0 + ratio) * 3.0;
                    let done = run(load, (bursts as u64).clamp(60_000, LENGTH_MAX), seed);
                    let share = done[0].share();
                    let case = format!("{load:?}: {share:.3}, before {before:.3}, {done:?}");
                    println!("{case}");
                    judge(&case, load, done, before);
                    before = share;
                }
            }
        }
    }
}

/// Where hits save more than changes cost, almost all reads are answered, and with more reads to a
/// change not notably fewer of them.
#[test]
fn the_share_has_no_cliff_from_one_to_a_thousand_reads_to_a_change() {
    let ratios = |_| {
        (0..=9)
            .map(|step| 10f64.powf(f64::from(step) / 3.0))
            .collect()
    };
    curves(ratios, |case, load, [done, _], before| {
        assert!(done.share() >= before - 0.05, "{case}");
        if load.ratio >= 1.25 * load.price {
            assert!(done.share() >= 0.9, "{case}");
        }
    });
}

/// Around the ratio at which hits save what changes cost, the share falls in small steps. There it
/// is a matter of luck for long, so all requests count, those of the warm-up too.
#[test]
fn the_share_has_no_step_where_nothing_is_gained() {
    let ratios = |price: f64| (-8..=4).map(|step| price * 1.02f64.powi(step)).collect();
    let mut last = 0.0;
    curves(ratios, |case, _, [_, all], before| {
        let share = all.share();
        assert!(before == 0.0 || (share - last).abs() < 0.4, "{case}");
        last = share;
    });
}

/// Also with keys that are not worth it, all that is spent was saved before, or lent: a sixteenth
/// of what reads would have saved that were not answered, and a few changes for keys of which
/// nothing is known.
#[test]
fn nothing_costs_more_than_it_saves() {
    let ratios = |price: f64| {
        [0.001, 0.01, 0.1, 0.5, 0.9, 1.0, 2.0]
            .map(|it| it * price)
            .into()
    };
    curves(ratios, |case, load, [_, done], _| {
        let spent = done.written as f64 * load.price;
        let saved = done.hits as f64;
        let lent = done.samples as f64 * 8.0 / 16.0;
        let seconds = (WARM_UP_MS / 1000 + LENGTH_MAX / REQUESTS_PER_MS / 1000) as f64;
        let times_forgotten = seconds / 10.0 + 1.0;
        let start = KEYS as f64 * 4.0 * load.price * times_forgotten;
        assert!(spent <= saved + lent + start, "{case}");
    });
}
