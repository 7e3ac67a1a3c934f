//! Looks at the server every interval, and sends it a small request in between to see how long it takes.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use anyhow::Result;

use super::{
    latency::{Latency, Probes},
    link::{Link, Target},
    sample::{Interval, Sample},
};

/// Between two probes: rare enough to be no load, often enough for percentiles within a minute.
const PROBE_EVERY: Duration = Duration::from_millis(50);
/// Intervals that the history keeps: more than any terminal is wide.
const HISTORY: usize = 512;

/// Everything that is shown.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// The server's address.
    pub target: String,
    /// The last interval.
    pub interval: Interval,
    /// Requests per second of the intervals so far, the newest last.
    pub history: VecDeque<u64>,
    /// Round trips of the last minute or so.
    pub latency: Option<Latency>,
}

/// A server that is watched.
pub struct Watch {
    target: Target,
    interval: Duration,
    /// Its own connection, so that a long answer to `stats` is not taken for the latency of a request.
    probe: Link,
    link: Link,
    last: Sample,
    next: Instant,
    next_probe: Instant,
    probes: Probes,
    history: VecDeque<u64>,
}

impl Watch {
    /// Connects and takes the first look.
    pub fn start(target: Target, interval: Duration) -> Result<Watch> {
        let mut link = Link::open(&target)?;
        let probe = Link::open(&target)?;
        let last = Sample::take(&mut link)?;
        let now = Instant::now();
        Ok(Watch {
            target,
            interval,
            probe,
            link,
            last,
            next: now + interval,
            next_probe: now,
            probes: Probes::default(),
            history: VecDeque::new(),
        })
    }

    /// Does what is due, and says how long nothing more will be.
    pub fn turn(&mut self) -> Result<(Option<View>, Duration)> {
        let now = Instant::now();
        if now >= self.next_probe {
            self.probes.add(self.probe.round_trip()?);
            self.next_probe = now + PROBE_EVERY;
        }
        let mut view = None;
        if now >= self.next {
            view = Some(self.look()?);
            self.next = (self.next + self.interval).max(now);
        }
        let due = self.next.min(self.next_probe);
        Ok((view, due.saturating_duration_since(Instant::now())))
    }

    /// Waits for the end of an interval.
    pub fn view(&mut self) -> Result<View> {
        loop {
            let (view, idle) = self.turn()?;
            if let Some(view) = view {
                return Ok(view);
            }
            std::thread::sleep(idle);
        }
    }

    fn look(&mut self) -> Result<View> {
        let sample = Sample::take(&mut self.link)?;
        // After a restart or a reset of the counters the first interval says nothing.
        let earlier = match sample.follows(&self.last) {
            true => &self.last,
            false => &sample,
        };
        let interval = sample.since(earlier);
        self.last = sample;
        if self.history.len() == HISTORY {
            self.history.pop_front();
        }
        self.history.push_back(interval.requests_per_s as u64);
        let view = View {
            target: self.target.to_string(),
            interval,
            history: self.history.clone(),
            latency: self.probes.latency(),
        };
        self.probes.next_interval();
        Ok(view)
    }
}
