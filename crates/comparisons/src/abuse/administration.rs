//! Administrative commands in a loop: over connections, and in full datagrams, on a server that is
//! full of small items on small pages.

use std::{
    io::{ErrorKind, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};

use super::{Case, Check, Measured, Scenario, Subject, TextClient, manners::PATIENCE};

/// Every command that lists, counts or changes something, but those that remove items
/// (`flush_all`), turn the connection into something else (`watch`) or end the server (`shutdown`).
pub(super) const COMMANDS: [&str; 24] = [
    "stats",
    "stats settings",
    "stats items",
    "stats slabs",
    "stats sizes",
    "stats conns",
    "stats reset",
    "stats glimmer",
    "stats memory",
    "stats workers",
    "stats native",
    "stats dispatch",
    "stats accelerator",
    "stats hotkeys",
    "stats latency",
    "stats slow",
    "stats cachedump 1 0",
    "stats detail dump",
    "lru_crawler crawl all",
    "lru_crawler metadump all",
    "lru_crawler mgdump all",
    "verbosity 0",
    "cache_memlimit 1024",
    "dispatch keyhash",
];

/// The cheapest request: a read of a key that was never stored.
const HARMLESS: &str = "get k";

/// How often a command is sent before its replies are read.
const REPEATED: usize = 256;
/// Bytes of a full datagram.
const DATAGRAM_BYTES: usize = 1_380;
/// Request id, number of this datagram, number of datagrams, reserved: 16 bits each, big-endian.
const FRAME: [u8; 8] = [0, 1, 0, 0, 0, 1, 0, 0];
/// Pause of a client that can neither send nor receive.
const PAUSE: Duration = Duration::from_millis(1);
/// Datagrams that each hostile client sends in a second, at most. Without a limit, one that is
/// answered briefly on its connection would send several times as many as the control.
const DATAGRAMS_PER_S: u64 = 5_000;
/// Of those that are late, a client sends this many together. Others are left out.
const DATAGRAMS_AT_ONCE: u64 = 20;
/// Bytes of the values that fill the server: with `-m 1024`, three million items.
const VALUE_BYTES: usize = 250;
/// Bytes of such an item, with its share of the index.
const ITEM_BYTES: usize = 320;
/// Memory of a run at full size, in MiB.
const FULL_MIB: usize = 1024;
/// A 99th percentile below this is the machine's own, in milliseconds.
const P99_MS_MIN: f64 = 0.5;

pub(super) struct Administration;

impl Scenario for Administration {
    fn name(&self) -> &'static str {
        "administration"
    }

    fn about(&self) -> &'static str {
        "each administrative command in a loop, on a connection and in full datagrams"
    }

    /// All commands at once on a small server, or one after the other on a large one.
    fn cases(&self, every: bool) -> Vec<Case> {
        let case = |memory_mib, connections, command| Case {
            memory_mib,
            connections,
            command,
            ..Case::default()
        };
        let mut cases = vec![case(64, COMMANDS.len(), "")];
        if every {
            cases.push(case(FULL_MIB, COMMANDS.len(), ""));
            cases.extend(COMMANDS.iter().map(|command| case(FULL_MIB, 1, command)));
        }
        cases
    }

    fn wants_udp(&self) -> bool {
        true
    }

    fn glimmer_arguments(&self, _: &Case) -> Vec<String> {
        ["--hugepages", "off"].map(str::to_owned).to_vec()
    }

    fn prepare(&self, subject: &Subject, case: &Case) -> Result<()> {
        let mut client = TextClient::connect(subject.address(), PATIENCE)?;
        let value = "x".repeat(VALUE_BYTES);
        let items = (case.memory_mib << 20) / ITEM_BYTES;
        for begin in (0..items).step_by(1000) {
            let set =
                |item| format!("set filler-{item:09} 0 0 {VALUE_BYTES} noreply\r\n{value}\r\n");
            let sets: String = (begin..begin + 1000).map(set).collect();
            client.send(sets.as_bytes())?;
        }
        client.send(b"stats detail on\r\nmn\r\n")?;
        let (on, end) = (client.line()?, client.line()?);
        ensure!(
            end == "MN",
            "filling the server ended with {on:?} and {end:?}"
        );
        Ok(())
    }

    fn attack(&self, subject: &Subject, case: &Case, stop: &AtomicBool) -> Result<String> {
        let commands: Vec<_> = match case.command {
            "" => COMMANDS
                .iter()
                .cycle()
                .copied()
                .take(case.connections)
                .collect(),
            command => vec![command; case.connections],
        };
        let mut loops = Vec::new();
        for &command in &commands {
            loops.push(Loop::connect(subject.address(), command)?);
        }
        let socket = UdpSocket::bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)))?;
        socket.connect(subject.address())?;
        let datagrams: Vec<_> = commands.iter().copied().map(datagram).collect();
        let (mut sent, mut rounds, begun) = (0_u64, 0, Instant::now());
        while !stop.load(Relaxed) {
            let mut has_moved = false;
            for each in &mut loops {
                has_moved |= each.go_on(subject.address())?;
            }
            if !has_moved {
                std::thread::sleep(PAUSE);
            }
            let due = begun.elapsed().as_micros() as u64 * DATAGRAMS_PER_S / 1_000_000;
            // After a pause, those follow that were due meanwhile.
            for _ in 0..(due - std::mem::replace(&mut rounds, due)).min(DATAGRAMS_AT_ONCE) {
                for datagram in &datagrams {
                    // A server without UDP refuses datagrams, which then do not count as sent.
                    sent += u64::from(socket.send(datagram).is_ok());
                }
            }
        }
        let received: u64 = loops.iter().map(|each| each.received_bytes).sum();
        Ok(format!(
            "{:.1} MB of replies over TCP, {sent} datagrams sent",
            received as f64 / 1e6
        ))
    }

    /// As many clients that send [`HARMLESS`] in the same way. They take as much of the machine as
    /// one that sends what is costly, and keep the server as busy as it can be kept.
    fn control(&self, case: &Case) -> Option<Case> {
        Some(Case {
            command: HARMLESS,
            ..case.clone()
        })
    }

    /// At most twice what it is without hostile clients, or beside the harmless ones.
    fn judge(&self, case: &Case, measured: &Measured) -> Vec<Check> {
        let mut checks = self.bounds(case).checks(measured);
        let control_ms = measured
            .control
            .as_ref()
            .map_or(0.0, |control| control.slow_ms());
        let bound = 2.0 * measured.quiet.slow_ms().max(control_ms).max(P99_MS_MIN);
        checks.push(Check::at_most(
            "p99 beside twice that alone or beside gets",
            1e3 * measured.attacked.slow_ms(),
            1e3 * bound,
            " us",
        ));
        checks
    }
}

