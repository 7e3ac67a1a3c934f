//! Connections come and go, also while their requests are with other workers; the server stops
//! without losing what it was given.

use std::collections::HashSet;
use std::io::{self, IoSlice};
use std::net::{Shutdown, TcpStream, UdpSocket};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{self, Client, Habits, config, start, start_with};
use rand::{Rng, SeedableRng, rngs::SmallRng};

use glimmer_base::Moment;
use glimmer_node::{Address, AdminHandler, Encryption, Error, Node, Part};
use glimmer_proto::text;
use glimmer_transport::stream::{ByteStream, Handshaking, Ready, Received, Sent, StreamListener};
use glimmer_transport::{Endpoint, Wakeup};

#[test]
fn a_port_in_use_is_an_error() {
    let node = start(2, Habits::EREW);
    let mut config = config();
    config.listen = node.addresses().to_vec();
    match Node::start(
        config,
        support::engines(1, Habits::EREW),
        std::sync::Arc::new(support::Admin),
    ) {
        Err(Error::Listen { address, source }) => {
            assert_eq!(address, node.addresses()[0]);
            assert_eq!(source.kind(), std::io::ErrorKind::AddrInUse);
        }
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("two servers on one port"),
    }
}

/// A client that can connect may send datagrams at once: nothing listens for connections before
/// every other socket is open.
#[test]
fn streams_are_the_last_to_be_opened() {
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let mut config = config();
    config.listen = vec![Address::Unix {
        path: path.clone(),
        mode: 0o700,
    }];
    config.udp = vec![taken.local_addr().unwrap()];
    let result = Node::start(
        config,
        support::engines(1, Habits::EREW),
        std::sync::Arc::new(support::Admin),
    );
    assert!(matches!(result, Err(Error::Udp { .. })));
    assert!(!path.exists(), "the stream socket was opened first");
}

#[test]
fn an_address_that_is_not_ours_is_an_error() {
    let mut config = config();
    config.listen = vec![Address::Tcp("192.0.2.1:0".parse().unwrap())];
    let result = Node::start(
        config,
        support::engines(1, Habits::EREW),
        std::sync::Arc::new(support::Admin),
    );
    let message = result
        .err()
        .expect("a documentation address is nobody's")
        .to_string();
    assert!(
        message.contains("cannot listen on 192.0.2.1:0"),
        "{message}"
    );
}

#[test]
fn a_worker_that_cannot_be_pinned_is_an_error() {
    let mut config = config();
    config.cores = vec![1_000_000];
    let result = Node::start(
        config,
        support::engines(1, Habits::EREW),
        std::sync::Arc::new(support::Admin),
    );
    let message = result
        .err()
        .expect("no machine has so many cores")
        .to_string();
    assert!(message.contains("cannot run on core 1000000"), "{message}");
}

/// Connections that are closed while their requests are elsewhere, and new ones in their slots:
/// nobody gets another's reply.
#[test]
fn replies_of_a_dead_connection_reach_nobody() {
    for habits in [Habits::EREW, Habits::CREW] {
        let node = start(3, habits);
        let seed = glimmer_seeds::seed();
        thread::scope(|scope| {
            for thread in 0..4u64 {
                let node = &node;
                scope.spawn(move || {
                    let mut rng = SmallRng::seed_from_u64(seed ^ thread);
                    for round in 0..300 {
                        let mut client = Client::connect(node);
                        let key = format!("t{thread}r{round}");
                        for i in 0..rng.random_range(1..60) {
                            client.send(format!("set {key}:{i} 0 0 6\r\n{round:06}\r\n"));
                        }
                        if rng.random() {
                            // Closes with replies unread, most of them not yet made.
                            continue;
                        }
                        client.stream.shutdown(Shutdown::Write).unwrap();
                        let replies = client.rest();
                        assert!(
                            replies.chunks(8).all(|reply| reply == b"STORED\r\n"),
                            "{:?}",
                            String::from_utf8_lossy(&replies)
                        );
                    }
                });
            }
        });
        node.stop();
        node.join();
    }
}

