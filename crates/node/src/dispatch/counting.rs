//! What a worker counts about the requests that it executes: all of them by size while the plan
//! wants that, and how long a sample of them takes.

use glimmer_dispatch::{Plan, SizeClass};
use glimmer_engine::{Done, Job};

use super::latencies::Latencies;
use super::profile::Profile;
use super::sampler::Sampler;
use super::service_times::ServiceTimes;
use super::slow::SlowWatch;

/// What one worker counts now.
#[derive(Debug)]
pub(crate) struct Counting {
    /// Requests are looked at once they are executed, for one reason or the other.
    is_on: bool,
    is_profiled: bool,
    /// Large requests are handed to this worker, and the plan depends on how much time they take.
    times_large: bool,
    sampler: Sampler,
    /// Rarely used, but for what a turn looks at.
    slow: Box<SlowWatch>,
}

impl Counting {
    /// Nothing is counted yet.
    pub fn new(slow: SlowWatch) -> Counting {
        Counting {
            is_on: false,
            is_profiled: false,
            times_large: false,
            sampler: Sampler::default(),
            slow: Box::new(slow),
        }
    }

    /// Worker `me` goes by this plan from now on.
    pub fn follow(&mut self, plan: &Plan, me: usize) {
        self.is_profiled = plan.is_profiled();
        self.times_large = self.is_profiled && !plan.role(me).sizes.is_empty();
        self.update();
    }

    /// Whether the time of large requests is to be known.
    #[inline]
    pub fn times_large(&self) -> bool {
        self.times_large
    }

    fn update(&mut self) {
        self.is_on = self.is_profiled || self.sampler.is_on();
    }

    /// Whether the plan wants all requests to be counted by size.
    #[inline(always)]
    pub fn is_profiled(&self) -> bool {
        self.is_profiled
    }

    /// Whether requests are looked at once they are executed.
    #[inline(always)]
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// A turn begins, at this time and after this many requests. Returns whether
    /// [`Counting::change_turn`] is due.
    #[inline(always)]
    pub fn begin_turn(&mut self, now_ms: u64, requests: u64) -> bool {
        self.slow.begin_turn(now_ms, requests);
        self.sampler.begin_turn()
    }

    /// The worker sleeps before the next turn.
    #[inline]
    pub fn sleeps(&mut self) {
        self.slow.sleeps();
    }

    /// This turn is timed, or the one before was.
    #[cold]
    pub fn change_turn(&mut self, now_ns: impl FnOnce() -> u64) {
        self.sampler.change(now_ns);
        if let Some(began_ns) = self.sampler.began_ns() {
            self.slow.begin_timed(began_ns);
        }
        self.update();
    }

    /// When this turn began, if it is timed.
    #[inline]
    pub fn turn_began_ns(&self) -> Option<u64> {
        self.sampler.began_ns()
    }

    /// A member of the burst was received by another worker, in a turn that was timed and began
    /// then.
    #[cold]
    pub fn join(&mut self, member: usize, since_ns: u64) {
        self.sampler.join(member, since_ns);
        self.slow.join();
        self.update();
    }

    /// A batch of requests has been executed. `is_visitor` tells of a member of the burst whether
    /// another worker has received its request.
    #[inline(never)]
    pub fn note(
        &mut self,
        profile: &Profile,
        (jobs, done): (&[Job<'_>], &[Done]),
        is_visitor: impl Fn(usize) -> bool,
    ) {
        if self.is_profiled {
            profile.note(jobs, done);
        }
        if self.sampler.is_on() {
            self.sampler.note(jobs, done, &is_visitor);
            let sampler = &self.sampler;
            let since_ns = |member| sampler.since_ns(member, is_visitor(member));
            self.slow.note((jobs, done), since_ns);
        }
    }

    /// Whether [`Counting::record`] is due once the replies of a burst are written.
    #[inline(always)]
    pub fn has_unwritten(&self) -> bool {
        self.sampler.has_unwritten
    }

    /// A member's reply with a value of this many bytes is not written with the others of its
    /// burst. Returns since when its request is timed, in nanoseconds, if it is.
    #[cold]
    pub fn withdraw(&mut self, member: usize, value_bytes: usize) -> Option<u64> {
        let class = SizeClass::of(value_bytes as u32);
        let since_ns = self.sampler.withdraw(member, class)?;
        self.slow.withdraw(member, value_bytes);
        Some(since_ns)
    }

    /// The last byte of such a reply was sent.
    #[cold]
    pub fn sent(&mut self, value_bytes: usize, since_ns: u64, now_ns: u64) {
        self.slow.sent(value_bytes, since_ns, now_ns);
    }

    /// The replies of a burst are written.
    #[cold]
    pub fn record(&mut self, times: (&ServiceTimes, &Latencies), now_ns: u64) {
        self.sampler.record(times, now_ns);
        self.slow.written(now_ns);
        self.update();
    }
}

/// Where the executed requests of native datagrams are counted.
pub struct NativeCount<'t> {
    counting: &'t mut Counting,
    profile: &'t Profile,
    is_received_here: bool,
}

impl<'t> NativeCount<'t> {
    /// Counts requests that this worker has received, or that another one has.
    pub(crate) fn of(
        counting: &'t mut Counting,
        profile: &'t Profile,
        is_received_here: bool,
    ) -> NativeCount<'t> {
        NativeCount {
            counting,
            profile,
            is_received_here,
        }
    }

    /// A batch of requests has been executed.
    #[inline]
    pub fn note(&mut self, jobs: &[Job<'_>], done: &[Done]) {
        if self.counting.is_on() {
            let is_visitor = !self.is_received_here;
            self.counting
                .note(self.profile, (jobs, done), |_| is_visitor);
        }
    }
}
