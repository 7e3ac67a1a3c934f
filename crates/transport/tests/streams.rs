//! Tests for every byte stream.

use glimmer_transport::packet::Wakeup;
use glimmer_transport::stream::{
    ByteStream, LocalListener, Received, Sent, StreamFaults, StreamListener,
};
use glimmer_transport::tcp::{Listener, SocketStream};
use glimmer_transport::{Endpoint, Poller, unix};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::io::IoSlice;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Time that a stream under test may take to deliver bytes.
const PATIENCE: Duration = Duration::from_secs(20);

/// A listener, and how to connect to it.
struct Rig {
    listener: Box<dyn StreamListener>,
    connect: Box<dyn FnMut() -> Box<dyn ByteStream>>,
    _folder: Option<tempfile::TempDir>,
}

impl Rig {
    /// Both ends of a new connection: the client's and the server's.
    fn connected(&mut self) -> [Box<dyn ByteStream>; 2] {
        let client = (self.connect)();
        let mut server = None;
        until(|| {
            server = self.listener.accept().unwrap();
            server.is_some()
        });
        [client, server.unwrap()]
    }
}

/// The name of a kind of stream, and how to create a listener.
type Kind = (&'static str, Box<dyn Fn() -> Rig>);

/// Every kind of stream with its name. Add new ones here. Faults follow from the seed.
fn rigs(seed: u64) -> [Kind; 4] {
    let short = StreamFaults {
        short_read: 0.4,
        short_write: 0.4,
        ..StreamFaults::default()
    };
    [
        ("TCP", Box::new(tcp)),
        ("a Unix socket", Box::new(unix_socket)),
        (
            "this process",
            Box::new(move || local(StreamFaults::default(), seed)),
        ),
        (
            "this process, with short reads and writes",
            Box::new(move || local(short, seed)),
        ),
    ]
}

fn tcp() -> Rig {
    let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), 8).unwrap();
    let address = listener.address().unwrap();
    let connect = move || {
        let stream = std::net::TcpStream::connect(address).unwrap();
        Box::new(SocketStream::from(OwnedFd::from(stream))) as Box<dyn ByteStream>
    };
    Rig {
        listener: Box::new(listener),
        connect: Box::new(connect),
        _folder: None,
    }
}

fn unix_socket() -> Rig {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let listener = unix::listen(&path, 0o700, 8).unwrap();
    let connect = move || {
        let stream = std::os::unix::net::UnixStream::connect(&path).unwrap();
        Box::new(SocketStream::from(OwnedFd::from(stream))) as Box<dyn ByteStream>
    };
    Rig {
        listener: Box::new(listener),
        connect: Box::new(connect),
        _folder: Some(folder),
    }
}

fn local(faults: StreamFaults, seed: u64) -> Rig {
    let listener = LocalListener::new(([10, 0, 0, 1], 11211).into());
    let (connector, mut port) = (listener.clone(), 1000);
    let connect = move || {
        port += 1;
        let from = ([10, 0, 0, 2], port).into();
        Box::new(connector.connect(from, faults, seed ^ u64::from(port))) as Box<dyn ByteStream>
    };
    Rig {
        listener: Box::new(listener),
        connect: Box::new(connect),
        _folder: None,
    }
}

fn until(mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < deadline);
        std::thread::yield_now();
    }
}

/// Receives until this many bytes have arrived; `None` at the end of the stream.
fn receive(stream: &mut dyn ByteStream, count: usize) -> Option<Vec<u8>> {
    let mut received = Vec::with_capacity(count);
    let mut has_ended = false;
    until(|| {
        let room = received.capacity() - received.len();
        if received.len() == count {
            return true;
        }
        match stream.receive(&mut received) {
            Received::Full(bytes) => assert_eq!(bytes, room),
            Received::Drained(bytes) => assert!(bytes < room),
            Received::Ended => has_ended = true,
        }
        has_ended || received.len() >= count
    });
    (!has_ended).then_some(received)
}

fn send(stream: &mut dyn ByteStream, mut bytes: &[u8]) {
    until(|| {
        match stream.send(bytes) {
            Sent::All => bytes = &[],
            Sent::Part(count) => bytes = &bytes[count..],
            Sent::Failed => panic!("the peer is there"),
        }
        bytes.is_empty()
    });
}

