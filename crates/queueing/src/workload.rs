//! Which requests arrive.

use crate::request::Request;
use glimmer_base::Keyhash;
use glimmer_dispatch::PACKET_BYTES;
use rand::{Rng, rngs::SmallRng};
use rand_distr::{Distribution, Zipf};

/// Draws requests. Their arrivals are a Poisson process.
pub trait Workload: Sync {
    /// The next request, which arrives at this time.
    fn draw(&self, arrived_ns: f64, rng: &mut SmallRng) -> Request;
}

/// To which RX queue clients send their requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steer {
    /// Reads to a random one, and writes to that of the core that owns the key.
    ByKey,
    /// All of them to the first: a single queue.
    ToFirst,
}

/// Two sizes (Minos, §2.2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bimodal {
    /// Share of large requests.
    pub large_share: f64,
    /// Packets of a large request. A small one has one.
    pub large_packets: u32,
}

impl Bimodal {
    /// The mean number of packets.
    pub fn packets_mean(&self) -> f64 {
        1.0 + self.large_share * f64::from(self.large_packets - 1)
    }
}

impl Workload for Bimodal {
    fn draw(&self, arrived_ns: f64, rng: &mut SmallRng) -> Request {
        let is_large = rng.random::<f64>() < self.large_share;
        let packets = if is_large { self.large_packets } else { 1 };
        Request {
            arrived_ns,
            bytes: packets * PACKET_BYTES,
            is_large,
            is_read: true,
            keyhash: Keyhash(0),
        }
    }
}

/// Keys with values of up to 1,400 bytes, whose popularity follows Zipf's law.
pub const SMALL_KEYS: u64 = 16_000_000 - LARGE_KEYS;
/// Keys with large values, all requested alike.
pub const LARGE_KEYS: u64 = 10_000;
const EXPONENT: f64 = 0.99;
/// Share of tiny values among those that are not large.
const TINY_SHARE: f64 = 0.4;
/// Bytes of the smallest large value.
pub const LARGE_FROM: u32 = 1500;

/// The paper's workload (Minos, §5.3): tiny, small and large values, uniform within each class. The
/// size of a value follows from its key.
#[derive(Clone, Debug)]
pub struct Trimodal {
    large_share: f64,
    large_bytes_max: u32,
    read_share: f64,
    keys: Zipf<f64>,
}

impl Trimodal {
    /// The workload with this percentage of large requests, values of at most this many bytes, and
    /// this share of GETs.
    pub fn new(large_percent: f64, large_bytes_max: u32, read_share: f64) -> Trimodal {
        Trimodal {
            large_share: large_percent / 100.0,
            large_bytes_max,
            read_share,
            keys: Zipf::new(SMALL_KEYS as f64, EXPONENT).expect("a law over some keys"),
        }
    }

    /// The same with another percentage of large requests.
    pub fn with_large_percent(&self, large_percent: f64) -> Trimodal {
        Trimodal {
            large_share: large_percent / 100.0,
            ..self.clone()
        }
    }

    /// The keyhash of the key with this number, and the bytes of its value. Small ones are numbered
    /// from 1 in the order of popularity, and large ones from [`SMALL_KEYS`].
    pub fn item(&self, key: u64, is_large: bool) -> (Keyhash, u32) {
        let keyhash = mix(key);
        let place = mix(keyhash);
        let within = |low: u32, high: u32| {
            low + (((place & 0xFFFF_FFFF) * u64::from(high - low + 1)) >> 32) as u32
        };
        let is_tiny = ((place >> 32) as f64) < TINY_SHARE * (1_u64 << 32) as f64;
        let bytes = match (is_large, is_tiny) {
            (true, _) => within(LARGE_FROM, self.large_bytes_max),
            (false, true) => within(1, 13),
            (false, false) => within(14, 1400),
        };
        (Keyhash(keyhash), bytes)
    }
}

impl Workload for Trimodal {
    fn draw(&self, arrived_ns: f64, rng: &mut SmallRng) -> Request {
        let is_large = rng.random::<f64>() < self.large_share;
        let key = match is_large {
            true => SMALL_KEYS + rng.random_range(0..LARGE_KEYS),
            false => self.keys.sample(rng) as u64,
        };
        let (keyhash, bytes) = self.item(key, is_large);
        Request {
            arrived_ns,
            bytes,
            is_large,
            is_read: rng.random::<f64>() < self.read_share,
            keyhash,
        }
    }
}

/// Workloads one after the other. The last one stays.
#[derive(Clone, Debug)]
pub struct Phases {
    /// Length of a phase, in nanoseconds.
    pub length_ns: f64,
    /// The workload of each phase.
    pub workloads: Vec<Trimodal>,
}

impl Workload for Phases {
    fn draw(&self, arrived_ns: f64, rng: &mut SmallRng) -> Request {
        let phase = (arrived_ns / self.length_ns) as usize;
        let phase = phase.min(self.workloads.len() - 1);
        self.workloads[phase].draw(arrived_ns, rng)
    }
}

/// A bijection that spreads numbers over all 64 bits (the finaliser of SplitMix64).
fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
}
