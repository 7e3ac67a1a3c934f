//! Clients of one address that ask for all that they can get, of a server that limits addresses.

use std::{
    io::{ErrorKind, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::Duration,
};

use anyhow::{Context, Result};
use rustix::net::{AddressFamily, SocketType, bind, connect, socket};

use super::{Case, Check, Measured, Scenario, Subject};
use crate::servers::Kind;

/// Requests per second that an address may have: more than the well-behaved clients send.
const LIMIT: &str = "10000";
/// Connections that the server takes.
const CONNECTIONS: &str = "4096";
/// Where hostile clients come from. The well-behaved ones come from 127.0.0.1.
const FROM: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2)), 0);
/// Requests that a client sends at once. It reads what has been answered, and sends as many again.
const REQUESTS: usize = 256;
/// Pause after a round over all clients in which the server took and sent nothing.
const PAUSE: Duration = Duration::from_millis(1);
/// The case in which hostile clients are connected and send nothing.
const RESTING: &str = "resting";
/// The case of a server that limits nothing.
const UNLIMITED: &str = "no limits";

/// How much longer visits may take beside these clients than beside those that rest.
const LONGER_MAX: f64 = 1.1;
/// What the figures of two runs differ by whatever the server does, in milliseconds.
const NOISE_MS: f64 = 0.2;

pub(super) struct Greedy;

impl Scenario for Greedy {
    fn name(&self) -> &'static str {
        "greedy"
    }

    fn about(&self) -> &'static str {
        "clients of an address that may send 10,000 requests a second send as many as they can"
    }

    fn cases(&self, every: bool) -> Vec<Case> {
        let case = |command| Case {
            connections: 16,
            command,
            ..Case::default()
        };
        match every {
            false => vec![case("")],
            true => vec![case(""), case(UNLIMITED)],
        }
    }

    fn suits(&self, kind: Kind) -> bool {
        kind == Kind::Glimmer
    }

    fn glimmer_arguments(&self, case: &Case) -> Vec<String> {
        // Visitors that wait for their limit, and have gone, are connections until their turn.
        let mut arguments = vec!["-c".to_owned(), CONNECTIONS.to_owned()];
        if case.command != UNLIMITED {
            arguments.extend(["--address-requests".to_owned(), LIMIT.to_owned()]);
        }
        arguments
    }

    fn control(&self, case: &Case) -> Option<Case> {
        Some(Case {
            command: RESTING,
            ..case.clone()
        })
    }

    fn attack(&self, subject: &Subject, case: &Case, stop: &AtomicBool) -> Result<String> {
        let mut clients = (0..case.connections)
            .map(|_| Client::connect(subject.address()))
            .collect::<Result<Vec<_>>>()?;
        while !stop.load(Relaxed) {
            let mut is_idle = true;
            if case.command != RESTING {
                for client in &mut clients {
                    is_idle &= !client.go_on();
                    // A server may close whom it has no memory for.
                    if client.is_closed && client.connect_again(subject.address()).is_err() {
                        is_idle = true;
                    }
                }
            }
            if is_idle {
                std::thread::sleep(PAUSE);
            }
        }
        let sum = |of: fn(&Client) -> u64| clients.iter().map(of).sum::<u64>();
        let (answers, errors) = (sum(|it| it.answers), sum(|it| it.errors));
        let closed = sum(|it| it.closed);
        Ok(format!(
            "{answers} answers, of which {errors} were errors, and {closed} times closed"
        ))
    }

    fn judge(&self, case: &Case, measured: &Measured) -> Vec<Check> {
        let mut checks = self.bounds(case).checks(measured);
        if let Some(control) = measured
            .control
            .as_ref()
            .filter(|_| case.command.is_empty())
        {
            let bound = LONGER_MAX * control.slow_ms() + NOISE_MS;
            let us = |ms: f64| ms * 1e3;
            let p99_us = us(measured.attacked.slow_ms());
            checks.push(Check::at_most("p99 beside", p99_us, us(bound), " µs"));
        }
        checks
    }
}

/// A hostile client.
struct Client {
    stream: TcpStream,
    speech: Vec<u8>,
    /// Bytes of the speech that the server has taken.
    sent: usize,
    /// Lines that the server has answered, and those of them that were errors.
    answers: u64,
    errors: u64,
    /// How often it has connected again.
    closed: u64,
    is_closed: bool,
    heard: Vec<u8>,
}

impl Client {
    fn connect(address: SocketAddr) -> Result<Client> {
        Ok(Client {
            stream: connected(address)?,
            speech: b"get k\r\n".repeat(REQUESTS),
            sent: 0,
            answers: 0,
            errors: 0,
            closed: 0,
            is_closed: false,
            heard: vec![0; 64 << 10],
        })
    }

    /// Connects again after it was closed.
    fn connect_again(&mut self, address: SocketAddr) -> Result<()> {
        self.stream = connected(address)?;
        (self.sent, self.is_closed) = (0, false);
        self.closed += 1;
        Ok(())
    }

    /// Sends and receives as much as there is room for. Returns whether that was anything.
    fn go_on(&mut self) -> bool {
        let sent = self.stream.write(&self.speech[self.sent..]);
        let sent = self.unless_closed(sent);
        self.sent = (self.sent + sent) % self.speech.len();
        let received = self.stream.read(&mut self.heard);
        self.is_closed |= matches!(received, Ok(0));
        let received = self.unless_closed(received);
        let heard = &self.heard[..received];
        self.answers += heard.iter().filter(|&&byte| byte == b'\n').count() as u64;
        // No other answer has this letter.
        self.errors += heard.iter().filter(|&&byte| byte == b'V').count() as u64;
        sent + received > 0
    }

    /// The bytes that were moved. Notes whether the connection is closed.
    fn unless_closed(&mut self, done: std::io::Result<usize>) -> usize {
        done.unwrap_or_else(|error| {
            self.is_closed |= error.kind() != ErrorKind::WouldBlock;
            0
        })
    }
}

fn connected(address: SocketAddr) -> Result<TcpStream> {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
    bind(&socket, &FROM).context("a server on this machine is needed")?;
    connect(&socket, &address).with_context(|| format!("connecting to {address}"))?;
    let stream = TcpStream::from(socket);
    stream.set_nonblocking(true)?;
    Ok(stream)
}
