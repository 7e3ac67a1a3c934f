//! The client and the server with a network between them that loses, repeats, delays and cuts off
//! datagrams, from a printed seed, in time that is a number. Whatever the network does, what the
//! client is told agrees with a plain map to which every change was applied once, in order.
//!
//! GLIMMER_SEED replays a run.

use std::net::SocketAddr;

use crate::native::{self, Server};
use crate::network::{Faults, Network};
use glimmer_client::{
    Ask, Change, Direction, Exptime, Failure, Reply, Session, Settings, Status, StoreMode, What,
};
use glimmer_proto::native::directory::Access;
use rand::{Rng, SeedableRng, rngs::SmallRng};

const WORKERS: usize = 3;
const KEYS: usize = 24;
const OPERATIONS: usize = 1_500;

const SETTINGS: Settings = Settings {
    resend_first_us: 4_000,
    resend_longest_us: 40_000,
    deadline_us: 300_000,
    resends: true,
    requests_per_datagram: 1,
    round_robin: true,
    // No outage is so long.
    away_after: 3,
    retry_us: 1_000_000,
    eject: false,
};

/// A change, or a read.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Operation {
    Get,
    Store(StoreMode, Vec<u8>),
    Delete,
    Increment(u64),
    Decrement(u64),
}

impl Operation {
    fn draw(rng: &mut SmallRng) -> Operation {
        let value = |rng: &mut SmallRng| {
            let bytes = match rng.random_range(0..10) {
                0 => rng.random_range(1_000..30_000),
                1 => rng.random_range(100..2_000),
                2..5 => return rng.random_range(0..1000u64).to_string().into_bytes(),
                _ => rng.random_range(0..40),
            };
            let byte: u8 = rng.random();
            (0..bytes).map(|n| byte.wrapping_add(n as u8)).collect()
        };
        match rng.random_range(0..10) {
            0..3 => Operation::Get,
            3..6 => Operation::Store(StoreMode::Set, value(rng)),
            6 => Operation::Store(StoreMode::Add, value(rng)),
            7 => Operation::Store(StoreMode::Replace, value(rng)),
            8 => Operation::Delete,
            _ if rng.random() => Operation::Increment(rng.random_range(1..100)),
            _ => Operation::Decrement(rng.random_range(1..100)),
        }
    }

    fn what(&self) -> What<'_> {
        What::Change(match *self {
            Operation::Get => return What::Get,
            Operation::Store(mode, ref value) => Change::Store {
                mode,
                expiry: Exptime::NEVER,
                flags: value.len() as u32,
                value,
            },
            Operation::Delete => Change::Delete,
            Operation::Increment(delta) => Change::Increment { delta },
            Operation::Decrement(delta) => Change::Decrement { delta },
        })
    }

    /// What it makes of a value, and what is answered.
    fn apply(&self, old: &Value) -> (Value, Told) {
        let told = |status| Told {
            status,
            value: Vec::new(),
            number: None,
        };
        match (self, old) {
            (Operation::Get, Some(value)) => {
                let found = Told {
                    value: value.clone(),
                    ..told(Status::Found)
                };
                (old.clone(), found)
            }
            (Operation::Get | Operation::Delete, None) => (None, told(Status::NotFound)),
            (Operation::Store(StoreMode::Add, _), Some(_)) => (old.clone(), told(Status::Exists)),
            (Operation::Store(StoreMode::Replace, _), None) => (None, told(Status::NotFound)),
            (Operation::Store(_, value), _) => (Some(value.clone()), told(Status::Stored)),
            (Operation::Delete, Some(_)) => (None, told(Status::Deleted)),
            (Operation::Increment(_) | Operation::Decrement(_), None) => {
                (None, told(Status::NotFound))
            }
            (Operation::Increment(delta) | Operation::Decrement(delta), Some(value)) => {
                let text = std::str::from_utf8(value).unwrap_or("no number");
                let Ok(number) = text.trim_end_matches(' ').parse::<u64>() else {
                    return (old.clone(), told(Status::NotANumber));
                };
                let number = match self {
                    Operation::Increment(_) => number.wrapping_add(*delta),
                    _ => number.saturating_sub(*delta),
                };
                // What is shorter than before is filled up with spaces, as memcached does.
                let new = format!("{number:<width$}", width = value.len());
                let counted = Told {
                    number: Some(number),
                    ..told(Status::Counted)
                };
                (Some(new.into_bytes()), counted)
            }
        }
    }
}

type Value = Option<Vec<u8>>;

/// What the client is told.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Told {
    status: Status,
    value: Vec<u8>,
    number: Option<u64>,
}

