//! The common part of the closed and the open loop: connections, follow-up requests, and timeouts.

use anyhow::{Result, bail};

use super::{Recorder, World};
use crate::{
    driver::{Link, Meaning, Reply},
    workload::{Ask, Key, Source, Then},
};

/// A server that is silent for this long has failed.
pub const SILENCE_NS_MAX: u64 = 10_000_000_000;
/// Interval between two checks for lost replies and for silence.
const INSPECTION_NS: u64 = 50_000_000;

/// Which replies count, and which requests that were given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountBy {
    /// Those that arrived, or were given up, in the measured time.
    ByReply,
    /// Those whose requests were due in the measured time.
    ByDueTime,
}

impl CountBy {
    /// The time that has to lie in the measured time, for a reply that arrived or was given up now.
    #[inline]
    fn time(self, reply: &Reply, now: u64) -> u64 {
        match self {
            CountBy::ByReply => now,
            CountBy::ByDueTime => reply.tag,
        }
    }
}

/// The connections of one thread.
pub struct Drive<'a, 'r, L, W> {
    /// The connections.
    pub links: Vec<L>,
    /// Clock and readiness.
    pub world: W,
    /// Records the results.
    pub recorder: &'a mut Recorder<'r>,
    counted: CountBy,
    reply_ns_max: u64,
    /// How far the clock of the kernel's timestamps is ahead of ours, if they are used.
    ahead_ns: Option<u64>,
    watching: Vec<bool>,
    follow: Vec<(Key, u32, u32)>,
    ask: Ask,
    places: Vec<usize>,
    heard_ns: u64,
    inspected_ns: u64,
    steps: u64,
    steps_heard: u64,
}

impl<'a, 'r, L: Link, W: World<L>> Drive<'a, 'r, L, W> {
    /// Drives these connections. If the transport can lose replies, those missing after
    /// `reply_ns_max` are lost.
    pub fn new(
        links: Vec<L>,
        world: W,
        recorder: &'a mut Recorder<'r>,
        counted: CountBy,
        reply_ns_max: u64,
    ) -> Self {
        let watching = vec![false; links.len()];
        Drive {
            links,
            world,
            recorder,
            counted,
            reply_ns_max,
            ahead_ns: None,
            watching,
            follow: Vec::new(),
            ask: Ask::default(),
            places: Vec::new(),
            heard_ns: 0,
            inspected_ns: 0,
            steps: 0,
            steps_heard: 0,
        }
    }

    /// From now on, one read of a stream asks for this many bytes at most.
    pub fn read_at_most(&mut self, bytes: usize) {
        self.links
            .iter_mut()
            .for_each(|link| link.read_at_most(bytes));
    }

    /// From now on, a reply ends when the kernel received it.
    ///
    /// # Errors
    ///
    /// If the kernel does not say that of a connection.
    pub fn note_arrivals(&mut self) -> Result<()> {
        self.links.iter_mut().try_for_each(Link::note_arrivals)?;
        self.ahead_ns = Some(self.world.realtime_ahead_ns());
        Ok(())
    }

    /// Sends a connection's issued requests, and waits for room if the kernel does not accept all
    /// of them.
    #[inline]
    pub fn send(&mut self, place: usize) -> Result<()> {
        let link = &mut self.links[place];
        link.send()?;
        let blocked = link.is_blocked();
        if blocked != self.watching[place] {
            self.watching[place] = blocked;
            self.world.watch_output(place, link, blocked)?;
        }
        Ok(())
    }

    /// Waits for ready connections and returns their number.
    #[inline]
    pub fn wait(&mut self, patience_ns: u64) -> Result<usize> {
        let has_unsent = self.links.iter().any(Link::has_unsent);
        let patience_ns = if has_unsent { 0 } else { patience_ns };
        self.world
            .ready(&mut self.links, patience_ns, &mut self.places)?;
        if has_unsent {
            for (place, link) in self.links.iter().enumerate() {
                if link.has_unsent() && !self.places.contains(&place) {
                    self.places.push(place);
                }
            }
        }
        Ok(self.places.len())
    }

