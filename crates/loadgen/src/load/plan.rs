//! What to send, how, and for how long.

use std::time::Duration;

use serde::Serialize;

use super::{Arrivals, Idle};
use crate::workload::{Workload, trace::Trace};

/// Where requests come from.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Requests {
    /// Drawn at random, without end.
    Drawn(Workload),
    /// Recorded in a trace, until the trace ends.
    Recorded(Trace),
}

/// When requests are sent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pace {
    /// As soon as earlier ones are answered.
    Closed {
        /// Requests in flight on each connection.
        in_flight: u32,
    },
    /// When they are due.
    Open {
        /// The arrivals.
        arrivals: Arrivals,
        /// Requests that arrive together.
        burst: u32,
        /// How the client waits.
        idle: Idle,
    },
}

/// The warm-up, which is not measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WarmUp {
    /// This long.
    Fixed(Duration),
    /// Until rate and hit ratio are steady, but no longer than this.
    Steady(Duration),
}

/// Connections that only requests of large values use: those of more than 1400 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LargeApart {
    /// These connections, of all threads together.
    pub connections: usize,
    /// Threads that drive only them; with zero, the threads of the others do.
    pub threads: usize,
}

/// A measurement.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// The requests.
    pub requests: Requests,
    /// When they are sent.
    pub pace: Pace,
    /// Client threads.
    pub threads: usize,
    /// Connections of all threads together.
    pub connections: usize,
    /// Further connections for requests of large values, so that a client that reads a large reply
    /// does not keep small replies on the same connection waiting. `None`: all requests share the
    /// connections.
    pub large: Option<LargeApart>,
    /// Requests that a connection gathers in an open loop before it sends them, as clients do that
    /// want full datagrams. With 1, each is sent when it is due.
    pub gather: u32,
    /// Cores to which the threads are pinned, in turn; empty for no pinning.
    pub cores: Vec<usize>,
    /// Whether the threads that do not drive large values alone get real-time priority, if that is
    /// permitted. For an open loop that [sleeps](Idle::Sleep), on a core that it shares with the
    /// server or with other clients.
    pub real_time: bool,
    /// The warm-up.
    pub warm_up: WarmUp,
    /// The measured time; `None` means until the requests end.
    pub measured: Option<Duration>,
    /// Bytes that one read of a stream asks for at most. `None`: all that its buffer has room for,
    /// which is 16 KiB or the next power of two above the largest reply so far.
    pub read_bytes: Option<usize>,
    /// Whether a latency ends when the kernel received the reply (`SO_TIMESTAMPNS`), and not when
    /// the client read it. Not for Unix sockets.
    pub kernel_timestamps: bool,
    /// How long to wait for a reply over UDP before it counts as lost.
    pub reply_max: Duration,
    /// Seed of everything that is drawn at random.
    pub seed: u64,
}

/// Default of [`Plan::reply_max`].
const REPLY_MAX: Duration = Duration::from_millis(500);

/// The shortest measured time.
const SHORTEST: Duration = Duration::from_millis(1);
/// The longest planned run: a year.
pub(super) const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

impl Plan {
    /// One thread, 50 connections, a warm-up of half a second, and three measured seconds.
    pub fn new(requests: Requests, pace: Pace) -> Plan {
        Plan {
            requests,
            pace,
            threads: 1,
            connections: 50,
            large: None,
            gather: 1,
            cores: Vec::new(),
            real_time: false,
            warm_up: WarmUp::Fixed(Duration::from_millis(500)),
            measured: Some(Duration::from_secs(3)),
            read_bytes: None,
            kernel_timestamps: false,
            reply_max: REPLY_MAX,
            seed: 1,
        }
    }

    /// The same with a thread on each of these cores, as far as there are connections for it. With
    /// no core, nothing changes.
    pub fn on_cores(self, cores: &[usize]) -> Plan {
        if cores.is_empty() {
            return self;
        }
        Plan {
            threads: cores.len().min(self.connections),
            cores: cores.to_vec(),
            ..self
        }
    }

    /// Threads of all kinds.
    pub fn all_threads(&self) -> usize {
        self.threads + self.large.map_or(0, |large| large.threads)
    }

