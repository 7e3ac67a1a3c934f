//! A server without threads and sockets, whose clock the test moves.
#![allow(dead_code, reason = "each test program uses its own part")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use glimmer_base::Moment;
use glimmer_node::{AdminHandler, Clock, Devices, Part, Rest, Tally};
use glimmer_proto::text::Shutdown;
use glimmer_server::config::AccessMode;
use glimmer_server::{Config, DrivenServer, HugepagePolicy};
use glimmer_transport::stream::{ByteStream, LocalListener, LocalStream, StreamFaults};
use glimmer_transport::{Received, Sent};

/// How often a client waits for a reply, ten milliseconds each time.
const WAITS_MAX: usize = 10_000;

/// A clock that the test moves. It may go on by itself, by the milliseconds of the second number
/// with each reading.
#[derive(Debug, Default)]
pub struct TestClock(pub AtomicU64, pub AtomicU64);

impl Clock for TestClock {
    fn now(&self) -> Moment {
        let step_ms = self.1.load(Ordering::Relaxed);
        Moment {
            ms: Moment::EPOCH_LEAD_MS + self.0.fetch_add(step_ms, Ordering::Relaxed),
            epoch_unix_ms: 0,
        }
    }

    fn unix_us(&self) -> u128 {
        0
    }
}

/// Answers no `stats`. Admits every user with the password `right`.
struct Silent;

impl AdminHandler for Silent {
    fn stats(&self, _: &[u8], _: u64, _: Moment, _: &mut Vec<u8>) -> Part {
        Part::Last
    }

    fn admits(&self, _: &[u8], password: &[u8]) -> bool {
        password == b"right"
    }

    fn verbosity(&self, _: u32) {}

    fn shutdown(&self, _: Shutdown, _: &mut Vec<u8>) -> bool {
        false
    }
}

/// A server without threads and sockets.
pub struct Rig {
    pub server: DrivenServer,
    pub clock: Arc<TestClock>,
    pub listeners: Vec<LocalListener>,
}

impl Rig {
    /// A server of 128 MiB with this access mode and so many workers.
    pub fn new(access: AccessMode, workers: usize) -> Rig {
        Rig::with(Config {
            memory_bytes: 128 << 20,
            workers,
            access,
            ..Config::default()
        })
    }

    /// A server of this configuration, but for its ports.
    pub fn with(config: Config) -> Rig {
        let config = Config {
            tcp: Vec::new(),
            tcp_protocols: Vec::new(),
            hugepages: HugepagePolicy::Off,
            ..config
        };
        let mut listeners = Vec::new();
        let devices = (0..config.workers).map(|_| {
            let listener = LocalListener::new(SocketAddr::from(([10, 0, 0, 1], 1)));
            listeners.push(listener.clone());
            Devices {
                listeners: vec![(Box::new(listener), config.protocol)],
                ..Devices::default()
            }
        });
        let devices = devices.collect();
        let mut drawn = 0;
        let mut random = || {
            drawn += 1;
            drawn
        };
        let (clock, admin) = (Arc::new(TestClock::default()), Arc::new(Silent));
        let server = DrivenServer::assemble(&config, devices, clock.clone(), admin, &mut random);
        Rig {
            server: server.unwrap(),
            clock,
            listeners,
        }
    }

    /// A client of the first worker, through a stream with this capacity.
    pub fn connect(&self, buffer_bytes: usize) -> LocalStream {
        let faults = StreamFaults {
            buffer_bytes,
            ..StreamFaults::default()
        };
        self.connect_with(faults, 1)
    }

    pub fn connect_with(&self, faults: StreamFaults, seed: u64) -> LocalStream {
        self.listeners[0].connect(SocketAddr::from(([10, 0, 0, 2], 1)), faults, seed)
    }

    /// Each worker that is called takes a turn. Says whether any was.
    pub fn turn(&mut self) -> bool {
        let mut any = false;
        for worker in &mut self.server.node.workers {
            if worker.rest() == Rest::Busy || worker.is_called() {
                worker.turn();
                any = true;
            }
        }
        any
    }

    /// Lets time pass, and sends a request until it has been answered with this many bytes.
    pub fn ask(&mut self, stream: &mut LocalStream, said: &[u8], reply_bytes: usize) -> Vec<u8> {
        let mut replies = self.say(stream, said);
        for _ in 0..WAITS_MAX {
            if replies.len() >= reply_bytes {
                break;
            }
            self.clock.0.fetch_add(10, Ordering::Relaxed);
            self.server
                .node
                .workers
                .iter_mut()
                .for_each(|worker| _ = worker.turn());
            replies.extend(self.say(stream, &[]));
        }
        replies
    }

    /// Sends bytes, and receives until nothing more comes, or the connection has ended.
    pub fn say(&mut self, stream: &mut LocalStream, said: &[u8]) -> Vec<u8> {
        let (mut said, mut replies) = (said, Vec::new());
        loop {
            match stream.send(said) {
                Sent::All => said = &[],
                Sent::Part(bytes) => said = &said[bytes..],
                Sent::Failed => return replies,
            }
            let mut is_idle = !self.turn();
            replies.reserve(64 << 10);
            match stream.receive(&mut replies) {
                Received::Drained(0) => {}
                Received::Ended => return replies,
                _ => is_idle = false,
            }
            if is_idle && said.is_empty() && !stream.ready().readable {
                return replies;
            }
        }
    }

    pub fn total(&self) -> Tally {
        let mut total = Tally::default();
        let tallies = self.server.node.figures().tallies();
        tallies.into_iter().for_each(|tally| total += tally);
        total
    }

    /// Bytes of buffers that are in use.
    pub fn held_bytes(&self) -> u64 {
        let total = self.total();
        total.buffer_bytes - total.buffer_bytes_free
    }
}
