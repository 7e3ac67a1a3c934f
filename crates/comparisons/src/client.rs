//! The measurements that comparisons are made of: items of one key length and one value length, one
//! client thread.

use std::time::Duration;

use glimmer_loadgen::{
    load::{Arrivals, Pace, Plan, Requests, WarmUp},
    workload::{Mix, Popularity, Sizes, Workload},
};

/// Length of every key in bytes.
pub const KEY_BYTES: usize = 16;
/// Smallest value in bytes: one that names its key and its version.
pub const VALUE_BYTES_MIN: usize = 8;
/// Largest value in bytes that memcached and we store unless told otherwise, and some room for what
/// is said about it.
pub const VALUE_BYTES_MAX: usize = (1 << 20) - 512;

/// What is stored: items with values of one length.
pub fn items(keys: u64, value_bytes: usize) -> Workload {
    Workload {
        keys,
        key_bytes: KEY_BYTES,
        sizes: Sizes::Fixed(value_bytes as u32),
        ..Workload::default()
    }
}

/// Closed loops.
pub mod closed {
    use super::*;

    pub use glimmer_loadgen::load::Outcome;

    /// What a connection sends at a time.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub enum Burst {
        /// Requests of one key, each a read with this probability, else a write.
        Single {
            /// Requests in flight on a connection.
            requests: u32,
            /// Probability of a read.
            get_share: f64,
        },
        /// One read of several keys.
        MultiGet {
            /// Keys in the request.
            keys: u32,
        },
    }

    impl Burst {
        fn mix(self) -> Mix {
            match self {
                Burst::Single { get_share, .. } => Mix::reads(get_share),
                Burst::MultiGet { keys } => Mix::reads(1.0).keys_per_get(keys),
            }
        }

        /// Requests at a time.
        pub fn requests(self) -> u32 {
            match self {
                Burst::Single { requests, .. } => requests,
                Burst::MultiGet { .. } => 1,
            }
        }

        /// The requests, for items with values of one length.
        pub fn drawn(self, popularity: Popularity, value_bytes: usize) -> Requests {
            let items = items(popularity.keys, value_bytes);
            Requests::Drawn(Workload {
                law: popularity.law,
                mix: self.mix(),
                ..items
            })
        }
    }

    /// How long to measure, and with what.
    #[derive(Clone, Copy, Debug)]
    pub struct Plan {
        /// Connections, all driven by one thread.
        pub connections: usize,
        /// What each sends at a time.
        pub burst: Burst,
        /// Which keys.
        pub popularity: Popularity,
        /// Goes before and is not counted.
        pub warm_up: Duration,
        /// What is counted.
        pub measured: Duration,
        /// Seed of keys and verbs.
        pub seed: u64,
    }

    impl Plan {
        /// The same in full, for values of one length.
        pub fn with_values(&self, value_bytes: usize) -> glimmer_loadgen::load::Plan {
            let pace = Pace::Closed {
                in_flight: self.burst.requests(),
            };
            let requests = self.burst.drawn(self.popularity, value_bytes);
            super::plan(
                requests,
                pace,
                self.connections,
                self.warm_up,
                self.measured,
                self.seed,
            )
        }
    }
}

/// Open loops.
pub mod open {
    use hdrhistogram::Histogram;

    use super::{closed::Burst, *};

    pub use glimmer_loadgen::load::{Idle, record::histogram};

    /// What to send, and when.
    #[derive(Clone, Copy, Debug)]
    pub struct Plan {
        /// Connections; each arrival takes one at random.
        pub connections: usize,
        /// What arrives at a time.
        pub burst: Burst,
        /// Arrivals per second: a Poisson process.
        pub arrivals_per_s: f64,
        /// Which keys.
        pub popularity: Popularity,
        /// What to do in between.
        pub idle: Idle,
        /// Goes before and is not counted.
        pub warm_up: Duration,
        /// What is counted.
        pub measured: Duration,
        /// Seed of arrivals, keys and verbs.
        pub seed: u64,
    }

    impl Plan {
        /// The same in full, for values of one length.
        pub fn with_values(&self, value_bytes: usize) -> glimmer_loadgen::load::Plan {
            let pace = Pace::Open {
                arrivals: Arrivals::Poisson(self.arrivals_per_s),
                burst: self.burst.requests(),
                idle: self.idle,
            };
            let requests = self.burst.drawn(self.popularity, value_bytes);
            super::plan(
                requests,
                pace,
                self.connections,
                self.warm_up,
                self.measured,
                self.seed,
            )
        }
    }

    /// What was measured.
    #[derive(Clone, Debug)]
    pub struct Latencies {
        /// From when an arrival was due to its reply, in nanoseconds.
        pub latency_ns: Histogram<u64>,
        /// How late the client itself was in sending, in nanoseconds.
        pub lateness_ns: Histogram<u64>,
        /// Operations and CPU time.
        pub outcome: glimmer_loadgen::load::Outcome,
    }

    impl From<glimmer_loadgen::load::Outcome> for Latencies {
        fn from(outcome: glimmer_loadgen::load::Outcome) -> Latencies {
            Latencies {
                latency_ns: outcome.latency_ns(),
                lateness_ns: outcome.lateness.clone(),
                outcome,
            }
        }
    }
}

/// Going once through all keys.
pub mod load {
    pub use glimmer_loadgen::load::Pass;
}

fn plan(
    requests: Requests,
    pace: Pace,
    connections: usize,
    warm_up: Duration,
    measured: Duration,
    seed: u64,
) -> Plan {
    Plan {
        connections,
        warm_up: WarmUp::Fixed(warm_up),
        measured: Some(measured),
        seed,
        ..Plan::new(requests, pace)
    }
}
