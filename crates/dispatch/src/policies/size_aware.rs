//! Size-aware sharding: large requests have cores of their own (Minos, NSDI'19).
//!
//! Small cores read all RX queues and execute what is small. They hand a large request to the large
//! core whose range has its size. So no small request waits for a large one.

use crate::size_ranges::size_ranges;
use crate::threshold::threshold;
use crate::{
    AccessMode, Cost, Division, Histogram, LargeCores, Layout, Plan, Policy, Read, Role, SizeClass,
    Smoothed, Spare, Takes,
};
use glimmer_base::limits::{DISPATCH_BATCH, EPOCH_REQUESTS_MIN, LARGE_BYTES_MIN};

/// The policy and its settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SizeAware {
    /// This percentage of requests is small.
    pub percentile: f64,
    /// Weight of the latest epoch.
    pub alpha: f64,
    /// Requests that a small core reads from its own RX queue in one turn.
    pub batch: usize,
    /// What a request costs.
    pub cost: Cost,
    /// The rule for the number of large cores.
    pub large_cores: LargeCores,
    /// Requests for values of fewer bytes are always small.
    pub large_min: u32,
    /// Requests for values of this many bytes and more are large, whatever the percentile is.
    pub threshold: Option<u32>,
}

impl Default for SizeAware {
    fn default() -> SizeAware {
        SizeAware {
            percentile: 99.0,
            alpha: 0.9,
            batch: DISPATCH_BATCH,
            cost: Cost::default(),
            large_cores: LargeCores::default(),
            large_min: LARGE_BYTES_MIN,
            threshold: None,
        }
    }
}

impl Policy for SizeAware {
    fn name(&self) -> &'static str {
        "size-aware"
    }

    fn summary(&self) -> &'static str {
        "the worker that received the request, or one for large values"
    }

    fn check(&self, access: AccessMode) -> Result<(), &'static str> {
        match access {
            AccessMode::Crcw => Ok(()),
            _ => Err("size-aware hands large requests to any worker; give --access crcw"),
        }
    }

    /// The plan before the first epoch: nothing is known, so only [`SizeAware::threshold`] or
    /// [`SizeAware::large_min`] says what is large.
    fn plan(&self, layout: Layout) -> Plan {
        self.plan_for(layout, &Smoothed::default())
    }
}

impl SizeAware {
    /// The plan for these requests.
    pub fn plan_for(&self, layout: Layout, requests: &Smoothed) -> Plan {
        let cores = layout.map.cores();
        if cores == 1 {
            return Plan::by_keyhash(layout);
        }
        let large_from = match self.threshold {
            Some(bytes) => bytes,
            None if requests.is_empty() => self.large_min,
            None => threshold(requests, self.percentile, self.large_min),
        };
        let division = self
            .large_cores
            .divide(cores, self.small_share(requests, large_from));
        let ranges = size_ranges(requests, self.cost, large_from, division.large);
        let small = (0..division.small).map(|core| self.small(core, division));
        let large = (division.small..cores).zip(ranges);
        let large = large.map(|(core, sizes)| Role {
            sizes,
            takes: spare(core, cores, division.spare),
            ..Role::default()
        });
        Plan::by_size(layout, large_from, small.chain(large).collect())
    }

    /// A small core reads its own RX queue and its part of the large cores' queues, so that all
    /// queues empty at about the same rate.
    fn small(&self, core: usize, division: Division) -> Role {
        let part = self.batch.div_ceil(division.small);
        let large = division.small..division.small + division.large;
        let mut role = Role::reads_its_own(core, self.batch);
        role.reads.extend(large.map(|rx| Read { rx, budget: part }));
        role
    }

    /// The share of small requests in the cost of all.
    fn small_share(&self, requests: &Smoothed, large_from: u32) -> f64 {
        let (mut small, mut all) = (0.0, 0.0);
        for class in SizeClass::all() {
            let cost = self.cost.of_class(requests, class);
            all += cost;
            if class.sizes().start < large_from {
                small += cost;
            }
        }
        if all > 0.0 { small / all } else { 1.0 }
    }
}

/// From where a large core takes requests when no large one waits.
fn spare(core: usize, cores: usize, spare: Spare) -> Takes {
    let rx = match spare {
        Spare::Wait => Vec::new(),
        Spare::OwnRx => vec![core],
        Spare::AnyRx => (0..cores).map(|place| (core + place) % cores).collect(),
    };
    Takes {
        queues: Vec::new(),
        rx,
    }
}

/// Makes a plan for each epoch.
#[derive(Clone, Debug)]
pub struct Controller {
    policy: SizeAware,
    requests: Smoothed,
    plan: Plan,
}

impl Controller {
    /// A controller before its first epoch.
    pub fn new(policy: SizeAware, layout: Layout) -> Controller {
        Controller {
            plan: policy.plan(layout),
            requests: Smoothed::default(),
            policy,
        }
    }

    /// The plan in force.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// An epoch has ended, in which all cores together had these requests. Returns the plan from
    /// now on: a new one has the next number. Few requests, under [`EPOCH_REQUESTS_MIN`], keep the
    /// plan.
    pub fn epoch(&mut self, requests: &Histogram) -> &Plan {
        if requests.requests() < EPOCH_REQUESTS_MIN {
            return &self.plan;
        }
        self.requests.add(requests, self.policy.alpha);
        let version = self.plan.version();
        let next = self.policy.plan_for(*self.plan.layout(), &self.requests);
        let next = next.numbered(version);
        if next != self.plan {
            self.plan = next.numbered(version + 1);
        }
        &self.plan
    }
}
