//! A node serves native clients over real sockets: directory, direction to several workers, segment
//! batches, fragments.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::lossy;
use crate::native::{self, Server};
use crate::support::{self, Admin, PATIENCE, config};
use glimmer_client::{Client, Settings};
use glimmer_dispatch::{PartitionMap, named};
use glimmer_node::native::NativeConfig;
use glimmer_node::{BusyPoll, Error, Node, Tally};
use glimmer_proto::StoreMode;
use glimmer_proto::native::directory::{Access, Direction, REPLY_BYTES_MAX};
use glimmer_proto::native::request::{Action, Change, Exptime};
use glimmer_proto::native::{
    Directory, Kind, Reach, Record, Reply, ReplyHeader, RequestHeader, Status,
};

fn start(access: Access, workers: usize, busy_poll: BusyPoll) -> Node {
    start_directed(Direction::Client, access, workers, busy_poll)
}

fn start_directed(by: Direction, access: Access, workers: usize, busy_poll: BusyPoll) -> Node {
    let server = Server::directed(by, access, workers);
    let mut config = config();
    config.hasher = native::hasher();
    config.busy_poll = busy_poll;
    config.native = Some(NativeConfig {
        listen: vec!["127.0.0.1:0".parse().unwrap()],
        single_port: false,
        rules: server.rules,
    });
    Node::start(config, server.engines, Arc::new(Admin)).unwrap()
}

fn address(node: &Node) -> String {
    let (ip, ports) = &node.native_ports()[0];
    format!("{ip}:{}", ports[0])
}

/// What the workers counted, all together.
fn tally(node: &Node) -> Tally {
    let mut sum = Tally::default();
    for tally in node.figures().tallies() {
        sum += tally;
    }
    sum
}

#[test]
fn clients_read_what_they_wrote_in_every_access_mode() {
    for (by, access, workers, busy_poll) in [
        (Direction::Client, Access::Erew, 3, BusyPoll::Off),
        (Direction::Client, Access::Crew, 2, BusyPoll::Off),
        (Direction::Client, Access::Crcw, 2, BusyPoll::For(200)),
        (Direction::Client, Access::Erew, 1, BusyPoll::Always),
        (Direction::Server, Access::Erew, 3, BusyPoll::Off),
        (Direction::Server, Access::Crew, 2, BusyPoll::Off),
    ] {
        let begin = Instant::now();
        let node = start_directed(by, access, workers, busy_poll);
        // One request to a datagram: several would seldom belong to one worker where the client
        // does not look.
        let settings = Settings {
            round_robin: true,
            requests_per_datagram: 1,
            ..Settings::default()
        };
        let mut client = Client::connect_with(address(&node), settings).unwrap();
        assert_eq!(client.get(b"none").unwrap(), None);
        for bytes in [0, 1, 1_000, 1_352, 1_400, 43_264, 60_000] {
            let value: Vec<u8> = (0..bytes).map(|n| (n % 251) as u8).collect();
            let key = format!("of {bytes}");
            client.put(key.as_bytes(), &value, 9, 0).unwrap();
            let found = client.get(key.as_bytes()).unwrap().unwrap();
            assert!(found.value == value && found.flags == 9, "{bytes} bytes");
        }
        let names: Vec<Vec<u8>> = (0..500).map(|n| format!("{n:016}").into_bytes()).collect();
        for name in names.iter().step_by(2) {
            client.put(name, &name[8..], 0, 0).unwrap();
        }
        let keys: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
        let found = client.get_many(&keys).unwrap();
        for (n, (name, found)) in names.iter().zip(found).enumerate() {
            let value = found.unwrap().map(|item| item.value);
            assert_eq!(value, n.is_multiple_of(2).then(|| name[8..].to_vec()));
        }
        assert_eq!(client.increment(b"none", 1).unwrap(), None);
        assert!(client.delete(b"of 0").unwrap() && !client.delete(b"of 0").unwrap());
        // Another client sees the same.
        let mut other = Client::connect(address(&node)).unwrap();
        assert_eq!(other.get(b"of 1").unwrap().unwrap().value, [0]);
        let tally = tally(&node);
        // Where the server directs requests, it refuses what it cannot hand over at once, and the
        // client sends it again.
        if by == Direction::Client {
            assert_eq!(tally.native_misdirected, 0, "{access:?}");
        }
        let is_handed_over = tally.native_handed_over > 0 && tally.native_handover_batches > 0;
        assert_eq!(is_handed_over, by == Direction::Server, "{access:?}");
        assert!(tally.native_datagrams >= tally.native_receives && tally.native_receives > 0);
        // Of a worker that never sleeps, turns with something to do are timed.
        let busy_ns = u128::from(tally.polling_busy_ns);
        assert_eq!(busy_ns > 0, busy_poll == BusyPoll::Always);
        assert!(busy_ns < begin.elapsed().as_nanos());
    }
}

