//! The policy in force, its epochs, and the plan that all workers go by.

use std::sync::Arc;

use crossbeam_utils::CachePadded;
use glimmer_base::sync::Ordering::Relaxed;
use glimmer_base::sync::{AtomicU64, Mutex, lock};
use glimmer_dispatch::{
    AccessMode, Controller, Histogram, Layout, Plan, Policy, Settings, SizeClass,
};

use super::latencies::{Command, Latencies, Latency};
use super::profile::Profile;
use super::published::Published;
use super::queue_length::QueueLength;
use super::service_times::{ServiceTimes, Times};
use super::work::{Work, Worked};
use crate::clock::Clock;

/// What all workers go by, and what makes the next plan.
pub(crate) struct Plans {
    plan: Published<Plan>,
    /// By worker: the version that it goes by.
    taken: Vec<CachePadded<AtomicU64>>,
    /// By worker.
    profiles: Vec<CachePadded<Profile>>,
    /// By worker.
    times: Vec<CachePadded<ServiceTimes>>,
    /// By worker.
    latencies: Vec<CachePadded<Latencies>>,
    /// By worker.
    queues: Vec<CachePadded<QueueLength>>,
    /// By worker.
    work: Vec<CachePadded<Work>>,
    /// When the epoch ends, in milliseconds since the epoch of the clock.
    epoch_end_ms: AtomicU64,
    control: Mutex<Control>,
}

/// What makes plans. Whoever changes it publishes the plan while holding its lock.
struct Control {
    layout: Layout,
    /// The access mode that is being put in force.
    next_access: Option<AccessMode>,
    policy: Arc<dyn Policy>,
    /// The settings of policies: those of this one, and of the next one that a client names.
    settings: Settings,
    controller: Option<Controller>,
    /// The workers' profiles when the epoch began.
    counted: Histogram,
    /// The workers' time when it began, if that is known.
    worked: Option<Worked>,
    epochs: u64,
}

/// What an operator is shown about plans.
#[derive(Clone, Debug)]
pub struct DispatchView {
    /// The policy in force.
    pub policy: Arc<dyn Policy>,
    /// The settings of policies.
    pub settings: Settings,
    /// The access mode of the store.
    pub access: AccessMode,
    /// The plan that it has made last.
    pub plan: Arc<Plan>,
    /// How often a plan has replaced another one since the server began.
    pub version: u64,
    /// By worker: the version that it goes by.
    pub taken: Vec<u64>,
    /// Epochs with enough requests since the policy was chosen.
    pub epochs: u64,
    /// By worker: the requests that it has executed while the plan counted them by size.
    pub profiles: Vec<Histogram>,
    /// By worker: what has been handed to it and is not done yet, now and at most.
    pub queues: Vec<(u64, u64)>,
}

impl Plans {
    /// The first plan of a policy that has these settings, for workers with this layout.
    pub fn new(policy: Arc<dyn Policy>, settings: Settings, layout: Layout, now_ms: u64) -> Plans {
        let workers = layout.map.cores();
        let plan = policy.plan(layout);
        let controller = policy.controller(layout);
        let epoch_ms = controller.as_ref().map_or(0, Controller::epoch_ms);
        Plans {
            plan: Published::new(plan),
            taken: (0..workers).map(|_| CachePadded::default()).collect(),
            profiles: (0..workers).map(|_| CachePadded::default()).collect(),
            times: (0..workers).map(|_| CachePadded::default()).collect(),
            latencies: (0..workers).map(|_| CachePadded::default()).collect(),
            queues: (0..workers).map(|_| CachePadded::default()).collect(),
            work: (0..workers).map(|_| CachePadded::default()).collect(),
            epoch_end_ms: AtomicU64::new(now_ms + epoch_ms),
            control: Mutex::new(Control {
                layout,
                next_access: None,
                policy,
                settings,
                controller,
                counted: Histogram::default(),
                worked: None,
                epochs: 0,
            }),
        }
    }

    /// The version of the latest plan.
    #[inline(always)]
    pub fn version(&self) -> u64 {
        self.plan.version()
    }

    /// The latest plan with its version, by which worker `me` goes from now on.
    pub fn take(&self, me: usize) -> (u64, Arc<Plan>) {
        let (version, plan) = self.plan.take();
        self.taken[me].store(version, Relaxed);
        (version, plan)
    }

    /// Whether every worker goes by this version or a later one.
    pub fn is_taken(&self, version: u64) -> bool {
        self.taken
            .iter()
            .all(|taken| taken.load(Relaxed) >= version)
    }

    /// Where a worker counts its requests by size.
    #[inline(always)]
    pub fn profile(&self, worker: usize) -> &Profile {
        &self.profiles[worker]
    }

    /// Where a worker counts how long its requests take: by size, and by what they do.
    pub fn times(&self, worker: usize) -> (&ServiceTimes, &Latencies) {
        (&self.times[worker], &self.latencies[worker])
    }

    /// How long a sample of the requests of all workers took. Takes no lock.
    pub fn latencies(&self, commands: &[Command]) -> Vec<Latency> {
        Latency::of(
            self.latencies.iter().map(|latencies| &**latencies),
            commands,
        )
    }

    /// What has been handed to a worker.
    pub fn queue(&self, worker: usize) -> &QueueLength {
        &self.queues[worker]
    }

