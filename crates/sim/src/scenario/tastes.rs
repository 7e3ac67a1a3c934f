//! What the clients of a scenario ask.

use super::{CALLS_PER_KEY, COUNTERS, FILLERS, Operation, ServerPlan, TIGHT_MIB};
use rand::Rng;
use rand::rngs::SmallRng;

/// Keys that are read often where there is an accelerator, besides a counter.
const HOT_KEYS: u8 = 2;

/// What the clients of a scenario have in common.
pub struct Tastes {
    keys: u8,
    counters: u8,
    value_bytes_max: usize,
    /// Many values have this length.
    usual_bytes: usize,
    fills: bool,
    flushes: bool,
    /// Items expire.
    pub expires: bool,
    /// Time between operations, at most, in microseconds.
    pub pause_us: u64,
    /// Connections are reset.
    pub resets: bool,
    /// Datagrams are lost.
    pub loses: bool,
}

impl Tastes {
    /// What the clients of this server ask, with this many calls altogether.
    pub fn draw(rng: &mut SmallRng, server: ServerPlan, calls: usize) -> Tastes {
        let keys = (calls / CALLS_PER_KEY).clamp(2, 20) as u8;
        let counters = (keys / 3).max(1);
        let is_large = rng.random_bool(0.3);
        let expires = rng.random_bool(0.4);
        let value_bytes_max = match is_large {
            true => server.item_bytes_max / 2,
            false => 100,
        };
        Tastes {
            keys: keys - counters,
            counters,
            value_bytes_max,
            usual_bytes: rng.random_range(value_bytes_max / 2..value_bytes_max),
            fills: server.memory_mib == TIGHT_MIB,
            flushes: rng.random_bool(0.2),
            expires,
            pause_us: match (expires, rng.random_bool(0.5)) {
                (true, _) => 400_000,
                (false, true) => 2_000,
                (false, false) => 0,
            },
            resets: rng.random_bool(0.25),
            loses: rng.random_bool(0.6),
        }
    }

    /// The length of a value.
    pub fn bytes(&self, rng: &mut SmallRng) -> usize {
        match rng.random_range(0..4) {
            0..2 => rng.random_range(0..30),
            2 => self.usual_bytes,
            _ => rng.random_range(0..self.value_bytes_max),
        }
    }

    fn expiry_s(&self, rng: &mut SmallRng) -> u32 {
        match self.expires && rng.random_bool(0.6) {
            true => rng.random_range(1..=3),
            false => 0,
        }
    }

    fn key(&self, rng: &mut SmallRng) -> u8 {
        rng.random_range(0..self.keys.max(1))
    }

    /// One of the few keys that are read often where there is an accelerator.
    pub fn hot_key(&self, rng: &mut SmallRng) -> u8 {
        match rng.random_bool(0.3) {
            true => COUNTERS,
            false => rng.random_range(0..self.keys.clamp(1, HOT_KEYS)),
        }
    }

    /// What a client asks.
    pub fn operation(&self, rng: &mut SmallRng) -> Operation {
        if rng.random_bool(0.3) {
            let key = COUNTERS + rng.random_range(0..self.counters);
            return match rng.random_range(0..10) {
                0..=1 => Operation::Begin(key),
                2..=4 => Operation::Increment(key, rng.random_range(1..=3)),
                5..=6 => Operation::Count(key, rng.random_range(1..=3)),
                7 if rng.random_bool(0.3) => Operation::Delete(key),
                _ => Operation::Get(vec![key]),
            };
        }
        if self.fills && rng.random_bool(0.35) {
            let key = rng.random_range(FILLERS..COUNTERS);
            return match rng.random_bool(0.8) {
                true => Operation::Set(key, rng.random_range(20_000..32_000), 0),
                false => Operation::Get(vec![key]),
            };
        }
        let key = self.key(rng);
        match rng.random_range(0..100) {
            0..35 => {
                let others = rng.random_range(0..3);
                let others = (0..others).map(|_| self.key(rng));
                let mut keys: Vec<u8> = std::iter::once(key).chain(others).collect();
                keys.sort_unstable();
                keys.dedup();
                Operation::Get(keys)
            }
            35..60 => Operation::Set(key, self.bytes(rng), self.expiry_s(rng)),
            60..67 => Operation::Add(key, self.bytes(rng), self.expiry_s(rng)),
            67..73 => Operation::Replace(key, self.bytes(rng), self.expiry_s(rng)),
            73..78 => Operation::Append(key, rng.random_range(1..20)),
            78..86 => Operation::Cas(key, self.bytes(rng)),
            86..93 => Operation::Delete(key),
            93..96 if self.expires => Operation::Touch(key, rng.random_range(1..=3)),
            96..98 if self.expires => Operation::GetAndTouch(key, rng.random_range(1..=3)),
            98.. if self.flushes && self.expires => Operation::Flush(rng.random_range(0..=2)),
            98.. if self.flushes => Operation::Flush(0),
            _ => Operation::Set(key, self.bytes(rng), 0),
        }
    }
}
