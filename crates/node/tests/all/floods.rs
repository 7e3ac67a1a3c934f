//! Peers that never stop: whatever state their connections are in, and whatever the workers leave
//! for one another, a turn ends and the others have theirs.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::support::{Admin, Habits, TestClock, config, engines};
use glimmer_base::limits::{
    ACCEPTS_PER_TURN_MAX, BATCH_MAX, BURST_CONNECTIONS_MAX, DATAGRAM_REQUESTS_PER_TURN_MAX,
    LOGIN_DELAY_MS, PACKET_BATCH_MAX, PREPEND_REQUESTS, TURN_REQUESTS_MAX, TURN_SMALL_REQUESTS_MAX,
    WITHHELD_PER_TURN_MAX,
};
use glimmer_dispatch::PartitionMap;
use glimmer_node::{Devices, DrivenNode, NodeConfig};
use glimmer_proto::Accepts;
use glimmer_transport::packet::{Message, PacketDevice, PacketSender, RxBatch, Switch, SwitchPort};
use glimmer_transport::stream::{ByteStream, LocalListener, LocalStream, StreamFaults};
use glimmer_transport::{Received, Sent};

/// As often a peer that never stops may be received from before a test gives up.
const RECEIVES_MAX: u64 = 10_000;

/// Workers of which each owns its keys; the first has a listener and a device for datagrams.
struct Rig {
    node: DrivenNode,
    listener: LocalListener,
    network: Switch,
    clock: Arc<TestClock>,
}

fn server() -> SocketAddr {
    ([10, 0, 0, 1], 11211).into()
}

impl Rig {
    fn new(workers: usize, change: impl FnOnce(&mut NodeConfig)) -> Rig {
        let (listener, network) = (LocalListener::new(server()), Switch::new());
        let clock = Arc::new(TestClock::default());
        let mut devices: Vec<_> = (0..workers).map(|_| Devices::default()).collect();
        let at_listener: Box<LocalListener> = Box::new(listener.clone());
        devices[0].listeners.push((at_listener, Accepts::Any));
        devices[0]
            .memcached
            .push(Box::new(network.attach(server())));
        let mut config = config();
        config.clock = clock.clone();
        config.connections_max = 10_000;
        change(&mut config);
        let engines = engines(workers, Habits::EREW);
        let node = DrivenNode::new(config, devices, engines, Arc::new(Admin)).unwrap();
        Rig {
            node,
            listener,
            network,
            clock,
        }
    }

    fn connect(&self) -> LocalStream {
        let from = SocketAddr::from(([10, 0, 0, 2], 1));
        self.listener.connect(from, StreamFaults::default(), 1)
    }

    /// Lets a worker take this many turns.
    fn turn(&mut self, worker: usize, turns: usize) {
        for _ in 0..turns {
            self.node.workers[worker].rest();
            self.node.workers[worker].turn();
        }
    }

    fn requests(&self) -> u64 {
        let tallies = self.node.figures().tallies();
        tallies.iter().map(|tally| tally.requests).sum()
    }
}

/// What has come of a stream.
fn received(stream: &mut LocalStream) -> String {
    let mut all = Vec::with_capacity(1 << 20);
    while let Received::Full(1..) | Received::Drained(1..) = stream.receive(&mut all) {}
    String::from_utf8(all).unwrap()
}

/// A connection of which the peer never stops.
struct Flooder {
    name: &'static str,
    /// Whether clients have to authenticate.
    locked: bool,
    /// Whether it takes its replies.
    reads: bool,
    /// What it sends first, and then without end.
    first: String,
    then: &'static str,
}

/// One for each state in which a connection may be.
fn flooders() -> Vec<Flooder> {
    let of = |name, first: &str, then| Flooder {
        name,
        locked: false,
        reads: true,
        first: first.into(),
        then,
    };
    let login = "set auth 0 0 3\r\nx y\r\n";
    let value = "v".repeat(20_000);
    let closes = format!(
        "set large 0 0 {}\r\n{value}\r\n{}quit\r\n",
        value.len(),
        "get large\r\n".repeat(10)
    );
    vec![
        of("asking", "", "get none\r\n"),
        of("watching", "watch connevents\r\n", "garbage"),
        Flooder {
            reads: false,
            ..of(
                "watching, and takes nothing",
                "watch connevents\r\n",
                "garbage",
            )
        },
        Flooder {
            reads: false,
            ..of("closing", &closes, "get none\r\n")
        },
        of("swallowing", "set key 0 0 1000000000\r\n", "v"),
        of("listing", "", "lru_crawler metadump all\r\n"),
        of("long replies", "", "stats long 2\r\n"),
        Flooder {
            locked: true,
            ..of("locked", "", "get none\r\n")
        },
        Flooder {
            locked: true,
            ..of("withheld", login, login)
        },
    ]
}