impl Told {
    fn of(reply: &Reply<'_>) -> Told {
        if reply.status == Status::Found {
            assert!(reply.flags as usize >= reply.value.len().min(1) || reply.value.is_empty());
        }
        Told {
            status: reply.status,
            value: reply.value.to_vec(),
            number: reply.number,
        }
    }
}

/// All that a key's value may be. A change without an answer may be applied, once, at any time
/// until a newer one has been.
#[derive(Clone, Debug)]
struct Key {
    /// Values, and how many of the unanswered changes lie behind each.
    possible: Vec<(Value, usize)>,
    unanswered: Vec<Operation>,
    under_way: Option<Operation>,
}

impl Key {
    fn new() -> Key {
        Key {
            possible: vec![(None, 0)],
            unanswered: Vec::new(),
            under_way: None,
        }
    }

    /// Adds what becomes of each possible value if unanswered changes are applied now.
    fn close(&mut self) {
        let mut index = 0;
        while index < self.possible.len() {
            let (value, behind) = self.possible[index].clone();
            for next in behind..self.unanswered.len() {
                let (value, _) = self.unanswered[next].apply(&value);
                let state = (value, next + 1);
                if !self.possible.contains(&state) {
                    self.possible.push(state);
                }
            }
            index += 1;
        }
    }

    /// The operation under way has been answered, or has not.
    fn settle(&mut self, answer: Result<Told, Failure>, context: &str) {
        let operation = self.under_way.take().expect("one is under way");
        let is_read = operation == Operation::Get;
        match answer {
            Ok(told) => {
                self.close();
                let before = self.possible.clone();
                self.possible.retain_mut(|(value, behind)| {
                    let (new, expected) = operation.apply(value);
                    *value = new;
                    if !is_read {
                        *behind = 0;
                    }
                    expected == told
                });
                assert!(
                    !self.possible.is_empty(),
                    "{context}: {operation:?} was answered {:?}, of {} possible values",
                    (told.status, told.value.len(), told.number),
                    before.len(),
                );
                if !is_read {
                    self.unanswered.clear();
                }
                self.possible.dedup();
            }
            Err(Failure::Silent) if is_read => {}
            Err(Failure::Silent) => self.unanswered.push(operation),
            Err(other) => panic!("{context}: {operation:?} failed: {other:?}"),
        }
    }
}

/// Runs a client against a server, and counts what was answered, what was not, and what was sent
/// again.
fn run(seed: u64, access: Access, faults: Faults, requests_per_datagram: usize) -> (u64, u64, u64) {
    run_directed(
        Direction::Client,
        seed,
        access,
        faults,
        requests_per_datagram,
    )
}

fn run_directed(
    by: Direction,
    seed: u64,
    access: Access,
    faults: Faults,
    requests_per_datagram: usize,
) -> (u64, u64, u64) {
    let context =
        format!("GLIMMER_SEED={seed} {by:?} {access:?} {faults:?} {requests_per_datagram}");
    let settings = Settings {
        requests_per_datagram,
        ..SETTINGS
    };
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut server = Server::directed(by, access, WORKERS);
    let client: SocketAddr = "127.0.0.1:9000".parse().unwrap();
    let mut session: Session<usize> = Session::new(settings, rng.random());
    let mut network = Network::new(faults, rng.random());
    let mut keys: Vec<Key> = (0..KEYS).map(|_| Key::new()).collect();
    let (mut asked, mut answered, mut silent) = (0, 0, 0);
    let mut now_us = 0;
    let mut is_checking = false;
    loop {
        // Requests for keys that have none under way, some at a time.
        for (index, key) in keys.iter_mut().enumerate() {
            let is_due = match is_checking {
                true => asked < OPERATIONS + KEYS,
                false => asked < OPERATIONS && rng.random_ratio(1, 4),
            };
            if key.under_way.is_none() && is_due {
                let operation = match is_checking {
                    true => Operation::Get,
                    false => Operation::draw(&mut rng),
                };
                let name = format!("key {index}");
                let ask = Ask {
                    key: name.as_bytes(),
                    what: operation.what(),
                    shows_cas: false,
                };
                session.ask(&ask, index, now_us).expect("it is valid");
                key.under_way = Some(operation);
                asked += 1;
            }
        }
        let mut told: Vec<(usize, Result<Told, Failure>)> = Vec::new();
        session.expire(now_us, &mut note(&mut told));
        session.transmit(now_us, &mut |port, bytes, segment_bytes| {
            let worker = port.map_or(0, |port| usize::from(port) - 4000);
            network.carry(Some(worker), bytes, segment_bytes, now_us);
        });
        // What arrives next, or the next time that the client wakes.
        let wakes_us = session.wakes_us().unwrap_or(u64::MAX);
        let arrives_us = network.arrives_us();
        if wakes_us == u64::MAX && session.under_way() == 0 && told.is_empty() {
            if asked >= OPERATIONS + KEYS {
                break;
            }
            if asked >= OPERATIONS && !is_checking {
                // From now on nothing is lost, and every value is looked at once more.
                is_checking = true;
                network.faults = Faults {
                    lost: 0,
                    repeated: 0,
                    cut: 0,
                    has_outages: false,
                    ..faults
                };
                // Late duplicates arrive before.
                now_us += 2_000_000;
            }
        }
        let next_us = wakes_us.min(arrives_us).max(now_us + 1);
        now_us = if next_us == u64::MAX {
            now_us + 1
        } else {
            next_us
        };
        let arrived = network.arrivals(now_us, |bytes| {
            session.receive(bytes, now_us, &mut note(&mut told));
        });
        for (worker, segment_batches) in arrived {
            for reply in server.answer(worker, client, &segment_batches, now_us / 1000) {
                network.carry(None, &reply.bytes, reply.segment_bytes, now_us);
            }
        }
        for (index, answer) in told {
            match &answer {
                Ok(_) => answered += 1,
                Err(_) => silent += 1,
            }
            keys[index].settle(answer, &context);
        }
    }
    for endpoint in &server.endpoints {
        assert!(endpoint.bytes() <= native::KEPT_BYTES_MAX);
    }
    let figures = session.counters();
    assert_eq!(figures.shared > 0, requests_per_datagram > 1, "{context}");
    (answered, silent, figures.resent)
}

