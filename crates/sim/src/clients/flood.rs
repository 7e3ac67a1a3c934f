//! A client that never stops: whenever the server has received everything from it, there is more.
//! What it asks is no part of the history; what counts is that the others are answered in time.

use super::login::write_login;
use super::{Client, Due, Notes};
use crate::scenario::{ClientPlan, Flood};
use glimmer_transport::stream::{ByteStream, LocalListener, LocalStream, Received, Sent};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::net::SocketAddr;

/// The server receives from it this often. A worker that did so in one turn would keep everyone
/// waiting for longer than anyone may wait.
const RECEIVES_MAX: u64 = 30_000;
/// How long it stays, in microseconds. While it floods, no worker rests, so every microsecond takes
/// steps.
const STAYS_US: u64 = 500_000;
/// The length of a value that it has the server swallow, in bytes.
const SWALLOWED_BYTES: u64 = 1_000_000_000;
/// The length of a value that it asks for and does not take, in bytes.
const UNTAKEN_BYTES: usize = 30_000;

/// A client that never stops.
pub struct Flooder {
    flood: Flood,
    stream: Option<LocalStream>,
    out: Vec<u8>,
    /// It has a login that is not answered; the rest waits for that.
    logs_in: bool,
    has_begun: bool,
    /// When it leaves.
    leaves_us: u64,
    /// It takes what the server sends.
    reads: bool,
}

impl Flooder {
    /// A client that has connected, and that the server lets in if it has to log in first.
    pub fn new(
        number: usize,
        plan: &ClientPlan,
        flood: Flood,
        listeners: &[LocalListener],
    ) -> Flooder {
        let mut rng = SmallRng::seed_from_u64(plan.seed);
        let listener = &listeners[rng.random_range(0..listeners.len())];
        let from = SocketAddr::from(([10, 0, 0, 2], 10_000 + number as u16));
        let mut out = Vec::new();
        let logs_in = plan.logs_in && !Flood::BEFORE_LOGIN.contains(&flood);
        match logs_in {
            true => write_login(&mut out),
            false => out.extend(first(flood)),
        }
        Flooder {
            flood,
            logs_in,
            stream: Some(listener.connect(from, plan.stream, rng.random())),
            out,
            has_begun: false,
            leaves_us: u64::MAX,
            reads: flood != Flood::Closing && rng.random_bool(0.5),
        }
    }
}

/// What it sends before the flood.
fn first(flood: Flood) -> Vec<u8> {
    match flood {
        Flood::Watching => b"watch fetchers mutations connevents\r\n".to_vec(),
        Flood::Swallowing => format!("set flood 0 0 {SWALLOWED_BYTES}\r\n").into_bytes(),
        Flood::Closing => {
            let value = "v".repeat(UNTAKEN_BYTES);
            let gets = "get flood\r\n".repeat(4);
            format!("set flood 0 0 {UNTAKEN_BYTES}\r\n{value}\r\n{gets}quit\r\n").into_bytes()
        }
        Flood::Asking | Flood::Listing | Flood::Locked | Flood::Withheld => Vec::new(),
    }
}

/// What it sends then, again and again.
fn then(flood: Flood) -> &'static [u8] {
    match flood {
        Flood::Asking | Flood::Closing | Flood::Locked => b"get flood\r\n",
        Flood::Watching => b"garbage",
        Flood::Swallowing => b"v",
        Flood::Listing => b"lru_crawler metadump all\r\n",
        Flood::Withheld => b"set auth 0 0 3\r\nx y\r\n",
    }
}

impl Client for Flooder {
    fn due(&self, now_us: u64) -> Due {
        let ready = self.stream.as_ref().map(|stream| stream.ready());
        match ready {
            None => Due::Done,
            Some(_) if self.leaves_us <= now_us => Due::Now,
            Some(ready) if ready.writable && !self.out.is_empty() => Due::Now,
            Some(ready) if ready.readable && self.logs_in => Due::Now,
            Some(ready) if ready.writable && !self.logs_in && !self.has_begun => Due::Now,
            Some(ready) if ready.readable && self.reads => Due::Now,
            Some(_) if self.has_begun => Due::At(self.leaves_us),
            Some(_) => Due::Waits,
        }
    }

    fn act(&mut self, notes: &mut Notes) -> Result<(), String> {
        let Some(stream) = &mut self.stream else {
            return Ok(());
        };
        if self.leaves_us <= notes.now.us {
            self.stream = None;
            return Ok(());
        }
        if !self.has_begun {
            match stream.send(&self.out) {
                Sent::All => self.out.clear(),
                Sent::Part(count) => _ = self.out.drain(..count),
                Sent::Failed => self.out.clear(),
            }
            if self.logs_in && stream.ready().readable {
                stream.receive(&mut Vec::with_capacity(100));
                self.logs_in = false;
                self.out = first(self.flood);
            } else if self.out.is_empty() && !self.logs_in {
                self.has_begun = true;
                self.leaves_us = notes.now.us + STAYS_US;
                stream.flood(then(self.flood), RECEIVES_MAX);
            }
        }
        if self.reads {
            let mut received = Vec::with_capacity(64 << 10);
            let outcome = stream.receive(&mut received);
            notes.trace.add(&received);
            if outcome == Received::Ended {
                self.stream = None;
            }
        }
        Ok(())
    }

    fn reads_slowly(&self) -> bool {
        true
    }

    fn never_ends(&self) -> bool {
        true
    }

    fn flooded(&self) -> u64 {
        self.stream.as_ref().map_or(0, LocalStream::flooded)
    }

    /// It leaves.
    fn calm(&mut self, _: u64) {
        self.stream = None;
    }
}
