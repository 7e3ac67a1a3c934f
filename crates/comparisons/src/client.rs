//! The load of comparisons: items with keys of one length and values of one length.

use std::time::Duration;

use glimmer_loadgen::{
    load::{Arrivals, Pace, Plan, Requests, WarmUp},
    workload::{Mix, Popularity, Sizes, Workload},
};

/// Length of every key in bytes.
pub const KEY_BYTES: usize = 16;
/// Length of the smallest value in bytes: it contains its key and its version.
pub const VALUE_BYTES_MIN: usize = 8;
/// Length in bytes of the largest value that memcached and this server store by default, minus room
/// for its header.
pub const VALUE_BYTES_MAX: usize = (1 << 20) - 512;

/// The stored items, with values of one length.
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
        /// Requests for one key each: a read with this probability, otherwise a write.
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

    /// A measurement.
    #[derive(Clone, Debug)]
    pub struct Plan {
        /// Connections of all threads together.
        pub connections: usize,
        /// Cores with a client thread each, as far as there are connections. With none, there is
        /// one thread, which stays on the caller's cores.
        pub cores: Vec<usize>,
        /// What each connection sends at a time.
        pub burst: Burst,
        /// The popularity of keys.
        pub popularity: Popularity,
        /// Length of the warm-up.
        pub warm_up: Duration,
        /// Length of the measurement.
        pub measured: Duration,
        /// Seed of keys and verbs.
        pub seed: u64,
    }

    impl Plan {
        /// The complete plan, for values of one length.
        pub fn with_values(&self, value_bytes: usize) -> glimmer_loadgen::load::Plan {
            let pace = Pace::Closed {
                in_flight: self.burst.requests(),
            };
            let requests = self.burst.drawn(self.popularity, value_bytes);
            let plan = super::plan(
                requests,
                pace,
                self.connections,
                self.warm_up,
                self.measured,
                self.seed,
            );
            plan.on_cores(&self.cores)
        }
    }
}

/// Open loops.
pub mod open {
    use hdrhistogram::Histogram;

    use super::{closed::Burst, *};

    pub use glimmer_loadgen::load::{Idle, record::histogram};

    /// A measurement.
    #[derive(Clone, Copy, Debug)]
    pub struct Plan {
        /// Connections. Each arrival takes one at random.
        pub connections: usize,
        /// What arrives at a time.
        pub burst: Burst,
        /// Arrivals per second: a Poisson process.
        pub arrivals_per_s: f64,
        /// The popularity of keys.
        pub popularity: Popularity,
        /// How the client waits for the next arrival.
        pub idle: Idle,
        /// Length of the warm-up.
        pub warm_up: Duration,
        /// Length of the measurement.
        pub measured: Duration,
        /// Seed of arrivals, keys and verbs.
        pub seed: u64,
    }

    impl Plan {
        /// The complete plan, for values of one length.
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

    /// The results.
    #[derive(Clone, Debug)]
    pub struct Latencies {
        /// Time from when an arrival was due to its reply, in nanoseconds.
        pub latency_ns: Histogram<u64>,
        /// How late the client sent, in nanoseconds.
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

/// Passes over all keys.
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
