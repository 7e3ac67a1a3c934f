//! Clients with datagrams over real sockets, while the dispatch policy and the access mode change
//! at random moments: nothing is lost, made twice, or seen in another order.

use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::lossy;
use crate::native::{self, Server};
use crate::support::{Access, Admin, Client, PATIENCE, config};
use glimmer_client::{Client as NativeClient, Settings};
use glimmer_engine::{Engine, Rebuild, Unobserved, rebuild};
use glimmer_node::native::NativeConfig;
use glimmer_node::{Node, Tally};
use glimmer_proto::native::directory;
use glimmer_store::access::{Crcw, Crew, Erew};
use glimmer_store::mica_cache::Owner;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

const WORKERS: usize = 3;
const SWITCHES: usize = 1_000;

/// Changes the access mode of a store of [`Server`]'s engines.
#[derive(Debug)]
struct Modes;

impl Rebuild for Modes {
    fn rebuild(&self, engines: Vec<Box<dyn Engine>>, to: Access) -> Vec<Box<dyn Engine>> {
        type By<A> = Owner<A>;
        macro_rules! change {
            ($from:ty) => {
                match to {
                    Access::Erew => rebuild::<By<$from>, By<Erew>, Unobserved>(engines),
                    Access::Crew => rebuild::<By<$from>, By<Crew>, Unobserved>(engines),
                    Access::Crcw => rebuild::<By<$from>, By<Crcw>, Unobserved>(engines),
                }
            };
        }
        match engines[0].layout().access {
            Access::Erew => change!(Erew),
            Access::Crew => change!(Crew),
            Access::Crcw => change!(Crcw),
        }
    }
}

fn start(single_port: bool) -> Node {
    let server = Server::new(directory::Access::Crcw, WORKERS);
    let mut config = config();
    config.hasher = native::hasher();
    config.access_modes = Some(Arc::new(Modes));
    config.udp = vec!["127.0.0.1:0".parse().unwrap()];
    config.native = Some(NativeConfig {
        listen: vec!["127.0.0.1:0".parse().unwrap()],
        single_port,
        rules: server.rules,
    });
    Node::start(config, server.engines, Arc::new(Admin)).unwrap()
}

const POLICIES_AND_MODES: &[&str] = &[
    "keyhash erew",
    "keyhash crew",
    "keyhash crcw",
    "owner crcw",
    "size-aware crcw",
    "size-aware:1000 crcw",
    "handoff crcw",
    "handoff:2 crcw",
    "stealing crcw",
    "stealing crcw",
];

/// Puts one policy and access mode after another in force.
fn switch(node: &Node, wanted: &[&str], seed: u64) {
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut admin = Client::connect(node);
    for number in 0..SWITCHES {
        let wanted = wanted[rng.random_range(0..wanted.len())];
        admin.send(format!("dispatch {wanted}\r\n"));
        assert_eq!(admin.line(), "OK\r\n", "{number}: dispatch {wanted}");
    }
}

/// What a client of one protocol has done, by key: the next count, and the latest value.
struct Keys {
    client: usize,
    counts: Vec<u64>,
    values: Vec<Option<Vec<u8>>>,
}

impl Keys {
    const COUNT: usize = 12;

    fn of(client: usize) -> Keys {
        Keys {
            client,
            counts: vec![0; Keys::COUNT],
            values: vec![None; Keys::COUNT],
        }
    }

    fn counter(&self, at: usize) -> String {
        format!("counter {} {at}", self.client).replace(' ', "_")
    }

    fn item(&self, at: usize) -> String {
        format!("item {} {at}", self.client).replace(' ', "_")
    }

    fn value(&self, rng: &mut SmallRng, bytes_max: usize) -> Vec<u8> {
        let bytes = rng.random_range(0..bytes_max);
        (0..bytes).map(|_| rng.random_range(b'a'..=b'z')).collect()
    }
}

fn native_client(node: &Node, client: usize, seed: u64, is_over: &AtomicBool) {
    let (ip, ports) = &node.native_ports()[0];
    native_client_of((*ip, ports[0]).into(), client, seed, is_over);
}

