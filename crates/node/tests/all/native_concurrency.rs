//! Several requests for one key under way at once, as tasks that share a client have them, over a
//! network that loses, repeats and delays datagrams. Nobody is told of the others: every request is
//! answered, every increment is counted once, and every read sees a value that was there while it
//! waited.
//!
//! GLIMMER_SEED replays a run.

use std::net::SocketAddr;

use crate::native::Server;
use crate::network::{Faults, Network};
use glimmer_client::{
    Ask, Change, Direction, Exptime, Failure, Reply, Session, Settings, Status, StoreMode, What,
};
use glimmer_proto::native::directory::Access;
use rand::{Rng, SeedableRng, rngs::SmallRng};

const WORKERS: usize = 2;
const KEYS: usize = 3;
const OPERATIONS: usize = 500;
/// Requests for one key that are under way at once.
const UNDER_WAY_MAX: usize = 12;

const FAULTS: Faults = Faults {
    lost: 100,
    repeated: 150,
    cut: 30,
    delay_us_max: 6_000,
    has_outages: false,
};

/// Nothing is given up.
const SETTINGS: Settings = Settings {
    resend_first_us: 4_000,
    resend_longest_us: 40_000,
    deadline_us: 3_600_000_000,
    resends: true,
    requests_per_datagram: 1,
    round_robin: true,
    away_after: 3,
    retry_us: 1_000_000,
    eject: false,
};

/// The access mode, who directs requests, and how many share a datagram.
const WAYS: [(Access, Direction, usize); 5] = [
    (Access::Erew, Direction::Client, 1),
    (Access::Crew, Direction::Client, 32),
    (Access::Crcw, Direction::Server, 1),
    (Access::Crcw, Direction::Server, 32),
    (Access::Erew, Direction::Server, 32),
];

struct Answer {
    status: Status,
    value: Vec<u8>,
    number: Option<u64>,
}

/// A client, its server, and the network between them.
struct World {
    session: Session<usize>,
    server: Server,
    network: Network,
    now_us: u64,
}

impl World {
    fn new(seed: u64, (access, by, requests_per_datagram): (Access, Direction, usize)) -> World {
        let settings = Settings {
            requests_per_datagram,
            ..SETTINGS
        };
        World {
            session: Session::new(settings, seed),
            server: Server::directed(by, access, WORKERS),
            network: Network::new(FAULTS, seed),
            now_us: 0,
        }
    }

    fn ask(&mut self, key: usize, what: What<'_>, tag: usize) {
        let ask = Ask {
            key: &[b'k', key as u8],
            what,
            shows_cas: false,
        };
        self.session.ask(&ask, tag, self.now_us).unwrap();
    }

    /// Goes on to the next time at which something happens. Returns what is answered then.
    fn turn(&mut self) -> Vec<(usize, Answer)> {
        let World {
            session,
            server,
            network,
            now_us,
        } = self;
        let mut told = Vec::new();
        let mut note = |tag, reply: Result<&Reply<'_>, Failure>| {
            let reply = reply.unwrap_or_else(|failure| panic!("request {tag}: {failure:?}"));
            let answer = Answer {
                status: reply.status,
                value: reply.value.to_vec(),
                number: reply.number,
            };
            told.push((tag, answer));
        };
        session.expire(*now_us, &mut note);
        session.transmit(*now_us, &mut |port, bytes, segment_bytes| {
            let worker = port.map_or(0, |port| usize::from(port) - 4000);
            network.carry(Some(worker), bytes, segment_bytes, *now_us);
        });
        let wakes_us = session.wakes_us().unwrap_or(u64::MAX);
        let next_us = wakes_us.min(network.arrives_us());
        // If nothing is under way, requests are asked next.
        *now_us = match next_us {
            u64::MAX => *now_us + 1,
            next_us => next_us.max(*now_us + 1),
        };
        let arrived = network.arrivals(*now_us, |bytes| session.receive(bytes, *now_us, &mut note));
        let client: SocketAddr = "127.0.0.1:9000".parse().unwrap();
        for (worker, segment_batches) in arrived {
            for reply in server.answer(worker, client, &segment_batches, *now_us / 1000) {
                network.carry(None, &reply.bytes, reply.segment_bytes, *now_us);
            }
        }
        told
    }

    /// Has requests asked, several for each key at once, until `make` has made all there are to be.
    /// `note` is told what was answered, and when it was asked.
    fn run(
        &mut self,
        rng: &mut SmallRng,
        mut make: impl FnMut(&mut SmallRng) -> Option<Vec<u8>>,
        mut note: impl FnMut(Asked, Answer, u64),
        change: impl Fn(&[u8]) -> What<'_>,
    ) {
        let mut asked: Vec<Asked> = Vec::new();
        let mut under_way = [0; KEYS];
        while asked.len() < OPERATIONS || under_way != [0; KEYS] {
            for (key, under_way) in under_way.iter_mut().enumerate() {
                while *under_way < UNDER_WAY_MAX
                    && asked.len() < OPERATIONS
                    && rng.random_ratio(2, 3)
                {
                    let value = make(rng);
                    let what = value.as_deref().map_or(What::Get, &change);
                    self.ask(key, what, asked.len());
                    asked.push(Asked {
                        key,
                        value,
                        at_us: self.now_us,
                    });
                    *under_way += 1;
                }
            }
            for (tag, answer) in self.turn() {
                under_way[asked[tag].key] -= 1;
                note(asked[tag].clone(), answer, self.now_us);
            }
        }
    }
}

