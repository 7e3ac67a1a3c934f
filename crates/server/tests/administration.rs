//! Administrative commands cost a worker one allowance per turn, whatever clients ask for. Counted
//! in what a turn does, not in time.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use glimmer_base::Moment;
use glimmer_base::limits::{
    ADMIN_BYTE_NS, ADMIN_CHAIN_NS, ADMIN_COMMAND_NS, ADMIN_NS_PER_MS, ADMIN_REMOVAL_NS,
    ADMIN_SAVED_NS_MAX, ADMIN_SHARE_NS, ADMIN_TURN_NS, DISPATCH_CHANGES_MAX, DISPATCH_PAUSE_MS,
    SHORT_TICK_MS,
};
use glimmer_node::{Address, AdminHandler, Clock, Devices, DrivenWorker, NodeFigures, Part, Rest};
use glimmer_proto::Accepts;
use glimmer_proto::text::Shutdown;
use glimmer_server::{Config, DrivenServer, HugepagePolicy};
use glimmer_transport::stream::{ByteStream, LocalListener, LocalStream, StreamFaults};
use glimmer_transport::{Received, Sent};

/// Items that are listed and searched.
const ITEMS: usize = 20_000;
/// Items of one chain of the index at most.
const CHAIN_ITEMS_MAX: u64 = 120;
/// Bytes of a reply to `stats`.
const STATS_BYTES: usize = 3_000;
/// Bytes of a line of `metadump`.
const LINE_BYTES_MAX: u64 = 120;
/// Turns that no test needs.
const TURNS_MAX: usize = 100_000;

/// A clock that the test moves.
#[derive(Debug, Default)]
struct TestClock(AtomicU64);

impl Clock for TestClock {
    fn now(&self) -> Moment {
        Moment {
            ms: Moment::EPOCH_LEAD_MS + self.0.load(Ordering::Relaxed),
            epoch_unix_ms: 0,
        }
    }

    fn unix_us(&self) -> u128 {
        0
    }
}

/// Answers `stats` with many bytes, and `stats slow` when the answer is known.
#[derive(Default)]
struct Statistics {
    asked: AtomicUsize,
    is_known: AtomicBool,
    node: OnceLock<NodeFigures>,
}

impl AdminHandler for Statistics {
    fn open(&self, _: &[Address], _: &[SocketAddr], figures: NodeFigures) {
        let _ = self.node.set(figures);
    }

    fn stats(&self, argument: &[u8], _: u64, _: Moment, out: &mut Vec<u8>) -> Part {
        self.asked.fetch_add(1, Ordering::Relaxed);
        if argument == b"slow" && !self.is_known.load(Ordering::Relaxed) {
            return Part::Later;
        }
        out.extend_from_slice(stats().as_bytes());
        Part::Last
    }

    fn admits(&self, _: &[u8], _: &[u8]) -> bool {
        false
    }

    fn verbosity(&self, _: u32) {}

    fn shutdown(&self, _: Shutdown, _: &mut Vec<u8>) -> bool {
        false
    }
}

fn stats() -> String {
    format!("STAT x {}\r\nEND\r\n", "x".repeat(STATS_BYTES - 16))
}

/// A server without threads and sockets.
struct Rig {
    server: DrivenServer,
    clock: Arc<TestClock>,
    admin: Arc<Statistics>,
    listener: LocalListener,
}

impl Rig {
    fn new(workers: usize) -> Rig {
        let config = Config {
            tcp: Vec::new(),
            tcp_protocols: Vec::new(),
            memory_bytes: 64 << 20,
            workers,
            hugepages: HugepagePolicy::Off,
            ..Config::default()
        };
        let listener = LocalListener::new(SocketAddr::from(([10, 0, 0, 1], 1)));
        let mut devices: Vec<_> = (0..workers).map(|_| Devices::default()).collect();
        devices[0].listeners = vec![(Box::new(listener.clone()), Accepts::Any)];
        let mut drawn = 0;
        let mut random = || {
            drawn += 1;
            drawn
        };
        let (clock, admin) = (
            Arc::new(TestClock::default()),
            Arc::new(Statistics::default()),
        );
        let server =
            DrivenServer::assemble(&config, devices, clock.clone(), admin.clone(), &mut random);
        Rig {
            server: server.unwrap(),
            clock,
            admin,
            listener,
        }
    }

    /// A worker that does not sleep, or that is called while it does.
    fn first_awake(&mut self) -> Option<usize> {
        let workers = &mut self.server.node.workers;
        let is_awake =
            |worker: &mut DrivenWorker| worker.rest() == Rest::Busy || worker.is_called();
        workers.iter_mut().position(is_awake)
    }