/// As many commands as a datagram holds.
fn datagram(command: &str) -> Vec<u8> {
    let line = format!("{command}\r\n");
    let count = (DATAGRAM_BYTES - FRAME.len()) / line.len();
    [&FRAME[..], line.repeat(count).as_bytes()].concat()
}

/// One connection that sends a command without end, and reads what it is answered.
struct Loop {
    stream: TcpStream,
    said: Vec<u8>,
    /// Bytes of `said` that have been sent this time.
    sent: usize,
    received_bytes: u64,
}

impl Loop {
    fn connect(address: SocketAddr, command: &str) -> Result<Loop> {
        Ok(Loop {
            stream: open(address)?,
            said: format!("{command}\r\n").repeat(REPEATED).into_bytes(),
            sent: 0,
            received_bytes: 0,
        })
    }

    /// Receives and sends what can be received and sent at once, and connects again if the server
    /// has closed the connection. Returns whether there was anything.
    fn go_on(&mut self, address: SocketAddr) -> Result<bool> {
        let mut buffer = [0; 64 << 10];
        let received = self.stream.read(&mut buffer);
        let sent = self.stream.write(&self.said[self.sent..]);
        if let Ok(bytes) = sent {
            self.sent = (self.sent + bytes) % self.said.len();
        }
        match received {
            Ok(0) => {}
            Ok(bytes) => {
                self.received_bytes += bytes as u64;
                return Ok(true);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(sent.is_ok()),
            Err(_) => {}
        }
        (self.stream, self.sent) = (open(address)?, 0);
        Ok(true)
    }
}

fn open(address: SocketAddr) -> Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_nonblocking(true)?;
    super::crowd::reset_on_close(&stream)?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::super::Latency;
    use super::*;

    fn latency(p99_ms: f64) -> Latency {
        Latency {
            visits: 100,
            failures: 0,
            p50_ms: p99_ms / 2.0,
            p99_ms: Some(p99_ms),
            longest_ms: p99_ms,
        }
    }

    #[test]
    fn visits_may_take_twice_as_long_as_alone_or_beside_gets() {
        let passes = |alone, beside_gets, attacked| {
            let measured = Measured {
                connections: 1,
                limit_bytes: None,
                quiet: latency(alone),
                control: Some(latency(beside_gets)),
                attacked: latency(attacked),
                resident_before: None,
                resident_peak: None,
                resident_after: None,
                cpu: None,
                notes: String::new(),
            };
            let checks = Administration.judge(&Case::default(), &measured);
            checks.iter().all(Check::passed)
        };
        assert!(passes(0.1, 0.1, 1.0) && !passes(0.1, 0.1, 1.1));
        assert!(passes(0.1, 2.0, 4.0) && !passes(0.1, 2.0, 4.1));
        assert!(passes(3.0, 2.0, 6.0) && !passes(3.0, 2.0, 6.1));
    }

    #[test]
    fn harmless_clients_are_as_many() {
        for case in Administration.cases(true) {
            let control = Administration.control(&case).unwrap();
            assert_eq!(control.connections, case.connections);
            assert!(!COMMANDS.contains(&control.command));
        }
    }
}
