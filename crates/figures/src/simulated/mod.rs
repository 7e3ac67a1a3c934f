//! Simulated servers under each dispatch policy, with the calibrated costs.
//!
//! Paper: Minos (NSDI'19), §5 and §6. The figures of dispatch share this: which systems are
//! compared, the highest load of each, and the latencies at each load.

mod claims;
mod curve;
mod gains;
mod limits;

use std::fmt;

use glimmer_dispatch::{LargeCores, Layout, Plan, Role, Takes};
use glimmer_queueing::{Dispatch, Server, Trimodal};

use crate::Run;

pub use claims::{auto_over_paper, limit, most, ratios};
pub use curve::{COLUMNS, Curve, OF_PEAK, Place, latency_by_load};
pub use gains::Workloads;
pub use limits::{BOUNDS_US, Limits, PEAK, WITHIN, limits};

/// Cores of the simulated servers: those of the paper, and twice as many.
pub const CORES: [usize; 2] = [8, 16];
/// Requests of an epoch in a quick run.
const EPOCH_QUICK: u64 = 20_000;

/// The paper's default workload (§5.3).
pub const LARGE_PERCENT: f64 = 0.125;
/// Bytes of its largest value.
pub const LARGE_BYTES: u32 = 500_000;
/// Its share of GETs.
pub const GETS: f64 = 0.95;

/// The default workload.
pub fn default_workload() -> Trimodal {
    Trimodal::new(LARGE_PERCENT, LARGE_BYTES, GETS)
}

/// A way of dispatching requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// The paper's HKH.
    Keyhash,
    /// The paper's SHO, with the best of some numbers of dispatching cores.
    Handoff,
    /// The paper's HKH+WS.
    Stealing,
    /// Minos, with its formula for the number of large cores.
    Paper,
    /// The same with the rule that the server uses.
    Auto,
    /// Minos with a static threshold: the plan stays, and no request is counted.
    Static,
    /// Minos with one large core more of eight, which take small requests too.
    OneMore,
    /// Minos with small requests sharded by size as well.
    SmallBySize,
}

impl System {
    /// What is compared in most figures.
    pub const ALL: [System; 5] = [
        System::Keyhash,
        System::Handoff,
        System::Stealing,
        System::Paper,
        System::Auto,
    ];

    /// Its name in figures.
    pub fn name(self) -> &'static str {
        match self {
            System::Keyhash => "keyhash",
            System::Handoff => "hand-off",
            System::Stealing => "stealing",
            System::Paper => "size-aware, paper's formula",
            System::Auto => "size-aware, auto",
            System::Static => "size-aware, static",
            System::OneMore => "size-aware, one more large core",
            System::SmallBySize => "size-aware, small ones by size too",
        }
    }

    /// The policies of which the best counts.
    fn dispatches(self, cores: usize) -> Vec<Dispatch> {
        match self {
            System::Keyhash => vec![Dispatch::Keyhash],
            // The paper has 1 to 3 dispatching cores of 8.
            System::Handoff => (1..=3)
                .map(|of_eight| Dispatch::Handoff(of_eight * cores / 8))
                .collect(),
            System::Stealing => vec![Dispatch::Stealing],
            System::Paper => vec![Dispatch::SizeAware(LargeCores::Paper)],
            System::Auto => vec![Dispatch::SizeAware(LargeCores::Auto)],
            System::Static => vec![Dispatch::Static(LargeCores::Paper)],
            // The formula gives one of eight to large requests (`minos-plans`).
            System::OneMore => vec![Dispatch::LargeTakeSmall(cores / 8 + 1)],
            System::SmallBySize => vec![Dispatch::SmallBySize],
        }
    }
}

/// A server under a workload.
#[derive(Clone)]
pub struct Case {
    /// The panel of the picture.
    pub panel: String,
    /// How it dispatches requests.
    pub system: System,
    /// The server.
    pub server: Server,
    /// Its requests.
    pub workload: Trimodal,
}

impl Case {
    /// Its name in figures.
    pub fn series(&self) -> &'static str {
        self.system.name()
    }

    fn dispatches(&self) -> Vec<Dispatch> {
        self.system.dispatches(self.server.cores)
    }
}

impl fmt::Display for Case {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}, {}", self.panel, self.series())
    }
}

/// The panel of servers with this many cores.
pub fn panel(cores: usize) -> String {
    format!("{cores} cores")
}

/// The servers of a figure: of 8 cores and of 16, or of 8 alone in a quick run. Notes where the
/// costs come from.
pub fn servers(run: &mut Run<'_>) -> Vec<Server> {
    let costs = run.costs();
    run.note(format!(
        "simulated, with the costs of one server: {}",
        costs.machine()
    ));
    let cores = run.pick(&CORES[..], &CORES[..1]);
    let server = |&cores: &usize| {
        let server = costs.server(cores);
        Server {
            epoch_requests: run.pick(server.epoch_requests, EPOCH_QUICK),
            ..server
        }
    };
    cores.iter().map(server).collect()
}

/// Each of these systems with the default workload, on each server.
pub fn cases(run: &mut Run<'_>, systems: &[System], workload: &Trimodal) -> Vec<Case> {
    let each = |server: Server| {
        systems.iter().map(move |&system| Case {
            panel: panel(server.cores),
            system,
            server,
            workload: workload.clone(),
        })
    };
    servers(run).into_iter().flat_map(each).collect()
}

/// All cores take their requests from the first RX queue, one at a time.
pub fn late_binding(layout: Layout) -> Plan {
    let role = Role {
        takes: Takes {
            rx: vec![0],
            ..Takes::default()
        },
        ..Role::default()
    };
    Plan::by_role(layout, vec![role; layout.map.cores()])
}

/// The number of cores to which a plan hands large requests, and whether the only one is standby:
/// it takes small ones from its own RX queue.
pub fn large_cores(plan: &Plan) -> (usize, bool) {
    let large = plan.roles().iter().enumerate();
    let large: Vec<_> = large.filter(|(_, role)| role.reads.is_empty()).collect();
    let is_standby = match large[..] {
        [(core, role)] => role.takes.rx == [core],
        _ => false,
    };
    (large.len(), is_standby)
}