    fn connect(&self) -> Client {
        let faults = StreamFaults {
            buffer_bytes: 1 << 20,
            ..StreamFaults::default()
        };
        let address = SocketAddr::from(([10, 0, 0, 2], 1));
        Client(self.listener.connect(address, faults, 1))
    }

    /// A millisecond passes, and every worker takes a turn.
    fn turn(&mut self) {
        self.clock.0.fetch_add(1, Ordering::Relaxed);
        self.turn_at_once();
    }

    /// Every worker takes a turn, in no time.
    fn turn_at_once(&mut self) {
        for worker in &mut self.server.node.workers {
            worker.rest();
            worker.turn();
        }
    }

    /// Takes turns until a client has received this many bytes.
    fn ask(&mut self, client: &mut Client, said: &str, reply_bytes: usize) -> Vec<u8> {
        client.say(said);
        let mut reply = Vec::new();
        for _ in 0..TURNS_MAX {
            if reply.len() >= reply_bytes {
                break;
            }
            self.turn();
            reply.extend(client.heard());
        }
        reply
    }

    fn fill(&mut self, exptime: u32) {
        let mut client = self.connect();
        for begin in (0..ITEMS).step_by(100) {
            let set = |item| format!("set item-{item:06} 0 {exptime} 1\r\nx\r\n");
            let sets: String = (begin..begin + 100).map(set).collect();
            let stored = self.ask(&mut client, &sets, 100 * "STORED\r\n".len());
            assert_eq!(stored, "STORED\r\n".repeat(100).as_bytes());
        }
    }
}

struct Client(LocalStream);

impl Client {
    fn say(&mut self, said: &str) {
        assert!(matches!(self.0.send(said.as_bytes()), Sent::All));
    }

    /// Says the same again and again, as often as the server takes it, and 256 times at most. `at`
    /// is where the last time ended, and the result is where this time did.
    fn say_some(&mut self, said: &[u8], at: usize) -> usize {
        let all = said.repeat(256);
        match self.0.send(&all[at..]) {
            Sent::All => 0,
            Sent::Part(bytes) => (at + bytes) % said.len(),
            Sent::Failed => panic!("the connection is open"),
        }
    }

    fn heard(&mut self) -> Vec<u8> {
        let mut heard = Vec::with_capacity(1 << 20);
        assert!(!matches!(self.0.receive(&mut heard), Received::Ended));
        heard
    }

    /// Whether requests of a well-behaved client were answered in the last turn.
    fn is_answered(&mut self) -> bool {
        let heard = self.heard();
        !heard.is_empty() && heard == b"END\r\n".repeat(heard.len() / 5)
    }
}

/// Whatever commands clients send without a pause, a worker with nothing else to do sleeps for most
/// of the time, and is there at once for others.
#[test]
fn commands_in_a_loop_take_a_part_of_the_time() {
    const MILLISECONDS: u64 = 200;
    for command in [
        "stats settings\r\n",
        "stats slow\r\n",
        "stats cachedump 1 0\r\n",
        "stats detail dump\r\n",
        "lru_crawler crawl all\r\n",
        "lru_crawler metadump all\r\n",
        "lru_crawler mgdump all\r\n",
        "verbosity 0\r\n",
        "cache_memlimit 64\r\n",
        "flush_all 1000\r\n",
    ] {
        for workers in [1, 2] {
            let mut rig = Rig::new(workers);
            rig.admin.is_known.store(true, Ordering::Relaxed);
            rig.fill(0);
            let mut hostile = rig.connect();
            let mut other = rig.connect();
            assert_eq!(rig.ask(&mut other, "mn\r\n", 4), b"MN\r\n");
            let (mut turns, mut heard_bytes, mut unsent) = (0, 0, 0);
            for _ in 0..MILLISECONDS {
                unsent = hostile.say_some(command.as_bytes(), unsent);
                other.say("get nothing\r\n");
                // As the worker's own loop does, while the clock stands still.
                rig.clock.0.fetch_add(1, Ordering::Relaxed);
                let mut is_answered = false;
                while let Some(busy) = rig.first_awake() {
                    rig.server.node.workers[busy].turn();
                    turns += 1;
                    is_answered |= other.is_answered();
                    heard_bytes += hostile.heard().len();
                    assert!(turns < TURNS_MAX, "{command} keeps {busy} awake");
                }
                assert!(is_answered, "{command}: within the millisecond");
            }
            assert!(heard_bytes > 0, "{command}");
            let saved_ns = ADMIN_SAVED_NS_MAX + MILLISECONDS * ADMIN_NS_PER_MS;
            // Some turns have no command, and one command takes a few turns.
            let most = saved_ns / ADMIN_SHARE_NS + 8 * MILLISECONDS;
            let most = workers as u64 * most;
            assert!(turns as u64 <= most, "{command}: {turns} turns, {most}");
        }
    }
}

