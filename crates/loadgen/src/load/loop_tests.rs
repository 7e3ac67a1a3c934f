//! Both loops against a server that answers some connections sooner than others.

use std::{
    cell::RefCell,
    collections::{BTreeSet, VecDeque},
    rc::Rc,
    sync::mpsc,
};

use anyhow::Result;
use rand::{Rng, SeedableRng, rngs::SmallRng};

use super::{
    Arrivals, CountBy, Drive, Idle, KeyPart, Lanes, Recorder, Tally, Window, World, closed, open,
    record::Glance,
};
use crate::{
    driver::{Link, Meaning, Reply},
    workload::{
        Ask, Key, Source, Verb,
        trace::{Format, Replay, Trace},
    },
};

const CONNECTIONS: usize = 8;

/// A server that carries out a request when the client reads its reply.
#[derive(Default)]
struct Server {
    items: BTreeSet<u64>,
    /// Requests that it has carried out.
    carried_out: usize,
    /// The most requests that one connection had in flight.
    in_flight_max: usize,
    /// Length of the longest value in bytes.
    value_bytes_max: u32,
    /// Whether the client knows that length, and sends no longer value.
    is_known: bool,
}

struct Connection {
    server: Rc<RefCell<Server>>,
    asked: VecDeque<(Ask, u64)>,
    unsent: VecDeque<(Ask, u64)>,
}

impl Link for Connection {
    fn ask(&mut self, ask: &Ask, tag: u64) {
        let mut server = self.server.borrow_mut();
        let is_unsent = server.is_known && ask.value_bytes > server.value_bytes_max;
        let requests = match is_unsent {
            true => &mut self.unsent,
            false => &mut self.asked,
        };
        requests.push_back((ask.clone(), tag));
        server.in_flight_max = server.in_flight_max.max(self.asked.len());
    }

    fn send(&mut self) -> Result<()> {
        Ok(())
    }

    fn is_blocked(&self) -> bool {
        false
    }

    /// Reads one reply.
    fn receive(&mut self, on_step: &mut impl FnMut(Reply)) -> Result<()> {
        let unsent = self.unsent.pop_front();
        let is_sent = unsent.is_none();
        let (ask, tag) = (unsent.or_else(|| self.asked.pop_front())).expect("it is ready");
        let key = ask.keys[0];
        let mut server = self.server.borrow_mut();
        server.carried_out += usize::from(is_sent);
        let meaning = match ask.verb {
            _ if !is_sent => Meaning::Unsent,
            Verb::Set if ask.value_bytes > server.value_bytes_max => Meaning::TooLarge,
            Verb::Set => {
                server.items.insert(key.number());
                Meaning::Done
            }
            _ if server.items.contains(&key.number()) => Meaning::Hit,
            _ => Meaning::Miss,
        };
        drop(server);
        on_step(Reply {
            tag,
            verb: ask.verb,
            key,
            meaning,
            last: true,
            then: ask.then,
            value_bytes: ask.value_bytes,
            item_bytes: ask.value_bytes,
            arrived_ns: 0,
            ttl_s: ask.ttl_s,
        });
        Ok(())
    }

    fn expire(&mut self, _: u64, _: &mut impl FnMut(Reply)) {}

    fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    fn under_way(&self) -> usize {
        self.asked.len() + self.unsent.len()
    }
}

/// Some of the connections that await replies are ready, at random.
struct Chance {
    rng: SmallRng,
    now: u64,
}

impl World<Connection> for Chance {
    fn now_ns(&mut self) -> u64 {
        self.now
    }

    fn ready(
        &mut self,
        links: &mut [Connection],
        patience_ns: u64,
        places: &mut Vec<usize>,
    ) -> Result<()> {
        self.now += patience_ns.clamp(1, 1000);
        places.clear();
        for (place, link) in links.iter().enumerate() {
            if !link.asked.is_empty() && self.rng.random_ratio(1, 4) {
                places.push(place);
            }
        }
        Ok(())
    }

    fn watch_output(&mut self, _: usize, _: &Connection, _: bool) -> Result<()> {
        Ok(())
    }
}

/// How requests are sent.
#[derive(Clone, Copy, Debug)]
enum Loop {
    Closed { in_flight: u32 },
    Open { per_s: f64 },
}

/// Sends all requests over several connections.
fn send_all(
    server: &Rc<RefCell<Server>>,
    source: &mut dyn Source,
    which: Loop,
    seed: u64,
) -> Result<Tally> {
    let (window, glance) = (Window::closed(), Glance::default());
    window.open(0, u64::MAX);
    let (sender, intervals) = mpsc::channel();
    let mut recorder = Recorder::new(&window, &glance, None, sender);
    let connection = |_| Connection {
        server: server.clone(),
        asked: VecDeque::new(),
        unsent: VecDeque::new(),
    };
    let links = (0..CONNECTIONS).map(connection).collect();
    let world = Chance {
        rng: SmallRng::seed_from_u64(seed),
        now: 0,
    };
    let drive = Drive::new(links, world, &mut recorder, CountBy::ByReply, u64::MAX);
    match which {
        Loop::Closed { in_flight } => closed::run(drive, source, in_flight)?,
        Loop::Open { per_s } => {
            let schedule = open::Schedule {
                arrivals: Arrivals::Poisson(per_s),
                burst: 1,
                gather: 1,
                idle: Idle::Sleep,
                lanes: Lanes::Mixed,
                keys: KeyPart::ALL,
                offset_ns: 0,
                seed,
            };
            open::run(drive, source, &schedule)?;
        }
    }
    let tally = *recorder.tally();
    recorder.finish(u64::MAX)?;
    // What was sent has a latency, and nothing else.
    let latencies = intervals.iter().map(|it| it.reads.len() + it.writes.len());
    let latencies: u64 = latencies.sum();
    assert_eq!(latencies, server.borrow().carried_out as u64);
    Ok(tally)
}