#[test]
fn a_peer_that_never_stops_is_received_from_once_a_turn() {
    for flooder in flooders() {
        let name = flooder.name;
        let mut rig = Rig::new(1, |config| config.locked = flooder.locked);
        let mut peer = rig.connect();
        assert_eq!(peer.send(flooder.first.as_bytes()), Sent::All, "{name}");
        rig.turn(0, 20);
        peer.flood(flooder.then.as_bytes(), RECEIVES_MAX);
        for round in 0..20 {
            let mut client = rig.connect();
            assert_eq!(client.send(b"get key\r\n"), Sent::All);
            let reply = match flooder.locked {
                true => "CLIENT_ERROR unauthenticated\r\n",
                false => "END\r\n",
            };
            let before = peer.flooded();
            rig.turn(0, 2);
            let receives = peer.flooded() - before;
            assert!(receives <= 2, "{name}: {receives} receives in two turns");
            let replied = received(&mut client);
            assert!(
                replied.starts_with(reply),
                "{name}, round {round}: {replied:?}"
            );
            if flooder.reads {
                received(&mut peer);
            }
        }
    }
}

/// What a watcher has sent with its command, or sends later, is never executed.
#[test]
fn what_a_watcher_sends_is_passed_over() {
    let mut rig = Rig::new(1, |_| {});
    let mut watcher = rig.connect();
    assert_eq!(watcher.send(b"watch connevents\r\nget key\r\n"), Sent::All);
    rig.turn(0, 2);
    assert_eq!(watcher.send(b"get key\r\n"), Sent::All);
    rig.turn(0, 2);
    assert_eq!(received(&mut watcher), "OK\r\n");
    assert_eq!(rig.requests(), 0);
    drop(watcher);
    rig.turn(0, 2);
    assert_eq!(rig.node.figures().watch().watchers, 0);
}

#[test]
fn connections_that_others_accept_are_taken_over_some_at_a_time() {
    let mut rig = Rig::new(2, |_| {});
    let connections = 4 * ACCEPTS_PER_TURN_MAX;
    let _streams: Vec<_> = (0..connections).map(|_| rig.connect()).collect();
    rig.turn(0, 10);
    let open = |rig: &Rig| rig.node.figures().tallies()[1].curr_connections as usize;
    for turns in 1..=2 {
        rig.turn(1, 1);
        assert_eq!(open(&rig), turns * ACCEPTS_PER_TURN_MAX);
    }
    assert_eq!(open(&rig), connections / 2);
}

#[test]
fn withheld_answers_leave_some_at_a_time() {
    let mut rig = Rig::new(1, |config| config.locked = true);
    let connections = 2 * WITHHELD_PER_TURN_MAX + 1;
    let mut streams: Vec<_> = (0..connections).map(|_| rig.connect()).collect();
    for stream in &mut streams {
        assert_eq!(stream.send(b"set auth 0 0 3\r\nx y\r\n"), Sent::All);
    }
    rig.turn(0, 10);
    rig.clock.0.store(LOGIN_DELAY_MS, Ordering::Relaxed);
    let mut answered = 0;
    for expected in [WITHHELD_PER_TURN_MAX, WITHHELD_PER_TURN_MAX, 1, 0] {
        rig.turn(0, 1);
        let now: usize = streams
            .iter()
            .filter(|stream| stream.ready().readable)
            .count();
        assert_eq!(now - answered, expected);
        answered = now;
    }
}

/// As many connections as there may be, each with as many requests as it may have in a turn: the
/// worker looks at everything else in between.
#[test]
fn a_turn_ends_after_many_small_requests() {
    let mut rig = Rig::new(1, |_| {});
    let per_turn = u64::from(TURN_REQUESTS_MAX);
    let connections = 3 * TURN_SMALL_REQUESTS_MAX / per_turn;
    let mut streams: Vec<_> = (0..connections).map(|_| rig.connect()).collect();
    rig.turn(0, 10);
    let requests = "get key\r\n".repeat(per_turn as usize);
    for stream in &mut streams {
        assert_eq!(stream.send(requests.as_bytes()), Sent::All);
    }
    let last_burst = BURST_CONNECTIONS_MAX as u64 * per_turn;
    while rig.requests() < connections * per_turn {
        let before = rig.requests();
        rig.turn(0, 1);
        let executed = rig.requests() - before;
        assert!(executed > 0 && executed <= TURN_SMALL_REQUESTS_MAX + last_burst);
    }
}