#[test]
fn many_statistics_share_the_allowance_of_a_turn() {
    for clients in [1, 8] {
        const COMMANDS: usize = 256;
        let mut rig = Rig::new(1);
        let mut hostile: Vec<_> = (0..clients).map(|_| rig.connect()).collect();
        let mut other = rig.connect();
        for client in &mut hostile {
            client.say(&("stats settings\r\n".repeat(COMMANDS) + "mn\r\n"));
        }
        let price_ns = 2 * ADMIN_COMMAND_NS + ADMIN_BYTE_NS * STATS_BYTES as u64;
        let (mut heard, mut asked) = (vec![Vec::new(); clients], 0);
        for _ in 0..TURNS_MAX {
            other.say("get nothing\r\n");
            rig.turn();
            // Its connection is accepted in the first turn.
            assert!(other.is_answered() || asked == 0);
            let before = std::mem::replace(&mut asked, rig.admin.asked.load(Ordering::Relaxed));
            assert!((asked - before) as u64 <= ADMIN_TURN_NS.div_ceil(price_ns));
            for (client, heard) in hostile.iter_mut().zip(&mut heard) {
                heard.extend(client.heard());
            }
            if heard.iter().all(|heard| heard.ends_with(b"MN\r\n")) {
                break;
            }
            // They take turns.
            let lengths = heard.iter().map(Vec::len);
            let spread = lengths.clone().max().unwrap() - lengths.min().unwrap();
            let in_a_turn = STATS_BYTES * ADMIN_TURN_NS.div_ceil(price_ns) as usize;
            assert!(spread <= 2 * in_a_turn, "{spread}");
        }
        let expected = stats().repeat(COMMANDS) + "MN\r\n";
        assert!(heard.iter().all(|heard| heard == expected.as_bytes()));
    }
}

#[test]
fn a_crawl_has_its_share_of_each_turn() {
    let mut rig = Rig::new(1);
    rig.fill(10);
    rig.clock.0.fetch_add(20_000, Ordering::Relaxed);
    let (mut client, mut other) = (rig.connect(), rig.connect());
    assert_eq!(rig.ask(&mut client, "mn\r\n", 4), b"MN\r\n");
    client.say("lru_crawler crawl all\r\nlru_crawler crawl all\r\n");
    let answers = b"OK\r\nBUSY currently processing crawler request\r\n";
    assert_eq!(rig.ask(&mut client, "", answers.len()), answers);
    let figures = rig.server.node.figures();
    let reclaimed = || figures.tallies()[0].crawler_reclaimed;
    let most = ADMIN_SHARE_NS / ADMIN_REMOVAL_NS + CHAIN_ITEMS_MAX;
    let (mut turns, mut before) = (0, reclaimed());
    while figures.dumps().0 {
        // Statistics in a loop take what they can get.
        client.say("stats settings\r\n".repeat(9).as_str());
        other.say("get nothing\r\n");
        rig.turn();
        assert!(other.is_answered() || turns == 0);
        assert!(client.heard().len() as u64 <= ADMIN_TURN_NS / ADMIN_BYTE_NS);
        let now = reclaimed();
        assert!(now - before <= most, "{} items in a turn", now - before);
        (before, turns) = (now, turns + 1);
        assert!(turns < TURNS_MAX, "the crawl comes to its end");
    }
    assert_eq!(before, ITEMS as u64);
}

/// Keys that a pattern is compared with at many places take more turns than others.
#[test]
fn a_walk_through_keys_pays_for_its_pattern() {
    const KEYS: usize = 1_000;
    let mut rig = Rig::new(1);
    let mut client = rig.connect();
    let set = |item| format!("set {}{item:04} 0 0 1\r\nx\r\n", "a".repeat(240));
    let sets: String = (0..KEYS).map(set).collect();
    rig.ask(&mut client, &sets, KEYS * "STORED\r\n".len());
    let mut client = rig.connect();
    let mut turns_of = |pattern: &str| {
        client.say(&format!(
            "*2\r\n$4\r\nKEYS\r\n${}\r\n{pattern}\r\n",
            pattern.len()
        ));
        for turns in 1..TURNS_MAX {
            rig.turn();
            let heard = client.heard();
            if !heard.is_empty() {
                assert_eq!(heard, b"*0\r\n");
                return turns;
            }
        }
        panic!("the walk comes to its end");
    };
    let plain = turns_of("b");
    let class = turns_of(&format!("*[^{}]b", "b".repeat(1_000)));
    let costly = turns_of(&format!("*{}b", "a".repeat(120)));
    println!("{plain} {class} {costly}");
    assert!(class < plain + KEYS / 10, "{class} {plain}");
    assert!(costly > plain + KEYS / 10, "{costly} {plain}");
}