/// A client that sends everything and closes its side gets every answer.
#[test]
fn a_half_closed_connection_is_answered() {
    for workers in [1, 3] {
        let node = start(workers, Habits::EREW);
        let mut client = Client::connect(&node);
        for i in 0..1_000 {
            client.send(format!("set k{i} 0 0 1\r\nx\r\n"));
        }
        client.stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!(client.rest(), b"STORED\r\n".repeat(1_000));
    }
}

#[test]
fn quit_closes_behind_the_last_reply() {
    let node = start(2, Habits::EREW);
    let mut client = Client::connect(&node);
    for i in 0..50 {
        client.send(format!("set k{i} 0 0 1\r\nx\r\n"));
    }
    client.send("quit\r\nget k1\r\n");
    assert_eq!(client.rest(), b"STORED\r\n".repeat(50));
}

/// What has arrived when the server is told to stop is executed and answered, then the connection
/// is closed.
#[test]
fn stopping_answers_what_has_arrived() {
    for workers in [1, 3] {
        let node = start(workers, Habits::EREW);
        let mut clients: Vec<Client> = (0..10).map(|_| Client::connect(&node)).collect();
        for client in &mut clients {
            client.expect("mn\r\n", "MN\r\n");
        }
        for (index, client) in clients.iter_mut().enumerate() {
            // In one segment: when the first is answered, all have arrived.
            let requests: String = (0..500)
                .map(|i| format!("set k{index}:{i} 0 0 1\r\nx\r\n"))
                .collect();
            client.send(requests);
        }
        for client in &mut clients {
            assert_eq!(client.line(), "STORED\r\n");
        }
        node.stop();
        for client in &mut clients {
            assert_eq!(client.rest(), b"STORED\r\n".repeat(499));
        }
        let address = node.local_addrs()[0];
        node.join();
        assert!(
            std::net::TcpStream::connect(address).is_err(),
            "nobody listens any more"
        );
    }
}

/// A admin handler that answers `stats` when it is told to, and says when it was asked.
struct Gate {
    asked: Sender<()>,
    told: Mutex<Receiver<()>>,
}

impl AdminHandler for Gate {
    fn stats(&self, _: &[u8], _: u64, _: Moment, out: &mut Vec<u8>) -> Part {
        self.asked.send(()).unwrap();
        self.told.lock().unwrap().recv().unwrap();
        out.extend_from_slice(b"END\r\n");
        Part::Last
    }

    fn admits(&self, _: &[u8], _: &[u8]) -> bool {
        false
    }

    fn verbosity(&self, _: u32) {}

    fn shutdown(&self, _: text::Shutdown, _: &mut Vec<u8>) -> bool {
        false
    }
}

/// Connections that wait in the backlog when the server is told to stop are served, not reset.
#[test]
fn stopping_serves_the_connections_that_wait_to_be_accepted() {
    for workers in [1, 3] {
        let (asked, is_asked) = mpsc::channel();
        let (tell, told) = mpsc::channel();
        let gate = Gate {
            asked,
            told: Mutex::new(told),
        };
        let engines = support::engines(workers, Habits::EREW);
        let node = Node::start(config(), engines, Arc::new(gate)).unwrap();
        // One client per worker holds that worker up.
        let mut holders: Vec<Client> = (0..workers).map(|_| Client::connect(&node)).collect();
        for holder in &mut holders {
            holder.expect("mn\r\n", "MN\r\n");
        }
        for holder in &mut holders {
            holder.send("stats\r\n");
        }
        for _ in 0..workers {
            is_asked.recv_timeout(support::PATIENCE).unwrap();
        }
        // More than a worker accepts in one turn.
        let mut waiting: Vec<Client> = (0..100).map(|_| Client::connect(&node)).collect();
        for (index, client) in waiting.iter_mut().enumerate() {
            client.send(format!("set k{index} 0 0 1\r\nx\r\nget k{index}\r\n"));
        }
        node.stop();
        for _ in 0..workers {
            tell.send(()).unwrap();
        }
        for holder in &mut holders {
            assert_eq!(holder.rest(), b"END\r\n");
        }
        for (index, client) in waiting.iter_mut().enumerate() {
            let expected = format!("STORED\r\nVALUE k{index} 0 1\r\nx\r\nEND\r\n");
            assert_eq!(String::from_utf8_lossy(&client.rest()), expected);
        }
        node.join();
    }
}

