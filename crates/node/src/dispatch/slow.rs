//! The latest slow requests, and what their time went to.
//!
//! Requests that are timed are a sample: those of one turn in
//! [`SAMPLED_TURNS_EVERY`](glimmer_base::limits::SAMPLED_TURNS_EVERY). Of each batch of such a
//! turn, the request with the largest value is kept, with the beginning of its key, until its reply
//! is sent; if that took longer than the threshold, it is entered into the log. A turn that took
//! longer than the threshold is entered itself, sampled or not, if the worker was busy afterwards:
//! the beginning of the next turn is its end, so that no clock is read for it.
//!
//! A worker never waits for the log: while somebody reads it, an entry is left out and counted.

use std::collections::VecDeque;
use std::sync::Arc;

use arrayvec::ArrayVec;
use glimmer_base::limits::{
    SLOW_CANDIDATES_MAX, SLOW_KEPT_MAX, SLOW_KEY_BYTES_MAX, SLOW_TURNS_KEPT_MAX,
    SLOW_TURNS_PAUSE_MS,
};
use glimmer_base::sync::{AtomicU64, Mutex, Ordering::Relaxed, lock};
use glimmer_dispatch::SizeClass;
use glimmer_engine::{Done, Job, Status};

use super::ask::value_bytes;
use super::latencies::Command;
use crate::clock::Clock;

/// The log of a node.
#[derive(Debug)]
pub struct SlowLog {
    /// Requests that take as long as this, in milliseconds, are slow; `u64::MAX`: none.
    threshold_ms: AtomicU64,
    entries: Mutex<VecDeque<SlowRequest>>,
    /// Entries so far, and those that were left out.
    entered: AtomicU64,
    left_out: AtomicU64,
}

/// A slow request, or a turn that took long.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlowRequest {
    /// When its reply was sent, in milliseconds since 1970.
    pub unix_ms: u64,
    /// The worker that executed it.
    pub worker: usize,
    /// What it did; `None`: this is a whole turn.
    pub command: Option<Command>,
    /// Bytes of its value. Of a turn: its requests.
    pub size: u64,
    /// The beginning of its key.
    pub key: ArrayVec<u8, SLOW_KEY_BYTES_MAX>,
    /// The key is longer.
    pub is_shortened: bool,
    /// All of its time.
    pub total_us: u64,
    /// Of that: waiting for others that the worker served first.
    pub waiting_us: u64,
    /// On its way from the worker that received it, and waiting there.
    pub elsewhere_us: u64,
    /// Being received and executed, with the others of its batch.
    pub executing_us: u64,
    /// Being sent, with the others of its burst or slice by slice.
    pub sending_us: u64,
}

impl SlowLog {
    /// An empty log. A threshold of 0 milliseconds stands for none.
    pub fn new(threshold_ms: u64) -> SlowLog {
        let log = SlowLog {
            threshold_ms: AtomicU64::new(0),
            entries: Mutex::default(),
            entered: AtomicU64::new(0),
            left_out: AtomicU64::new(0),
        };
        log.set_threshold_ms(threshold_ms);
        log
    }

    /// Changes the threshold; 0 stands for none.
    pub fn set_threshold_ms(&self, threshold_ms: u64) {
        let threshold_ms = match threshold_ms {
            0 => u64::MAX,
            ms => ms,
        };
        self.threshold_ms.store(threshold_ms, Relaxed);
    }

    /// The threshold, unless there is none.
    pub fn threshold_ms(&self) -> Option<u64> {
        let threshold_ms = self.threshold_ms.load(Relaxed);
        (threshold_ms < u64::MAX).then_some(threshold_ms)
    }

    #[inline(always)]
    fn is_slow_ms(&self, ms: u64) -> bool {
        ms >= self.threshold_ms.load(Relaxed)
    }

    fn is_slow(&self, took_ns: u64) -> bool {
        self.is_slow_ms(took_ns / 1_000_000)
    }

    /// Entries so far, and those that were left out.
    pub fn counts(&self) -> (u64, u64) {
        (self.entered.load(Relaxed), self.left_out.load(Relaxed))
    }