/// The requests that each worker executed.
fn requests_of(node: &Node) -> Vec<u64> {
    let tallies = node.figures().tallies();
    tallies.into_iter().map(|one| one.native_requests).collect()
}

/// A node whose workers share one port of an address.
fn start_at_one_port(address: &str, workers: usize) -> (Node, PartitionMap) {
    let server = Server::new(Access::Crcw, workers);
    let map = server.rules.layout.map;
    let mut config = config();
    config.hasher = native::hasher();
    config.native = Some(NativeConfig {
        listen: vec![address.parse().unwrap()],
        single_port: true,
        rules: server.rules,
    });
    let node = Node::start(config, server.engines, Arc::new(Admin)).unwrap();
    (node, map)
}

/// Every request reaches the worker that owns its key, by the one port of all workers.
#[test]
fn one_port_is_steered_to_the_owners() {
    for (workers, listen) in [
        (1, "127.0.0.1:0"),
        (2, "127.0.0.1:0"),
        (4, "127.0.0.1:0"),
        (4, "[::1]:0"),
    ] {
        for owner in 0..workers {
            let (node, map) = start_at_one_port(listen, workers);
            let (ip, ports) = node.native_ports()[0].clone();
            assert_eq!(*ports, vec![ports[0]; workers]);

            let mut client = Client::connect((ip, ports[0])).unwrap();
            let names = (0..).map(|n| format!("{n:016}").into_bytes());
            let is_owned = |name: &Vec<u8>| map.owner(native::SEED.keyhash(name)) == owner;
            let names: Vec<Vec<u8>> = names.filter(is_owned).take(100).collect();
            for name in &names {
                client.put(name, b"0", 0, 0).unwrap();
                assert_eq!(client.increment(name, 1).unwrap(), Some(1));
            }
            let keys: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
            for found in client.get_many(&keys).unwrap() {
                assert_eq!(found.unwrap().unwrap().value, b"1");
            }
            let begun = Instant::now();
            while requests_of(&node).iter().sum::<u64>() < 300 {
                assert!(begun.elapsed() < PATIENCE, "{:?}", requests_of(&node));
                std::thread::yield_now();
            }
            // On a busy machine the client repeats some requests, and the owner counts them again.
            let requests = requests_of(&node);
            let of_others: u64 = requests.iter().sum::<u64>() - requests[owner];
            assert_eq!(of_others, 0, "{requests:?}, all to {owner}");
        }

        let (node, _) = start_at_one_port(listen, workers);
        let (ip, ports) = node.native_ports()[0].clone();

        // Fragments meet at one worker, whatever their key, and are executed there.
        for n in 0..8_u8 {
            let value = vec![n; 60_000];
            let key = format!("large {n}");
            let mut other = Client::connect((ip, ports[0])).unwrap();
            other.put(key.as_bytes(), &value, 0, 0).unwrap();
            assert!(other.get(key.as_bytes()).unwrap().unwrap().value == value);
        }
        assert_eq!(tally(&node).native_misdirected, 0);
        assert_eq!(tally(&node).native_handed_over, 0);
    }
}

