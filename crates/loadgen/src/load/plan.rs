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
    /// Cores to which the threads are pinned, in turn; empty for no pinning.
    pub cores: Vec<usize>,
    /// The warm-up.
    pub warm_up: WarmUp,
    /// The measured time; `None` means until the requests end.
    pub measured: Option<Duration>,
    /// How long to wait for a reply over UDP before it counts as lost.
    pub reply_max: Duration,
    /// Seed of everything that is drawn at random.
    pub seed: u64,
}

/// Default of [`Plan::reply_max`].
const REPLY_MAX: Duration = Duration::from_millis(500);

impl Plan {
    /// One thread, 50 connections, a warm-up of half a second, and three measured seconds.
    pub fn new(requests: Requests, pace: Pace) -> Plan {
        Plan {
            requests,
            pace,
            threads: 1,
            connections: 50,
            cores: Vec::new(),
            warm_up: WarmUp::Fixed(Duration::from_millis(500)),
            measured: Some(Duration::from_secs(3)),
            reply_max: REPLY_MAX,
            seed: 1,
        }
    }

    /// Checks that the fields fit together.
    pub fn check(&self) -> Result<(), String> {
        if self.threads == 0 || self.connections < self.threads {
            return Err(format!(
                "{} connections cannot be divided among {} threads",
                self.connections, self.threads
            ));
        }
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