    /// The latest entries, the newest first. Workers wait for nobody here, so anybody may.
    pub fn latest(&self) -> Vec<SlowRequest> {
        lock(&self.entries).iter().rev().cloned().collect()
    }

    /// The same for a worker, which does not wait: `None` if somebody else reads them.
    pub fn latest_at_once(&self) -> Option<Vec<SlowRequest>> {
        let entries = self.entries.try_lock()?;
        Some(entries.iter().rev().cloned().collect())
    }

    fn enter(&self, entry: SlowRequest) {
        let Some(mut entries) = self.entries.try_lock() else {
            self.left_out.fetch_add(1, Relaxed);
            return;
        };
        // Turns tell less, and must not push the requests out.
        let is_turn = |entry: &SlowRequest| entry.command.is_none();
        if is_turn(&entry) && entries.iter().filter(|it| is_turn(it)).count() >= SLOW_TURNS_KEPT_MAX
        {
            let oldest = entries.iter().position(is_turn);
            oldest.and_then(|place| entries.remove(place));
        }
        if entries.len() == SLOW_KEPT_MAX {
            entries.pop_front();
        }
        entries.push_back(entry);
        self.entered.fetch_add(1, Relaxed);
    }
}

/// What one worker watches for the log.
#[derive(Debug)]
pub(crate) struct SlowWatch {
    log: Arc<SlowLog>,
    clock: Arc<dyn Clock>,
    worker: usize,
    /// When the last batch of this turn was executed, in nanoseconds.
    noted_ns: u64,
    /// Of the batches whose replies are not sent yet.
    unsent: ArrayVec<Candidate, SLOW_CANDIDATES_MAX>,
    /// Whose replies leave slice by slice.
    leaving: ArrayVec<Candidate, SLOW_CANDIDATES_MAX>,
    /// When the turn began, in milliseconds, if nobody slept since; and the requests until then.
    turn_ms: Option<u64>,
    requests: u64,
    /// Until when slow turns are passed over, in milliseconds.
    quiet_until_ms: u64,
}

/// A request of a timed turn.
#[derive(Debug)]
struct Candidate {
    member: usize,
    /// Since when it is timed, and when it was executed, in nanoseconds.
    since_ns: u64,
    executed_ns: u64,
    entry: SlowRequest,
}

impl Candidate {
    /// Whether its value may be the one of a reply of this many bytes, which has a little more.
    fn is_of(&self, bytes: usize) -> bool {
        SizeClass::of(self.entry.size as u32) == SizeClass::of(bytes as u32)
    }
}

impl SlowWatch {
    pub fn new(log: Arc<SlowLog>, clock: Arc<dyn Clock>, worker: usize) -> SlowWatch {
        SlowWatch {
            log,
            clock,
            worker,
            noted_ns: 0,
            unsent: ArrayVec::new(),
            leaving: ArrayVec::new(),
            turn_ms: None,
            requests: 0,
            quiet_until_ms: 0,
        }
    }

    /// A turn begins at this time, after this many requests. The turn before has ended, unless the
    /// worker has slept.
    #[inline(always)]
    pub fn begin_turn(&mut self, now_ms: u64, requests: u64) {
        if let Some(before_ms) = self.turn_ms.replace(now_ms)
            && self.log.is_slow_ms(now_ms.wrapping_sub(before_ms))
        {
            self.enter_turn(now_ms, now_ms - before_ms, requests);
        }
        self.requests = requests;
    }

    #[cold]
    fn enter_turn(&mut self, now_ms: u64, took_ms: u64, requests: u64) {
        let size = requests - self.requests;
        if size > 0 && now_ms >= self.quiet_until_ms {
            self.quiet_until_ms = now_ms + SLOW_TURNS_PAUSE_MS;
            let entry = SlowRequest {
                size,
                total_us: took_ms * 1_000,
                ..self.entry()
            };
            self.log.enter(entry);
        }
    }

    /// The worker sleeps, so that the next turn does not begin where this one ends.
    #[inline]
    pub fn sleeps(&mut self) {
        self.turn_ms = None;
    }

    fn entry(&self) -> SlowRequest {
        SlowRequest {
            unix_ms: (self.clock.unix_us() / 1_000) as u64,
            worker: self.worker,
            ..SlowRequest::default()
        }
    }