#[test]
fn bytes_arrive_in_order_then_the_end() {
    let seed = glimmer_seeds::seed();
    for (name, make) in rigs(seed) {
        let [mut client, mut server] = make().connected();
        let mut random = SmallRng::seed_from_u64(seed);
        let bytes: Vec<u8> = (0..300_000).map(|_| random.random()).collect();
        let (mut sent, mut received) = (0, Vec::new());
        until(|| {
            let end = bytes.len().min(sent + random.random_range(1..20_000));
            if sent < end {
                let all = &bytes[sent..end];
                let parts = all.chunks(random.random_range(1..20_000));
                let parts: Vec<IoSlice<'_>> = parts.take(1000).map(IoSlice::new).collect();
                let end = sent + parts.iter().map(|part| part.len()).sum::<usize>();
                let outcome = match random.random() {
                    true => client.send_parts(&parts),
                    false => client.send(&bytes[sent..end]),
                };
                sent += match outcome {
                    Sent::All => end - sent,
                    Sent::Part(count) => count,
                    Sent::Failed => panic!("{name}: the peer is there"),
                };
            }
            let mut buffer = Vec::with_capacity(random.random_range(1..20_000));
            assert_ne!(server.receive(&mut buffer), Received::Ended, "{name}");
            received.extend(buffer);
            received.len() == bytes.len()
        });
        assert!(received == bytes, "{name}, seed {seed}");
        send(&mut *client, b"the last");
        client.finish();
        assert_eq!(receive(&mut *server, 8).unwrap(), b"the last", "{name}");
        assert_eq!(receive(&mut *server, 1), None, "{name}");
        // The other direction is still open.
        send(&mut *server, b"a reply");
        assert_eq!(receive(&mut *client, 7).unwrap(), b"a reply", "{name}");
        drop(server);
        assert_eq!(receive(&mut *client, 1), None, "{name}");
    }
}

#[test]
fn a_stream_takes_no_more_than_there_is_room_for() {
    for (name, make) in rigs(glimmer_seeds::seed()) {
        let [mut client, mut server] = make().connected();
        let block = vec![7; 1 << 20];
        let mut sent = 0;
        // A short write does not end the stream.
        let mut refused = 0;
        while refused < 100 {
            match client.send(&block) {
                Sent::All => sent += block.len(),
                Sent::Part(0) => refused += 1,
                Sent::Part(count) => sent += count,
                Sent::Failed => panic!("{name}: the peer is there"),
            }
        }
        assert!(
            receive(&mut *server, sent)
                .unwrap()
                .iter()
                .all(|byte| *byte == 7)
        );
        send(&mut *client, b"more");
        assert_eq!(receive(&mut *server, 4).unwrap(), b"more", "{name}");
    }
}

#[test]
fn a_reset_fails_both_ends() {
    for (name, make) in rigs(glimmer_seeds::seed()) {
        let mut rig = make();
        let [client, mut server] = rig.connected();
        client.reset();
        assert_eq!(receive(&mut *server, 1), None, "{name}");
        until(|| server.send(b"hello?") == Sent::Failed);
    }
}

#[test]
fn a_stream_that_is_waited_for_is_reported() {
    for (name, make) in rigs(glimmer_seeds::seed()) {
        let mut rig = make();
        let [mut client, mut server] = rig.connected();
        let mut poller = match server.wakeup() {
            Wakeup::Signal(_) => Poller::local(8),
            _ => Poller::new(8).unwrap(),
        };
        poller.watch_edges(server.wakeup(), 3).unwrap();
        let mut is_readable = || {
            poller.wait(Some(Duration::ZERO)).unwrap();
            (0..poller.ready_count()).any(|index| poller.ready(index).readable)
        };
        assert!(!is_readable(), "{name}");
        send(&mut *client, b"bytes");
        until(&mut is_readable);
        assert_eq!(receive(&mut *server, 5).unwrap(), b"bytes");
        assert!(!is_readable(), "{name}");
        drop(client);
        until(&mut is_readable);
        assert!(server.ready().hung_up, "{name}");
    }
}

#[test]
fn ends_know_their_names() {
    for (name, make) in rigs(glimmer_seeds::seed()) {
        let mut rig = make();
        assert!(rig.listener.accept().unwrap().is_none(), "{name}");
        let [client, server] = rig.connected();
        assert_eq!(server.local(), rig.listener.local(), "{name}");
        assert_eq!(client.peer(), rig.listener.local(), "{name}");
        assert_eq!(client.local(), server.peer(), "{name}");
        match server.local().unwrap() {
            Endpoint::Ip(address) => assert_ne!(address.port(), 0, "{name}"),
            Endpoint::Unix(path) => assert!(path.is_some(), "{name}"),
        }
    }
}
