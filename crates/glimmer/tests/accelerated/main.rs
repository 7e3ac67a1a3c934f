//! A server with `--accelerate model` under all that changes items, while clients read over UDP and
//! TCP: nobody reads a value that is older than one that somebody has been told of before.
//!
//! Every store of a key has a higher number than the one before. A client that begins to read knows
//! how low a number may be that it is told.

mod changes;
mod keys;
mod server;

use std::io::Read;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use keys::{KEYS, MORTAL, name, number, value_of};
use server::{Server, Text};

/// Reads over UDP of each run.
const READS: u64 = 8_000;
/// Of them, those that are to be answered from slots. A run goes on until they are.
const HITS: u64 = READS / 20;
/// Reads after which a run ends, whatever it lacks.
const READS_MAX: u64 = 20 * READS;

/// Marsaglia's xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % most
    }
}

/// What clients have been told of a key.
#[derive(Default)]
struct Told {
    /// The highest number that was in the store.
    stored: AtomicU64,
    /// The lowest number that a read may be told that begins now.
    least: AtomicU64,
}

impl Told {
    /// Somebody was told that this number is or was in the store.
    fn of(&self, number: u64) {
        self.stored.fetch_max(number, SeqCst);
        self.least.fetch_max(number, SeqCst);
    }

    /// Somebody was told that what was stored up to this number has gone.
    fn gone(&self, number: u64) {
        self.least.fetch_max(number + 1, SeqCst);
    }
}