/// Fragments come to one worker for all keys of a client, also where a policy gives each request to
/// the owner of its key.
#[test]
fn one_port_takes_large_values_under_every_policy() {
    for policy in ["keyhash", "owner", "handoff", "stealing", "size-aware"] {
        let (node, _) = start_at_one_port("127.0.0.1:0", 4);
        let mut admin = support::Client::connect(&node);
        admin.send(format!("dispatch {policy} crcw\r\n"));
        assert_eq!(admin.line(), "OK\r\n");
        let (ip, ports) = node.native_ports()[0].clone();
        let mut client = Client::connect((ip, ports[0])).unwrap();
        for number in 0..20_u8 {
            let (key, value) = (format!("large {number}"), vec![number; 60_000]);
            let put = client.put(key.as_bytes(), &value, 0, 0);
            assert!(put.is_ok(), "{policy}: {put:?}");
            assert!(client.get(key.as_bytes()).unwrap().unwrap().value == value);
        }
    }
}

/// Two workers receive from one socket, and the fragments of a value meet at a third one.
#[test]
fn fragments_meet_at_the_worker_of_their_port() {
    for policy in ["handoff", "stealing", "size-aware"] {
        let server = Server::new(Access::Crcw, 3);
        let mut config = config();
        config.hasher = native::hasher();
        config.dispatch = named(policy, &Default::default()).unwrap();
        config.native = Some(NativeConfig {
            listen: vec!["127.0.0.1:0".parse().unwrap()],
            single_port: false,
            rules: server.rules,
        });
        let node = Node::start(config, server.engines, Arc::new(Admin)).unwrap();
        let mut is_handed_over = false;
        std::thread::scope(|scope| {
            for thread in 0..3_u8 {
                let node = &node;
                scope.spawn(move || {
                    let mut client = Client::connect(address(node)).unwrap();
                    for number in 0..50_u8 {
                        let (key, value) = (format!("{thread} {number}"), vec![number; 60_000]);
                        client.put(key.as_bytes(), &value, 0, 0).unwrap();
                        let found = client.get(key.as_bytes()).unwrap().unwrap();
                        assert!(found.value == value, "{policy}");
                    }
                });
            }
        });
        let begun = Instant::now();
        while !is_handed_over {
            let tally = tally(&node);
            is_handed_over = tally.native_handed_over > 0 && tally.drained > 0;
            assert!(begun.elapsed() < PATIENCE, "{policy} {tally:?}");
        }
    }
}

/// The network loses and repeats datagrams on their way to the port of all workers.
#[test]
fn one_port_makes_each_change_once() {
    let seed = glimmer_seeds::seed();
    let (node, _) = start_at_one_port("127.0.0.1:0", 4);
    let port = node.native_ports()[0].1[0];
    // Another address of this machine, with the port of which the directory tells.
    let front = UdpSocket::bind(("127.0.0.2", port)).unwrap();
    let back = UdpSocket::bind("127.0.0.1:0").unwrap();
    back.connect(("127.0.0.1", port)).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| lossy::pass_on(seed, &front, &back, &stop));
        let settings = Settings {
            resend_first_us: 2_000,
            resend_longest_us: 10_000,
            deadline_us: PATIENCE.as_micros() as u64,
            ..Settings::default()
        };
        let changed = std::panic::catch_unwind(|| {
            let mut client = Client::connect_with(("127.0.0.2", port), settings).unwrap();
            for n in 0..16 {
                client.put(format!("{n}").as_bytes(), b"0", 0, 0).unwrap();
            }
            for round in 1..=16 {
                for n in 0..16 {
                    let now = client.increment(format!("{n}").as_bytes(), 1).unwrap();
                    assert_eq!(now, Some(round), "{n}");
                }
            }
            // Fragments of a value, which come to a worker that need not own the key.
            for n in 0..16_u8 {
                let (key, value) = (format!("large {n}"), vec![n; 30_000]);
                assert!(client.add(key.as_bytes(), &value, 0, 0).is_ok(), "{n}");
                assert!(client.get(key.as_bytes()).unwrap().unwrap().value == value);
            }
        });
        stop.store(true, Ordering::Relaxed);
        if let Err(failure) = changed {
            std::panic::resume_unwind(failure);
        }
    });
    assert_eq!(tally(&node).native_misdirected, 0);
}

