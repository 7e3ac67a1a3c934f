//! Samples the server every interval, and measures its response time with a small request in
//! between. If the server is gone, it tries to connect again every interval.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use anyhow::Result;
use glimmer_connect::{Admission, Link};
use glimmer_notation::Location;

use super::{
    latency::{Latency, Probes},
    sample::{Interval, Sample},
};

/// Interval between two probes: rare enough to cause no load, frequent enough for percentiles
/// within a minute.
const PROBE_EVERY: Duration = Duration::from_millis(50);
/// A server that is silent for this long counts as gone.
const SILENCE_MAX: Duration = Duration::from_secs(5);
/// Intervals in the history: more than any terminal is wide.
const HISTORY: usize = 512;

/// Everything that is shown.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// The server's address.
    pub server: String,
    /// The last interval in which the server answered.
    pub interval: Interval,
    /// Length of an interval in seconds.
    pub interval_s: f64,
    /// Requests per second of past intervals, the newest last; `None` for intervals without a
    /// server.
    pub history: VecDeque<Option<u64>>,
    /// Round trips of about the last minute.
    pub latency: Option<Latency>,
    /// Why the server is unavailable, if it is.
    pub gone: Option<String>,
}

/// The state for a server that answers.
struct Session {
    link: Link,
    /// A separate connection, so that a long reply to `stats` does not distort the latency of a
    /// request.
    probe: Link,
    last: Sample,
}

impl Session {
    fn start(server: &Location, admission: &Admission) -> Result<Session> {
        let mut link = Link::open(server, admission, SILENCE_MAX)?;
        let probe = Link::open(server, admission, SILENCE_MAX)?;
        let last = Sample::take(&mut link)?;
        Ok(Session { link, probe, last })
    }

    /// The round-trip time of the smallest request, which touches neither an item nor a statistic
    /// of items.
    fn round_trip(&mut self) -> Result<Duration> {
        let begin = Instant::now();
        self.probe.ask("version")?;
        Ok(begin.elapsed())
    }

    fn look(&mut self) -> Result<Interval> {
        let sample = Sample::take(&mut self.link)?;
        // After a reset of the counters, the first interval is meaningless.
        let earlier = match sample.follows(&self.last) {
            true => &self.last,
            false => &sample,
        };
        let interval = sample.since(earlier);
        self.last = sample;
        Ok(interval)
    }
}

/// A watched server.
pub struct Watch {
    server: Location,
    admission: Admission,
    interval: Duration,
    session: Option<Session>,
    next: Instant,
    next_probe: Instant,
    probes: Probes,
    view: View,
}

impl Watch {
    /// Connects and takes the first sample.
    pub fn start(server: Location, admission: Admission, interval: Duration) -> Result<Watch> {
        let session = Session::start(&server, &admission)?;
        let now = Instant::now();
        let view = View {
            server: server.to_string(),
            interval_s: interval.as_secs_f64(),
            ..View::default()
        };
        Ok(Watch {
            server,
            admission,
            interval,
            session: Some(session),
            next: now + interval,
            next_probe: now,
            probes: Probes::default(),
            view,
        })
    }

    /// Waits for the end of an interval, with or without a server.
    pub fn view(&mut self) -> View {
        loop {
            let now = Instant::now();
            if now >= self.next_probe {
                self.next_probe = now + PROBE_EVERY;
                self.probe();
            }
            if now >= self.next {
                self.look();
                self.next = (self.next + self.interval).max(now);
                return self.view.clone();
            }
            let due = self.next.min(self.next_probe);
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
        }
    }

    fn probe(&mut self) {
        let Some(session) = &mut self.session else {
            return;
        };
        match session.round_trip() {
            Ok(round_trip) => self.probes.add(round_trip),
            Err(error) => self.lost(&error),
        }
    }

    fn look(&mut self) {
        let seen = match &mut self.session {
            Some(session) => session.look().map(Some),
            None => Session::start(&self.server, &self.admission).map(|session| {
                self.session = Some(session);
                self.view.gone = None;
                None
            }),
        };
        let requests_per_s = match seen {
            Ok(Some(interval)) => {
                self.view.interval = interval;
                Some(self.view.interval.requests_per_s as u64)
            }
            // The server is back; what it did in this interval is unknown.
            Ok(None) => None,
            Err(error) => {
                self.lost(&error);
                None
            }
        };
        let history = &mut self.view.history;
        if history.len() == HISTORY {
            history.pop_front();
        }
        history.push_back(requests_per_s);
        self.view.latency = self.probes.latency();
        self.probes.next_interval();
    }

    fn lost(&mut self, error: &anyhow::Error) {
        self.session = None;
        self.view.gone = Some(format!("{error:#}"));
    }
}