struct Rig<'s> {
    server: &'s Server,
    keys: [Told; KEYS],
    reads: AtomicU64,
    is_over: AtomicBool,
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
                    self.0.reads.store(READS, SeqCst);
                    self.0.is_over.store(true, SeqCst);
                }
            }
        }
        let _end = End(self);
        work();
    }

    /// Reads a key by `read`, and checks what it tells.
    fn read(&self, key: usize, read: impl FnOnce() -> Option<Option<Vec<u8>>>) {
        let told = &self.keys[key];
        let (stored, least) = (told.stored.load(SeqCst), told.least.load(SeqCst));
        match read() {
            Some(Some(value)) => {
                let number = number(key, &value);
                let key = name(key);
                assert!(number >= least, "{key}: {number} after {least} was told of");
                told.of(number);
            }
            Some(None) if key != MORTAL => told.gone(stored),
            Some(None) | None => {}
        }
    }

    /// Whether another read is wanted: until there were enough, enough of them were answered from
    /// slots, and enough slots have lost their item to others.
    fn goes_on(&self) -> bool {
        let nth = self.reads.fetch_add(1, SeqCst);
        if nth < READS {
            return true;
        }
        let figure = |name| self.server.figure("stats accelerator", name);
        if nth >= READS_MAX || self.is_over.load(SeqCst) {
            return false;
        }
        // Statistics take longer than a read.
        let has_all = || figure("hits") > HITS && figure("evicted") >= self.evictions;
        !nth.is_multiple_of(64) || !has_all()
    }

    /// Reads over UDP, by text and binary requests.
    fn read_udp(&self, seed: u64) {
        let mut random = Random(seed);
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(&self.server.address).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(2)))
            .unwrap();
        let mut id = 0u16;
        while self.goes_on() {
            let key = random.below(KEYS as u64) as usize;
            let name = name(key);
            id = id.wrapping_add(1);
            let kind = random.below(3);
            let mut request = [&id.to_be_bytes()[..], &[0, 0, 0, 1, 0, 0]].concat();
            match kind {
                0 => request.extend(format!("get {name}\r\n").bytes()),
                1 => request.extend(format!("gets {name}\r\n").bytes()),
                _ => {
                    request.extend([0x80, 0, 0, name.len() as u8, 0, 0, 0, 0, 0, 0, 0]);
                    request.push(name.len() as u8);
                    request.extend([0; 12]);
                    request.extend(name.bytes());
                }
            }
            self.read(key, || {
                socket.send(&request).unwrap();
                let reply = receive(&socket, id)?;
                Some(value_of(kind == 2, &name, &reply))
            });
        }
        self.is_over.store(true, SeqCst);
    }

    fn read_tcp(&self, seed: u64) {
        let mut random = Random(seed);
        let mut text = Text::connect(self.server);
        while !self.is_over.load(SeqCst) {
            let key = random.below(KEYS as u64) as usize;
            let name = name(key);
            self.read(key, || {
                let answer = text.say(&format!("get {name}\r\n"), &["END"]);
                Some(value_of(false, &name, answer.as_bytes()))
            });
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
        let share = READS / 12;
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

/// Receives all datagrams of the reply to a request, unless one is lost.
fn receive(socket: &UdpSocket, id: u16) -> Option<Vec<u8>> {
    let mut parts: Vec<Option<Vec<u8>>> = Vec::new();
    let mut datagram = [0; 4096];
    while parts.is_empty() || parts.iter().any(Option::is_none) {
        let read = socket.recv(&mut datagram).ok()?;
        let word = |at| u16::from_be_bytes([datagram[at], datagram[at + 1]]);
        if word(0) == id {
            parts.resize(word(4).into(), None);
            parts[usize::from(word(2))] = Some(datagram[8..read].to_vec());
        }
    }
    Some(parts.into_iter().flatten().flatten().collect())
}

/// Returns how many slots lost their item without a request.
fn hammer(arguments: &[&str], switches: &[&str], evictions: u64) -> u64 {
    let seed = match std::env::var("GLIMMER_SEED") {
        Ok(seed) => seed.parse().unwrap(),
        Err(_) => std::process::id() as u64 + 1,
    };
    println!("GLIMMER_SEED={seed} {arguments:?}");
    let server = Server::start(arguments);
    let rig = &Rig {
        server: &server,
        keys: Default::default(),
        reads: AtomicU64::new(0),
        is_over: AtomicBool::new(false),
        evictions,
    };
    std::thread::scope(|scope| {
        for part in 0..2 {
            scope.spawn(move || rig.guarded(|| rig.change(part as usize, seed ^ part << 20)));
            scope.spawn(move || rig.guarded(|| rig.read_udp(seed ^ (part + 2) << 20)));
        }
        scope.spawn(|| rig.guarded(|| rig.read_tcp(seed ^ 4 << 20)));
        scope.spawn(|| rig.guarded(|| rig.crowd()));
        scope.spawn(|| rig.guarded(|| rig.disturb(switches)));
    });
    let [hits, refreshes, retracts] =
        ["hits", "refreshes", "retracts"].map(|name| server.figure("stats accelerator", name));
    println!("{hits} hits, {retracts} retracts, {refreshes} refreshes");
    assert!(hits > HITS, "only {hits} hits");
    assert!(refreshes > 0 && retracts > refreshes / 2);
    for verb in ["cas_hits", "incr_hits", "decr_hits"] {
        assert!(server.figure("stats", verb) > 0, "no {verb}");
    }
    server.figure("stats accelerator", "evicted")
}

const SWITCHES: &[&str] = &[
    "keyhash erew",
    "keyhash crew",
    "size-aware crcw",
    "stealing",
    "handoff",
    "owner",
];

#[test]
fn nobody_reads_what_is_outdated_in_cache_mode() {
    for access in ["erew", "crew", "crcw"] {
        hammer(&["--access", access], &[], 0);
    }
    // Also items that are read are evicted.
    let evicted = hammer(&["--evict", "fifo"], &[], 3);
    assert!(evicted >= 3, "{evicted} slots lost their item");
}

#[test]
fn nobody_reads_what_is_outdated_in_store_mode() {
    for access in ["erew", "crew", "crcw"] {
        hammer(&["--mode", "store", "--access", access], &[], 0);
    }
}

#[test]
fn nobody_reads_what_is_outdated_in_memc3() {
    for access in ["erew", "crew", "crcw"] {
        hammer(&["--table", "memc3", "--access", access], &[], 0);
    }
}

#[test]
fn nobody_reads_what_is_outdated_while_access_modes_change() {
    for table in [&[][..], &["--mode", "store"], &["--table", "memc3"]] {
        hammer(table, SWITCHES, 0);
    }
}
