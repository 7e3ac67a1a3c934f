//! Clients that change and read the same few keys, while others disturb the server: nobody reads a
//! value that is older than one that somebody has been told of before.
//!
//! Every store of a key has a higher number than the one before. A client that begins to read knows
//! how low a number may be that it is told.

use std::io::Read;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use glimmer_client::{Client, Settings};

use crate::asked::Asked;
use crate::keys::{KEYS, MORTAL, name, number, value_of};
use crate::server::{PATIENCE, Server, Text};

/// Reads over UDP of each run, unless the environment has another number.
const READS: u64 = 8_000;
/// One of this many is to be answered from slots. A run goes on until they are.
const HITS: u64 = 20;
/// A run ends when it has this many times its reads, whatever it lacks.
const READS_MAX: u64 = 20;
/// Requests over UDP that a client sends before it waits for the replies, at most.
const AT_ONCE: u64 = 16;
/// What is done to the server besides, as an operator does it.
pub const SWITCHES: &[&str] = &[
    "keyhash erew",
    "keyhash crew",
    "size-aware crcw",
    "stealing",
    "handoff",
    "owner",
];

/// Marsaglia's xorshift.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % most
    }
}

/// What clients have been told of a key.
#[derive(Default)]
pub struct Told {
    /// The highest number that was in the store.
    stored: AtomicU64,
    /// The lowest number that a read may be told that begins now.
    least: AtomicU64,
}

impl Told {
    /// Somebody was told that this number is or was in the store.
    pub fn of(&self, number: u64) {
        self.stored.fetch_max(number, SeqCst);
        self.least.fetch_max(number, SeqCst);
    }

    /// Somebody was told that what was stored up to this number has gone.
    pub fn gone(&self, number: u64) {
        self.least.fetch_max(number + 1, SeqCst);
    }
}

/// What a read may be told that begins now.
#[derive(Clone, Copy)]
struct From {
    /// The highest number that was in the store.
    stored: u64,
    /// See [`Told::least`].
    least: u64,
}

/// What all threads share.
pub struct Rig<'s> {
    pub server: &'s Server,
    pub keys: [Told; KEYS],
    /// Reads over UDP that have begun.
    pub reads: AtomicU64,
    /// Reads over UDP that are wanted.
    pub length: u64,
    pub is_over: AtomicBool,
    /// How many slots are to lose their item without a request.
    evictions: u64,
}