#[test]
fn connections_are_spread_evenly() {
    let node = start_with(config(), 4, Habits::EREW);
    let mut clients: Vec<Client> = (0..50).map(|_| Client::connect(&node)).collect();
    for client in &mut clients {
        client.expect("mn\r\n", "MN\r\n");
    }
    // A worker shows its figures at the end of a turn, which may come after the reply: one more
    // turn each.
    for client in &mut clients {
        client.expect("mn\r\n", "MN\r\n");
    }
    let counts: Vec<u64> = node
        .figures()
        .tallies()
        .iter()
        .map(|tally| tally.curr_connections)
        .collect();
    assert_eq!(counts.iter().sum::<u64>(), 50);
    let (fewest, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
    assert!(most - fewest <= 1, "{counts:?}");
}

/// A flood has the worker look for datagrams itself; afterwards it sleeps until the poller wakes
/// it.
#[test]
fn floods_of_datagrams_and_lone_ones_are_answered_and_then_there_is_rest() {
    let mut config = config();
    config.udp = vec!["127.0.0.1:0".parse().unwrap()];
    let node = start_with(config, 1, Habits::EREW);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(node.udp_addresses()[0]).unwrap();
    socket.set_read_timeout(Some(support::PATIENCE)).unwrap();
    let mut reply = [0; 100];
    for _ in 0..20 {
        for count in [150u16, 1, 40] {
            let mut waiting: HashSet<u16> = (0..count).collect();
            for id in 0..count {
                let [high, low] = id.to_be_bytes();
                let frame = [high, low, 0, 0, 0, 1, 0, 0];
                socket.send(&[&frame[..], b"mn\r\n"].concat()).unwrap();
            }
            while !waiting.is_empty() {
                let bytes = socket.recv(&mut reply).unwrap();
                let id = u16::from_be_bytes([reply[0], reply[1]]);
                assert_eq!(&reply[2..bytes], b"\0\0\0\x01\0\0MN\r\n");
                assert!(waiting.remove(&id), "{id} is answered twice");
            }
        }
    }
    let turns = || node.figures().tallies()[0].turns;
    let rests = || {
        let before = turns();
        thread::sleep(Duration::from_millis(50));
        turns() == before
    };
    let deadline = Instant::now() + support::PATIENCE;
    while !rests() {
        assert!(Instant::now() < deadline, "the worker goes on looking");
    }
}

/// Has the connections of the first address shake hands. Somebody says how far each step gets.
#[derive(Clone, Debug)]
struct Shaken {
    began: Sender<()>,
    gets_to: Arc<Mutex<Receiver<Handshaking>>>,
}

struct ShakenListener(Box<dyn StreamListener>, Shaken);

struct ShakenStream(Box<dyn ByteStream>, Shaken, bool);

impl Encryption for Shaken {
    fn over(&self, listener: Box<dyn StreamListener>, index: usize) -> Box<dyn StreamListener> {
        match index {
            0 => Box::new(ShakenListener(listener, self.clone())),
            _ => listener,
        }
    }

    fn bytes(&self) -> usize {
        0
    }

    fn bytes_max(&self) -> usize {
        usize::MAX
    }

    fn note_closed(&self) {}
}

impl StreamListener for ShakenListener {
    fn accept(&mut self) -> io::Result<Option<Box<dyn ByteStream>>> {
        let shaken = |stream| -> Box<dyn ByteStream> {
            Box::new(ShakenStream(stream, self.1.clone(), true))
        };
        Ok(self.0.accept()?.map(shaken))
    }

    fn wakeup(&self) -> Wakeup<'_> {
        self.0.wakeup()
    }

    fn local(&self) -> Option<Endpoint> {
        self.0.local()
    }
}

impl ByteStream for ShakenStream {
    fn receive_at_most(&mut self, into: &mut Vec<u8>, bytes_max: usize) -> Received {
        self.0.receive_at_most(into, bytes_max)
    }

