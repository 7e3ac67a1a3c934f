//! Datagrams of memcached's UDP protocol reach workers by any packet device.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use crate::support::{Access, Admin, Habits, config, engines};
use glimmer_base::limits::{
    ADMIN_COMMAND_NS, ADMIN_SHARE_NS, BATCH_MAX, BURST_CONNECTIONS_MAX,
    DATAGRAM_REQUESTS_PER_TURN_MAX, FORWARD_BATCHES_PER_PEER, PENDING_DATAGRAMS_MAX,
    REORDER_SLOTS_MAX,
};
use glimmer_dispatch::named;
use glimmer_engine::Engine;
use glimmer_node::{Devices, DrivenNode, NodeConfig, Rest};
use glimmer_proto::binary::{emit, opcode};
use glimmer_proto::text::lines;
use glimmer_proto::{Accepts, AdminCommand};
use glimmer_transport::packet::{
    FaultInjector, Faults, Message, Microseconds, PacketDevice, PacketSender, RxBatch, Switch,
    SwitchPort, TxBatch,
};

/// More requests than one burst executes.
const REQUESTS: u16 = 3 * BURST_CONNECTIONS_MAX as u16 + 5;

fn server() -> SocketAddr {
    ([10, 0, 0, 1], 11211).into()
}

type Open = fn(&Switch) -> Box<dyn PacketDevice>;

