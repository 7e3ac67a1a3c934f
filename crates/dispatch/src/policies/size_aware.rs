//! Size-aware sharding: large requests have cores of their own (Minos, NSDI'19).
//!
//! Small cores read all RX queues and execute what is small. They hand a large request to the large
//! core whose range has its size. So no small request waits for a large one.

use crate::size_ranges::size_ranges;
use crate::threshold::{MANY_LARGE_FROM, threshold, threshold_with_many_large};
use crate::{
    AccessMode, Busy, Division, Histogram, LargeCores, Layout, Plan, Policy, Read, Role, Settings,
    SizeClass, Smoothed, Spare, Takes,
};
use glimmer_base::limits::EPOCH_REQUESTS_MIN;

/// The policy and its settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SizeAware {
    /// What an operator can set.
    pub settings: Settings,
    /// Requests for values of this many bytes and more are large, whatever the percentile is.
    pub threshold: Option<u32>,
}

impl Policy for SizeAware {
    fn name(&self) -> &'static str {
        "size-aware"
    }

    fn summary(&self) -> &'static str {
        "the worker that received the request, or one for values of its size if it is large; BYTES \
         makes a request large, whatever the others are"
    }

    fn argument(&self) -> Option<&'static str> {
        Some("BYTES")
    }

    fn configured(
        &self,
        settings: &Settings,
        argument: Option<&str>,
    ) -> Result<Option<Box<dyn Policy>>, String> {
        let parse = |text: &str| match text.parse() {
            Ok(bytes @ 1..=MAX) => Ok(bytes),
            _ => Err(format!("size-aware:BYTES with a number from 1 to {MAX}")),
        };
        const MAX: u32 = i32::MAX as u32;
        Ok(Some(Box::new(SizeAware {
            settings: *settings,
            threshold: argument.map_or(Ok(self.threshold), |text| parse(text).map(Some))?,
        })))
    }

    fn check(&self, access: AccessMode) -> Result<(), &'static str> {
        match access {
            AccessMode::Crcw => Ok(()),
            _ => Err("size-aware hands large requests to any worker; give --access crcw"),
        }
    }

    fn check_workers(&self, workers: usize) -> Result<(), &'static str> {
        match self.settings.large_cores {
            LargeCores::Fixed(large) if large >= workers => {
                Err("--large-cores leaves no worker for small requests; lower it or raise -t")
            }
            _ => Ok(()),
        }
    }

    /// The plan before the first epoch: nothing is known, so only [`SizeAware::threshold`] or
    /// [`Settings::large_min`] says what is large.
    fn plan(&self, layout: Layout) -> Plan {
        self.plan_for(layout, &Smoothed::default())
    }

    fn controller(&self, layout: Layout) -> Option<Controller> {
        (layout.map.cores() > 1).then(|| Controller::new(*self, layout))
    }
}

impl SizeAware {
    /// The policy with its default settings.
    pub const DEFAULT: SizeAware = SizeAware {
        settings: Settings::DEFAULT,
        threshold: None,
    };

    /// The policy with these settings, and a threshold that follows from what is requested.
    pub fn with(settings: Settings) -> SizeAware {
        SizeAware {
            settings,
            ..SizeAware::DEFAULT
        }
    }

    /// The plan for these requests.
    pub fn plan_for(&self, layout: Layout, requests: &Smoothed) -> Plan {
        let separates = self.settings.large_cores == LargeCores::Auto;
        self.plan_with(layout, requests, separates, |division| (division, false))
    }