    /// A timed turn began then.
    pub fn begin_timed(&mut self, began_ns: u64) {
        self.noted_ns = began_ns;
        self.unsent.clear();
    }

    /// A member of the burst has been timed by another worker, and begins here now.
    pub fn join(&mut self) {
        if self.log.threshold_ms().is_some() {
            self.noted_ns = self.clock.ns();
        }
    }

    /// A batch of a timed turn was executed. `since_ns` tells of a member of the burst since when
    /// it is timed, and whether another worker has received its request.
    pub fn note(
        &mut self,
        (jobs, done): (&[Job<'_>], &[Done]),
        since_ns: impl Fn(usize) -> Option<(u64, bool)>,
    ) {
        if self.log.threshold_ms().is_none() {
            return;
        }
        let now_ns = self.clock.ns();
        let begin_ns = std::mem::replace(&mut self.noted_ns, now_ns);
        let executed = jobs
            .iter()
            .zip(done)
            .filter(|(_, done)| done.status == Status::Done);
        let Some((job, done)) = executed.max_by_key(|(job, done)| value_bytes(job, done)) else {
            return;
        };
        let member = job.out as usize;
        let Some((since_ns, is_visitor)) = since_ns(member) else {
            return;
        };
        let key = job.request.key;
        let kept = &key[..key.len().min(SLOW_KEY_BYTES_MAX)];
        // What a worker did before it began with this batch. A visitor was elsewhere at first.
        let begin_ns = begin_ns.max(since_ns);
        let waited_us = (begin_ns - since_ns) / 1_000;
        // Without room it is not watched.
        let _ = self.unsent.try_push(Candidate {
            member,
            since_ns,
            executed_ns: now_ns,
            entry: SlowRequest {
                worker: self.worker,
                command: Some(Command::of(&job.request.verb)),
                size: value_bytes(job, done).into(),
                key: kept.iter().copied().collect(),
                is_shortened: kept.len() < key.len(),
                waiting_us: if is_visitor { 0 } else { waited_us },
                elsewhere_us: if is_visitor { waited_us } else { 0 },
                executing_us: (now_ns - begin_ns) / 1_000,
                ..SlowRequest::default()
            },
        });
    }

    /// The reply to a member's read of about this many bytes leaves slice by slice.
    pub fn withdraw(&mut self, member: usize, bytes: usize) {
        let is_its = |it: &Candidate| it.member == member && it.is_of(bytes);
        if let Some(place) = self.unsent.iter().position(is_its) {
            let candidate = self.unsent.swap_remove(place);
            if self.leaving.is_full() {
                self.leaving.remove(0);
            }
            self.leaving.push(candidate);
        }
    }

    /// A reply of about this many bytes, to a request that is timed since then, was sent slice by
    /// slice.
    pub fn sent(&mut self, bytes: usize, since_ns: u64, now_ns: u64) {
        let is_its = |it: &Candidate| it.since_ns == since_ns && it.is_of(bytes);
        if let Some(place) = self.leaving.iter().position(is_its) {
            let candidate = self.leaving.swap_remove(place);
            self.finish(candidate, now_ns);
        }
    }

    /// The replies of the burst were sent.
    pub fn written(&mut self, now_ns: u64) {
        for candidate in std::mem::take(&mut self.unsent) {
            self.finish(candidate, now_ns);
        }
    }

    fn finish(&self, candidate: Candidate, now_ns: u64) {
        let took_ns = now_ns.saturating_sub(candidate.since_ns);
        if self.log.is_slow(took_ns) {
            self.log.enter(SlowRequest {
                unix_ms: self.entry().unix_ms,
                total_us: took_ns / 1_000,
                sending_us: now_ns.saturating_sub(candidate.executed_ns) / 1_000,
                ..candidate.entry
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use glimmer_base::Moment;

    /// A clock that the test moves, in milliseconds.
    #[derive(Debug, Default)]
    struct TestClock(AtomicU64);

    impl Clock for TestClock {
        fn now(&self) -> Moment {
            Moment {
                ms: self.0.load(Relaxed),
                epoch_unix_ms: 0,
            }
        }

        fn unix_us(&self) -> u128 {
            1_000 * u128::from(self.0.load(Relaxed))
        }
    }

    fn watch(threshold_ms: u64) -> (SlowWatch, Arc<SlowLog>, Arc<TestClock>) {
        let log = Arc::new(SlowLog::new(threshold_ms));
        let clock = Arc::new(TestClock::default());
        let watch = SlowWatch::new(log.clone(), clock.clone(), 3);
        (watch, log, clock)
    }

    fn candidate(size: u64, since_ms: u64, executed_ms: u64) -> Candidate {
        Candidate {
            member: 1,
            since_ns: since_ms * 1_000_000,
            executed_ns: executed_ms * 1_000_000,
            entry: SlowRequest {
                size,
                command: Some(Command::Get),
                ..SlowRequest::default()
            },
        }
    }

    #[test]
    fn a_turn_is_entered_if_the_next_one_begins_late_without_a_sleep() {
        let (mut watch, log, _) = watch(10);
        for (now_ms, requests) in [(100, 1), (109, 5), (119, 9), (140, 9)] {
            watch.begin_turn(now_ms, requests);
        }
        watch.sleeps();
        watch.begin_turn(500, 20);
        watch.begin_turn(501, 21);
        let found = log.latest();
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].worker, found[0].command), (3, None));
        assert_eq!((found[0].size, found[0].total_us), (4, 10_000));
    }

    #[test]
    fn a_reply_that_leaves_slice_by_slice_is_entered_when_it_has_left() {
        let (mut watch, log, _) = watch(10);
        watch.unsent.push(candidate(70_000, 100, 102));
        watch.unsent.push(candidate(10, 100, 101));
        watch.withdraw(1, 70_002);
        watch.written(105_000_000);
        assert!(log.latest().is_empty(), "the other one took 5 ms");
        watch.sent(70_002, 100_000_000, 150_000_000);
        watch.sent(70_000, 100_000_000, 900_000_000);
        let found = log.latest();
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].total_us, found[0].sending_us), (50_000, 48_000));
    }

