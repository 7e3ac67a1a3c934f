//! Well-behaved clients: they request little, send it at once and read the reply. Their latencies
//! are measured.

use std::{
    net::SocketAddr,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use hdrhistogram::Histogram;
use serde::Serialize;

use super::{Subject, TextClient};

/// A visit that takes longer has failed.
pub const PATIENCE: Duration = Duration::from_secs(5);
/// Pause between two visits of a client.
const PAUSE: Duration = Duration::from_millis(5);
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

/// Latencies of visits.
#[derive(Clone, Debug, Serialize)]
pub struct Latency {
    /// Number of visits.
    pub visits: u64,
    /// Visits that failed. Each counts as [`PATIENCE`] in the latencies.
    pub failures: u64,
    /// The median in milliseconds.
    pub p50_ms: f64,
    /// The 99th percentile in milliseconds.
    pub p99_ms: f64,
    /// The maximum in milliseconds.
    pub longest_ms: f64,
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
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let threads: Vec<_> = (self.0.iter_mut())
                .map(|visitor| scope.spawn(|| visit_until(&mut **visitor, &stop)))
                .collect();
            while goes_on() {
                std::thread::sleep(LOOK);
            }
            stop.store(true, Relaxed);
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

fn visit_until(visitor: &mut dyn Visitor, stop: &AtomicBool) -> Visits {
    let Visits {
        mut times,
        mut failures,
    } = Visits::default();
    while !stop.load(Relaxed) {
        let begin = Instant::now();
        let visited = visitor.visit();
        let time = match visited {
            Ok(()) => begin.elapsed(),
            Err(_) => {
                failures += 1;
                PATIENCE.max(begin.elapsed())
            }
        };
        times.saturating_record(time.as_micros() as u64);
        std::thread::sleep(PAUSE);
    }
    Visits { times, failures }
}

impl Visits {
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
            p99_ms: ms(self.times.value_at_quantile(0.99)),
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