fn native_client_of(server: SocketAddr, client: usize, seed: u64, is_over: &AtomicBool) {
    // Many requests are sent again although nothing was lost.
    let settings = Settings {
        resend_first_us: 300,
        resend_longest_us: 5_000,
        deadline_us: PATIENCE.as_micros() as u64,
        ..Settings::default()
    };
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut native = NativeClient::connect_with(server, settings).unwrap();
    let mut keys = Keys::of(client);
    for at in 0..Keys::COUNT {
        native.put(keys.counter(at).as_bytes(), b"0", 0, 0).unwrap();
    }
    while !is_over.load(Ordering::Relaxed) {
        let at = rng.random_range(0..Keys::COUNT);
        match rng.random_range(0..10) {
            0..5 => {
                keys.counts[at] += 1;
                let counted = native.increment(keys.counter(at).as_bytes(), 1).unwrap();
                assert_eq!(counted, Some(keys.counts[at]), "{}", keys.counter(at));
            }
            5..7 => {
                // Some come in fragments.
                let bytes_max = [100, 3_000, 60_000][rng.random_range(0..3)];
                let value = keys.value(&mut rng, bytes_max);
                native.put(keys.item(at).as_bytes(), &value, 0, 0).unwrap();
                keys.values[at] = Some(value);
            }
            7 => {
                let was_there = native.delete(keys.item(at).as_bytes()).unwrap();
                assert_eq!(was_there, keys.values[at].take().is_some());
            }
            8 => {
                let found = native.get(keys.item(at).as_bytes()).unwrap();
                assert!(found.map(|item| item.value) == keys.values[at]);
            }
            _ => {
                let names: Vec<String> = (0..Keys::COUNT).map(|at| keys.item(at)).collect();
                let names: Vec<&[u8]> = names.iter().map(String::as_bytes).collect();
                for (at, found) in native.get_many(&names).unwrap().into_iter().enumerate() {
                    assert!(found.unwrap().map(|item| item.value) == keys.values[at]);
                }
            }
        }
    }
    for at in 0..Keys::COUNT {
        let found = native.get(keys.counter(at).as_bytes()).unwrap().unwrap();
        assert_eq!(found.value, keys.counts[at].to_string().as_bytes());
    }
}

/// A client of memcached's UDP protocol. It sends nothing again, so each datagram has to be
/// answered once.
struct Datagrams {
    socket: UdpSocket,
    to: SocketAddr,
    last_id: u16,
}

impl Datagrams {
    /// Sends each command in a datagram of its own, and returns their replies.
    fn ask(&mut self, commands: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let first = self.last_id;
        for command in commands {
            let [high, low] = self.last_id.to_be_bytes();
            let datagram = [&[high, low, 0, 0, 0, 1, 0, 0][..], command].concat();
            self.socket.send_to(&datagram, self.to).unwrap();
            self.last_id = self.last_id.wrapping_add(1);
        }
        let mut parts: BTreeMap<(u16, u16), Vec<u8>> = BTreeMap::new();
        let mut lacking: Vec<u16> = vec![1; commands.len()];
        let mut room = [0; 2_048];
        while lacking.iter().any(|&lacking| lacking > 0) {
            let bytes = self.socket.recv(&mut room).expect("a datagram is answered");
            let number = |at: usize| u16::from_be_bytes([room[at], room[at + 1]]);
            let (request, part, count) = (number(0).wrapping_sub(first), number(2), number(4));
            let lacking = lacking.get_mut(usize::from(request));
            let lacking = lacking.expect("a reply to what was asked just now");
            *lacking += if part == 0 { count - 1 } else { 0 };
            *lacking = lacking.wrapping_sub(1);
            let before = parts.insert((request, part), room[8..bytes].to_vec());
            assert_eq!(before, None, "answered twice");
        }
        let of = |request| {
            let parts = parts.range((request, 0)..=(request, u16::MAX));
            parts.flat_map(|(_, part)| part.clone()).collect()
        };
        (0..commands.len() as u16).map(of).collect()
    }
}