/// Replays a trace of these lines.
fn replayed(lines: &[String], format: Format, which: Loop, seed: u64) -> Tally {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("trace");
    std::fs::write(&file, lines.concat()).unwrap();
    let trace = Trace::new(file, Some(format)).unwrap();
    let mut replay = Replay::new(&trace, 0, 1).unwrap();
    let server = Server {
        value_bytes_max: 100,
        ..Server::default()
    };
    send_all(&Rc::new(server.into()), &mut replay, which, seed).unwrap()
}

const CLOSED: [Loop; 2] = [
    Loop::Closed { in_flight: 1 },
    Loop::Closed { in_flight: 32 },
];

#[test]
fn a_key_is_read_after_the_write_before_it() {
    let lines: Vec<String> = (0..2000)
        .map(|key| format!("0,{key},16,9,1,set,0\n0,{key},16,9,1,get,0\n"))
        .collect();
    let often = Loop::Open { per_s: 1e6 };
    for (seed, which) in CLOSED.into_iter().chain([often]).enumerate() {
        let tally = replayed(&lines, Format::Twitter, which, seed as u64);
        let counts = (tally.hits, tally.misses, tally.writes);
        assert_eq!(counts, (2000, 0, 2000), "{which:?}");
    }
}

#[test]
fn a_key_that_was_missed_is_written_before_it_is_read_again() {
    // Each key ten times, a few of them in turn.
    let lines: Vec<String> = (0..2000)
        .map(|turn| format!("{turn},{},100\n", turn / 100 * 10 + turn % 10))
        .collect();
    for (seed, which) in CLOSED.into_iter().enumerate() {
        let tally = replayed(&lines, Format::Csv, which, seed as u64);
        let counts = (tally.hits, tally.misses, tally.writes);
        assert_eq!(counts, (1800, 200, 200), "{which:?}");
    }
}

/// Writes, half of them of one key.
#[derive(Default)]
struct Popular {
    is_recorded: bool,
    value_bytes: u32,
    turn: usize,
    server: Rc<RefCell<Server>>,
    /// The most requests that were drawn and not carried out.
    ahead_max: usize,
}

impl Source for Popular {
    fn is_recorded(&self) -> bool {
        self.is_recorded
    }

    fn next(&mut self, ask: &mut Ask) -> bool {
        let number = self.turn % 2 * self.turn;
        ask.one(Verb::Set, Key::new(number as u64, 16));
        ask.value_bytes = self.value_bytes;
        self.turn += 1;
        let ahead = self.turn - self.server.borrow().carried_out;
        self.ahead_max = self.ahead_max.max(ahead);
        self.turn <= 5000
    }

    fn follow(&mut self, _: &mut Ask, _: Key, _: u32, _: u32) {}
}

#[test]
fn connections_run_ahead_of_the_one_with_a_popular_key_up_to_a_bound() {
    let server = Rc::<RefCell<Server>>::default();
    let mut source = Popular {
        is_recorded: true,
        server: server.clone(),
        ..Popular::default()
    };
    let tally = send_all(&server, &mut source, Loop::Closed { in_flight: 4 }, 1).unwrap();
    assert_eq!((tally.writes, server.borrow().in_flight_max), (5000, 4));
    let in_flight = CONNECTIONS * 4;
    let bounds = 16 * in_flight..=17 * in_flight;
    assert!(bounds.contains(&source.ahead_max), "{}", source.ahead_max);
}

/// The user has chosen the length of drawn values, and not that of recorded ones.
#[test]
fn a_value_that_is_too_large_ends_a_run_unless_a_trace_has_it() {
    for which in CLOSED.into_iter().chain([Loop::Open { per_s: 1e6 }]) {
        for is_known in [false, true] {
            let run = |is_recorded| {
                let server = Server {
                    is_known,
                    ..Server::default()
                };
                let mut source = Popular {
                    is_recorded,
                    value_bytes: 77,
                    ..Popular::default()
                };
                send_all(&Rc::new(RefCell::new(server)), &mut source, which, 1)
            };
            let error = run(false).unwrap_err().to_string();
            assert!(error.contains("no value of 77 bytes"), "{error}");
            assert!(error.contains("-I"), "{error}");
            let tally = run(true).unwrap();
            assert_eq!((tally.refused, tally.writes), (5000, 0), "{which:?}");
        }
    }
}