    /// What a worker tells about its time.
    pub fn work(&self, worker: usize) -> &Work {
        &self.work[worker]
    }

    /// Whether the epoch has ended.
    #[inline(always)]
    pub fn is_epoch_over(&self, now_ms: u64) -> bool {
        now_ms >= self.epoch_end_ms.load(Relaxed)
    }

    /// The epoch has ended: the controller looks at what was requested in it. One worker does this,
    /// in the first turn after the end; another one that comes meanwhile goes on. Returns whether
    /// there is another plan.
    #[cold]
    pub fn end_epoch(&self, now_ms: u64, clock: &dyn Clock) -> bool {
        let Some(mut control) = self.control.try_lock() else {
            return false;
        };
        let control = &mut *control;
        let Some(controller) = control
            .controller
            .as_mut()
            .filter(|_| self.is_epoch_over(now_ms))
        else {
            return false;
        };
        self.epoch_end_ms
            .store(now_ms + controller.epoch_ms(), Relaxed);
        let requests = self.requests();
        let before = std::mem::replace(&mut control.counted, requests.clone());
        let workers = self.work.iter().map(|work| &**work);
        let worked = Worked::now(workers, now_ms, clock);
        let worked_before = std::mem::replace(&mut control.worked, worked);
        let busy = worked.zip(worked_before);
        let busy = busy.and_then(|(worked, before)| worked.since(before));
        let version = controller.plan().version();
        let plan = controller.epoch(&requests.since(&before), busy);
        control.epochs += 1;
        let is_new = plan.version() != version;
        if is_new {
            self.plan.replace(plan.clone());
        }
        is_new
    }

    /// Puts another policy in force, which has these settings and works with the access mode.
    /// Returns the version of its first plan; `None` while the access mode changes. The caller
    /// wakes the workers.
    pub fn switch(&self, policy: Arc<dyn Policy>, settings: Settings, now_ms: u64) -> Option<u64> {
        let mut control = lock(&self.control);
        if control.next_access.is_some() {
            return None;
        }
        control.policy = policy;
        control.settings = settings;
        Some(self.begin(&mut control, now_ms))
    }

    /// Begins to put another access mode in force, and then a policy that works with it: publishes
    /// the interim plan. Returns the version of the policy's first plan, which is the next one;
    /// `None` if the access mode is already being changed. The caller wakes the workers.
    pub fn begin_access(
        &self,
        policy: Arc<dyn Policy>,
        settings: Settings,
        access: AccessMode,
    ) -> Option<u64> {
        let mut control = lock(&self.control);
        if control.next_access.is_some() {
            return None;
        }
        control.next_access = Some(access);
        control.controller = None;
        control.policy = policy;
        control.settings = settings;
        Some(self.plan.replace(Plan::interim(control.layout)) + 1)
    }

    /// The access mode that is being put in force.
    pub fn next_access(&self) -> Option<AccessMode> {
        lock(&self.control).next_access
    }

    /// The engines have the next access mode: the policy's plan follows. The caller wakes the
    /// workers.
    pub fn end_access(&self, now_ms: u64) {
        let mut control = lock(&self.control);
        if let Some(access) = control.next_access.take() {
            control.layout.access = access;
            self.begin(&mut control, now_ms);
        }
    }

    /// Publishes the first plan of the policy. Returns its version.
    fn begin(&self, control: &mut Control, now_ms: u64) -> u64 {
        control.controller = control.policy.controller(control.layout);
        control.counted = self.requests();
        control.worked = None;
        control.epochs = 0;
        let epoch_ms = control.controller.as_ref().map_or(0, Controller::epoch_ms);
        self.epoch_end_ms.store(now_ms + epoch_ms, Relaxed);
        self.plan.replace(control.policy.plan(control.layout))
    }

    /// The policy in force, or that is being put in force.
    pub fn policy(&self) -> Arc<dyn Policy> {
        lock(&self.control).policy.clone()
    }

    /// The settings of policies: those that it has, and that another one would have.
    pub fn settings(&self) -> Settings {
        lock(&self.control).settings
    }

    /// The access mode that the engines have.
    pub fn access(&self) -> AccessMode {
        lock(&self.control).layout.access
    }

    /// What there is to show.
    pub fn view(&self) -> DispatchView {
        let control = lock(&self.control);
        let (version, plan) = self.plan.take();
        DispatchView {
            policy: control.policy.clone(),
            settings: control.settings,
            access: control.layout.access,
            plan,
            version,
            taken: self.taken.iter().map(|taken| taken.load(Relaxed)).collect(),
            epochs: control.epochs,
            profiles: self
                .profiles
                .iter()
                .map(|profile| profile.histogram())
                .collect(),
            queues: self.queues.iter().map(|queue| queue.view()).collect(),
        }
    }

    /// How long the latest requests of a class took on all workers.
    pub fn times_of(&self, class: SizeClass) -> Times {
        let mut all = Times::default();
        for times in &self.times {
            times.add_to(&mut all, class);
        }
        all
    }

    /// What all workers have counted so far.
    pub fn requests(&self) -> Histogram {
        let mut all = Histogram::default();
        for profile in &self.profiles {
            all.merge(&profile.histogram());
        }
        all
    }
}
