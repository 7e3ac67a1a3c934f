//! Against a server that stalls for 100 ms once a second, the open loop reports what arithmetic predicts, and the closed loop does not.
//!
//! The loops are those that measure real servers; the world around them is a model in which time is counted and not waited for, so that the result
//! depends on the seed alone.

use std::{cell::RefCell, collections::VecDeque, rc::Rc, sync::mpsc};

use anyhow::Result;
use glimmer_loadgen::{
    driver::{Link, Meaning, Reply},
    load::{
        Arrivals, Counted, Drive, Idle, Recorder, Window, World, closed, open,
        record::{Glance, Interval, Span},
    },
    workload::{Ask, Drawn, Workload},
};
use hdrhistogram::Histogram;

const SECOND_NS: u64 = 1_000_000_000;
const STALL_NS: u64 = SECOND_NS / 10;
const SERVICE_NS: u64 = 10_000;
const CONNECTIONS: usize = 8;

/// A server that does one request at a time and nothing at all in the first tenth of every second.
#[derive(Default)]
struct Model {
    now: u64,
    /// When the server will have done all that it has.
    free: u64,
    /// When it stood still, as it really did.
    stalls: Vec<(u64, u64)>,
}

impl Model {
    /// When a request that arrives now is done.
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
    /// When each reply is there, and to what.
    replies: VecDeque<(u64, Reply)>,
}

impl Link for Connection {
    fn ask(&mut self, ask: &Ask, ticket: u64) {
        let reply = Reply {
            ticket,
            verb: ask.verb,
            key: ask.keys[0],
            meaning: Meaning::Hit,
            last: true,
            then: ask.then,
            value_bytes: 0,
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

/// A clock that goes on to whatever happens next.
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

enum Loop {
    Open(Arrivals),
    Closed,
}

/// Latencies as reported, the stalls as they were, and what else was measured.
fn measure(which: &Loop, seconds: u64, seed: u64) -> (Histogram<u64>, Vec<(u64, u64)>, Span) {
    // Measured from one second's beginning to another's, so that as many stalls are seen as there are seconds.
    let (window, glance) = (Window::closed(), Glance::default());
    window.open(SECOND_NS, (1 + seconds) * SECOND_NS);
    let (sender, intervals) = mpsc::channel::<Interval>();
    let mut recorder = Recorder::new(&window, &glance, None, sender);
    let model = Rc::new(RefCell::new(Model::default()));
    let links = (0..CONNECTIONS)
        .map(|_| Connection {
            model: model.clone(),
            replies: VecDeque::new(),
        })
        .collect();
    let workload = Workload::default();
    let inserted = std::sync::Arc::new(workload.keys.into());
    let mut source = Drawn::new(&workload, seed, 0, 1, &inserted);
    let counted = if matches!(which, Loop::Closed) {
        Counted::ByReply
    } else {
        Counted::ByTicket
    };
    let drive = Drive::new(
        links,
        ModelWorld(model.clone()),
        &mut recorder,
        counted,
        SECOND_NS,
    );
    match *which {
        Loop::Closed => closed::run(drive, &mut source, 1).unwrap(),
        Loop::Open(arrivals) => {
            let schedule = open::Schedule {
                arrivals,
                burst: 1,
                idle: Idle::Sleep,
                offset_ns: 0,
                seed,
            };
            open::run(drive, &mut source, &schedule).unwrap();
        }
    }
    let end = model.borrow().now;
    let span = recorder.finish(end).unwrap().expect("the window opened");
    let mut all = glimmer_loadgen::load::record::histogram();
    for interval in intervals {
        all.add(&interval.reads).unwrap();
        all.add(&interval.writes).unwrap();
    }
    let stalls = model.borrow().stalls.clone();
    (all, stalls, span)
}

/// The `quantile` of latency if requests arrive at `rate` per second. A request that arrives `t` into a stall of length `s` waits for the rest of it, and
/// then for the `rate t` that came before it: `s - t (1 - u)` in all, with the utilisation `u`, until the queue is empty after `s / (1 - u)`. Longer than
/// `l` wait those with `t < (s - l) / (1 - u)`; the part `1 - quantile` of a second's arrivals fits in before the `l` sought.
fn predicted_ns(rate: f64, quantile: f64, stalls: &[(u64, u64)], seconds: u64) -> f64 {
    let utilisation = rate * SERVICE_NS as f64 / 1e9;
    let stalled: u64 = stalls
        .iter()
        .filter(|(begin, _)| (SECOND_NS..(1 + seconds) * SECOND_NS).contains(begin))
        .map(|(begin, end)| end - begin)
        .sum();
    let stall_ns = stalled as f64 / seconds as f64;
    stall_ns - (1.0 - quantile) * 1e9 * (1.0 - utilisation)
}

#[test]
fn the_open_loop_reports_what_arithmetic_predicts() {
    const SECONDS: u64 = 10;
    for rate in [2_000.0, 10_000.0, 50_000.0] {
        for arrivals in [Arrivals::Fixed(rate), Arrivals::Poisson(rate)] {
            let (latency, stalls, _) = measure(&Loop::Open(arrivals), SECONDS, 11);
            let requests = latency.len() as f64;
            assert!(
                (requests / (rate * SECONDS as f64) - 1.0).abs() < 0.02,
                "{arrivals:?}: {requests} requests"
            );
            for quantile in [0.99, 0.999] {
                let (reported, predicted) = (
                    latency.value_at_quantile(quantile) as f64,
                    predicted_ns(rate, quantile, &stalls, SECONDS),
                );
                println!(
                    "{arrivals:?}: p{} is {:.1} ms, predicted {:.1} ms",
                    quantile * 100.0,
                    reported / 1e6,
                    predicted / 1e6
                );
                assert!(
                    (reported / predicted - 1.0).abs() < 0.05,
                    "{arrivals:?}: p{} is {reported}, predicted {predicted}",
                    quantile * 100.0
                );
            }
        }
    }
}

#[test]
fn the_closed_loop_hides_the_stall() {
    let (latency, stalls, _) = measure(&Loop::Closed, 5, 11);
    let measured = SECOND_NS..6 * SECOND_NS;
    let seen = stalls.iter().filter(|(begin, _)| measured.contains(begin));
    assert_eq!(seen.count(), 5);
    // Eight connections see each stall once: 8 of some 90,000 requests a second.
    let late = latency.len() - latency.count_between(0, STALL_NS / 2);
    assert_eq!(late, 5 * CONNECTIONS as u64);
    let p99 = latency.value_at_quantile(0.99);
    println!(
        "closed: p99 is {:.3} ms of {} requests",
        p99 as f64 / 1e6,
        latency.len()
    );
    assert!(p99 < STALL_NS / 100, "{p99}");
}

#[test]
fn a_rate_beyond_the_server_is_noticed() {
    // Nine tenths of every second remain for requests of 10 us: 90,000 in a second.
    for (rate, share) in [(50_000.0, 1.0), (120_000.0, 0.75), (180_000.0, 0.5)] {
        let (latency, _, span) = measure(&Loop::Open(Arrivals::Poisson(rate)), 1, 11);
        assert!(
            (latency.len() as f64 / rate - 1.0).abs() < 0.02,
            "every request is waited for"
        );
        let answered = span.in_time as f64 / latency.len() as f64;
        // What the warm-up left over is answered first: at most a second's surplus.
        println!("{rate}/s: {answered:.3} answered in time");
        assert!(
            answered < share + 0.02 && (share < 1.0 || answered > 0.98),
            "{rate}/s: {answered}"
        );
    }
}
