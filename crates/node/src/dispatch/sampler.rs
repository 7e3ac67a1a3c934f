//! Which requests a worker times, and since when.
//!
//! A worker times all requests of one turn in [`SAMPLED_TURNS_EVERY`]: from the beginning of the
//! turn until the replies of their burst are written. Each request is as likely to be in such a
//! turn as any other. Other turns cost a count and no look at the clock. A connection that leaves
//! for another worker in such a turn takes the time along, and that worker times its next request.

use arrayvec::ArrayVec;
use glimmer_base::limits::{BURST_CONNECTIONS_MAX, SAMPLED_TURNS_EVERY};
use glimmer_dispatch::SizeClass;
use glimmer_engine::{Done, Job, Status};

use super::ask::value_bytes;
use super::latencies::{Command, Latencies};
use super::profile::is_continued;
use super::service_times::ServiceTimes;

/// What one worker times.
#[derive(Debug)]
pub(crate) struct Sampler {
    /// Turns until one is timed. At 0 the turn is timed.
    turns_left: i32,
    /// When the turn began that is being timed, in nanoseconds.
    began_ns: Option<u64>,
    /// Members of the burst have brought their time along.
    has_timed: bool,
    /// There is something to record once the replies are written.
    pub has_unwritten: bool,
    /// Rarely used, and long: apart from what every turn looks at.
    burst: Box<Burst>,
}

/// What is to be recorded once the replies of a burst are written.
#[derive(Debug, Default)]
struct Burst {
    /// Requests that have been executed in this turn and whose replies are not written yet.
    unwritten: [[u32; SizeClass::COUNT]; Command::ALL.len()],
    /// The members of the burst that have brought their time along.
    timed: ArrayVec<Timed, BURST_CONNECTIONS_MAX>,
}

/// A member of the burst that was received on another worker.
#[derive(Clone, Copy, Debug)]
struct Timed {
    member: usize,
    since_ns: u64,
    /// What its request does and the class of its value, once that has been executed.
    request: Option<(Command, SizeClass)>,
}

impl Default for Sampler {
    fn default() -> Sampler {
        Sampler {
            turns_left: SAMPLED_TURNS_EVERY,
            began_ns: None,
            has_timed: false,
            has_unwritten: false,
            burst: Box::default(),
        }
    }
}

impl Sampler {
    /// A turn begins. Returns whether it is timed, or the one before was.
    #[inline(always)]
    pub fn begin_turn(&mut self) -> bool {
        self.turns_left -= 1;
        self.turns_left <= 0
    }

    /// Begins to time this turn, or ends to time.
    #[cold]
    pub fn change(&mut self, now_ns: impl FnOnce() -> u64) {
        if self.turns_left < 0 {
            // This turn is the first of the next period.
            self.turns_left = SAMPLED_TURNS_EVERY - 1;
            self.began_ns = None;
            self.burst.unwritten = [[0; SizeClass::COUNT]; Command::ALL.len()];
        } else {
            self.began_ns = Some(now_ns());
        }
    }

    /// When the turn began, if it is timed.
    #[inline]
    pub fn began_ns(&self) -> Option<u64> {
        self.began_ns
    }

    /// Whether requests are looked at in this burst.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.began_ns.is_some() || self.has_timed
    }

    /// A member of the burst was received elsewhere, in a turn that was timed and began then.
    pub fn join(&mut self, member: usize, since_ns: u64) {
        // A burst has no more members than this has room for.
        let _ = self.burst.timed.try_push(Timed {
            member,
            since_ns,
            request: None,
        });
        (self.has_timed, self.has_unwritten) = (true, true);
    }

    /// Since when a member of the burst is timed, if it is, and whether it is a visitor.
    pub fn since_ns(&self, member: usize, is_visitor: bool) -> Option<(u64, bool)> {
        let timed = || self.burst.timed.iter().find(|timed| timed.member == member);
        match is_visitor {
            true => timed().map(|timed| (timed.since_ns, true)),
            false => self.began_ns.map(|began_ns| (began_ns, false)),
        }
    }

    /// Notes what the jobs of a batch were that were executed. `is_visitor` tells of a member of
    /// the burst whether another worker has received its request.
    pub fn note(&mut self, jobs: &[Job<'_>], done: &[Done], is_visitor: &impl Fn(usize) -> bool) {
        for (job, done) in jobs.iter().zip(done) {
            if done.status != Status::Done || is_continued(job) {
                continue;
            }
            let class = SizeClass::of(value_bytes(job, done));
            let command = Command::of(&job.request.verb);
            let member = job.out as usize;
            if is_visitor(member) {
                let mut timed = self.burst.timed.iter_mut();
                if let Some(timed) = timed.find(|timed| timed.member == member) {
                    timed.request.get_or_insert((command, class));
                    self.has_unwritten = true;
                }
            } else if self.began_ns.is_some() {
                self.burst.unwritten[command as usize][class.place()] += 1;
                self.has_unwritten = true;
            }
        }
    }

    /// The reply to a read of a value of this class is not written with the others of its burst.
    /// Returns since when the request is timed, if it is.
    #[cold]
    pub fn withdraw(&mut self, member: usize, class: SizeClass) -> Option<u64> {
        let read = (Command::Get, class);
        let is_its = |timed: &&mut Timed| timed.member == member && timed.request == Some(read);
        if let Some(timed) = self.burst.timed.iter_mut().find(is_its) {
            timed.request = None;
            return Some(timed.since_ns);
        }
        let requests = &mut self.burst.unwritten[Command::Get as usize][class.place()];
        *requests = requests.checked_sub(1)?;
        self.began_ns
    }

    /// The replies of the burst are written.
    #[cold]
    pub fn record(&mut self, (times, latencies): (&ServiceTimes, &Latencies), now_ns: u64) {
        let record = |(command, class), requests, since_ns| {
            let took_ns = now_ns.saturating_sub(since_ns);
            times.record(class, requests, took_ns, now_ns);
            latencies.record((command, class), requests, took_ns, now_ns);
        };
        if let Some(began_ns) = self.began_ns {
            for (command, classes) in Command::ALL.into_iter().zip(&mut self.burst.unwritten) {
                for (class, requests) in SizeClass::all().zip(classes) {
                    if *requests > 0 {
                        record((command, class), std::mem::take(requests), began_ns);
                    }
                }
            }
        }
        for timed in self.burst.timed.drain(..) {
            if let Some(request) = timed.request {
                record(request, 1, timed.since_ns);
            }
        }
        (self.has_timed, self.has_unwritten) = (false, false);
    }
}
