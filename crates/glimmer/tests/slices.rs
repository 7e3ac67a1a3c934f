//! `--slice-bytes` at a running server: in how many turns a worker receives a large value that has
//! arrived as a whole.

#[path = "support/server.rs"]
mod server;

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use server::Server;

/// Bytes of a value that a Unix socket holds while the server is stopped.
const BYTES: usize = 120_000;
/// Bytes of the slices, and how many a value has.
const SLICE: &str = "16k";
const SLICES: u64 = BYTES as u64 / (16 << 10);
/// Attempts. A worker that has had no small request for a second handles values whole, so a stall
/// of the machine may hide the slices.
const TRIES_MAX: usize = 20;

/// A server of one worker.
fn start(socket: &Path, slice: &str) -> Server {
    Server::start(socket, &["-t", "1", "--slice-bytes", slice])
}

fn signal(server: &Server, signal: Signal) {
    kill(Pid::from_raw(server.0.id() as i32), signal).unwrap();
}

/// A connection of a client.
struct Client(BufReader<UnixStream>);

impl Client {
    fn connect(socket: &Path) -> Client {
        Client(BufReader::new(UnixStream::connect(socket).unwrap()))
    }

    fn say(&mut self, said: &[u8]) {
        self.0.get_mut().write_all(said).unwrap();
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line
    }

    /// One of the server's statistics.
    fn shown(&mut self, statistics: &str, name: &str) -> String {
        self.say(format!("stats {statistics}\r\n").as_bytes());
        let mut found = None;
        loop {
            let line = self.line();
            if line == "END\r\n" {
                return found.expect("it is there");
            }
            if let Some(value) = line.strip_prefix(&format!("STAT {name} ")) {
                found = Some(value.trim_end().to_owned());
            }
        }
    }

    /// Turns of its worker so far.
    fn turns(&mut self) -> u64 {
        self.shown("glimmer", "turns").parse().unwrap()
    }
}

/// Turns that a store takes of a value that has arrived whole, beside a small request that has
/// arrived too.
fn turns_of_a_store(server: &Server, socket: &Path) -> u64 {
    let [mut large, mut small] = [Client::connect(socket), Client::connect(socket)];
    let before = small.turns();
    signal(server, Signal::SIGSTOP);
    large.0.get_ref().set_nonblocking(true).unwrap();
    let said = [
        format!("set large 0 0 {BYTES}\r\n").into_bytes(),
        vec![b'x'; BYTES],
        b"\r\n".to_vec(),
    ];
    large.say(&said.concat());
    small.say(b"get none\r\n");
    signal(server, Signal::SIGCONT);
    assert_eq!(small.line(), "END\r\n");
    large.0.get_ref().set_nonblocking(false).unwrap();
    assert_eq!(large.line(), "STORED\r\n");
    small.turns() - before
}

#[test]
fn a_value_is_received_in_slices_or_whole() {
    let folder = tempfile::tempdir().unwrap();
    let sliced = folder.path().join("sliced");
    let server = start(&sliced, SLICE);
    let shown = Client::connect(&sliced).shown("settings", "glimmer_slice_bytes");
    assert_eq!(shown, "16384");
    let is_sliced = |_| turns_of_a_store(&server, &sliced) >= SLICES;
    assert!(
        (0..TRIES_MAX).any(is_sliced),
        "a value is not received in slices"
    );

    let whole = folder.path().join("whole");
    let server = start(&whole, "off");
    let shown = Client::connect(&whole).shown("settings", "glimmer_slice_bytes");
    assert_eq!(shown, "off");
    let turns = turns_of_a_store(&server, &whole);
    assert!(
        turns < SLICES,
        "{turns} turns, and {SLICES} slices of {SLICE}"
    );
}