/// Writes answers down.
fn note(
    told: &mut Vec<(usize, Result<Told, Failure>)>,
) -> impl FnMut(usize, Result<&Reply<'_>, Failure>) {
    |index, reply| told.push((index, reply.map(Told::of)))
}

/// Requests of a datagram at most, in one half of the runs and in the other.
const PACKED: [usize; 2] = [1, 32];
const MODES: [Access; 3] = [Access::Erew, Access::Crew, Access::Crcw];

#[test]
fn a_network_without_faults_needs_no_second_try() {
    let faults = Faults {
        lost: 0,
        repeated: 0,
        cut: 0,
        delay_us_max: 500,
        has_outages: false,
    };
    for access in MODES {
        let seed = glimmer_seeds::seed();
        for requests_per_datagram in [1, 32] {
            let (answered, silent, resent) = run(seed, access, faults, requests_per_datagram);
            assert_eq!(answered, (OPERATIONS + KEYS) as u64);
            assert_eq!((silent, resent), (0, 0));
        }
    }
}

#[test]
fn losses_repetitions_delays_and_cuts_change_nothing() {
    let faults = Faults {
        lost: 100,
        repeated: 150,
        cut: 30,
        delay_us_max: 6_000,
        has_outages: false,
    };
    for turn in 0..6 {
        let seed = glimmer_seeds::seed();
        let (answered, _, resent) = run(seed, MODES[turn % 3], faults, PACKED[turn / 3]);
        assert!(answered > OPERATIONS as u64 / 2 && resent > 100);
    }
}

/// Here requests go to every port in turn: what was sent to one port is counted together with what
/// went to another.
#[test]
fn whoever_directs_requests_nothing_is_executed_twice() {
    let faults = Faults {
        lost: 100,
        repeated: 150,
        cut: 30,
        delay_us_max: 6_000,
        has_outages: false,
    };
    for turn in 0..6 {
        let seed = glimmer_seeds::seed();
        let by = Direction::Server;
        let (access, packed) = (MODES[turn % 3], PACKED[turn % 2]);
        let (answered, _, resent) = run_directed(by, seed, access, faults, packed);
        assert!(answered > OPERATIONS as u64 / 2 && resent > 100);
    }
}

#[test]
fn outages_leave_nothing_but_what_may_be() {
    let faults = Faults {
        lost: 50,
        repeated: 100,
        cut: 10,
        delay_us_max: 3_000,
        has_outages: true,
    };
    let mut silent_in_all = 0;
    for turn in 0..6 {
        let seed = glimmer_seeds::seed();
        let (_, silent, _) = run(seed, MODES[turn % 3], faults, PACKED[turn / 3]);
        silent_in_all += silent;
    }
    assert!(silent_in_all > 0, "no outage was long enough");
}
