//! What every part of a worker works with.

use std::sync::Arc;

use glimmer_base::limits::{CLOCK_REQUESTS, SMALL_REQUEST_MS};
use glimmer_base::{KeyHasher, Moment};
use glimmer_dispatch::{Plan, SizeClass};
use glimmer_engine::{Done, Engine, Job};

use crate::admin::alarm::Failure;
use crate::admin::allowance::Allowance;
use crate::admin::handler::{AdminHandler, Audited, Login};
use crate::admin::stats::Counts;
use crate::budget::memory::Memory;
use crate::dispatch::counting::Counting;
use crate::dispatch::latencies::Command;
use crate::hot::Tender;
use crate::shared::Shared;
use crate::tenants::Seen;

/// What every part of a worker works with: the time of the turn, the engine, memory, counters, and
/// what all workers share. Each part takes it as an argument.
pub(crate) struct Core {
    /// The worker's number.
    pub me: usize,
    /// There is no other worker.
    pub is_alone: bool,
    /// What makes keyhashes of keys.
    pub hasher: KeyHasher,
    /// The time, read with every turn and after every [`CLOCK_REQUESTS`] that are executed in it.
    pub now: Moment,
    /// Requests executed since then.
    pub untimed_requests: u64,
    pub shared: Arc<Shared>,
    pub admin: Arc<dyn AdminHandler>,
    pub engine: Box<dyn Engine>,
    /// Which worker executes a request.
    pub plan: Arc<Plan>,
    /// Its version among the published ones.
    pub plan_version: u64,
    /// The worker's part in the accelerator, if there is one.
    pub tender: Option<Box<Tender>>,
    /// Users with rights, as last seen.
    pub users: Seen,
    /// What administrative commands may cost in this turn.
    pub allowance: Allowance,
    /// What is counted about executed requests.
    pub counting: Counting,
    pub memory: Memory,
    pub tally: Counts,
    /// Steps that no engine executed: commands without a key, and what was refused.
    pub answered: u64,
    /// Failures wait to be told to the admin handler.
    pub is_alarmed: bool,
    /// The server has been told to stop, and this worker is leaving.
    pub is_draining: bool,
    /// When it last executed a small request, in milliseconds since the epoch.
    pub small_request_ms: u64,
    /// Bytes of a slice, or all.
    pub slice_bytes: usize,
}

impl Core {
    /// Something failed, this many times; `errno` is the kernel's reason if it gave one.
    #[cold]
    pub fn note_failure(&mut self, failure: Failure, count: u64, errno: Option<i32>) {
        *self.tally.failures(failure) += count;
        let errno = errno.unwrap_or(0).unsigned_abs();
        self.shared.alarms.note(failure, count, errno);
        self.is_alarmed = true;
    }

    /// Requests executed and other steps answered so far. What a turn may do is bounded in these,
    /// as a peer can send what is wrong as fast as requests.
    #[inline(always)]
    pub fn steps(&self) -> u64 {
        self.tally.requests + self.answered
    }

    /// It is this time now.
    #[inline]
    pub fn set_time(&mut self, now: Moment) {
        self.now = now;
        self.now.ms += self.shared.switches.ahead_ms();
        self.untimed_requests = 0;
    }

    /// Requests were executed: reads the clock again after [`CLOCK_REQUESTS`]. A turn of many
    /// requests takes longer than the milliseconds that some items are to stay.
    #[inline(always)]
    pub fn pass_time(&mut self, requests: u64) {
        self.untimed_requests += requests;
        if self.untimed_requests >= CLOCK_REQUESTS {
            self.read_clock();
        }
    }

    #[inline(never)]
    fn read_clock(&mut self) {
        self.set_time(self.shared.config.clock.now());
    }

    /// Whether another connection may visit a worker.
    #[inline]
    pub fn may_depart(&self) -> bool {
        self.memory.may_depart(self.shared.workers())
    }

    /// Bytes of large values that are sent or received before the next look for small requests.
    #[inline(always)]
    pub fn slice_bytes(&self) -> usize {
        self.slice_bytes
    }

    /// Bytes of the largest value that is copied whole.
    #[inline]
    pub fn slice_max(&self) -> u32 {
        self.slice_bytes().min(u32::MAX as usize) as u32
    }

    /// A small request was executed.
    #[inline]
    pub fn note_small_request(&mut self) {
        self.small_request_ms = self.now.ms;
        self.slice_bytes = self.shared.config.slice_bytes;
    }

    /// Begins a turn: some turns are timed.
    #[inline(always)]
    pub fn begin_turn(&mut self) {
        self.allowance.begin_turn(self.now.ms);
        if self.now.ms - self.small_request_ms >= SMALL_REQUEST_MS {
            self.slice_bytes = usize::MAX;
        }
        if self.counting.begin_turn(self.now.ms, self.tally.requests) {
            let clock = &self.shared.config.clock;
            self.counting.change_turn(|| clock.ns());
        }
    }

