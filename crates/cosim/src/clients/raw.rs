//! Clients on raw sockets: changes over TCP, which pass the circuit through its rings, and reads
//! over UDP, which it answers if it can.

use crate::bed::{ADDRESS, PORT};
use anyhow::{Context, Result, bail, ensure};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::net::{TcpStream, UdpSocket};
use std::time::Duration;

/// After this time a datagram is taken for lost. That is a failure, so it is long.
const LOST: Duration = Duration::from_secs(20);
/// For how long an answer is waited for that must not come.
const NO_ANSWER: Duration = Duration::from_secs(2);
/// Offsets in a reply: the binary header, and the value behind its flags.
const HEADER_AT: usize = 8;
const VALUE_AT: usize = HEADER_AT + 24 + 4;

/// The value of a key at this version. Its length depends on both.
fn value(key: usize, version: u64) -> Vec<u8> {
    let padding = (key as u64 * 31 + version * 7 + 200) % 256;
    format!("{key}:{version}:{}", "x".repeat(padding as usize % 37)).into_bytes()
}

fn key_name(key: usize) -> String {
    format!("hot{key}")
}

/// A binary GET with memcached's frame.
fn binary_get(request: u16, key: usize) -> Vec<u8> {
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

/// The version of a key's value in a reply, which is whole, or `None` if the key was not found.
fn version(reply: &[u8], request: u16, key: usize) -> Result<Option<u64>> {
    let text = || format!("a reply for {}: {}", key_name(key), reply.escape_ascii());
    ensure!(reply.len() >= HEADER_AT + 24, "too short, {}", text());
    let opaque = u32::from(request).to_be_bytes();
    ensure!(reply[20..24] == opaque, "another opaque, {}", text());
    match reply[HEADER_AT + 6..HEADER_AT + 8] {
        [0, 0] => {}
        [0, 1] => return Ok(None),
        _ => bail!("an error, {}", text()),
    }
    let found = reply.get(VALUE_AT..).unwrap_or_default();
    let words = str::from_utf8(found).ok();
    let number = words.and_then(|words| words.split(':').nth(1)?.parse().ok());
    let number = number.with_context(text)?;
    ensure!(found == value(key, number), "wrong bytes, {}", text());
    Ok(Some(number))
}

/// A client that reads over UDP, one key at a time.
#[derive(Debug)]
pub struct Reads {
    socket: UdpSocket,
    request: u16,
}

impl Reads {
    /// In the network namespace of the calling thread.
    ///
    /// # Errors
    ///
    /// The socket's.
    pub fn new() -> Result<Reads> {
        let socket = UdpSocket::bind(("0.0.0.0", 0))?;
        socket.connect((ADDRESS, PORT))?;
        Ok(Reads { socket, request: 0 })
    }

    /// The version of a key's value, if it was found.
    ///
    /// # Errors
    ///
    /// If the datagram or its answer is lost, or a byte of the answer is wrong.
    pub fn get(&mut self, key: usize) -> Result<Option<u64>> {
        let answer = self.ask(key, LOST)?;
        answer.with_context(|| format!("a read of {} was lost", key_name(key)))
    }

    /// Whether a read is not answered.
    ///
    /// # Errors
    ///
    /// As above.
    pub fn is_without_answer(&mut self, key: usize) -> Result<bool> {
        Ok(self.ask(key, NO_ANSWER)?.is_none())
    }

    fn ask(&mut self, key: usize, patience: Duration) -> Result<Option<Option<u64>>> {
        self.request = self.request.wrapping_add(1);
        self.socket.set_read_timeout(Some(patience))?;
        self.socket.send(&binary_get(self.request, key))?;
        let mut reply = vec![0; 2048];
        loop {
            let bytes = match self.socket.recv(&mut reply) {
                Ok(bytes) => bytes,
                // The host answers that no server listens.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => return Ok(None),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error.into()),
            };
            if reply[..2] == self.request.to_be_bytes() {
                return version(&reply[..bytes], self.request, key).map(Some);
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
    /// In the network namespace of the calling thread.
    ///
    /// # Errors
    ///
    /// The socket's.
    pub fn new() -> Result<Writer> {
        let stream = TcpStream::connect((ADDRESS, PORT))?;
        stream.set_nodelay(true)?;
        Ok(Writer {
            lines: BufReader::new(stream),
        })
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.lines.read_line(&mut line)?;
        Ok(line)
    }

    /// Stores a key's value of this version.
    ///
    /// # Errors
    ///
    /// If the server refuses it.
    pub fn set(&mut self, key: usize, version: u64) -> Result<()> {
        let value = value(key, version);
        let mut request = format!("set {} 0 0 {}\r\n", key_name(key), value.len()).into_bytes();
        request.extend(&value);
        request.extend(b"\r\n");
        self.lines.get_mut().write_all(&request)?;
        self.expect("STORED")
    }

    /// Deletes a key, which is there.
    ///
    /// # Errors
    ///
    /// If it was not there.
    pub fn delete(&mut self, key: usize) -> Result<()> {
        let request = format!("delete {}\r\n", key_name(key));
        self.lines.get_mut().write_all(request.as_bytes())?;
        self.expect("DELETED")
    }

    fn expect(&mut self, answer: &str) -> Result<()> {
        let line = self.line()?;
        ensure!(line.trim_end() == answer, "{line:?} instead of {answer}");
        Ok(())
    }

    /// A figure of `stats accelerator`.
    ///
    /// # Errors
    ///
    /// If the server does not show this figure.
    pub fn figure(&mut self, name: &str) -> Result<u64> {
        self.lines.get_mut().write_all(b"stats accelerator\r\n")?;
        let mut found = None;
        loop {
            let line = self.line()?;
            if !line.starts_with("STAT ") {
                return found.with_context(|| format!("no {name} in stats accelerator"));
            }
            let rest = line.strip_prefix(&format!("STAT {name} "));
            found = rest.and_then(|rest| rest.trim_end().parse().ok()).or(found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(status: u8, value: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; VALUE_AT];
        bytes[HEADER_AT + 7] = status;
        bytes[20..24].copy_from_slice(&9_u32.to_be_bytes());
        bytes.extend(value);
        bytes
    }

    #[test]
    fn a_wrong_byte_is_noticed() {
        assert_eq!(&value(3, 7)[..], b"3:7:xxxxxxxxxxxx");
        assert_eq!(version(&reply(0, &value(3, 7)), 9, 3).unwrap(), Some(7));
        assert_eq!(version(&reply(1, b""), 9, 3).unwrap(), None);
        for wrong in [
            reply(0, b"3:7:xxxxxxxxxxx"),
            reply(0, b"3:8:xxxxxxxxxxxx"),
            reply(0, b"4:7:xxxxxxxxxxxx"),
            reply(4, b""),
        ] {
            assert!(version(&wrong, 9, 3).is_err());
        }
        assert!(version(&reply(0, &value(3, 7)), 8, 3).is_err());
        assert_eq!(binary_get(0x0102, 3).len(), 8 + 24 + 4);
    }
}