    fn check_large(&self, large: LargeApart) -> Result<(), String> {
        let LargeApart {
            connections,
            threads,
        } = large;
        let drivers = if threads == 0 { self.threads } else { threads };
        if connections < drivers {
            return Err(format!(
                "{connections} connections for large values cannot be divided among {drivers} \
                 threads"
            ));
        }
        if !matches!(self.pace, Pace::Open { burst: 1, .. }) {
            return Err(
                "large values have connections of their own only in an open loop, where \
                        requests are due one by one (--rate)"
                    .to_owned(),
            );
        }
        match &self.requests {
            // Each kind of thread draws all requests, and would insert the other's keys.
            Requests::Drawn(workload) if threads > 0 && workload.mix.insert > 0.0 => {
                Err("large values have no threads of their own if keys are inserted".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Checks that the fields fit together.
    pub fn check(&self) -> Result<(), String> {
        if self.threads == 0 || self.connections < self.threads {
            return Err(format!(
                "{} connections cannot be divided among {} threads: give more --connections, or \
                 fewer --threads",
                self.connections, self.threads
            ));
        }
        let is_sound = |measured: &Duration| (SHORTEST..=LONGEST).contains(measured);
        if !self.measured.as_ref().is_none_or(is_sound) {
            return Err("measure for at least a millisecond, and at most a year".to_owned());
        }
        self.large.map_or(Ok(()), |large| self.check_large(large))?;
        match (&self.requests, self.pace) {
            (Requests::Drawn(workload), pace) => {
                workload.check()?;
                if self.measured.is_none() {
                    return Err(
                        "requests that are drawn never end; say how long to measure".to_owned()
                    );
                }
                if matches!(
                    pace,
                    Pace::Open {
                        arrivals: Arrivals::Recorded(_),
                        ..
                    }
                ) {
                    return Err("requests that are drawn have no recorded times".to_owned());
                }
            }
            (
                Requests::Recorded(trace),
                Pace::Open {
                    arrivals: Arrivals::Recorded(_),
                    ..
                },
            ) if !trace.format.has_times() => {
                return Err(format!(
                    "{} has keys and no times: give --rate instead of --speed",
                    trace.file.display()
                ));
            }
            (Requests::Recorded(_), Pace::Open { burst, .. }) if burst != 1 => {
                return Err("recorded requests arrive one by one".to_owned());
            }
            _ => {}
        }
        use Arrivals::{Fixed, Poisson, Recorded};
        match self.pace {
            Pace::Closed { in_flight: 0 } | Pace::Open { burst: 0, .. } => {
                Err("nothing would be sent".to_owned())
            }
            Pace::Open {
                arrivals: Poisson(rate) | Fixed(rate) | Recorded(rate),
                ..
            } if !(rate > 0.0 && rate.is_finite()) => Err(format!("a rate of {rate}")),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_core_has_a_thread_if_there_are_connections_for_it() {
        let plan = Plan::new(
            Requests::Drawn(Workload::default()),
            Pace::Closed { in_flight: 1 },
        );
        let threads = |connections, cores: &[usize]| {
            let plan = Plan {
                connections,
                ..plan.clone()
            };
            plan.on_cores(cores).threads
        };
        assert_eq!(threads(64, &[1, 2, 3]), 3);
        assert_eq!(threads(2, &[1, 2, 3]), 2);
        assert_eq!(threads(2, &[]), 1);
    }

    #[test]
    fn a_measurement_takes_some_time_and_no_more_than_a_year() {
        let check = |measured| {
            let workload = Requests::Drawn(Workload::default());
            let plan = Plan {
                measured: Some(measured),
                ..Plan::new(workload, Pace::Closed { in_flight: 1 })
            };
            plan.check().is_ok()
        };
        assert!(check(SHORTEST) && check(LONGEST));
        assert!(!check(SHORTEST / 2) && !check(LONGEST * 2));
    }

    #[test]
    fn connections_for_large_values_fit_the_threads_and_the_pace() {
        let open = Pace::Open {
            arrivals: Arrivals::Poisson(1e3),
            burst: 1,
            idle: Idle::Sleep,
        };
        let plan = |name: &str, pace, threads, connections, of_their_own| Plan {
            threads,
            large: Some(LargeApart {
                connections,
                threads: of_their_own,
            }),
            ..Plan::new(Requests::Drawn(Workload::preset(name, None).unwrap()), pace)
        };
        assert_eq!(plan("etc", open, 2, 2, 0).check(), Ok(()));
        assert_eq!(plan("etc", open, 2, 1, 1).check(), Ok(()));
        assert_eq!(plan("etc", open, 2, 1, 1).all_threads(), 3);
        let closed = Pace::Closed { in_flight: 1 };
        for (plan, words) in [
            (plan("etc", open, 2, 1, 0), "divided among 2"),
            (plan("etc", open, 1, 1, 2), "divided among 2"),
            (plan("etc", open, 1, 0, 0), "divided among 1"),
            (plan("etc", closed, 1, 1, 0), "--rate"),
            (plan("ycsb-d", open, 1, 1, 1), "inserted"),
        ] {
            let error = plan.check().unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }
}