    fn send_parts(&mut self, parts: &[IoSlice<'_>]) -> Sent {
        self.0.send_parts(parts)
    }

    fn wakeup(&self) -> Wakeup<'_> {
        self.0.wakeup()
    }

    fn ready(&self) -> Ready {
        self.0.ready()
    }

    fn finish(&mut self) {
        self.0.finish();
    }

    fn reset(self: Box<Self>) {
        self.0.reset();
    }

    fn local(&self) -> Option<Endpoint> {
        self.0.local()
    }

    fn peer(&self) -> Option<Endpoint> {
        self.0.peer()
    }

    fn is_handshaking(&self) -> bool {
        self.2
    }

    fn handshake(&mut self) -> Handshaking {
        self.1.began.send(()).unwrap();
        let standing = self.1.gets_to.lock().unwrap().recv().unwrap();
        self.2 = standing != Handshaking::Done;
        standing
    }
}

/// A node of one worker whose first address shakes hands. Tells of each step that begins, and is
/// told how far it gets.
fn shaking_node() -> (Node, Receiver<()>, Sender<Handshaking>) {
    let (began, begins) = mpsc::channel();
    let (step, gets_to) = mpsc::channel();
    let gets_to = Arc::new(Mutex::new(gets_to));
    let mut config = config();
    config.listen = vec![config.listen[0].clone(); 2];
    config.encryption = Some(Arc::new(Shaken { began, gets_to }));
    (start_with(config, 1, Habits::EREW), begins, step)
}

/// A handshake that computes for long keeps no other client of its worker waiting, and what its
/// own client has sent meanwhile is answered afterwards.
#[test]
fn a_long_handshake_keeps_nobody_waiting() {
    let (node, begins, step) = shaking_node();
    let [first, second] = node.local_addrs()[..] else {
        panic!("two addresses");
    };
    let mut shaking = Client::connect_to(first);
    shaking.send(b"set key 0 0 1\r\nx\r\n");
    begins.recv_timeout(support::PATIENCE).unwrap();
    let mut other = Client::connect_to(second);
    other.send(b"get key\r\n");
    assert_eq!(other.line(), "END\r\n");
    shaking.send(b"get key\r\n");
    step.send(Handshaking::Done).unwrap();
    for line in ["STORED", "VALUE key 0 1", "x", "END"] {
        assert_eq!(shaking.line(), format!("{line}\r\n"));
    }
}

/// A client that hangs up while the server computes is answered, and sees the end. The kernel tells
/// of a hang-up once.
#[test]
fn a_client_that_hangs_up_during_its_handshake_is_answered() {
    let (node, begins, step) = shaking_node();
    let [first, second] = node.local_addrs()[..] else {
        panic!("two addresses");
    };
    let mut shaking = Client::connect_to(first);
    shaking.send(b"get key\r\n");
    begins.recv_timeout(support::PATIENCE).unwrap();
    shaking.stream.shutdown(Shutdown::Write).unwrap();
    // The worker sees what it is told in the order in which it came.
    assert_eq!(Client::connect_to(second).ask("get key\r\n"), "END\r\n");
    // A step that waits for the client goes on, as no more will be reported.
    for standing in [Handshaking::GoesOn, Handshaking::Waits, Handshaking::Done] {
        step.send(standing).unwrap();
        if standing != Handshaking::Done {
            begins.recv_timeout(support::PATIENCE).unwrap();
        }
    }
    assert_eq!(shaking.line(), "END\r\n");
    assert_eq!(shaking.line(), "", "the connection ends");
}

/// A server that stops answers what has come with the end of a handshake.
#[test]
fn a_server_that_stops_ends_its_handshakes() {
    let (node, begins, step) = shaking_node();
    let [first, second] = node.local_addrs()[..] else {
        panic!("two addresses");
    };
    let mut shaking = Client::connect_to(first);
    shaking.send(b"get key\r\n");
    begins.recv_timeout(support::PATIENCE).unwrap();
    node.stop();
    while TcpStream::connect(second).is_ok() {
        thread::yield_now();
    }
    step.send(Handshaking::Done).unwrap();
    assert_eq!(shaking.line(), "END\r\n");
    assert_eq!(shaking.line(), "", "the connection ends");
}
