//! A server that is silent, in time that is a number: what a client tells of it, when it stops
//! waiting for it, and what brings it back.

use std::net::SocketAddr;

use crate::native::{Sent, Server};
use glimmer_client::{Ask, Change, Exptime, Failure, Session, Settings, Status, StoreMode, What};
use glimmer_proto::native::directory::Access;

const DEADLINE_US: u64 = 100_000;
const RETRY_US: u64 = 1_000_000;
const SETTINGS: Settings = Settings {
    resend_first_us: 10_000,
    resend_longest_us: 50_000,
    deadline_us: DEADLINE_US,
    resends: true,
    requests_per_datagram: 1,
    round_robin: false,
    away_after: 3,
    retry_us: RETRY_US,
    eject: false,
};

/// What becomes of datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Network {
    /// They arrive.
    Up,
    /// Nothing arrives.
    Down,
    /// Requests arrive, answers do not.
    OneWay,
    /// Requests arrive without their last byte.
    Truncating,
}

/// A client, its server, and the network between them.
struct World {
    session: Session<()>,
    server: Server,
    network: Network,
    now_us: u64,
    sent: usize,
}

impl World {
    fn new(settings: Settings) -> World {
        let mut world = World {
            session: Session::new(settings, 7),
            server: Server::new(Access::Erew, 1),
            network: Network::Up,
            now_us: 0,
            sent: 0,
        };
        assert_eq!(world.get(), Ok(Status::NotFound));
        world
    }

    /// Asks at once; the request is under way unless it failed.
    fn ask(&mut self) -> Result<(), Failure> {
        self.ask_for(What::Get)
    }

    fn ask_for(&mut self, what: What<'_>) -> Result<(), Failure> {
        let ask = Ask {
            key: b"key",
            what,
            shows_cas: false,
        };
        let asked = self.session.ask(&ask, (), self.now_us);
        asked.map_err(|(failure, ())| failure)
    }

    /// Lets a millisecond pass. Returns what was answered.
    fn turn(&mut self) -> Vec<Result<Status, Failure>> {
        let mut told = Vec::new();
        let World {
            session,
            server,
            network,
            now_us,
            ..
        } = self;
        session.expire(*now_us, &mut |(), reply| {
            told.push(reply.map(|reply| reply.status));
        });
        let mut datagrams = Vec::new();
        session.transmit(*now_us, &mut |_, bytes, segment_bytes| {
            let mut bytes = bytes.to_vec();
            if *network == Network::Truncating {
                bytes.pop();
            }
            datagrams.push(Sent {
                bytes,
                segment_bytes,
            });
        });
        self.sent += datagrams.len();
        if *network != Network::Down && !datagrams.is_empty() {
            let client: SocketAddr = "127.0.0.1:9000".parse().unwrap();
            let mut replies = server.answer(0, client, &datagrams, *now_us / 1000);
            if *network == Network::OneWay {
                replies.clear();
            }
            for reply in replies {
                session.receive(&reply.bytes, *now_us, &mut |(), reply| {
                    told.push(reply.map(|reply| reply.status));
                });
            }
        }
        self.now_us += 1_000;
        told
    }

    /// Asks, and waits for what comes of it.
    fn get(&mut self) -> Result<Status, Failure> {
        self.ask()?;
        self.wait()
    }

    fn wait(&mut self) -> Result<Status, Failure> {
        loop {
            if let Some(answer) = self.turn().pop() {
                return answer;
            }
        }
    }

    fn pass(&mut self, us: u64) {
        let until_us = self.now_us + us;
        while self.now_us < until_us {
            self.turn();
        }
    }
}

/// A client that has waited for three deadlines.
fn away() -> World {
    let mut world = World::new(SETTINGS);
    world.network = Network::Down;
    for _ in 0..SETTINGS.away_after {
        assert!(!world.session.is_away(world.now_us));
        assert_eq!(world.get(), Err(Failure::Silent));
    }
    world
}