fn memcached_client(node: &Node, client: usize, seed: u64, is_over: &AtomicBool) {
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut keys = Keys::of(client);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut datagrams = Datagrams {
        socket,
        to: node.udp_addresses()[0],
        last_id: 0,
    };
    let set = |key: &str, value: &[u8]| {
        let head = format!("set {key} 0 0 {}\r\n", value.len());
        [head.as_bytes(), value, b"\r\n"].concat()
    };
    for at in 0..Keys::COUNT {
        let stored = datagrams.ask(&[set(&keys.counter(at), b"0")]);
        assert_eq!(stored, [b"STORED\r\n"]);
    }
    while !is_over.load(Ordering::Relaxed) {
        // Requests that wait together are for different keys: datagrams have no order.
        let (mut commands, mut expected) = (Vec::new(), Vec::new());
        for at in 0..Keys::COUNT {
            match rng.random_range(0..8) {
                0..4 => {
                    keys.counts[at] += 1;
                    commands.push(format!("incr {} 1\r\n", keys.counter(at)).into_bytes());
                    expected.push(format!("{}\r\n", keys.counts[at]).into_bytes());
                }
                4 => {
                    let bytes_max = [100, 3_000, 30_000][rng.random_range(0..3)];
                    let value = keys.value(&mut rng, bytes_max);
                    commands.push(set(&keys.item(at), &value));
                    expected.push(b"STORED\r\n".to_vec());
                    keys.values[at] = Some(value);
                }
                5 => {
                    let key = keys.item(at);
                    commands.push(format!("get {key}\r\n").into_bytes());
                    let mut reply = Vec::new();
                    if let Some(value) = &keys.values[at] {
                        let head = format!("VALUE {key} 0 {}\r\n", value.len());
                        reply = [head.as_bytes(), value, b"\r\n"].concat();
                    }
                    reply.extend_from_slice(b"END\r\n");
                    expected.push(reply);
                }
                _ => {}
            }
        }
        let replies = datagrams.ask(&commands);
        for ((command, reply), expected) in commands.iter().zip(replies).zip(expected) {
            let shown =
                |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(80)]).into_owned();
            assert!(reply == expected, "{}{}", shown(command), shown(&reply));
        }
    }
}

fn run(
    node: &Node,
    wanted: &[&str],
    clients: usize,
    client: impl Fn(&Node, usize, u64, &AtomicBool) + Sync,
) -> Tally {
    let seed = glimmer_seeds::seed();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let (is_over, client) = (&is_over, &client);
        let others: Vec<_> = (0..clients)
            .map(|number| {
                let seed = seed ^ (number as u64 + 1);
                scope.spawn(move || client(node, number, seed, is_over))
            })
            .collect();
        let switched = thread::Builder::new().spawn_scoped(scope, || switch(node, wanted, seed));
        let switched = switched.unwrap().join();
        is_over.store(true, Ordering::Relaxed);
        for other in others {
            other.join().unwrap();
        }
        switched.unwrap();
    });
    let mut sum = Tally::default();
    node.figures()
        .tallies()
        .into_iter()
        .for_each(|tally| sum += tally);
    sum
}

#[test]
fn native_changes_are_made_once_while_policies_and_access_modes_change() {
    let tally = run(&start(false), POLICIES_AND_MODES, 3, native_client);
    println!("{tally:?}");
    assert!(tally.drained > 0 && tally.native_repeated > 0, "{tally:?}");
}

#[test]
fn every_datagram_is_answered_once_while_policies_and_access_modes_change() {
    let tally = run(&start(false), POLICIES_AND_MODES, 3, memcached_client);
    println!("{tally:?}");
    assert!(tally.drained > 0, "{tally:?}");
    assert_eq!((tally.datagrams_dropped, tally.datagrams_unsent), (0, 0));
}

/// The network loses and repeats datagrams on their way to the port of all workers.
#[test]
fn native_changes_are_made_once_over_a_network_that_loses_and_repeats() {
    let node = start(true);
    let port = node.native_ports()[0].1[0];
    let crcw = POLICIES_AND_MODES.iter().copied();
    let crcw: Vec<&str> = crcw.filter(|wanted| wanted.ends_with("crcw")).collect();
    let tally = run(&node, &crcw, 2, |_, client, seed, is_over| {
        // Another address of this machine, with the port of which the directory tells.
        let address = SocketAddr::from(([127, 0, 1, 1 + client as u8], port));
        let front = UdpSocket::bind(address).unwrap();
        let back = UdpSocket::bind("127.0.0.1:0").unwrap();
        back.connect(("127.0.0.1", port)).unwrap();
        let server = front.local_addr().unwrap();
        let has_stopped = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| lossy::pass_on(seed, &front, &back, &has_stopped));
            let run = || native_client_of(server, client, seed, is_over);
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
            has_stopped.store(true, Ordering::Relaxed);
            if let Err(failure) = outcome {
                std::panic::resume_unwind(failure);
            }
        });
    });
    println!("{tally:?}");
    assert!(tally.drained > 0 && tally.native_repeated > 0, "{tally:?}");
}