    /// Receives from the `turn`-th ready connection, records the replies and issues the requests
    /// that follow from them. Returns the connection's index, and the time if anything arrived.
    #[inline]
    pub fn receive(
        &mut self,
        turn: usize,
        source: &mut dyn Source,
    ) -> Result<(usize, Option<u64>)> {
        let place = self.places[turn];
        if self.watching[place] {
            self.send(place)?;
        }
        let Drive {
            links,
            world,
            recorder,
            follow,
            ..
        } = self;
        let (counted, window) = (self.counted, recorder.window());
        let ahead_ns = self.ahead_ns;
        let (mut at, mut too_large) = (None, None);
        let mut steps = 0;
        links[place].receive(&mut |reply| {
            // One clock read for everything that was received together.
            let now = *at.get_or_insert_with(|| world.now_ns());
            steps += u64::from(reply.meaning != Meaning::Unsent);
            let counts = window.contains(counted.time(&reply, now));
            if matches!(reply.meaning, Meaning::TooLarge | Meaning::Unsent) {
                too_large = Some(reply.value_bytes);
            }
            let arrived = arrived(&reply, ahead_ns, now);
            settle(recorder, follow, &reply, counts, (arrived, now));
        })?;
        accept(source, too_large)?;
        self.steps += steps;
        if let Some(now) = at {
            self.follow_up(place, source, now);
        }
        Ok((place, at))
    }

    /// Issues the writes that follow from replies.
    fn follow_up(&mut self, place: usize, source: &mut dyn Source, now: u64) {
        for (key, value_bytes, ttl_s) in self.follow.drain(..) {
            source.follow(&mut self.ask, key, value_bytes, ttl_s);
            self.links[place].ask(&self.ask, now);
        }
    }

    /// Gives up lost replies, and fails if the server is silent. Checks only now and then; returns
    /// whether it did.
    #[inline]
    pub fn inspect(&mut self, now: u64) -> Result<bool> {
        if now < self.inspected_ns + INSPECTION_NS {
            return Ok(false);
        }
        self.inspected_ns = now;
        // One clock may be stepped or slewed against the other.
        if let Some(ahead_ns) = &mut self.ahead_ns {
            *ahead_ns = self.world.realtime_ahead_ns();
        }
        let Drive {
            links, recorder, ..
        } = self;
        let (counted, window) = (self.counted, recorder.window());
        for link in links {
            link.expire(now.saturating_sub(self.reply_ns_max), &mut |reply| {
                let counts = window.contains(counted.time(&reply, now));
                recorder.lost(&reply, counts);
            });
        }
        let awaits_nothing = || {
            self.links
                .iter()
                .all(|it| it.under_way() == 0 || it.has_unsent())
        };
        if self.steps != self.steps_heard || awaits_nothing() {
            (self.steps_heard, self.heard_ns) = (self.steps, now);
        } else if now - self.heard_ns > SILENCE_NS_MAX {
            bail!(
                "the server has not answered for {} s",
                SILENCE_NS_MAX / 1_000_000_000
            );
        }
        Ok(true)
    }

    /// Requests without a complete reply.
    pub fn under_way(&self) -> usize {
        self.links.iter().map(Link::under_way).sum()
    }
}

/// Accepts the length of a value that is too large for the server, if a trace has it. Otherwise the
/// user has chosen it.
fn accept(source: &dyn Source, too_large: Option<u32>) -> Result<()> {
    match too_large {
        Some(bytes) if !source.is_recorded() => bail!(
            "the server takes no value of {bytes} bytes: start it with a larger -I, or lower \
             --value-bytes"
        ),
        _ => Ok(()),
    }
}

/// When a reply arrived on our clock: when the kernel received it, if that is known, and never
/// later than we read it.
#[inline]
fn arrived(reply: &Reply, ahead_ns: Option<u64>, now: u64) -> u64 {
    match (ahead_ns, reply.arrived_ns) {
        (None, _) | (_, 0) => now,
        (Some(ahead_ns), arrived_ns) => arrived_ns.saturating_sub(ahead_ns).min(now),
    }
}

/// Records a step of a reply, which arrived and was read at these times, and notes the request that
/// follows from it.
#[inline]
fn settle(
    recorder: &mut Recorder<'_>,
    follow: &mut Vec<(Key, u32, u32)>,
    reply: &Reply,
    counts: bool,
    (arrived, read): (u64, u64),
) {
    let is_answer = !matches!(reply.meaning, Meaning::Lost | Meaning::Unsent);
    let latency_ns = (reply.last && counts && is_answer).then(|| arrived.saturating_sub(reply.tag));
    if reply.arrived_ns > 0 && latency_ns.is_some() {
        recorder.unread.saturating_record((read - arrived).max(1));
    }
    recorder.reply(reply, latency_ns);
    let follows = match reply.then {
        Then::Nothing => false,
        Then::SetIfMissed => reply.meaning == Meaning::Miss,
        Then::Set => matches!(reply.meaning, Meaning::Hit | Meaning::Miss),
    };
    if follows {
        follow.push((reply.key, reply.value_bytes, reply.ttl_s));
    }
}