    /// The same. `separates` says whether large requests have cores of their own where they are
    /// many. `adjust` may change the number of large cores, and says whether they are
    /// reserved for large requests.
    fn plan_with(
        &self,
        layout: Layout,
        requests: &Smoothed,
        separates: bool,
        adjust: impl FnOnce(Division) -> (Division, bool),
    ) -> Plan {
        let cores = layout.map.cores();
        if cores == 1 {
            return Plan::by_keyhash(layout);
        }
        let large_from = match self.threshold {
            Some(bytes) => bytes,
            None if requests.is_empty() => self.settings.large_min,
            None => {
                let rule = match separates {
                    true => threshold_with_many_large,
                    false => threshold,
                };
                rule(requests, self.settings.percentile, self.settings.large_min)
            }
        };
        let rule = self.settings.large_cores;
        let by_rule = rule.divide(cores, self.small_share(requests, large_from));
        let (division, is_reserved) = adjust(by_rule);
        let ranges = size_ranges(requests, self.settings.cost, large_from, division.large);
        let small = (0..division.small).map(|core| self.small(core, division));
        let large = (division.small..cores).zip(ranges);
        let large = large.map(|(core, sizes)| Role {
            sizes,
            takes: spare(core, cores, division.spare),
            is_reserved,
            ..Role::default()
        });
        Plan::by_size(layout, large_from, small.chain(large).collect()).profiled()
    }

    /// A small core reads its own RX queue and its part of the large cores' queues, so that all
    /// queues empty at about the same rate.
    fn small(&self, core: usize, division: Division) -> Role {
        let part = self.settings.batch.div_ceil(division.small);
        let large = division.small..division.small + division.large;
        let mut role = Role::reads_its_own(core, self.settings.batch);
        role.reads.extend(large.map(|rx| Read { rx, budget: part }));
        role
    }

    /// The share of small requests in the cost of all.
    fn small_share(&self, requests: &Smoothed, large_from: u32) -> f64 {
        let (mut small, mut all) = (0.0, 0.0);
        for class in SizeClass::all() {
            let cost = self.settings.cost.of_class(requests, class);
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
        beside_large: spare == Spare::AnyRx,
    }
}

/// Makes a plan for each epoch.
#[derive(Clone, Debug)]
pub struct Controller {
    policy: SizeAware,
    requests: Smoothed,
    /// Large requests have cores of their own also where they are many.
    separates: bool,
    plan: Plan,
}

impl Controller {
    /// A controller before its first epoch.
    pub fn new(policy: SizeAware, layout: Layout) -> Controller {
        Controller {
            plan: policy.plan(layout),
            requests: Smoothed::default(),
            separates: policy.settings.large_cores == LargeCores::Auto,
            policy,
        }
    }

    /// Length of an epoch in milliseconds.
    pub fn epoch_ms(&self) -> u64 {
        self.policy.settings.epoch_ms
    }

    /// The plan in force.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// An epoch has ended, in which all cores together had these requests. Returns the plan from
    /// now on: a new one has the next number. Few requests, under [`EPOCH_REQUESTS_MIN`], keep the
    /// plan.
    ///
    /// [`LargeCores::Auto`] goes by how busy the cores were, if that is known.
    pub fn epoch(&mut self, requests: &Histogram, busy: Option<Busy>) -> &Plan {
        if requests.requests() < EPOCH_REQUESTS_MIN {
            return &self.plan;
        }
        self.requests.add(requests, self.policy.settings.alpha);
        let version = self.plan.version();
        let layout = *self.plan.layout();
        let cores = layout.map.cores();
        // Large cores read no RX queue, whether or not there is a size for each of them.
        let is_large = |role: &&Role| role.reads.is_empty();
        let now = self.plan.roles().iter().filter(is_large).count();
        let was_reserved = self.plan.roles().iter().any(|role| role.is_reserved);
        let busy = busy.filter(|_| self.policy.settings.large_cores == LargeCores::Auto);
        if let Some(busy) = busy {
            let large_share = 1.0 - self.policy.small_share(&self.requests, MANY_LARGE_FROM);
            self.separates = busy.separates(cores, self.separates, large_share);
        }
        let adjust = |division: Division| match busy {
            Some(busy) => {
                let is_reserved = busy.reserves(cores, now, was_reserved);
                let large = busy.large_cores(cores, now, division.large);
                (division.with_large(large), is_reserved)
            }
            None => (division, false),
        };
        let next = self
            .policy
            .plan_with(layout, &self.requests, self.separates, adjust);
        let next = next.numbered(version);
        if next != self.plan {
            self.plan = next.numbered(version + 1);
        }
        &self.plan
    }
}