/// A request: of a change, its value.
#[derive(Clone)]
struct Asked {
    key: usize,
    value: Option<Vec<u8>>,
    at_us: u64,
}

fn put(value: &[u8]) -> What<'_> {
    What::Change(Change::Store {
        mode: StoreMode::Set,
        expiry: Exptime::NEVER,
        flags: 0,
        value,
    })
}

fn increment(_: &[u8]) -> What<'_> {
    What::Change(Change::Increment { delta: 1 })
}

#[test]
fn increments_at_once_are_each_counted_once() {
    let mut rng = SmallRng::seed_from_u64(glimmer_seeds::seed());
    for way in WAYS {
        let mut world = World::new(rng.random(), way);
        for key in 0..KEYS {
            world.ask(key, put(b"0"), 0);
        }
        while world.session.under_way() > 0 {
            world.turn();
        }
        let mut counts = vec![Vec::new(); KEYS];
        let note = |asked: Asked, answer: Answer, _| {
            assert_eq!(answer.status, Status::Counted);
            counts[asked.key].extend(answer.number);
        };
        world.run(&mut rng, |_| Some(Vec::new()), note, increment);
        assert!(world.session.counters().resent > 0);
        for counts in &mut counts {
            counts.sort_unstable();
            let expected: Vec<u64> = (1..=counts.len() as u64).collect();
            assert_eq!(*counts, expected, "{way:?}");
        }
    }
}

/// From when it was asked until it was answered.
#[derive(Clone, Copy)]
struct Span {
    asked_us: u64,
    answered_us: u64,
}

/// Values of very different lengths: some travel in a segment batch with others, some alone, some
/// in fragments.
const VALUE_BYTES: [usize; 5] = [10, 300, 900, 3_000, 20_000];

#[test]
fn writes_of_any_length_at_once_are_all_carried_out() {
    let mut rng = SmallRng::seed_from_u64(glimmer_seeds::seed());
    for way in WAYS {
        let mut world = World::new(rng.random(), way);
        let mut last_value = 0u64;
        let make = |rng: &mut SmallRng| {
            last_value += 1;
            let bytes = VALUE_BYTES[rng.random_range(0..VALUE_BYTES.len())];
            let value = last_value.to_le_bytes().into_iter().cycle();
            rng.random_ratio(3, 5).then(|| value.take(bytes).collect())
        };
        // By key: each write with its value, and each read with what it found.
        let mut writes: Vec<Vec<(Vec<u8>, Span)>> = vec![Vec::new(); KEYS];
        let mut reads = writes.clone();
        let note = |asked: Asked, answer: Answer, answered_us| {
            let span = Span {
                asked_us: asked.at_us,
                answered_us,
            };
            match (asked.value, answer.status) {
                (Some(value), Status::Stored) => writes[asked.key].push((value, span)),
                (None, Status::Found) => reads[asked.key].push((answer.value, span)),
                (None, Status::NotFound) => reads[asked.key].push((Vec::new(), span)),
                (_, status) => panic!("{status:?}"),
            }
        };
        world.run(&mut rng, make, note, put);
        for (writes, reads) in writes.iter().zip(&reads) {
            for (value, read) in reads {
                // Before the first write there is nothing.
                let before = Span {
                    asked_us: 0,
                    answered_us: 0,
                };
                let found = writes.iter().find(|(written, _)| written == value);
                let found = found.map_or(before, |&(_, write)| write);
                assert!(found.asked_us <= read.answered_us);
                let is_over = |&(_, write): &(Vec<u8>, Span)| {
                    found.answered_us < write.asked_us && write.answered_us < read.asked_us
                };
                assert!(
                    !writes.iter().any(is_over),
                    "{way:?}: a value that was written over"
                );
                assert!(value.is_empty() || found.answered_us > 0);
            }
        }
    }
}