#[test]
fn after_some_deadlines_in_a_row_nobody_waits() {
    let mut world = away();
    assert!(world.session.is_away(world.now_us));
    let before = (world.now_us, world.session.under_way());
    for _ in 0..100 {
        assert_eq!(world.get(), Err(Failure::Away));
    }
    assert_eq!((world.now_us, world.session.under_way()), before);
}

#[test]
fn one_request_is_sent_after_each_interval_and_only_one() {
    let mut world = away();
    for _ in 0..3 {
        world.pass(RETRY_US);
        assert_eq!(world.ask(), Ok(()));
        assert_eq!(world.ask(), Err(Failure::Away));
        world.pass(DEADLINE_US / 2);
        assert_eq!(world.ask(), Err(Failure::Away), "it has not been answered");
        let mut told = Vec::new();
        while told.is_empty() {
            told = world.turn();
        }
        assert_eq!(told, [Err(Failure::Silent)]);
        assert_eq!(world.get(), Err(Failure::Away));
        world.pass(RETRY_US - 50_000);
        assert_eq!(world.get(), Err(Failure::Away));
        world.pass(50_000);
    }
}

#[test]
fn an_answer_brings_it_back() {
    let mut world = away();
    world.network = Network::Up;
    assert_eq!(world.get(), Err(Failure::Away));
    // Nothing is sent meanwhile: a client that waits does nothing between calls.
    world.now_us += RETRY_US;
    assert_eq!(world.get(), Ok(Status::NotFound));
    assert!(!world.session.is_away(world.now_us));
    // It has as much time as before.
    world.network = Network::Down;
    for _ in 0..SETTINGS.away_after {
        assert_eq!(world.get(), Err(Failure::Silent));
    }
    assert_eq!(world.get(), Err(Failure::Away));
}

#[test]
fn its_directory_brings_it_back_too() {
    let mut world = away();
    // The question for it is asked again and again.
    world.network = Network::Up;
    world.pass(2 * SETTINGS.resend_longest_us);
    assert_eq!(world.get(), Ok(Status::NotFound));
}

#[test]
fn what_is_heard_between_deadlines_begins_the_count_anew() {
    let mut world = World::new(SETTINGS);
    for _ in 0..5 {
        world.network = Network::Down;
        for _ in 1..SETTINGS.away_after {
            assert_eq!(world.get(), Err(Failure::Silent));
        }
        world.network = Network::Up;
        assert_eq!(world.get(), Ok(Status::NotFound));
    }
}

#[test]
fn requests_that_wait_together_count_once() {
    let mut world = World::new(SETTINGS);
    world.network = Network::Down;
    for _ in 0..50 {
        world.ask().unwrap();
        world.turn();
    }
    world.pass(2 * DEADLINE_US);
    assert_eq!(world.session.under_way(), 0);
    assert_eq!(world.get(), Err(Failure::Silent));
}

#[test]
fn no_server_is_away_where_none_is_to_be() {
    let mut world = World::new(Settings {
        away_after: 0,
        ..SETTINGS
    });
    world.network = Network::Down;
    for _ in 0..20 {
        assert_eq!(world.get(), Err(Failure::Silent));
    }
}

const ADD: What<'_> = What::Change(Change::Store {
    mode: StoreMode::Add,
    expiry: Exptime::NEVER,
    flags: 0,
    value: b"value",
});

#[test]
fn a_change_of_which_every_copy_was_refused_was_not_made() {
    let mut world = World::new(SETTINGS);
    world.network = Network::Truncating;
    world.ask_for(ADD).unwrap();
    assert_eq!(world.wait(), Err(Failure::Protocol));
    assert!(world.session.counters().resent > 0);
    world.network = Network::Up;
    assert_eq!(world.get(), Ok(Status::NotFound));
}

#[test]
fn a_change_of_which_one_copy_was_not_answered_may_have_been_made() {
    let mut world = World::new(SETTINGS);
    world.network = Network::OneWay;
    world.ask_for(ADD).unwrap();
    world.turn();
    // All later copies are refused.
    world.network = Network::Truncating;
    assert_eq!(world.wait(), Err(Failure::Silent));
    world.network = Network::Up;
    assert_eq!(world.get(), Ok(Status::Found));
}