/// Requests that copy a long value each, however few bytes they bring.
#[test]
fn a_turn_ends_after_few_prepends() {
    let mut rig = Rig::new(1, |_| {});
    let mut stream = rig.connect();
    rig.turn(0, 10);
    let requests = u64::from(TURN_REQUESTS_MAX);
    let prepends = "prepend key 0 0 1\r\nx\r\n".repeat(requests as usize);
    assert_eq!(stream.send(prepends.as_bytes()), Sent::All);
    while rig.requests() < requests {
        let before = rig.requests();
        rig.turn(0, 1);
        let executed = rig.requests() - before;
        assert!(executed > 0 && executed <= requests / u64::from(PREPEND_REQUESTS));
    }
}

/// A datagram with as many of these requests as one may have, with memcached's frame.
fn datagram(id: u16, request: &str) -> Vec<u8> {
    let [high, low] = id.to_be_bytes();
    let frame = [high, low, 0, 0, 0, 1, 0, 0];
    let requests = request.repeat(60_000 / request.len());
    [&frame[..], requests.as_bytes()].concat()
}

fn send(client: &mut SwitchPort, datagrams: &[Vec<u8>]) {
    for datagram in datagrams {
        client.send(&[Message::segments(server(), datagram, datagram.len())]);
    }
}

#[test]
fn datagrams_with_many_requests_leave_others_their_turns() {
    let mut rig = Rig::new(1, |_| {});
    let mut client = rig.network.attach(([10, 0, 0, 2], 1).into());
    let request = "get key\r\n";
    let datagrams: Vec<_> = (0..100).map(|id| datagram(id, request)).collect();
    let each = (60_000 / request.len()) as u64;
    send(&mut client, &datagrams);
    let mut most = Vec::new();
    while rig.requests() < 100 * each {
        let before = rig.requests();
        rig.turn(0, 1);
        let executed = rig.requests() - before;
        assert!(executed > 0);
        most.push(executed);
    }
    // The first call cannot know how many requests datagrams have.
    assert!(most[0] <= PACKET_BATCH_MAX as u64 * each, "{most:?}");
    let later = most[1..].iter().max().unwrap();
    assert!(*later <= DATAGRAM_REQUESTS_PER_TURN_MAX + each, "{most:?}");
}

/// What is refused over UDP costs no more than a read, so that nothing of the allowance is spent.
#[test]
fn commands_that_are_refused_over_udp_leave_the_allowance_to_connections() {
    let mut rig = Rig::new(1, |_| {});
    let mut client = rig.connect();
    let mut hostile = rig.network.attach(([10, 0, 0, 3], 1).into());
    let datagram = [
        &[0, 1, 0, 0, 0, 1, 0, 0],
        "verbosity 2\r\n".repeat(100).as_bytes(),
    ]
    .concat();
    rig.turn(0, 1);
    for _ in 0..20 {
        hostile.send(&[Message::alone(server(), &datagram)]);
        assert_eq!(client.send(b"stats\r\n"), Sent::All);
        rig.turn(0, 1);
        assert_eq!(received(&mut client), "STAT argument \r\nEND\r\n");
    }
}

/// Datagrams that wait for another worker and come to have its replies at the same time.
#[test]
fn datagrams_that_have_waited_go_on_some_at_a_time() {
    const DATAGRAMS: usize = 40;
    let mut rig = Rig::new(2, |_| {});
    let mut client = rig.network.attach(([10, 0, 0, 2], 1).into());
    let keys = [0, 1].map(key_of);
    let here = format!("get {}\r\n", keys[0]);
    let each = (60_000 / here.len()) as u64;
    for id in 0..DATAGRAMS {
        // A read of the other worker's key, then a read that stops this one until it is answered
        // because the replies so far are long, then many of this worker's.
        let mut one = datagram(id as u16, &here);
        let there = format!("get {}\r\n", keys[1]).repeat(BATCH_MAX * 2 + 1);
        one.splice(8..8, there.into_bytes());
        one.truncate(65_000);
        let until = one.iter().rposition(|&byte| byte == b'\n').unwrap() + 1;
        one.truncate(until);
        send(&mut client, &[one]);
    }
    let mut most = 0;
    for _ in 0..200 {
        let before = rig.requests();
        rig.turn(0, 1);
        most = most.max(rig.requests() - before);
        rig.turn(1, 1);
    }
    // What arrives and what goes on have a share of a turn each.
    assert!(
        most <= 2 * (DATAGRAM_REQUESTS_PER_TURN_MAX + each),
        "{most}"
    );
    let mut batch = RxBatch::default();
    let mut answered = 0;
    while client.receive(&mut batch) > 0 {
        answered += batch.count();
    }
    assert!(answered > 0);
}

/// A key that one of two workers owns.
fn key_of(worker: usize) -> String {
    let (map, hasher) = (PartitionMap::new(2, 2), config().hasher);
    let keys = (0..).map(|number| format!("key{number}"));
    let mut its_own = keys.filter(|key| map.owner(hasher.keyhash(key.as_bytes())) == worker);
    its_own.next().expect("each worker owns keys")
}
