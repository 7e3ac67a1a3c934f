//! What to send, how, and for how long.

use std::time::Duration;

use serde::Serialize;

use super::{Arrivals, Idle};
use crate::workload::{Workload, trace::Trace};

/// Where requests come from.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Requests {
    /// Drawn without end.
    Drawn(Workload),
    /// Recorded, until the recording ends.
    Recorded(Trace),
}

/// When requests are sent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pace {
    /// As fast as they are answered.
    Closed {
        /// Requests in flight on each connection.
        in_flight: u32,
    },
    /// When they are due.
    Open {
        /// When that is; of `burst` requests at a time.
        arrivals: Arrivals,
        /// Requests that arrive together.
        burst: u32,
        /// What the client does in between.
        idle: Idle,
    },
}

/// What goes before a measurement and is not counted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WarmUp {
    /// So long.
    Fixed(Duration),
    /// Until rate and hit ratio no longer move, and no longer than this.
    Steady(Duration),
}

/// A measurement.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// What is sent.
    pub requests: Requests,
    /// When.
    pub pace: Pace,
    /// Client threads.
    pub threads: usize,
    /// Connections of all threads together.
    pub connections: usize,
    /// Cores that the threads are bound to, in turn; none: they are not.
    pub cores: Vec<usize>,
    /// What goes before.
    pub warm_up: WarmUp,
    /// What is counted; nothing: until the requests end.
    pub measured: Option<Duration>,
    /// How long a reply may take before it is given up, over UDP.
    pub reply_max: Duration,
    /// Seed of everything that is drawn.
    pub seed: u64,
}

/// A reply over UDP that takes longer is lost.
const REPLY_MAX: Duration = Duration::from_millis(500);

impl Plan {
    /// One thread, 50 connections, half a second to warm up, three seconds that count.
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

    /// Says what does not fit together.
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
        match self.pace {
            Pace::Closed { in_flight: 0 } | Pace::Open { burst: 0, .. } => {
                Err("nothing would be sent".to_owned())
            }
            Pace::Open {
                arrivals: Arrivals::Poisson(rate) | Arrivals::Fixed(rate) | Arrivals::Recorded(rate),
                ..
            } if !(rate > 0.0 && rate.is_finite()) => Err(format!("a rate of {rate}")),
            _ => Ok(()),
        }
    }
}