#[test]
fn a_client_finds_a_node_that_was_started_anew() {
    let first = start(Access::Erew, 2, BusyPoll::Off);
    let ports = first.native_ports()[0].1.clone();
    let mut client = Client::connect(address(&first)).unwrap();
    client.put(b"key", b"value", 0, 0).unwrap();
    drop(first);
    let server = Server::new(Access::Crew, 1);
    let mut config = config();
    config.native = Some(NativeConfig {
        listen: vec![([127, 0, 0, 1], ports[0]).into()],
        single_port: false,
        rules: glimmer_node::native::Rules {
            directory_version: native::VERSION + 1,
            ..server.rules
        },
    });
    let _second = Node::start(config, server.engines, Arc::new(Admin)).unwrap();
    assert_eq!(client.get(b"key").unwrap(), None);
    client.put(b"key", b"another", 0, 0).unwrap();
    assert_eq!(client.get(b"key").unwrap().unwrap().value, b"another");
}

#[test]
fn a_native_port_in_use_is_an_error() {
    let node = start(Access::Erew, 1, BusyPoll::Off);
    let port = node.native_ports()[0].1[0];
    let server = Server::new(Access::Erew, 1);
    let mut config = config();
    config.native = Some(NativeConfig {
        listen: vec![([127, 0, 0, 1], port).into()],
        single_port: false,
        rules: server.rules,
    });
    match Node::start(config, server.engines, Arc::new(Admin)) {
        Err(Error::Udp { address, source }) => {
            assert_eq!(address.port(), port);
            assert_eq!(source.kind(), std::io::ErrorKind::AddrInUse);
        }
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("two servers on one port"),
    }
}

/// A client that sends to the ports that it is told to.
struct Bare {
    socket: UdpSocket,
    ip: std::net::IpAddr,
    directory: Directory,
    version: u32,
}

impl Bare {
    fn new(node: &Node) -> Bare {
        let (ip, ports) = &node.native_ports()[0];
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut question = vec![0; REPLY_BYTES_MAX];
        let header = header(Kind::Directory, 0, 0, 0);
        question[..RequestHeader::BYTES].copy_from_slice(&header.bytes());
        socket.send_to(&question, (*ip, ports[0])).unwrap();
        let mut answer = [0; 1500];
        let bytes = socket.recv(&mut answer).unwrap();
        let version = ReplyHeader::read(&answer).unwrap().directory;
        let directory = Directory::read(&answer[ReplyHeader::BYTES..bytes]).unwrap();
        Bare {
            socket,
            ip: *ip,
            directory,
            version,
        }
    }

