//! A server that stalls for 100 ms once a second. It shows what coordinated omission hides.
//!
//! The loops are those that measure real servers. The clock and the server are a model in virtual
//! time, so that the result depends only on the seed.

use std::{cell::RefCell, collections::VecDeque, rc::Rc, sync::mpsc};

use anyhow::{Context, Result};
use hdrhistogram::Histogram;

use crate::{
    driver::{Link, Meaning, Reply},
    load::{
        Arrivals, CountBy, Drive, Idle, KeyPart, Lanes, Recorder, Window, World, closed, open,
        record::{Glance, Interval, Span, histogram},
    },
    workload::{Ask, Drawn, Workload},
};

/// Nanoseconds of a second. Each second begins with a stall.
pub const SECOND_NS: u64 = 1_000_000_000;
/// Length of a stall in nanoseconds.
pub const STALL_NS: u64 = SECOND_NS / 10;
/// Service time of a request in nanoseconds.
pub const SERVICE_NS: u64 = 10_000;
/// Connections of the client.
pub const CONNECTIONS: usize = 8;

/// A server that executes one request at a time and none in the first tenth of every second.
#[derive(Default)]
struct Model {
    now: u64,
    /// When the server will have finished all pending requests.
    free: u64,
    /// When the server actually stalled.
    stalls: Vec<(u64, u64)>,
}

impl Model {
    /// When a request that arrives now is finished.
    fn serve(&mut self) -> u64 {
        let mut begin = self.free.max(self.now);
        let second = begin / SECOND_NS * SECOND_NS;
        if begin < second + STALL_NS {
            begin = second + STALL_NS;
            if self.stalls.last().is_none_or(|&(_, end)| end < begin) {
                self.stalls.push((second, begin));
            }
        }
        self.free = begin + SERVICE_NS;
        self.free
    }
}

/// A connection to the model.
struct Connection {
    model: Rc<RefCell<Model>>,
    /// The replies and when each is available.
    replies: VecDeque<(u64, Reply)>,
}

impl Link for Connection {
    fn ask(&mut self, ask: &Ask, tag: u64) {
        let reply = Reply {
            tag,
            verb: ask.verb,
            key: ask.keys[0],
            meaning: Meaning::Hit,
            last: true,
            then: ask.then,
            value_bytes: 0,
            item_bytes: 0,
            arrived_ns: 0,
            ttl_s: 0,
        };
        let done = self.model.borrow_mut().serve();
        self.replies.push_back((done, reply));
    }

    fn send(&mut self) -> Result<()> {
        Ok(())
    }

    fn is_blocked(&self) -> bool {
        false
    }

    fn receive(&mut self, on_step: &mut impl FnMut(Reply)) -> Result<()> {
        let now = self.model.borrow().now;
        while self.replies.front().is_some_and(|&(done, _)| done <= now) {
            let (_, reply) = self.replies.pop_front().expect("there is one");
            on_step(reply);
        }
        Ok(())
    }

    fn expire(&mut self, _: u64, _: &mut impl FnMut(Reply)) {}

    fn under_way(&self) -> usize {
        self.replies.len()
    }
}

/// A clock that jumps to the next event.
struct ModelWorld(Rc<RefCell<Model>>);

impl World<Connection> for ModelWorld {
    fn now_ns(&mut self) -> u64 {
        self.0.borrow().now
    }

    fn ready(
        &mut self,
        links: &mut [Connection],
        patience_ns: u64,
        places: &mut Vec<usize>,
    ) -> Result<()> {
        let mut model = self.0.borrow_mut();
        let next_reply = links
            .iter()
            .filter_map(|link| link.replies.front())
            .map(|&(done, _)| done)
            .min();
        let patient_until = model.now + patience_ns;
        model.now = next_reply
            .map_or(patient_until, |done| done.min(patient_until))
            .max(model.now);
        places.clear();
        let is_ready = |link: &Connection| {
            link.replies
                .front()
                .is_some_and(|&(done, _)| done <= model.now)
        };
        places.extend((0..links.len()).filter(|&place| is_ready(&links[place])));
        Ok(())
    }

    fn watch_output(&mut self, _: usize, _: &Connection, _: bool) -> Result<()> {
        Ok(())
    }
}

