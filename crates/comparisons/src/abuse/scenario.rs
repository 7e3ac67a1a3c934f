//! The interface of a scenario.

use std::{fmt, sync::atomic::AtomicBool, time::Duration};

use anyhow::Result;
use serde::Serialize;

use super::{
    Subject,
    manners::{Latency, TextVisitor, Visitor},
};
use crate::servers::Kind;

/// One kind of abuse: what hostile clients do, and what well-behaved ones must not notice.
pub trait Scenario: Sync {
    /// The name on the command line and in tables.
    fn name(&self) -> &'static str;

    /// What hostile clients do, in one line for `--help`.
    fn about(&self) -> &'static str;

    /// The sizes of its runs. The first is representative; the others run only if `every` case is
    /// requested.
    fn cases(&self, every: bool) -> Vec<Case> {
        let _ = every;
        vec![Case::default()]
    }

    /// Whether a server of this kind can be abused in this way.
    fn suits(&self, kind: Kind) -> bool {
        matches!(kind, Kind::Glimmer | Kind::Memcached)
    }

    /// Whether the server must serve memcached's protocol over UDP.
    fn wants_udp(&self) -> bool {
        false
    }

    /// Additional arguments of our server, such as `--native-port -1` or `--table memc3`.
    fn glimmer_arguments(&self, case: &Case) -> Vec<String> {
        let _ = case;
        Vec::new()
    }

    /// Prepares the server before the measurement: stores items that are requested later.
    fn prepare(&self, subject: &Subject, case: &Case) -> Result<()> {
        let _ = (subject, case);
        Ok(())
    }

    /// The number of well-behaved clients. Each has a thread.
    fn visitors(&self) -> usize {
        4
    }

    /// Opens the well-behaved client with this number.
    ///
    /// By default, they speak the text protocol. Clients with an even number keep one connection;
    /// those with an odd number open a new one for every visit.
    fn visitor(&self, subject: &Subject, number: usize) -> Result<Box<dyn Visitor>> {
        let keeps_connection = number.is_multiple_of(2);
        Ok(Box::new(TextVisitor::new(
            subject,
            number,
            keeps_connection,
        )))
    }

    /// The same case with hostile clients that keep the machine as busy and do what is known to be
    /// harmless. Well-behaved clients visit beside them too, so that what the server does about the
    /// hostile ones can be told from what such clients take of the machine by themselves.
    fn control(&self, case: &Case) -> Option<Case> {
        let _ = case;
        None
    }

    /// The hostile clients. Runs on its own thread until `stop` is true, then closes what it opened
    /// and returns a short summary.
    ///
    /// # Errors
    ///
    /// Only what makes the scenario pointless, such as too few descriptors. A server that refuses
    /// or closes connections is not an error.
    fn attack(&self, subject: &Subject, case: &Case, stop: &AtomicBool) -> Result<String>;

    /// The bounds for the verdict.
    fn bounds(&self, case: &Case) -> Bounds {
        let _ = case;
        Bounds::default()
    }

    /// The checks. The server passes if all of them do. A scenario with its own measurements adds
    /// checks.
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
    /// Length in bytes of the values that hostile clients send or request; 0 if that does not
    /// apply.
    pub value_bytes: usize,
    /// The command that hostile clients send; empty if that does not apply, or for several.
    pub command: &'static str,
}

impl Default for Case {
    fn default() -> Case {
        Case {
            memory_mib: 64,
            connections: 1000,
            value_bytes: 0,
            command: "",
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "-m {}, {} hostile", self.memory_mib, self.connections)?;
        if self.value_bytes > 0 {
            write!(out, ", {} B", self.value_bytes)?;
        }
        match self.command {
            "" => Ok(()),
            command => write!(out, ", {command}"),
        }
    }
}

/// Bounds for well-behaved clients and the server's memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Bound of the 99th percentile of visits during the attack.
    pub p99: Duration,
    /// Bound of the longest visit.
    pub longest: Duration,
    /// Visits that may fail.
    pub failures: u64,
    /// Resident bytes that the server may use in addition to its `-m`.
    pub resident_beside_bytes: u64,
    /// Resident bytes that the server may use in addition for each hostile connection.
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
    /// The checks for these bounds.
    pub fn checks(&self, measured: &Measured) -> Vec<Check> {
        let attacked = &measured.attacked;
        let mut checks = vec![
            Check::at_most(
                "failed visits",
                attacked.failures as f64,
                self.failures as f64,
                "",
            ),
            Check::at_most(
                "p99",
                attacked.slow_ms(),
                self.p99.as_secs_f64() * 1e3,
                " ms",
            ),
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

/// The measurements of one run.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// Hostile connections, limited by what the server and this machine allow.
    pub connections: usize,
    /// The server's `-m`, if it reports it.
    pub limit_bytes: Option<u64>,
    /// Visits of well-behaved clients before the attack.
    pub quiet: Latency,
    /// Visits of well-behaved clients beside the harmless ones of [`Scenario::control`].
    pub control: Option<Latency>,
    /// Visits of well-behaved clients during the attack.
    pub attacked: Latency,
    /// Resident bytes before the attack; `None` if the server runs on another machine.
    pub resident_before: Option<u64>,
    /// Maximum resident bytes during the attack.
    pub resident_peak: Option<u64>,
    /// Resident bytes one second after the attack.
    pub resident_after: Option<u64>,
    /// CPU time of the server during the attack; `None` if it runs on another machine.
    pub cpu: Option<Duration>,
    /// A summary of the hostile clients' experience.
    pub notes: String,
}

/// A measured number and its bound.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// What was measured.
    pub what: String,
    /// The measured number.
    pub figure: f64,
    /// The upper bound.
    pub bound: f64,
    /// The unit of both, preceded by a space.
    pub unit: &'static str,
}

impl Check {
    /// A number that must not exceed a bound.
    pub fn at_most(what: &str, figure: f64, bound: f64, unit: &'static str) -> Check {
        Check {
            what: what.to_owned(),
            figure,
            bound,
            unit,
        }
    }

    /// Whether the number is within its bound.
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
            p99_ms: Some(2.0),
            longest_ms,
        };
        Measured {
            connections: 0,
            limit_bytes: Some(64 << 20),
            quiet: latency.clone(),
            control: None,
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
