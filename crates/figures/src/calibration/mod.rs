//! The costs with which dispatch is simulated, measured on a machine at hand.
//!
//! `glimmer bench calibrate` measures them. The figures use the record that is committed here, so
//! they are the same everywhere.

mod fit;
mod requests;
mod transport;

use std::{fmt, fs, path::Path};

use anyhow::{Context, Result};
use glimmer_measure::report::Table;
use glimmer_queueing::{Costs, Server, Service, Wire, calibration};
use serde::{Deserialize, Serialize};

use crate::Machine;

pub use requests::{Requests, Sample, Together};
pub use transport::Transport;

/// The committed record.
const COMMITTED: &str = include_str!("committed.json");

/// Cores of the paper's server. The link of a server with more cores is faster in proportion.
const CORES_OF_LINK: f64 = 8.0;
/// Bits per second of the paper's link, in thousand millions.
pub const LINK_GBIT: f64 = 40.0;

/// What was measured, and where.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// The machine.
    pub machine: Machine,
    /// Random reads per second of one core, measured next to every round.
    pub random_reads_per_s: Vec<f64>,
    /// What requests cost, and over which transport.
    #[serde(flatten)]
    pub requests: Requests,
    /// The other steps.
    pub steps: Steps,
    /// The link of a server with 8 cores, in Gb/s. It is given: loopback has no such bound.
    pub link_gbit: f64,
}

/// Steps of a request that a running server does not show alone, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Steps {
    /// Asking a socket for requests.
    pub poll_ns: f64,
    /// Receiving one waiting request, without asking.
    pub receive_ns: f64,
    /// Putting a request into a queue from where another core takes it.
    pub put_ns: f64,
    /// Taking it there.
    pub take_ns: f64,
    /// What more taking it costs if any core may take.
    pub steal_ns: f64,
    /// Counting the size of a request.
    pub profile_ns: f64,
}

impl Calibration {
    /// The committed record.
    pub fn committed() -> Calibration {
        serde_json::from_str(COMMITTED).expect("a test reads it")
    }

    /// A record that was written as JSON.
    pub fn read(file: &Path) -> Result<Calibration> {
        let text = fs::read_to_string(file);
        let text = text.with_context(|| format!("{} cannot be read", file.display()))?;
        let what = || {
            format!(
                "{} is no record of `glimmer bench calibrate`",
                file.display()
            )
        };
        serde_json::from_str(&text).with_context(what)
    }

    /// The costs that follow.
    pub fn costs(&self) -> Costs {
        let steps = &self.steps;
        let of = |service: Service| Service {
            execute_ns: (service.execute_ns - steps.receive_ns).max(0.0),
            ..service
        };
        let [get, put] = self.requests.services().map(of);
        Costs {
            receive_ns: steps.receive_ns,
            get,
            put,
            poll_ns: self.requests.look_ns().unwrap_or(steps.poll_ns),
            enqueue_ns: steps.put_ns,
            dequeue_ns: steps.take_ns,
            steal_ns: steps.steal_ns,
            profile_ns: steps.profile_ns,
        }
    }

    /// A server of this many cores with these costs. Its link is as fast in proportion as that of
    /// a server with 8 cores.
    pub fn server(&self, cores: usize) -> Server {
        let gbit = self.link_gbit * cores as f64 / CORES_OF_LINK;
        let wire = Wire {
            byte_ns: 8.0 / gbit,
            ..calibration::WIRE
        };
        Server::new(cores, self.costs(), wire)
    }

    /// The machine and the date, in a few words.
    pub fn machine(&self) -> String {
        let date = self.machine.date.split('T').next().unwrap_or_default();
        format!("{}, {date}", self.machine.processor)
    }
}

impl fmt::Display for Calibration {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let costs = self.costs();
        let mut services = Table::new(["value, bytes", "GET, ns", "fitted", "PUT, ns", "fitted"]);
        for (get, put) in self.requests.get.iter().zip(&self.requests.put) {
            let fitted = |service: Service| {
                let looks_ns = self.requests.look_ns().unwrap_or_default();
                let looks_ns = looks_ns / f64::from(self.requests.transport.in_flight());
                let fixed_ns = costs.receive_ns + service.execute_ns + looks_ns;
                fixed_ns + service.packet_ns * get.place().0
            };
            let cells = [get.ns(), fitted(costs.get), put.ns(), fitted(costs.put)];
            let cells = cells.map(|ns| format!("{ns:.0}"));
            services.row([get.bytes.to_string()].into_iter().chain(cells));
        }
        writeln!(out, "{}:\n\n{services}", self.requests.transport.name())?;
        let mut table = Table::new(["step", "ns"]);
        let rows = [
            ("receiving one request of a batch", costs.receive_ns),
            (
                "the rest of a GET without its packets",
                costs.get.execute_ns,
            ),
            ("one packet of a GET", costs.get.packet_ns),
            (
                "the rest of a PUT without its packets",
                costs.put.execute_ns,
            ),
            ("one packet of a PUT", costs.put.packet_ns),
            ("reading a batch, whatever its length", costs.poll_ns),
            ("putting a request into a software queue", costs.enqueue_ns),
            ("taking a request from a software queue", costs.dequeue_ns),
            (
                "taking it where any core may take, in addition",
                costs.steal_ns,
            ),
            ("counting its size", costs.profile_ns),
        ];
        for (step, ns) in rows {
            table.row([step.to_owned(), format!("{ns:.1}")]);
        }
        writeln!(out, "{table}")?;
        writeln!(
            out,
            "The link of a server with 8 cores has {} Gb/s. It is not measured.",
            self.link_gbit
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Orders of magnitude, so that a record of a broken measurement is noticed.
    #[test]
    fn the_committed_costs_are_those_of_a_server() {
        let calibration = Calibration::committed();
        println!("{calibration}");
        let costs = calibration.costs();
        for packet_ns in [costs.get.packet_ns, costs.put.packet_ns] {
            assert!((50.0..5000.0).contains(&packet_ns), "{packet_ns}");
        }
        let steps = [
            costs.receive_ns,
            costs.poll_ns,
            costs.enqueue_ns,
            costs.dequeue_ns,
            costs.steal_ns,
            costs.profile_ns,
        ];
        for step_ns in steps {
            assert!((0.0..2000.0).contains(&step_ns), "{step_ns}");
        }
    }

    #[test]
    fn a_larger_server_has_a_faster_link() {
        let calibration = Calibration::committed();
        let [eight, sixteen] = [8, 16].map(|cores| calibration.server(cores).wire.unwrap().byte_ns);
        assert_eq!(eight, 2.0 * sixteen);
        assert_eq!(eight, 8.0 / calibration.link_gbit);
    }

    #[test]
    fn a_record_is_read_from_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("costs.json");
        let wrong = Calibration::read(&file).unwrap_err().to_string();
        assert!(wrong.contains("cannot be read"), "{wrong}");
        std::fs::write(&file, "{}").unwrap();
        let wrong = Calibration::read(&file).unwrap_err().to_string();
        assert!(wrong.contains("glimmer bench calibrate"), "{wrong}");
        std::fs::write(&file, COMMITTED).unwrap();
        assert_eq!(Calibration::read(&file).unwrap(), Calibration::committed());
    }
}
