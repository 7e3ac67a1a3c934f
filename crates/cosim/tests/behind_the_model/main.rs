//! A server behind the circuit's software model, as its clients see it: nobody reads an outdated
//! value, and what the server does when the circuit is not there, or is there no more.

#![allow(
    dead_code,
    reason = "the server of other bodies is tested with the same files"
)]

#[path = "../../../glimmer/tests/accelerated/asked.rs"]
mod asked;
#[path = "../../../glimmer/tests/accelerated/changes.rs"]
mod changes;
mod front;
#[path = "../../../glimmer/tests/accelerated/hammer.rs"]
mod hammer;
#[path = "../../../glimmer/tests/accelerated/keys.rs"]
mod keys;
#[path = "../../../glimmer/tests/accelerated/server.rs"]
mod server;

use std::os::unix::net::UnixListener;
use std::time::Duration;

use glimmer_measure::ports::free_ports;

use crate::asked::Asked;
use crate::front::Front;
use crate::hammer::hammer;
use crate::server::{PATIENCE, Server, Text};

/// The program whose command `serve` is the server.
const PROGRAM: &str = env!("CARGO_BIN_EXE_glimmer-cosim");

/// A server behind the model, with its front. Clients send datagrams to the front.
fn behind_front(arguments: &[&str]) -> (Server, Front) {
    let port = free_ports(1).unwrap();
    let front = Front::before(([127, 0, 0, 1], port).into());
    let mut server = Server::begin_on_loopback(port, ["--circuit", &front.socket()], arguments);
    server.wait().expect("it starts");
    server.udp = vec![front.address];
    (server, front)
}

fn hammer_circuit(arguments: &[&str], evictions: u64) -> u64 {
    let (server, _front) = behind_front(arguments);
    let evicted = hammer(&server, &[], evictions);
    let figure = |name| server.figure("stats accelerator", name);
    assert_eq!(server.text_figure("stats accelerator", "body"), "rtl");
    assert_eq!(server.text_figure("stats accelerator", "paused"), "no");
    assert!(figure("cycles") > 0 && figure("bypassed_write_mode") > 0);
    assert_eq!(figure("defer_high_water"), 0);
    evicted
}

#[test]
fn nobody_reads_what_is_outdated_from_a_circuit() {
    for access in ["erew", "crew", "crcw"] {
        println!("{access}");
        hammer_circuit(&["--access", access], 0);
    }
    hammer_circuit(&["--mode", "store"], 0);
    hammer_circuit(&["--table", "memc3"], 0);
}

#[test]
fn nobody_reads_what_was_evicted_from_a_circuit() {
    let evicted = hammer_circuit(&["--evict", "fifo"], 3);
    assert!(evicted >= 3, "{evicted} slots lost their item");
}

/// Reads a key by binary requests, which the circuit answers, until it has answered some.
fn make_hot(server: &Server, key: usize, value: &str) {
    let name = crate::keys::name(key);
    let store = format!("set {name} 7 0 {}\r\n{value}\r\n", value.len());
    assert_eq!(Text::connect(server).say(&store, &[]), "STORED\r\n");
    let before = server.figure("stats accelerator", "hits");
    for _ in 0..200 {
        assert_eq!(read(server, key).as_deref(), Some(value.as_bytes()));
    }
    let gained = server.figure("stats accelerator", "hits") - before;
    assert!(gained > 100, "only {gained} hits: {:?}", server.lines());
}

fn read(server: &Server, key: usize) -> Option<Vec<u8>> {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(server.udp[0]).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut asked = Asked::binary(key, 1);
    socket.send(&asked.request()).unwrap();
    let mut datagram = [0; 4096];
    while !asked.is_complete() {
        let bytes = socket.recv(&mut datagram).unwrap();
        asked.take(&datagram[..bytes]);
    }
    asked.value()
}

#[test]
fn a_lost_circuit_is_said_once_and_the_server_goes_on() {
    let (server, front) = behind_front(&[]);
    make_hot(&server, 0, "old");
    front.end_link();
    let store = "set hot:0 0 0 3\r\nnew\r\n";
    assert_eq!(Text::connect(&server).say(store, &[]), "STORED\r\n");
    for _ in 0..50 {
        assert_eq!(read(&server, 0).as_deref(), Some(&b"new"[..]));
    }
    let paused = server.text_figure("stats accelerator", "paused");
    assert_eq!(paused, "device_lost");
    assert_eq!(server.figure("stats accelerator", "live"), 0);
    let lines = server.lines();
    let said = lines.iter().filter(|line| line.contains("device lost: "));
    assert_eq!(said.count(), 1, "{lines:?}");
}

/// The server ends without a word to its circuit.
#[test]
fn a_circuit_without_its_server_answers_nothing() {
    let (mut server, front) = behind_front(&[]);
    make_hot(&server, 0, "old");
    server.kill();
    let port = server.address.port();
    let mut next = Server::begin_on_loopback(port, ["--circuit", &front.socket()], &[]);
    next.wait().expect("it starts");
    next.udp = vec![front.address];
    assert_eq!(read(&next, 0), None);
    // The other key was asked for without an item, and is put off.
    make_hot(&next, 1, "new");
}

#[test]
fn what_a_circuit_lacks_is_said() {
    let refused = |socket: &str, arguments: &[&str]| {
        let body = ["--circuit", socket];
        let mut server = Server::begin_on_loopback(free_ports(1).unwrap(), body, arguments);
        let waited = server.wait();
        waited.expect_err("it does not start")
    };
    let line = refused("/nonexistent/circuit", &[]);
    assert!(line.contains("--circuit /nonexistent/circuit: "), "{line}");
    assert!(
        line.contains("start the circuit's simulation first"),
        "{line}"
    );
    let front = Front::before(([127, 0, 0, 1], 1).into());
    let socket = front.socket();
    let line = refused(&socket, &["--accelerate-slots", "512"]);
    assert!(line.contains("give --accelerate-slots 256"), "{line}");
    let line = refused(&socket, &["-B", "ascii"]);
    assert!(line.contains("give -B binary"), "{line}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other");
    let listener = UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || {
        use std::io::{Read, Write};
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_exact(&mut [0; 11]).unwrap();
        let mut answer = vec![7, 0, 0, 0, 1];
        answer.extend(glimmer_accel_device::link::MAGIC);
        answer.extend(9u16.to_le_bytes());
        stream.write_all(&answer).unwrap();
        std::thread::sleep(Duration::from_secs(1));
    });
    let line = refused(path.to_str().unwrap(), &[]);
    assert!(line.contains("speaks version 9"), "{line}");
}