impl Rig<'_> {
    /// Does some work. If that fails, all others end theirs.
    fn guarded(&self, work: impl FnOnce()) {
        struct End<'e>(&'e Rig<'e>);
        impl Drop for End<'_> {
            fn drop(&mut self) {
                if std::thread::panicking() {
                    self.0.reads.store(self.0.length, SeqCst);
                    self.0.is_over.store(true, SeqCst);
                }
            }
        }
        let _end = End(self);
        work();
    }

    /// What a read of this key may be told that begins now.
    fn begin(&self, key: usize) -> From {
        let told = &self.keys[key];
        From {
            stored: told.stored.load(SeqCst),
            least: told.least.load(SeqCst),
        }
    }

    /// Checks what a read was told.
    fn end(&self, key: usize, from: From, value: Option<&[u8]>) {
        let told = &self.keys[key];
        match value {
            Some(value) => {
                let number = number(key, value);
                let (key, least) = (name(key), from.least);
                assert!(number >= least, "{key}: {number} after {least} was told of");
                told.of(number);
            }
            None if key != MORTAL => told.gone(from.stored),
            None => {}
        }
    }

    /// Whether more reads are wanted, and counts these: until there were enough, enough of them
    /// were answered from slots, and enough slots have lost their item to others.
    fn goes_on(&self, reads: u64) -> bool {
        let before = self.reads.fetch_add(reads, SeqCst);
        if before < self.length {
            return true;
        }
        if before >= READS_MAX * self.length || self.is_over.load(SeqCst) {
            return false;
        }
        let figure = |name| self.server.figure("stats accelerator", name);
        figure("hits") <= self.length / HITS || figure("evicted") < self.evictions
    }

    /// Reads over UDP, by text and binary requests, several at a time.
    fn read_udp(&self, part: u64, seed: u64) {
        let mut random = Random(seed);
        let server = self.server.udp[part as usize % self.server.udp.len()];
        let here = if server.is_ipv4() {
            "0.0.0.0:0"
        } else {
            "[::]:0"
        };
        let socket = UdpSocket::bind(here).unwrap();
        socket.connect(server).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(2)))
            .unwrap();
        let mut next_id = 0u16;
        loop {
            let reads = 1 + random.below(AT_ONCE);
            if !self.goes_on(reads) {
                break;
            }
            let mut asked = Vec::new();
            for _ in 0..reads {
                next_id = next_id.wrapping_add(1);
                let asked_for = Asked::draw(&mut random, next_id);
                let from = self.begin(asked_for.key);
                socket.send(&asked_for.request()).unwrap();
                asked.push((asked_for, from));
            }
            let mut datagram = [0; 4096];
            while !asked.is_empty() {
                // One of the datagrams is lost, or its reply is.
                let Ok(bytes) = socket.recv(&mut datagram) else {
                    break;
                };
                let Some(at) = (asked.iter_mut()).position(|(one, _)| one.take(&datagram[..bytes]))
                else {
                    continue;
                };
                if asked[at].0.is_complete() {
                    let (one, from) = asked.swap_remove(at);
                    self.end(one.key, from, one.value().as_deref());
                }
            }
        }
        self.is_over.store(true, SeqCst);
    }

    /// Reads over TCP, and by the native protocol.
    fn read_otherwise(&self, seed: u64) {
        let mut random = Random(seed);
        let mut text = Text::connect(self.server);
        let mut native = Client::connect_with(self.server.native(), patient()).unwrap();
        while !self.is_over.load(SeqCst) {
            let key = random.below(KEYS as u64) as usize;
            let name = name(key);
            let from = self.begin(key);
            let value = match random.below(2) {
                0 => {
                    let answer = text.say(&format!("get {name}\r\n"), &["END"]);
                    value_of(false, &name, answer.as_bytes())
                }
                _ => {
                    let item = native.get(name.as_bytes()).unwrap();
                    item.map(|item| item.value)
                }
            };
            self.end(key, from, value.as_deref());
            std::thread::sleep(Duration::from_micros(500));
        }
    }

    /// Stores large values of other keys, so that items are evicted.
    fn crowd(&self) {
        let mut text = Text::connect(self.server);
        let value = "y".repeat(8000);
        for nth in 0.. {
            if self.is_over.load(SeqCst) {
                return;
            }
            let store = |lap| format!("set crowd:{nth}:{lap} 0 0 8000\r\n{value}\r\n");
            let stores: String = (0..8).map(store).collect();
            text.say(&format!("{stores}mn\r\n"), &["MN"]);
        }
    }

    /// Flushes, now and later, and changes access modes and who watches.
    fn disturb(&self, switches: &[&str]) {
        let mut text = Text::connect(self.server);
        let share = self.length / 12;
        for step in 1.. {
            while self.reads.load(SeqCst) < step * share {
                if self.is_over.load(SeqCst) {
                    return;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            let stored = || self.keys.each_ref().map(|told| told.stored.load(SeqCst));
            match step % 4 {
                0 | 2 if !switches.is_empty() => {
                    let switch = switches[step as usize / 2 % switches.len()];
                    let answer = text.say(&format!("dispatch {switch}\r\n"), &[]);
                    assert!(answer.starts_with("OK"), "{switch}: {answer}");
                }
                1 => {
                    let before = stored();
                    text.say("flush_all\r\n", &["OK"]);
                    for (told, before) in self.keys.iter().zip(before) {
                        told.gone(before);
                    }
                }
                3 if step == 3 => drop(text.say("flush_all 1\r\n", &["OK"])),
                _ => {
                    let mut watcher = Text::connect(self.server);
                    watcher.say("watch mutations\r\n", &["OK"]);
                    std::thread::sleep(Duration::from_millis(20));
                    let _ = watcher.reader.get_mut().set_read_timeout(None);
                    let _ = watcher.stream.shutdown(std::net::Shutdown::Write);
                    let _ = watcher.reader.read(&mut [0; 16]);
                }
            }
        }
    }
}

/// Hammers a server, and returns how many slots lost their item without a request.
pub fn hammer(server: &Server, switches: &[&str], evictions: u64) -> u64 {
    let seed = glimmer_seeds::seed();
    let rig = &Rig {
        server,
        keys: Default::default(),
        reads: AtomicU64::new(0),
        length: length(),
        is_over: AtomicBool::new(false),
        evictions,
    };
    std::thread::scope(|scope| {
        for part in 0..2 {
            scope.spawn(move || rig.guarded(|| rig.change(part as usize, seed ^ part << 20)));
            scope.spawn(move || rig.guarded(|| rig.read_udp(part, seed ^ (part + 2) << 20)));
        }
        scope.spawn(|| rig.guarded(|| rig.read_otherwise(seed ^ 4 << 20)));
        scope.spawn(|| rig.guarded(|| rig.crowd()));
        scope.spawn(|| rig.guarded(|| rig.disturb(switches)));
    });
    let [hits, refreshes, retracts, torn, evicted] =
        ["hits", "refreshes", "retracts", "torn", "evicted"]
            .map(|name| server.figure("stats accelerator", name));
    println!(
        "{} reads over UDP, {hits} hits, {retracts} retracts, {refreshes} refreshes, {torn} torn, \
         {evicted} evicted, nothing outdated",
        rig.reads.load(SeqCst)
    );
    assert!(hits > rig.length / HITS, "only {hits} hits");
    let policy = server.text_figure("stats accelerator", "policy");
    assert!(retracts > 0 && (refreshes > retracts / 4 || policy == "paper"));
    for verb in ["cas_hits", "incr_hits", "decr_hits"] {
        assert!(server.figure("stats", verb) > 0, "no {verb}");
    }
    evicted
}

/// Whether this run was asked to take its time.
pub fn is_long() -> bool {
    length() > READS
}

/// Reads over UDP of each run.
fn length() -> u64 {
    let length = std::env::var("GLIMMER_HAMMER_READS");
    length.map_or(READS, |length| length.parse().unwrap())
}

/// A machine with other work may take longer than applications would wait.
pub fn patient() -> Settings {
    Settings {
        deadline_us: PATIENCE.as_micros() as u64,
        ..Settings::default()
    }
}