/// How requests are sent.
#[derive(Clone, Copy, Debug)]
pub enum Loop {
    /// When they are due.
    Open(Arrivals),
    /// One in flight on every connection.
    Closed,
}

/// The results that a loop reported, and the true stalls.
pub struct Observed {
    /// Reported latencies in nanoseconds.
    pub latency: Histogram<u64>,
    /// When the server stalled, in nanoseconds since the start.
    pub stalls: Vec<(u64, u64)>,
    /// The other results.
    pub span: Span,
}

/// Runs a loop against the model for this many seconds after an unmeasured first second. The
/// measurement starts and ends with a second, so that it covers one stall per second.
///
/// # Errors
///
/// Those of the loops; the model itself never fails.
pub fn observe(which: Loop, seconds: u64, seed: u64) -> Result<Observed> {
    let (window, glance) = (Window::closed(), Glance::default());
    window.open(SECOND_NS, (1 + seconds) * SECOND_NS);
    let (sender, intervals) = mpsc::channel::<Interval>();
    let mut recorder = Recorder::new(&window, &glance, None, sender);
    let model = Rc::new(RefCell::new(Model::default()));
    let connection = |_| Connection {
        model: model.clone(),
        replies: VecDeque::new(),
    };
    let links = (0..CONNECTIONS).map(connection).collect();
    let workload = Workload::default();
    let inserted = std::sync::Arc::new(workload.keys.into());
    let mut source = Drawn::new(&workload, seed, 0, 1, &inserted);
    let counted = match which {
        Loop::Closed => CountBy::ByReply,
        Loop::Open(_) => CountBy::ByDueTime,
    };
    let world = ModelWorld(model.clone());
    let drive = Drive::new(links, world, &mut recorder, counted, SECOND_NS);
    match which {
        Loop::Closed => closed::run(drive, &mut source, 1)?,
        Loop::Open(arrivals) => {
            let schedule = open::Schedule {
                arrivals,
                gather: 1,
                burst: 1,
                idle: Idle::Sleep,
                lanes: Lanes::Mixed,
                keys: KeyPart::ALL,
                offset_ns: 0,
                seed,
            };
            open::run(drive, &mut source, &schedule)?;
        }
    }
    let end = model.borrow().now;
    let span = recorder.finish(end)?.context("the window opened")?;
    let mut latency = histogram();
    for interval in intervals {
        latency.add(&interval.reads)?;
        latency.add(&interval.writes)?;
    }
    let stalls = model.borrow().stalls.clone();
    Ok(Observed {
        latency,
        stalls,
        span,
    })
}

/// The `quantile` of latency in nanoseconds if requests arrive at `rate` per second and the server
/// stalls for `stall_ns` of each second. A request that arrives `t` into a stall of length `s`
/// waits for the rest of the stall and then for the `rate t` requests that came before it:
/// `s - t (1 - u)` in total, with the utilisation `u`, until the queue is empty after
/// `s / (1 - u)`. Requests with `t < (s - l) / (1 - u)` wait longer than `l`. The latency sought is
/// the `l` that a share of `1 - quantile` of the arrivals in a second exceeds. Requests that no
/// stall delays take [`SERVICE_NS`].
pub fn predicted_ns(rate: f64, quantile: f64, stall_ns: f64) -> f64 {
    let utilisation = rate * SERVICE_NS as f64 / SECOND_NS as f64;
    let delayed = stall_ns - (1.0 - quantile) * SECOND_NS as f64 * (1.0 - utilisation);
    delayed.max(SERVICE_NS as f64)
}

impl Observed {
    /// A quantile of the reported latency in nanoseconds.
    pub fn quantile_ns(&self, quantile: f64) -> f64 {
        self.latency.value_at_quantile(quantile) as f64
    }

    /// Nanoseconds per second that the server stalled, averaged over the measured seconds.
    pub fn stall_ns(&self, seconds: u64) -> f64 {
        let measured = SECOND_NS..(1 + seconds) * SECOND_NS;
        let stalls = self
            .stalls
            .iter()
            .filter(|(begin, _)| measured.contains(begin));
        let stalled: u64 = stalls.map(|(begin, end)| end - begin).sum();
        stalled as f64 / seconds as f64
    }
}
