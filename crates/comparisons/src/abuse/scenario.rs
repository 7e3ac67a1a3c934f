//! What a scenario is.

use std::{fmt, sync::atomic::AtomicBool, time::Duration};

use anyhow::Result;
use serde::Serialize;

use super::{
    Subject,
    manners::{Latency, TextVisitor, Visitor},
};
use crate::servers::Kind;

/// One kind of abuse: what hostile clients do, and what well-behaved ones must not notice of it.
pub trait Scenario: Sync {
    /// The name on the command line and in tables.
    fn name(&self) -> &'static str;

    /// What hostile clients do, in one line for `--help`.
    fn about(&self) -> &'static str;

    /// The sizes it is run with. The first one stands for all; the others are run only if `every`
    /// case is asked for.
    fn cases(&self, every: bool) -> Vec<Case> {
        let _ = every;
        vec![Case::default()]
    }

    /// Whether a server of this kind can be abused in this way at all.
    fn suits(&self, kind: Kind) -> bool {
        matches!(kind, Kind::Glimmer | Kind::Memcached)
    }

    /// Whether the server has to serve memcached's protocol over UDP.
    fn wants_udp(&self) -> bool {
        false
    }

    /// Further arguments of our server, such as `--native-port -1` or `--table memc3`.
    fn glimmer_arguments(&self, case: &Case) -> Vec<String> {
        let _ = case;
        Vec::new()
    }

    /// Makes the server ready before anybody is measured: stores what is asked for later.
    fn prepare(&self, subject: &Subject, case: &Case) -> Result<()> {
        let _ = (subject, case);
        Ok(())
    }

    /// How many well-behaved clients there are. Each has a thread.
    fn visitors(&self) -> usize {
        4
    }

    /// Opens the well-behaved client with this number.
    ///
    /// Unless a scenario says otherwise they speak the text protocol: clients with an even number
    /// keep one connection, those with an odd number open another for every visit.
    fn visitor(&self, subject: &Subject, number: usize) -> Result<Box<dyn Visitor>> {
        let keeps_connection = number.is_multiple_of(2);
        Ok(Box::new(TextVisitor::new(
            subject,
            number,
            keeps_connection,
        )))
    }

    /// The hostile clients. Runs on a thread of its own until `stop` is true, then closes what it
    /// opened and says in a few words what became of it.
    ///
    /// # Errors
    /// Only what makes the scenario pointless, such as too few descriptors. Being refused or
    /// closed by the server is no error.
    fn attack(&self, subject: &Subject, case: &Case, stop: &AtomicBool) -> Result<String>;

    /// What the verdict is made of.
    fn bounds(&self, case: &Case) -> Bounds {
        let _ = case;
        Bounds::default()
    }

    /// The verdict: passed if every check is. A scenario with figures of its own adds checks.
    fn judge(&self, case: &Case, measured: &Measured) -> Vec<Check> {
        self.bounds(case).checks(measured)
    }
}

/// The sizes of one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Case {
    /// `-m` in MiB.
    pub memory_mib: usize,
    /// Hostile connections.
    pub connections: usize,
    /// Bytes of the values that hostile clients send or ask for; 0 where that means nothing.
    pub value_bytes: usize,
}

impl Default for Case {
    fn default() -> Case {
        Case {
            memory_mib: 64,
            connections: 1000,
            value_bytes: 0,
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "-m {}, {} hostile", self.memory_mib, self.connections)?;
        match self.value_bytes {
            0 => Ok(()),
            bytes => write!(out, ", {bytes} B"),
        }
    }
}

/// What well-behaved clients and the server's memory may take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// 99% of the visits take no longer than this while hostile clients are there.
    pub p99: Duration,
    /// No visit takes longer than this.
    pub longest: Duration,
    /// Visits that may fail.
    pub failures: u64,
    /// Resident bytes that the server may have beside its `-m`,
    pub resident_beside_bytes: u64,
    /// and for each hostile connection.
    pub resident_per_connection_bytes: u64,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            p99: Duration::from_millis(250),
            longest: Duration::from_secs(1),
            failures: 0,
            resident_beside_bytes: 32 << 20,
            resident_per_connection_bytes: 2 << 10,
        }
    }
}

