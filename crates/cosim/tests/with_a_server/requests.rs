//! What the clients send: changes over TCP, which pass the circuit through its rings, and reads
//! over UDP, which it answers.

use crate::setup::{HOST, PORT, Setup};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::net::{TcpStream, UdpSocket};
use std::time::Duration;

/// After this time a datagram is taken for lost. A lost one fails the test, so it is long.
const LOST: Duration = Duration::from_secs(20);
/// For how long an answer is waited for that must not come.
const NO_ANSWER: Duration = Duration::from_secs(2);
/// Offsets in a reply: the binary header, and the value behind its flags.
const HEADER_AT: usize = 8;
const VALUE_AT: usize = HEADER_AT + 24 + 4;

/// The value of a key at this version. Its length depends on both.
pub fn value(key: usize, version: u64) -> Vec<u8> {
    let padding = (key as u64 * 31 + version * 7 + 200) % 256;
    format!("{key}:{version}:{}", "x".repeat(padding as usize % 37)).into_bytes()
}

fn key_name(key: usize) -> String {
    format!("hot{key}")
}

/// A binary GET with memcached's frame.
pub fn binary_get(request: u16, key: usize) -> Vec<u8> {
    let key = key_name(key);
    let mut bytes = Vec::new();
    bytes.extend(request.to_be_bytes());
    bytes.extend([0, 0, 0, 1, 0, 0, 0x80, 0x00]);
    bytes.extend((key.len() as u16).to_be_bytes());
    bytes.extend([0; 4]);
    bytes.extend((key.len() as u32).to_be_bytes());
    bytes.extend(u32::from(request).to_be_bytes());
    bytes.extend([0; 8]);
    bytes.extend(key.bytes());
    bytes
}

/// A reply to a GET.
#[derive(Debug)]
pub struct Reply(Vec<u8>);

impl Reply {
    /// The version of the value, which is whole.
    pub fn version(&self, key: usize) -> u64 {
        assert_eq!(self.0[HEADER_AT + 6..HEADER_AT + 8], [0, 0], "{self:?}");
        let found = &self.0[VALUE_AT..];
        let text = str::from_utf8(found).expect("text");
        let version = text.split(':').nth(1).expect("a version").parse();
        let version = version.expect("a number");
        assert_eq!(found, value(key, version));
        version
    }

    /// Whether the key was not found.
    pub fn is_miss(&self) -> bool {
        self.0[HEADER_AT + 6..HEADER_AT + 8] == [0, 1]
    }
}

/// A client that reads over UDP.
#[derive(Debug)]
pub struct Reads {
    socket: UdpSocket,
    request: u16,
}

impl Reads {
    pub fn new(setup: &Setup) -> Reads {
        let socket = setup.in_client(|| UdpSocket::bind(("0.0.0.0", 0)).unwrap());
        socket.connect((HOST, PORT)).unwrap();
        Reads { socket, request: 0 }
    }

    /// Reads a key. A datagram that is lost fails the test.
    pub fn get(&mut self, key: usize) -> Reply {
        self.ask(key, LOST).expect("an answer")
    }

    /// Reads a key of which no answer has to come.
    pub fn try_get(&mut self, key: usize) -> Option<Reply> {
        self.ask(key, NO_ANSWER)
    }

    fn ask(&mut self, key: usize, patience: Duration) -> Option<Reply> {
        self.request = self.request.wrapping_add(1);
        self.socket.set_read_timeout(Some(patience)).unwrap();
        self.socket.send(&binary_get(self.request, key)).unwrap();
        let mut reply = vec![0; 2048];
        loop {
            let bytes = match self.socket.recv(&mut reply) {
                Ok(bytes) => bytes,
                // The host answers that nobody listens.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => return None,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
                Err(error) => panic!("{error}"),
            };
            if reply[..2] == self.request.to_be_bytes() {
                assert_eq!(
                    reply[HEADER_AT + 12..HEADER_AT + 16],
                    u32::from(self.request).to_be_bytes(),
                    "the opaque"
                );
                return Some(Reply(reply[..bytes].to_vec()));
            }
        }
    }
}

/// A client that changes items over TCP.
#[derive(Debug)]
pub struct Writer {
    lines: BufReader<TcpStream>,
}

impl Writer {
    pub fn new(setup: &Setup) -> Writer {
        let stream = setup.in_client(|| TcpStream::connect((HOST, PORT)).unwrap());
        stream.set_nodelay(true).unwrap();
        Writer {
            lines: BufReader::new(stream),
        }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line
    }

    /// Stores a key's value of this version.
    pub fn set(&mut self, key: usize, version: u64) {
        let value = value(key, version);
        let mut request = format!("set {} 0 0 {}\r\n", key_name(key), value.len()).into_bytes();
        request.extend(&value);
        request.extend(b"\r\n");
        self.lines.get_mut().write_all(&request).unwrap();
        assert_eq!(self.line(), "STORED\r\n");
    }

    /// A line of `stats accelerator`.
    pub fn statistic(&mut self, name: &str) -> String {
        let stream = self.lines.get_mut();
        stream.write_all(b"stats accelerator\r\n").unwrap();
        let mut found = None;
        loop {
            let line = self.line();
            if line == "END\r\n" {
                return found.unwrap_or_else(|| panic!("no {name}"));
            }
            let rest = line.strip_prefix(&format!("STAT {name} "));
            found = rest.map(|rest| rest.trim_end().to_owned()).or(found);
        }
    }
}