    /// What is answered to the requests of one datagram, sent to the port of a core.
    fn ask(&self, core: usize, records: &[Record<'_>]) -> Vec<(Status, Vec<u8>, Option<u64>)> {
        let Directory { token, ports, .. } = &self.directory;
        let header = header(Kind::Requests, records.len() as u8, self.version, *token);
        let mut datagram = header.bytes().to_vec();
        records
            .iter()
            .for_each(|record| record.write(&mut datagram));
        self.socket
            .send_to(&datagram, (self.ip, ports[core]))
            .unwrap();
        let mut answer = [0; 1500];
        let (bytes, from) = self.socket.recv_from(&mut answer).unwrap();
        assert_eq!(from.port(), ports[core], "who was asked answers");
        let mut rest = &answer[ReplyHeader::BYTES..bytes];
        let reply = |_| {
            let (reply, bytes) = Reply::read(rest).unwrap();
            rest = &rest[bytes..];
            (reply.status, reply.value.to_vec(), reply.number)
        };
        records.iter().map(reply).collect()
    }

    fn status(&self, core: usize, record: Record<'_>) -> Status {
        self.ask(core, &[record])[0].0
    }
}

fn header(kind: Kind, count: u8, directory: u32, token: u64) -> RequestHeader {
    RequestHeader {
        kind,
        count,
        directory,
        sequence: 1,
        timestamp: 2,
        client: 3,
        token,
    }
}

/// A change is counted by the worker that owns its key, by whatever port it comes: sent again to
/// another port it is not made again, and when a newer one of its key came by another port it is
/// not made at all.
#[test]
fn a_change_that_comes_by_two_ports_is_made_once() {
    for access in [Access::Erew, Access::Crew] {
        let node = start_directed(Direction::Server, access, 2, BusyPoll::Off);
        let client = Bare::new(&node);
        assert_eq!(client.directory.direction, Direction::Server);
        let key_of = |owner: usize| {
            let keys = (0..).map(|n| format!("{n}").into_bytes());
            let mut keys = keys.into_iter();
            let (partitions, workers) = (client.directory.partitions, client.directory.ports.len());
            let map = PartitionMap::new(partitions.into(), workers);
            let owner_of = |key: &[u8]| map.owner(native::SEED.keyhash(key));
            keys.find(|key| owner_of(key) == owner).unwrap()
        };
        let (mine, theirs) = (key_of(0), key_of(1));
        let get = |key| Record {
            action: Action::Get,
            keyhash: native::SEED.keyhash(key),
            key,
            shows_cas: false,
        };
        let delete = |key| Record {
            action: Action::Mutate {
                mutation: 0,
                reach: Reach::UNKNOWN,
                change: Change::Delete,
            },
            ..get(key)
        };
        let change = |mutation, change| Record {
            action: Action::Mutate {
                mutation,
                reach: Reach::UNKNOWN,
                change,
            },
            ..get(theirs.as_slice())
        };
        let put = |mutation, value| {
            let (mode, expiry, flags) = (StoreMode::Set, Exptime::NEVER, 0);
            let store = Change::Store {
                mode,
                expiry,
                flags,
                value,
            };
            change(mutation, store)
        };
        assert_eq!(client.status(0, put(0, b"7")), Status::Stored);
        for core in [0, 1, 0] {
            let again = change(1, Change::Increment { delta: 1 });
            let counted = (Status::Counted, Vec::new(), Some(8));
            assert_eq!(client.ask(core, &[again]), [counted], "{access:?}");
        }
        assert_eq!(client.status(0, put(3, b"new")), Status::Stored);
        assert_eq!(client.status(1, put(2, b"late")), Status::Superseded);
        let found = (Status::Found, b"new".to_vec(), None);
        for core in [0, 1] {
            assert_eq!(client.ask(core, &[get(&theirs)])[0], found);
        }
        // Several requests of one owner travel together; of several owners, they do not.
        let together = client.ask(0, &[put(4, b"4"), get(&theirs)]);
        let found = (Status::Found, b"4".to_vec(), None);
        assert_eq!((together[0].0, &together[1]), (Status::Stored, &found));
        let apart = client.ask(0, &[change(5, Change::Delete), delete(&mine)]);
        let statuses = [apart[0].0, apart[1].0];
        assert_eq!(statuses, [Status::AskAlone, Status::NotFound]);
        let begun = Instant::now();
        // The figures are shown when a turn is over.
        let reads = 1 + u64::from(access == Access::Erew);
        let expected = (4 + reads, 2, 1, 1);
        loop {
            let seen = tally(&node);
            let seen = (
                seen.native_handed_over,
                seen.native_repeated,
                seen.native_superseded,
                seen.native_misdirected,
            );
            if seen == expected {
                break;
            }
            assert!(begun.elapsed() < PATIENCE, "{access:?} {seen:?}");
            std::thread::yield_now();
        }
    }
}