    /// The replies of a burst are written: times those that are to be timed.
    #[inline(always)]
    pub fn end_burst(&mut self) {
        if self.counting.has_unwritten() {
            let now_ns = self.shared.config.clock.ns();
            let times = self.shared.plans.times(self.me);
            self.counting.record(times, now_ns);
        }
    }

    /// A store whose value was received in place has been executed.
    #[cold]
    pub fn note_upload(&mut self, job: &Job<'_>, done: Done, is_visitor: bool) {
        self.shared.end_upload();
        self.tally.requests += 1;
        if self.counting.is_on() {
            let profile = self.shared.plans.profile(self.me);
            (self.counting).note(profile, (&[*job], &[done]), |_| is_visitor);
        }
    }

    /// The reply to a request for a value of this many bytes, which is timed since then (in
    /// nanoseconds), has been sent.
    #[cold]
    pub fn note_service_time(&mut self, value_bytes: usize, since_ns: u64) {
        let now_ns = self.shared.config.clock.ns();
        let (times, latencies) = self.shared.plans.times(self.me);
        let class = SizeClass::of(value_bytes as u32);
        let took_ns = now_ns.saturating_sub(since_ns);
        times.record(class, 1, took_ns, now_ns);
        // Only values that were read are sent later than the others of their burst.
        latencies.record((Command::Get, class), 1, took_ns, now_ns);
        self.counting.sent(value_bytes, since_ns, now_ns);
    }

    /// Large requests are about to be executed. Returns when, if that is to be known.
    #[inline]
    pub fn begin_large(&self) -> Option<u64> {
        let is_timed = self.counting.times_large();
        is_timed.then(|| self.shared.config.clock.ns())
    }

    /// Large requests were executed, and this time they began at.
    #[inline]
    pub fn end_large(&self, since_ns: Option<u64>) {
        if let Some(since_ns) = since_ns {
            let ns = self.shared.config.clock.ns().saturating_sub(since_ns);
            self.shared.plans.work(self.me).add_large(ns);
        }
    }

    /// Goes by the latest plan from here on, and makes another one if that is due. Returns the plan
    /// before, if there is another one.
    #[inline(always)]
    pub fn follow_plan(&mut self) -> Option<Arc<Plan>> {
        let plans = &self.shared.plans;
        let is_due = self.counting.is_profiled() && plans.is_epoch_over(self.now.ms);
        match is_due || plans.version() != self.plan_version {
            true => self.change_plan(is_due),
            false => None,
        }
    }

    /// Whether there is a later plan than the one that this worker goes by.
    #[inline]
    pub fn has_another_plan(&self) -> bool {
        self.shared.plans.version() != self.plan_version
    }

    #[cold]
    #[inline(never)]
    fn change_plan(&mut self, is_due: bool) -> Option<Arc<Plan>> {
        let plans = &self.shared.plans;
        let clock = &*self.shared.config.clock;
        if is_due && plans.end_epoch(self.now.ms, clock) {
            self.shared.wake_all();
        }
        if plans.version() == self.plan_version {
            return None;
        }
        let (version, plan) = plans.take(self.me);
        self.plan_version = version;
        self.counting.follow(&plan, self.me);
        Some(std::mem::replace(&mut self.plan, plan))
    }

    /// A client logs in. What its user may do is known from then on.
    #[cold]
    pub fn log_in(&mut self, user: &[u8], password: &[u8]) -> Login {
        let found = self.admin.log_in(user, password);
        self.tally.auth_admitted += u64::from(matches!(found, Login::Admitted(_)));
        self.users.follow(&self.shared.config.tenants);
        found
    }

    /// Tells auditors what the client with this number in the registry did.
    #[cold]
    pub fn audit(&self, client: i32, what: Audited<'_>) {
        if self.admin.audits() {
            let sockets = self.shared.registry.view(client, 1);
            let socket = sockets.first().filter(|socket| socket.fd == client);
            let address = socket.map_or("unknown", |socket| &socket.address);
            self.admin.audit(address, what);
        }
    }

    /// Tells the admin handler of failures. While some are not due, the worker looks again with
    /// every tick.
    #[cold]
    pub fn raise_alarms(&mut self) {
        let admin = &self.admin;
        let tell = |alarm| admin.alarm(alarm);
        self.is_alarmed = self.shared.alarms.tell(self.now.ms, tell);
    }

    /// Shows others what was counted: at the end of a turn, and before a client can see that its
    /// connection was taken, refused or closed, that it flushed or logged in, or that a request
    /// was denied.
    pub fn show_figures(&mut self) {
        self.memory.count(&mut self.tally);
        self.shared.stats[self.me].publish(&mut self.tally);
    }
}
