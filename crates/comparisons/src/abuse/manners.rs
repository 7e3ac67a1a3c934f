//! Well-behaved clients: they request little, send it at once and read the reply. Their latencies
//! are measured, in an open loop: visits are due at equal intervals, and a visit that has to wait
//! for the one before it counts from the time at which it was due. So a server that stands still
//! delays every visit that falls into that time, and not only those that are under way.

use std::{
    net::SocketAddr,
    sync::OnceLock,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use glimmer_loadgen::load;
use hdrhistogram::Histogram;
use serde::Serialize;

use super::{Subject, TextClient};

/// A visit that takes longer has failed.
pub const PATIENCE: Duration = Duration::from_secs(5);
/// Visits of a client per second. Beside hostile clients a visit may take some milliseconds. A
/// server that sustains fewer visits falls behind, and its times then grow with the length of the
/// run.
pub const VISITS_PER_S: u32 = 100;
/// Time between two visits of a client, whether or not the earlier one has ended.
const INTERVAL: Duration = Duration::from_millis(1000 / VISITS_PER_S as u64);
/// Interval between two checks whether to continue.
const LOOK: Duration = Duration::from_millis(20);

/// A well-behaved client.
pub trait Visitor: Send {
    /// Sends a request and reads the reply, in at most [`PATIENCE`].
    ///
    /// # Errors
    ///
    /// Whatever a user would call a failure: no connection, no reply in time, or a wrong reply.
    fn visit(&mut self) -> Result<()>;
}

/// Latencies of visits, from when they were due.
#[derive(Clone, Debug, Serialize)]
pub struct Latency {
    /// Number of visits.
    pub visits: u64,
    /// Visits that failed. Each counts as [`PATIENCE`] in the latencies.
    pub failures: u64,
    /// The median in milliseconds.
    pub p50_ms: f64,
    /// The 99th percentile in milliseconds; `None` if there were too few visits.
    pub p99_ms: Option<f64>,
    /// The maximum in milliseconds.
    pub longest_ms: f64,
}

impl Latency {
    /// The 99th percentile in milliseconds, or the maximum of few visits.
    pub fn slow_ms(&self) -> f64 {
        self.p99_ms.unwrap_or(self.longest_ms)
    }
}

/// Visits that were timed.
pub(super) struct Visits {
    times: Histogram<u64>,
    failures: u64,
}

/// Several well-behaved clients.
pub(super) struct Visitors(Vec<Box<dyn Visitor>>);

impl Visitors {
    pub fn open(
        count: usize,
        open: &dyn Fn(usize) -> Result<Box<dyn Visitor>>,
    ) -> Result<Visitors> {
        Ok(Visitors((0..count).map(open).collect::<Result<_>>()?))
    }

    /// Visits for this long.
    pub fn visit_for(&mut self, time: Duration) -> Visits {
        let begin = Instant::now();
        self.visit_while(|| begin.elapsed() < time)
    }

    /// Visits while `goes_on` returns true.
    pub fn visit_while(&mut self, goes_on: impl Fn() -> bool) -> Visits {
        let stop = OnceLock::new();
        std::thread::scope(|scope| {
            let (stop, count) = (&stop, self.0.len() as u32);
            let threads: Vec<_> = (self.0.iter_mut().zip(0..))
                .map(|(visitor, place)| {
                    // The clients take turns.
                    let first = Instant::now() + INTERVAL * place / count;
                    scope.spawn(move || visit_until(&mut **visitor, first, stop))
                })
                .collect();
            while goes_on() {
                std::thread::sleep(LOOK);
            }
            stop.get_or_init(Instant::now);
            let mut all = Visits::default();
            for thread in threads {
                let visits = thread
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                all.add(&visits);
            }
            all
        })
    }
}

impl Default for Visits {
    /// None yet. Times are in microseconds, up to a minute.
    fn default() -> Visits {
        Visits {
            times: Histogram::new_with_bounds(1, 60_000_000, 3).expect("sound bounds"),
            failures: 0,
        }
    }
}

/// Visits from the time `first` on, one visit after the other.
fn visit_until(visitor: &mut dyn Visitor, first: Instant, stop: &OnceLock<Instant>) -> Visits {
    let (mut visits, mut due) = (Visits::default(), first);
    while stop.get().is_none() {
        let early = due.saturating_duration_since(Instant::now());
        // A client that was asleep for too long is no fault of the server.
        let begin = match early {
            Duration::ZERO => due,
            _ => {
                std::thread::sleep(early);
                Instant::now()
            }
        };
        if stop.get().is_some_and(|stop| *stop <= due) {
            break;
        }
        let visited = visitor.visit();
        visits.record(begin.elapsed(), visited.is_err());
        due += INTERVAL;
    }
    // What fell due before the end, and was not begun, has waited until now at least.
    let end = Instant::now();
    while stop.get().is_some_and(|stop| due < *stop) {
        visits.record(end - due, false);
        due += INTERVAL;
    }
    visits
}

impl Visits {
    fn record(&mut self, time: Duration, has_failed: bool) {
        let time = if has_failed { PATIENCE.max(time) } else { time };
        self.times.saturating_record(time.as_micros() as u64);
        self.failures += u64::from(has_failed);
    }

    /// Adds further ones.
    pub fn add(&mut self, other: &Visits) {
        let added = self.times.add(&other.times);
        added.expect("all have the same bounds");
        self.failures += other.failures;
    }

    /// Their latencies.
    pub fn latency(&self) -> Latency {
        let ms = |us: u64| us as f64 / 1e3;
        Latency {
            visits: self.times.len(),
            failures: self.failures,
            p50_ms: ms(self.times.value_at_quantile(0.5)),
            p99_ms: load::percentile(&self.times, 0.99).map(ms),
            longest_ms: ms(self.times.max()),
        }
    }
}

/// Stores a small item over the text protocol and reads it back.
pub struct TextVisitor {
    address: SocketAddr,
    /// The key, which no other client uses.
    key: String,
    visits: u64,
    keeps_connection: bool,
    client: Option<TextClient>,
}

impl TextVisitor {
    /// The client with this number. It connects at its first visit.
    pub fn new(subject: &Subject, number: usize, keeps_connection: bool) -> TextVisitor {
        TextVisitor {
            address: subject.address(),
            key: format!("glimmer-abuse-visitor-{number}"),
            visits: 0,
            keeps_connection,
            client: None,
        }
    }

    fn visit_with(&mut self, client: &mut TextClient) -> Result<()> {
        self.visits += 1;
        let (key, value) = (&self.key, format!("{:>100}", self.visits));
        client.send(format!("set {key} 0 60 {}\r\n{value}\r\n", value.len()).as_bytes())?;
        let answer = client.line()?;
        ensure!(answer == "STORED", "set was answered {answer:?}");
        client.send(format!("get {key}\r\n").as_bytes())?;
        let first = client.line()?;
        // A cache may evict an item that was just stored, but must not change it.
        if first != "END" {
            let read = [client.line()?, client.line()?];
            ensure!(
                read == [&value, "END"],
                "get was answered {first:?} {read:?}"
            );
        }
        Ok(())
    }
}

impl Visitor for TextVisitor {
    fn visit(&mut self) -> Result<()> {
        // A client that failed has no connection and opens one at the next visit.
        let mut client = match self.client.take() {
            Some(client) => client,
            None => TextClient::connect(self.address, PATIENCE)?,
        };
        self.visit_with(&mut client)?;
        if self.keeps_connection {
            self.client = Some(client);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ends the visits in its third one, which takes as long as twenty visits are apart: before
    /// that time, or after it.
    struct Stalled<'a> {
        visits: u32,
        stop: &'a OnceLock<Instant>,
        stops_first: bool,
    }

    impl Visitor for Stalled<'_> {
        fn visit(&mut self) -> Result<()> {
            self.visits += 1;
            if self.visits == 3 {
                if self.stops_first {
                    self.stop.get_or_init(Instant::now);
                }
                std::thread::sleep(20 * INTERVAL);
                self.stop.get_or_init(Instant::now);
            }
            Ok(())
        }
    }

    #[test]
    fn visits_that_are_due_while_the_server_stands_still_wait() {
        let stop = OnceLock::new();
        let mut stalled = Stalled {
            visits: 0,
            stop: &stop,
            stops_first: false,
        };
        let visits = visit_until(&mut stalled, Instant::now(), &stop);
        assert_eq!(stalled.visits, 3);
        // Those of the time of the stall are counted with what they have waited.
        let waited = visits.times.count_between(1_000, 60_000_000);
        assert!(waited >= 19, "{waited} of {}", visits.times.len());
    }

    #[test]
    fn visits_that_fall_due_after_the_end_do_not_count() {
        let (stop, first) = (OnceLock::new(), Instant::now());
        let mut stalled = Stalled {
            visits: 0,
            stop: &stop,
            stops_first: true,
        };
        let visits = visit_until(&mut stalled, first, &stop);
        let time = *stop.get().unwrap() - first;
        let due = time.as_nanos().div_ceil(INTERVAL.as_nanos());
        assert_eq!(u128::from(visits.times.len()), due);
    }
}