    #[test]
    fn the_log_keeps_the_latest_and_the_threshold_can_change() {
        let (mut watch, log, _) = watch(0);
        assert_eq!(log.threshold_ms(), None);
        watch.unsent.push(candidate(1, 0, 1));
        watch.written(9_000_000_000);
        assert!(log.latest().is_empty(), "it is off");
        log.set_threshold_ms(5);
        for ms in 0..2 * SLOW_KEPT_MAX as u64 {
            watch.unsent.push(candidate(ms, 0, 1));
            watch.written((5 + ms) * 1_000_000);
        }
        let found = log.latest();
        assert_eq!(found.len(), SLOW_KEPT_MAX);
        assert_eq!(found[0].size, 2 * SLOW_KEPT_MAX as u64 - 1);
        assert_eq!(log.counts(), (2 * SLOW_KEPT_MAX as u64, 0));
    }

    #[test]
    fn slow_turns_push_no_request_out() {
        let (mut watch, log, _) = watch(5);
        watch.unsent.push(candidate(7, 0, 1));
        watch.written(9_000_000);
        for turn in 0..2 * SLOW_KEPT_MAX as u64 {
            watch.begin_turn(SLOW_TURNS_PAUSE_MS * turn, turn);
        }
        let found = log.latest();
        assert_eq!(found.len(), SLOW_TURNS_KEPT_MAX + 1);
        assert_eq!(found.last().map(|it| it.size), Some(7));
    }

    #[test]
    fn a_flood_of_slow_turns_costs_an_entry_now_and_then() {
        let (mut watch, log, _) = watch(5);
        for turn in 0..100 {
            watch.begin_turn(1_000 + 10 * turn, turn);
        }
        assert_eq!(log.counts(), (1_000 / SLOW_TURNS_PAUSE_MS, 0));
    }

    #[test]
    fn a_worker_does_not_wait_for_who_reads_the_log() {
        let (mut watch, log, _) = watch(5);
        let reading = lock(&log.entries);
        watch.unsent.push(candidate(1, 0, 1));
        watch.written(9_000_000_000);
        assert_eq!(log.latest_at_once(), None);
        drop(reading);
        assert_eq!(log.counts(), (0, 1));
        assert_eq!(log.latest_at_once(), Some(Vec::new()));
    }
}