#[test]
fn a_search_that_finds_nothing_has_its_share_of_each_turn() {
    let mut rig = Rig::new(1);
    rig.fill(0);
    let mut client = rig.connect();
    assert_eq!(
        rig.ask(&mut client, "lru_crawler crawl all\r\n", 4),
        b"OK\r\n"
    );
    let mut turns = 1;
    while rig.server.node.figures().dumps().0 {
        rig.turn();
        turns += 1;
    }
    // A chain has some items, and a turn some chains.
    let chains_min = ITEMS as u64 / CHAIN_ITEMS_MAX;
    assert!(
        turns >= chains_min / ADMIN_SHARE_NS.div_ceil(ADMIN_CHAIN_NS),
        "{turns} turns"
    );
    assert!(turns >= 20, "{turns} turns");
}

#[test]
fn a_listing_has_its_share_of_each_turn() {
    for (command, workers) in [
        ("lru_crawler metadump all\r\n", 1),
        ("lru_crawler mgdump all\r\n", 1),
        ("stats cachedump 1 0\r\n", 1),
        ("lru_crawler metadump all\r\n", 2),
    ] {
        let mut rig = Rig::new(workers);
        rig.fill(0);
        let (mut client, mut other) = (rig.connect(), rig.connect());
        client.say(command);
        let most = ADMIN_SHARE_NS / ADMIN_BYTE_NS + CHAIN_ITEMS_MAX * LINE_BYTES_MAX;
        let (mut heard, mut turns) = (Vec::new(), 0);
        while !heard.ends_with(b"END\r\n") && !heard.ends_with(b"EN\r\n") {
            other.say("get nothing\r\n");
            rig.turn();
            assert!(other.is_answered() || turns == 0 || workers > 1);
            let some = client.heard();
            assert!(some.len() as u64 <= most, "{command}: {} bytes", some.len());
            heard.extend(some);
            turns += 1;
            assert!(turns < TURNS_MAX, "{command}");
        }
        let lines = heard.split(|&byte| byte == b'\n');
        let items = lines.filter(|line| line.windows(5).any(|some| some == b"item-"));
        assert_eq!(items.count(), ITEMS, "{command}");
    }
}

#[test]
fn what_another_thread_finds_out_is_not_waited_for() {
    let mut rig = Rig::new(1);
    let mut waiting: Vec<_> = (0..100).map(|_| rig.connect()).collect();
    let mut other = rig.connect();
    for client in &mut waiting {
        client.say(&("stats slow\r\n".repeat(3) + "mn\r\n"));
    }
    assert_eq!(rig.ask(&mut other, "get nothing\r\n", 5), b"END\r\n");
    let short_tick = Rest::Asleep(Some(Duration::from_millis(SHORT_TICK_MS)));
    let mut turns = 0;
    while rig.server.node.workers[0].rest() != short_tick {
        rig.turn();
        turns += 1;
        assert!(turns < TURNS_MAX, "the worker sleeps while others find out");
    }
    let asked = rig.admin.asked.load(Ordering::Relaxed);
    assert_eq!(rig.ask(&mut other, "get nothing\r\n", 5), b"END\r\n");
    assert_eq!(
        rig.admin.asked.load(Ordering::Relaxed),
        asked,
        "nobody looks meanwhile"
    );
    rig.server.node.workers[0].rest();
    rig.admin.is_known.store(true, Ordering::Relaxed);
    rig.admin.node.get().unwrap().announce();
    assert!(rig.server.node.workers[0].is_called());
    let expected = stats().repeat(3) + "MN\r\n";
    for client in &mut waiting {
        let heard = rig.ask(client, "", expected.len());
        assert_eq!(heard, expected.as_bytes());
    }
}

#[test]
fn the_plan_changes_so_often_and_no_more() {
    let mut rig = Rig::new(2);
    let mut client = rig.connect();
    let changes = 2 * DISPATCH_CHANGES_MAX as usize;
    client.say(&"dispatch keyhash\r\n".repeat(changes));
    let mut answered = 0;
    let mut turns = |rig: &mut Rig, ms| {
        rig.clock.0.fetch_add(ms, Ordering::Relaxed);
        for _ in 0..500 {
            rig.turn_at_once();
            answered += client.heard().len() / "OK\r\n".len();
        }
        answered
    };
    assert_eq!(turns(&mut rig, 0), DISPATCH_CHANGES_MAX as usize);
    for later in 1..=changes - DISPATCH_CHANGES_MAX as usize {
        let expected = DISPATCH_CHANGES_MAX as usize + later;
        assert_eq!(turns(&mut rig, DISPATCH_PAUSE_MS), expected);
    }
}
