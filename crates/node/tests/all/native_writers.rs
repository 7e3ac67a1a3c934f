//! More writing clients than a core can remember at a time, from one network and from many.

use std::net::SocketAddr;

use crate::native::{Sent, Server, moment};
use crate::requests::{alone, datagram, get, header, put, read};
use glimmer_node::native::NativeEndpoint;
use glimmer_proto::native::directory::Access;
use glimmer_proto::native::request::{Action, Change};
use glimmer_proto::native::{Reach, Record, RequestHeader, Status};

const WRITERS: u64 = 5000;
/// What a worker keeps of native clients with `-m 64 -t 2`, about.
const KEPT_BYTES_MAX: usize = 1_300_000;

/// Writers, each with a counter of its own.
struct World {
    server: Server,
    address_of: fn(u64) -> SocketAddr,
    now_ms: u64,
}

fn one_address(_: u64) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 9000))
}

fn own_address(client: u64) -> SocketAddr {
    let [.., high, middle, low] = client.to_be_bytes();
    SocketAddr::from(([10, high, middle, low], 9000))
}

impl World {
    fn new(address_of: fn(u64) -> SocketAddr) -> World {
        let mut server = Server::new(Access::Erew, 1);
        server.endpoints = NativeEndpoint::of_workers(server.rules.clone(), KEPT_BYTES_MAX);
        World {
            server,
            address_of,
            now_ms: 0,
        }
    }

    fn request(&self, client: u64, record: &Record<'_>) -> Sent {
        let address = (self.address_of)(client);
        let token_key = self.server.rules.token_key;
        let token = token_key.token(&address, moment(self.now_ms).ms);
        let header = RequestHeader {
            client,
            ..header(token, 1)
        };
        alone(datagram(header, std::slice::from_ref(record)))
    }

    fn ask(&mut self, client: u64, record: &Record<'_>) -> (Status, Vec<u8>) {
        let sent = self.request(client, record);
        let address = (self.address_of)(client);
        let replies = self.server.answer(0, address, &[sent], self.now_ms);
        assert_eq!(replies.len(), 1);
        let mut replies = read(&replies[0].bytes);
        assert_eq!(replies.len(), 1);
        replies.remove(0)
    }

    /// Adds one to the client's counter.
    fn increment(&mut self, client: u64, mutation: u32) -> Status {
        let key = format!("counter {client}").into_bytes();
        let record = Record {
            action: Action::Mutate {
                mutation,
                reach: Reach::over(1),
                change: Change::Increment { delta: 1 },
            },
            ..get(&key)
        };
        self.ask(client, &record).0
    }

    /// All write in turn, and now and then send again what they sent before.
    fn run(&mut self) {
        for client in 0..WRITERS {
            let key = format!("counter {client}").into_bytes();
            let sent = put(&key, 1, b"0");
            let Action::Mutate {
                mutation, change, ..
            } = sent.action
            else {
                unreachable!("it is a mutation");
            };
            let reach = Reach::over(1);
            let action = Action::Mutate {
                mutation,
                reach,
                change,
            };
            let (status, _) = self.ask(client, &Record { action, ..sent });
            assert_eq!(status, Status::Stored, "{client}");
        }
        for mutation in 2..5 {
            for client in 0..WRITERS {
                self.now_ms += u64::from(client % 4 == 0);
                let status = self.increment(client, mutation);
                assert_eq!(status, Status::Counted, "{mutation} of {client}");
                // Somebody who wrote a while ago may have been displaced since.
                let other = (client * 7919) % WRITERS;
                let before = mutation - u32::from(other > client);
                let again = self.increment(other, before);
                let answer = match before {
                    1 => Status::Stored,
                    _ => Status::Counted,
                };
                let is_known = again == answer || again == Status::Forgotten;
                assert!(is_known, "{before} of {other} again: {again:?}");
                assert!(self.server.endpoints[0].bytes() <= KEPT_BYTES_MAX);
            }
        }
        for client in 0..WRITERS {
            let key = format!("counter {client}").into_bytes();
            let (status, value) = self.ask(client, &get(&key));
            assert_eq!((status, &value[..]), (Status::Found, &b"3"[..]), "{client}");
        }
    }
}

#[test]
fn five_thousand_writers_behind_one_address_are_served_and_counted_once() {
    World::new(one_address).run();
}

#[test]
fn five_thousand_writers_at_as_many_addresses_are_served_and_counted_once() {
    World::new(own_address).run();
}

#[test]
fn a_writer_that_there_is_no_room_for_is_told_so() {
    let mut world = World::new(one_address);
    let refusal = (0..20_000).find_map(|client| match world.increment(client, 1) {
        Status::NotFound => None,
        refusal => Some((client, refusal)),
    });
    let (client, refusal) = refusal.expect("no bound");
    assert_eq!(refusal, Status::TooManyWriters);
    assert!(client > WRITERS, "{client}");
    // Clients that are known go on, and so do those at other addresses.
    assert_eq!(world.increment(client - 1, 2), Status::NotFound);
    world.address_of = own_address;
    assert_eq!(world.increment(50_000, 1), Status::NotFound);
}