impl Bounds {
    /// The checks that these bounds make.
    pub fn checks(&self, measured: &Measured) -> Vec<Check> {
        let attacked = &measured.attacked;
        let mut checks = vec![
            Check::at_most(
                "failed visits",
                attacked.failures as f64,
                self.failures as f64,
                "",
            ),
            Check::at_most("p99", attacked.p99_ms, self.p99.as_secs_f64() * 1e3, " ms"),
            Check::at_most(
                "longest",
                attacked.longest_ms,
                self.longest.as_secs_f64() * 1e3,
                " ms",
            ),
        ];
        if let (Some(limit), Some(peak)) = (measured.limit_bytes, measured.resident_peak) {
            let bound = limit
                + self.resident_beside_bytes
                + self.resident_per_connection_bytes * measured.connections as u64;
            let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
            checks.push(Check::at_most("peak RSS", mib(peak), mib(bound), " MiB"));
        }
        checks
    }
}

/// What was measured in one run.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// Hostile connections, as many as the server and this machine allow.
    pub connections: usize,
    /// The server's `-m`, if it says so.
    pub limit_bytes: Option<u64>,
    /// Visits of well-behaved clients before,
    pub quiet: Latency,
    /// and while hostile clients are there.
    pub attacked: Latency,
    /// Resident bytes before; none if the server runs on another machine.
    pub resident_before: Option<u64>,
    /// The most while hostile clients were there.
    pub resident_peak: Option<u64>,
    /// A second after they had left.
    pub resident_after: Option<u64>,
    /// CPU time of the server while hostile clients were there; none if it runs on another machine.
    pub cpu: Option<Duration>,
    /// What became of the hostile clients.
    pub notes: String,
}

/// One figure and its bound.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// What was measured.
    pub what: String,
    /// The figure.
    pub figure: f64,
    /// What it may be at most.
    pub bound: f64,
    /// The unit of both, with a space in front.
    pub unit: &'static str,
}

impl Check {
    /// A figure that must not be above a bound.
    pub fn at_most(what: &str, figure: f64, bound: f64, unit: &'static str) -> Check {
        Check {
            what: what.to_owned(),
            figure,
            bound,
            unit,
        }
    }

    /// Whether the figure is within its bound.
    pub fn passed(&self) -> bool {
        self.figure <= self.bound
    }
}

impl fmt::Display for Check {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Check {
            what,
            figure,
            bound,
            unit,
        } = self;
        write!(out, "{what} {figure:.0}{unit}, bound {bound:.0}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(failures: u64, longest_ms: f64, peak_mib: u64) -> Measured {
        let latency = Latency {
            visits: 100,
            failures,
            p50_ms: 1.0,
            p99_ms: 2.0,
            longest_ms,
        };
        Measured {
            connections: 0,
            limit_bytes: Some(64 << 20),
            quiet: latency.clone(),
            attacked: latency,
            resident_before: None,
            resident_peak: Some(peak_mib << 20),
            resident_after: None,
            cpu: None,
            notes: String::new(),
        }
    }

    #[test]
    fn each_bound_can_fail_by_itself() {
        let failed = |measured: &Measured| {
            let checks = Bounds::default().checks(measured);
            let failed = checks.iter().filter(|check| !check.passed());
            failed.map(|check| check.what.clone()).collect::<Vec<_>>()
        };
        assert_eq!(failed(&measured(0, 10.0, 90)), Vec::<String>::new());
        assert_eq!(failed(&measured(1, 10.0, 90)), ["failed visits"]);
        assert_eq!(failed(&measured(0, 1001.0, 90)), ["longest"]);
        assert_eq!(failed(&measured(0, 10.0, 97)), ["peak RSS"]);
    }
}