/// Every kind of device, by name.
fn devices() -> [(&'static str, Open); 3] {
    [
        ("receives segment batches", |network| {
            Box::new(network.attach(server()))
        }),
        ("receives datagrams", |network| {
            Box::new(network.attach_splitting(server()))
        }),
        ("wakes no worker", |network| {
            let (device, none) = (network.attach(server()), Faults::default());
            let time = Microseconds::default();
            Box::new(FaultInjector::new(device, (none, none), 1, time))
        }),
    ]
}

/// Workers of which each owns its keys. The first has the device.
fn node(workers: usize, device: Box<dyn PacketDevice>) -> DrivenNode {
    node_with(config(), workers, device)
}

fn node_with(config: NodeConfig, workers: usize, device: Box<dyn PacketDevice>) -> DrivenNode {
    node_of(config, engines(workers, Habits::EREW), device)
}

fn node_of(
    config: NodeConfig,
    engines: Vec<Box<dyn Engine>>,
    device: Box<dyn PacketDevice>,
) -> DrivenNode {
    let mut devices: Vec<Devices> = engines.iter().map(|_| Devices::default()).collect();
    devices[0].memcached.push(device);
    DrivenNode::new(config, devices, engines, Arc::new(Admin)).unwrap()
}

/// A request with its frame.
fn request(id: u16) -> Vec<u8> {
    framed(id, &format!("set key{id:05} 0 0 1\r\nx\r\n"))
}

fn framed(id: u16, command: &str) -> Vec<u8> {
    let [high, low] = id.to_be_bytes();
    let frame = [high, low, 0, 0, 0, 1, 0, 0];
    [&frame[..], command.as_bytes()].concat()
}

fn turn(node: &mut DrivenNode, workers: std::ops::Range<usize>) {
    for worker in &mut node.workers[workers] {
        worker.rest();
        worker.turn();
    }
}

/// The replies that have arrived, by the id of the request, each put together from its datagrams.
fn replies(client: &mut SwitchPort) -> BTreeMap<u16, Vec<u8>> {
    let mut parts: BTreeMap<u16, BTreeMap<u16, Vec<u8>>> = BTreeMap::new();
    let mut batch = RxBatch::default();
    while client.receive(&mut batch) > 0 {
        for index in 0..batch.count() {
            assert_eq!(batch.peer(index), server());
            for reply in batch.bytes(index).chunks(batch.segment_bytes(index)) {
                let number = |at: usize| u16::from_be_bytes([reply[at], reply[at + 1]]);
                assert!(number(2) < number(4));
                let of_request = parts.entry(number(0)).or_default();
                let before = of_request.insert(number(2), reply[8..].to_vec());
                assert_eq!(before, None);
            }
        }
    }
    let whole = |(id, parts): (u16, BTreeMap<u16, Vec<u8>>)| (id, parts.into_values().collect());
    let parts = parts.into_iter().map(whole);
    parts
        .map(|(id, parts): (u16, Vec<_>)| (id, parts.concat()))
        .collect()
}

/// Sends requests that travel together, and lets the workers take turns. Returns the replies by the
/// id of the request.
fn ask(node: &mut DrivenNode, client: &mut SwitchPort) -> BTreeMap<u16, Vec<u8>> {
    let requests: Vec<u8> = (0..REQUESTS).flat_map(request).collect();
    let mut out = TxBatch::new(client);
    out.push(Message::segments(server(), &requests, request(0).len()));
    out.finish();
    for _ in 0..20 {
        let workers = 0..node.workers.len();
        turn(node, workers);
    }
    replies(client)
}

fn is_complete(replies: &BTreeMap<u16, Vec<u8>>) -> bool {
    replies.keys().copied().eq(0..REQUESTS) && replies.values().all(|one| one == b"STORED\r\n")
}

#[test]
fn every_datagram_of_a_segment_batch_is_answered() {
    for (name, open) in devices() {
        let network = Switch::new();
        let mut node = node(1, open(&network));
        let mut client = network.attach(([10, 0, 0, 2], 1).into());
        let replies = ask(&mut node, &mut client);
        assert!(is_complete(&replies), "{name}: {replies:?}");
    }
}

#[test]
fn what_another_worker_executes_is_answered_by_the_device_that_received_it() {
    for (name, open) in devices() {
        let network = Switch::new();
        let mut node = node(3, open(&network));
        let mut client = network.attach(([10, 0, 0, 2], 1).into());
        let replies = ask(&mut node, &mut client);
        assert!(is_complete(&replies), "{name}: {replies:?}");
    }
}

/// More keys than one datagram may have in flight, in many datagrams at once, so that they wait for
/// slots and for credit as well.
#[test]
fn replies_of_several_workers_to_one_datagram_keep_its_order() {
    let network = Switch::new();
    let mut node = node(3, Box::new(network.attach(server())));
    let mut client = network.attach(([10, 0, 0, 2], 1).into());
    assert!(is_complete(&ask(&mut node, &mut client)));
    let ids = (0..REQUESTS).cycle().take(2 * REORDER_SLOTS_MAX + 9);
    let keys: Vec<String> = ids.map(|id| format!("key{id:05}")).collect();
    let value = |key: &String| format!("VALUE {key} 0 1\r\nx\r\n");
    let expected = keys.iter().map(value).collect::<String>() + "END\r\n";
    let command = format!("get {}\r\n", keys.join(" "));
    let ids = 0..40;
    for id in ids.clone() {
        client.send(&[Message::alone(server(), &framed(id, &command))]);
    }
    for _ in 0..40 {
        turn(&mut node, 0..3);
    }
    let replies = replies(&mut client);
    assert!(replies.keys().copied().eq(ids), "{:?}", replies.keys());
    for reply in replies.values() {
        assert_eq!(String::from_utf8_lossy(reply), expected);
    }
    assert_eq!(node.workers[0].held_bytes(), 0);
}

/// What one burst makes of a reply is bounded; the reply is not.
#[test]
fn a_reply_of_many_large_values_is_made_in_several_bursts() {
    for workers in [1, 2] {
        let network = Switch::new();
        let mut node = node(workers, Box::new(network.attach(server())));
        let mut client = network.attach(([10, 0, 0, 2], 1).into());
        let value = "v".repeat(60_000);
        for id in 0..9 {
            let set = framed(id, &format!("set {id} 0 0 60000\r\n{value}\r\n"));
            client.send(&[Message::alone(server(), &set)]);
        }
        turn(&mut node, 0..workers);
        turn(&mut node, 0..workers);
        replies(&mut client);
        client.send(&[Message::alone(
            server(),
            &framed(9, "get 0 1 2 3 4 5 6 7 8\r\n"),
        )]);
        for _ in 0..9 {
            turn(&mut node, 0..workers);
        }
        let item = |id| format!("VALUE {id} 0 60000\r\n{value}\r\n");
        let expected = (0..9).map(item).collect::<String>() + "END\r\n";
        let replies = replies(&mut client);
        assert_eq!(replies.len(), 1, "{workers} workers");
        assert!(
            replies[&9] == expected.as_bytes(),
            "{} bytes",
            replies[&9].len()
        );
    }
}

#[test]
fn a_worker_drops_datagrams_while_too_many_wait_for_others() {
    let network = Switch::new();
    let mut node = node(2, Box::new(network.attach(server())));
    let mut client = network.attach(([10, 0, 0, 2], 1).into());
    let sent = 3 * PENDING_DATAGRAMS_MAX as u16;
    let mut answered = BTreeMap::new();
    for id in 0..sent {
        client.send(&[Message::alone(server(), &request(id))]);
        if id % 100 == 99 {
            turn(&mut node, 0..1);
            answered.extend(replies(&mut client));
        }
    }
    for _ in 0..100 {
        turn(&mut node, 0..2);
        answered.extend(replies(&mut client));
    }
    let dropped = node.figures().tallies()[0].datagrams_dropped;
    assert!(dropped > 1_000, "{dropped}");
    assert_eq!(answered.len() as u64 + dropped, sent.into());
    assert!(answered.values().all(|one| one == b"STORED\r\n"));
    assert_eq!(node.workers[0].held_bytes(), 0);
}

/// Those that wait for credit need none under another plan, so that no batch comes back for the
/// others.
#[test]
fn datagrams_that_wait_for_others_are_answered_under_another_plan() {
    let network = Switch::new();
    let policy = |name| named(name, &Default::default()).unwrap();
    let habits = Habits {
        access: Access::Crcw,
        ..Habits::EREW
    };
    let mut config = config();
    config.dispatch = policy("owner");
    let now = config.clock.now();
    let device = Box::new(network.attach(server()));
    let mut node = node_of(config, engines(2, habits), device);
    let mut client = network.attach(([10, 0, 0, 2], 1).into());
    let sent = PENDING_DATAGRAMS_MAX as u16;
    let mut answered = BTreeMap::new();
    for id in 0..sent {
        client.send(&[Message::alone(server(), &request(id))]);
        if id % 64 == 63 {
            turn(&mut node, 0..1);
            answered.extend(replies(&mut client));
        }
    }
    let waiting = usize::from(sent) - answered.len();
    assert!(waiting > 3 * FORWARD_BATCHES_PER_PEER * BATCH_MAX);
    node.switch(policy("keyhash"), Access::Crcw, now).unwrap();
    let is_awake = |node: &mut DrivenNode| {
        let mut workers = node.workers.iter_mut();
        workers.any(|worker| worker.rest() == Rest::Busy || worker.is_called())
    };
    while is_awake(&mut node) {
        turn(&mut node, 0..2);
        answered.extend(replies(&mut client));
    }
    assert_eq!(answered.len(), usize::from(sent));
    assert!(answered.values().all(|one| one == b"STORED\r\n"));
    assert_eq!(node.workers[0].held_bytes(), 0);
}

#[test]
fn a_worker_sleeps_unless_it_has_to_look_at_a_device() {
    for (name, open) in devices() {
        let network = Switch::new();
        let mut node = node(2, open(&network));
        let is_polled = name == "wakes no worker";
        let rest = |is_polled| match is_polled {
            true => Rest::Busy,
            false => Rest::Asleep(None),
        };
        assert_eq!(node.workers[0].rest(), rest(is_polled), "{name}");
        assert_eq!(node.workers[1].rest(), rest(false), "{name}");
        let mut client = network.attach(([10, 0, 0, 2], 1).into());
        client.send(&[Message::alone(server(), &request(7))]);
        assert_eq!(node.workers[0].is_called(), !is_polled, "{name}");
    }
}

/// Sends each command in a datagram of its own. Returns the replies in the order of the commands.
fn ask_each(node: &mut DrivenNode, client: &mut SwitchPort, commands: &[Vec<u8>]) -> Vec<Vec<u8>> {
    for (id, command) in commands.iter().enumerate() {
        let frame = [0, id as u8, 0, 0, 0, 1, 0, 0];
        let datagram = [&frame[..], command].concat();
        client.send(&[Message::alone(server(), &datagram)]);
    }
    for _ in 0..20 {
        let workers = 0..node.workers.len();
        turn(node, workers);
    }
    let replies = replies(client);
    assert_eq!(replies.len(), commands.len());
    replies.into_values().collect()
}

/// Anybody can forge the sender of a datagram, and then the answer is of no use to the sender: what
/// is left is what the server does for it.
#[test]
fn datagrams_change_no_settings_and_ask_for_nothing_expensive() {
    let network = Switch::new();
    let mut config = config();
    config.permits = AdminCommand::ALL
        .iter()
        .fold(config.permits, |permits, &command| permits.with(command));
    let mut node = node_with(config, 2, Box::new(network.attach(server())));
    let mut client = network.attach(([10, 0, 0, 2], 1).into());
    let commands = [
        "cache_memlimit 64",
        "debugtime 1000",
        "dispatch handoff crcw",
        "flush_all",
        "lru tune 10 20 0.1 2.0",
        "lru_crawler crawl all",
        "lru_crawler disable",
        "lru_crawler metadump all",
        "lru_crawler mgdump all",
        "lru_crawler sleep 1",
        "shutdown",
        "slabs automove 1",
        "stats argument",
        "stats cachedump 1 0",
        "stats detail dump",
        "stats detail on",
        "stats reset",
        "verbosity 2",
        "watch fetchers",
    ];
    let commands = commands.map(|command| format!("{command}\r\n").into_bytes());
    let (figures, stored) = (node.figures(), b"set kept 0 0 1\r\nx\r\n".to_vec());
    let version = figures.dispatch().unwrap().version;
    ask_each(&mut node, &mut client, &[stored]);
    for (reply, command) in ask_each(&mut node, &mut client, &commands)
        .iter()
        .zip(&commands)
    {
        let (reply, command) = (reply.escape_ascii(), command.escape_ascii());
        let expected = lines::NOT_OVER_UDP.as_bytes().escape_ascii();
        assert_eq!(reply.to_string(), expected.to_string(), "{command}");
    }
    let packet = |code: u8, key: &[u8]| {
        let mut packet = vec![0x80, code, 0, key.len() as u8, 0, 0, 0, 0];
        packet.extend_from_slice(&(key.len() as u32).to_be_bytes());
        packet.extend_from_slice(&[0; 12]);
        packet.extend_from_slice(key);
        packet
    };
    let packets = [
        packet(opcode::FLUSH, b""),
        packet(opcode::FLUSHQ, b""),
        packet(opcode::STAT, b"memory"),
        packet(opcode::STAT, b"detail on"),
        packet(opcode::STAT, b"reset"),
    ];
    for reply in ask_each(&mut node, &mut client, &packets) {
        let status = emit::Status::NotSupported as u16;
        assert_eq!(
            reply[6..8],
            status.to_be_bytes(),
            "{}",
            reply.escape_ascii()
        );
    }
    assert!(figures.has_crawler() && !figures.has_detail());
    assert_eq!(figures.dumps(), (false, 0));
    assert_eq!(figures.dispatch().unwrap().version, version);
    let allowed = ["get kept\r\n", "stats\r\n", "mn\r\n"].map(|it| it.as_bytes().to_vec());
    let replies = ask_each(&mut node, &mut client, &allowed);
    let expected = [
        "VALUE kept 0 1\r\nx\r\nEND\r\n",
        "STAT argument \r\nEND\r\n",
        "MN\r\n",
    ];
    assert_eq!(replies, expected.map(|it| it.as_bytes().to_vec()));
}

/// A datagram full of commands, or many of them, have their part of the turn's allowance.
#[test]
fn statistics_over_udp_are_bounded() {
    let network = Switch::new();
    let mut node = node(1, Box::new(network.attach(server())));
    let mut client = network.attach(([10, 0, 0, 2], 1).into());
    let commands = vec![b"stats\r\n".repeat(200); 20];
    let all = ask_each(&mut node, &mut client, &commands).concat();
    let count = |line: &str| {
        all.windows(line.len())
            .filter(|it| *it == line.as_bytes())
            .count()
    };
    let (shown, refused) = (
        count("STAT argument \r\nEND\r\n"),
        count(lines::TOO_OFTEN_OVER_UDP),
    );
    assert_eq!(shown + refused, 200 * 20);
    // `ask_each` lets the worker take twenty turns.
    let in_a_turn = ADMIN_SHARE_NS.div_ceil(ADMIN_COMMAND_NS) as usize;
    assert!((1..=20 * in_a_turn).contains(&shown), "{shown}");
    let next = ask_each(&mut node, &mut client, &[b"stats\r\n".to_vec()]);
    assert_eq!(next, [b"STAT argument \r\nEND\r\n"]);
}

/// What is refused costs as much as a read. A turn ends after as many of those, and the others are
/// answered in the next ones.
#[test]
fn refusals_over_udp_are_bounded_in_a_turn() {
    const DATAGRAMS: u16 = 200;
    const LINES: usize = 100;
    for line in ["verbosity 2\r\n", "nonsense\r\n"] {
        let network = Switch::new();
        let mut node = node(1, Box::new(network.attach(server())));
        let mut client = network.attach(([10, 0, 0, 2], 1).into());
        for id in 0..DATAGRAMS {
            let datagram = framed(id, &line.repeat(LINES));
            client.send(&[Message::alone(server(), &datagram)]);
        }
        let mut answered = 0;
        for _ in 0..DATAGRAMS {
            turn(&mut node, 0..1);
            let count = replies(&mut client).len();
            assert!(
                LINES * count <= 2 * DATAGRAM_REQUESTS_PER_TURN_MAX as usize,
                "{count}"
            );
            answered += count;
        }
        assert_eq!(answered, usize::from(DATAGRAMS), "{line}");
    }
}

/// What goes from worker to worker has no datagram to come home to. The rest of the datagram is
/// answered.
#[test]
fn datagrams_move_no_items() {
    let network = Switch::new();
    let mut config = config();
    config.accepts = Accepts::Resp;
    let mut node = node_with(config, 2, Box::new(network.attach(server())));
    let mut client = network.attach(([10, 0, 0, 2], 1).into());
    let commands = [
        "rename a b",
        "renamenx a b",
        "copy a b",
        "randomkey",
        "keys *",
    ];
    let commands = commands.map(|command| format!("{command}\r\nPING\r\n").into_bytes());
    for reply in ask_each(&mut node, &mut client, &commands) {
        assert_eq!(reply, b"-ERR not available over UDP\r\n+PONG\r\n");
    }
}
