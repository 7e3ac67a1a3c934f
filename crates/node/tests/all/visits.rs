//! Connections that visit another worker for a large request, step by step.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::support::{Access, Admin, Habits, config, engines};
use glimmer_base::limits::SAMPLED_TURNS_EVERY;
use glimmer_dispatch::{Settings, SizeAware, SizeClass};
use glimmer_node::{Devices, DrivenNode};
use glimmer_proto::Accepts;
use glimmer_transport::Received;
use glimmer_transport::stream::{ByteStream, LocalListener, LocalStream, StreamFaults};

/// Values of this many bytes are large.
const LARGE: usize = 1_000;

/// A size-aware node of two workers. Worker 0 is home to the first connection, and every second one
/// after it. Worker 1 has large requests.
fn node() -> (DrivenNode, LocalListener) {
    let mut config = config();
    config.dispatch = Arc::new(SizeAware {
        settings: Settings::DEFAULT,
        threshold: Some(LARGE as u32),
    });
    let listener = LocalListener::new(SocketAddr::from(([10, 0, 0, 1], 1)));
    let mut devices = [Devices::default(), Devices::default()];
    let at_listener: Box<LocalListener> = Box::new(listener.clone());
    devices[0].listeners.push((at_listener, Accepts::Any));
    let habits = Habits {
        access: Access::Crcw,
        ..Habits::EREW
    };
    let engines = engines(2, habits);
    let node = DrivenNode::new(config, devices.into(), engines, Arc::new(Admin)).unwrap();
    (node, listener)
}

fn connect(listener: &LocalListener, faults: StreamFaults) -> LocalStream {
    listener.connect(SocketAddr::from(([10, 0, 0, 2], 1)), faults, 1)
}

/// Every worker takes turns, more than anything here needs.
fn run(node: &mut DrivenNode) {
    for _ in 0..30 {
        for worker in &mut node.workers {
            worker.rest();
            worker.turn();
        }
    }
}

fn received(stream: &mut LocalStream) -> String {
    let mut all = Vec::new();
    loop {
        let mut buffer = Vec::with_capacity(64 << 10);
        let got = stream.receive(&mut buffer);
        all.extend_from_slice(&buffer);
        if !matches!(got, Received::Full(_)) {
            let all = String::from_utf8(all).unwrap();
            return all.replace("v".repeat(100).as_str(), "V");
        }
    }
}

fn visits(node: &DrivenNode) -> u64 {
    node.figures()
        .tallies()
        .iter()
        .map(|tally| tally.visits)
        .sum()
}

fn requests(node: &DrivenNode, worker: usize) -> u64 {
    node.figures().tallies()[worker].requests
}

fn set(key: &str, bytes: usize) -> Vec<u8> {
    format!("set {key} 0 0 {bytes}\r\n{}\r\n", "v".repeat(bytes)).into_bytes()
}

/// The reply with a value, as [`received`] shows it.
fn value(key: &str, bytes: usize) -> String {
    let [hundreds, rest] = ["V".repeat(bytes / 100), "v".repeat(bytes % 100)];
    format!("VALUE {key} 0 {bytes}\r\n{hundreds}{rest}\r\nEND\r\n")
}

/// Small and large requests in one pipeline: the replies are in order, and worker 1 executes the
/// large ones and nothing else.
#[test]
fn requests_behind_a_large_one_wait_for_it() {
    let (mut node, listener) = node();
    let mut stream = connect(&listener, StreamFaults::default());
    let mut asked = [set("small", 10), set("large", 5_000)].concat();
    let mut expected = "STORED\r\nSTORED\r\n".to_owned();
    for key in ["small", "large", "large", "small"] {
        asked.extend_from_slice(format!("get {key}\r\n").as_bytes());
        expected.push_str(&value(key, if key == "small" { 10 } else { 5_000 }));
    }
    stream.send(&asked);
    run(&mut node);
    assert_eq!(received(&mut stream), expected);
    assert_eq!(visits(&node), 3);
    let yields = node.figures().tallies().into_iter();
    let yields = yields.map(|tally| tally.conn_yields);
    assert_eq!(yields.sum::<u64>(), 0, "each had one request");
    assert_eq!(requests(&node, 1), 3);
    assert_eq!(requests(&node, 0), 3);
}

/// A large value that has been announced is received by worker 1 once there is more of it, also if
/// it comes in pieces.
#[test]
fn a_large_set_leaves_when_its_command_line_announces_the_length() {
    let (mut node, listener) = node();
    let mut stream = connect(&listener, StreamFaults::default());
    let asked = set("large", 9_000);
    for piece in asked.chunks(2_500) {
        assert_eq!(received(&mut stream), "");
        stream.send(piece);
        run(&mut node);
    }
    assert_eq!(received(&mut stream), "STORED\r\n");
    assert_eq!(requests(&node, 0), 0);
    assert_eq!(requests(&node, 1), 1);
    // Between two pieces it waits at home.
    assert_eq!(visits(&node), 3);
}

/// The value has become small, or is gone, when the request for it arrives at worker 1. That worker
/// executes the request all the same.
#[test]
fn a_request_is_sent_on_once_whatever_becomes_of_its_item() {
    let (mut node, listener) = node();
    let mut reader = connect(&listener, StreamFaults::default());
    let mut writer = connect(&listener, StreamFaults::default());
    run(&mut node);
    let turn = |node: &mut DrivenNode, worker: usize| {
        node.workers[worker].rest();
        node.workers[worker].turn();
    };
    let gone = (
        b"delete key\r\n".to_vec(),
        "DELETED\r\n",
        "END\r\n".to_owned(),
    );
    let small = (set("key", 10), "STORED\r\n", value("key", 10));
    for (number, (change, changed, shown)) in (0..).zip([small, gone]) {
        writer.send(&set("key", 5_000));
        run(&mut node);
        assert_eq!(received(&mut writer), "STORED\r\n");
        reader.send(b"get key\r\n");
        turn(&mut node, 0);
        assert_eq!(visits(&node), number + 1);
        // Worker 1 is home to the writer, and serves small requests before its visitors.
        writer.send(&change);
        turn(&mut node, 1);
        assert_eq!(received(&mut writer), changed);
        assert_eq!(received(&mut reader), shown);
        run(&mut node);
        assert_eq!(visits(&node), number + 1);
        assert_eq!(requests(&node, 0), 0);
    }
}

/// Whatever the size of the item is that they are for.
#[test]
fn misses_and_deletes_are_small() {
    let (mut node, listener) = node();
    let mut stream = connect(&listener, StreamFaults::default());
    stream.send(b"get absent\r\ndelete absent\r\n");
    stream.send(&set("large", 5_000));
    run(&mut node);
    assert_eq!(received(&mut stream), "END\r\nNOT_FOUND\r\nSTORED\r\n");
    stream.send(b"delete large\r\nget large\r\n");
    run(&mut node);
    assert_eq!(received(&mut stream), "DELETED\r\nEND\r\n");
    assert_eq!((visits(&node), requests(&node, 0)), (1, 4));
    let profiles = node.figures().dispatch().unwrap().profiles;
    let nothing = profiles.iter().map(|all| all.of_class(SizeClass::of(0)));
    assert_eq!(nothing.collect::<Vec<_>>(), [4, 0]);
}

/// Worker 1 does not wait for a client that takes its replies slowly. The memory counts at home.
#[test]
fn a_slow_reader_of_large_values_does_not_occupy_a_large_core() {
    let (mut node, listener) = node();
    let faults = StreamFaults {
        buffer_bytes: 4_096,
        ..StreamFaults::default()
    };
    let mut writer = connect(&listener, StreamFaults::default());
    writer.send(&set("large", 30_000));
    run(&mut node);
    assert_eq!(received(&mut writer), "STORED\r\n");
    // This one has its home at worker 1.
    let _other = connect(&listener, StreamFaults::default());
    let mut reader = connect(&listener, faults);
    reader.send(b"get large\r\n");
    run(&mut node);
    assert!(node.workers[0].held_bytes() > 20_000);
    assert_eq!(node.workers[1].held_bytes(), 0);
    let mut got = String::new();
    for _ in 0..20 {
        got.push_str(&received(&mut reader));
        run(&mut node);
    }
    let rest = got.replacen("VALUE ", "", 1).replace(['v', 'V'], "");
    assert_eq!(rest, "large 0 30000\r\n\r\nEND\r\n");
}

/// One turn of the home, and the connection is away. What its client does then takes effect when it
/// is home again.
#[test]
fn a_connection_may_close_while_its_request_is_away() {
    for asked in [set("large", 5_000), set("large", 5_000)[..3_000].to_vec()] {
        let (mut node, listener) = node();
        let mut stream = connect(&listener, StreamFaults::default());
        stream.send(&asked[..1_000]);
        run(&mut node);
        stream.send(&asked[1_000..]);
        while visits(&node) == 0 {
            node.workers[0].turn();
        }
        drop(stream);
        run(&mut node);
        let open = node.figures().tallies()[0].curr_connections;
        assert_eq!(open, 0, "{} bytes were sent", asked.len());
        for worker in &node.workers {
            assert_eq!(worker.held_bytes(), 0);
        }
    }
}

/// The place of a connection that is away collects what its client sends meanwhile.
#[test]
fn what_arrives_while_a_connection_is_away_is_not_lost() {
    let (mut node, listener) = node();
    let mut stream = connect(&listener, StreamFaults::default());
    stream.send(&set("large", 5_000));
    while visits(&node) == 0 {
        node.workers[0].turn();
    }
    stream.send(b"get small\r\n");
    // The home is told of it, and can do nothing.
    node.workers[0].turn();
    run(&mut node);
    assert_eq!(received(&mut stream), "STORED\r\nEND\r\n");
}

/// A node that is told to stop still answers what is away.
#[test]
fn a_node_stops_while_a_connection_is_away() {
    let (mut node, listener) = node();
    let mut stream = connect(&listener, StreamFaults::default());
    stream.send(&set("large", 5_000));
    while visits(&node) == 0 {
        node.workers[0].turn();
    }
    node.stop();
    let mut left = vec![true, true];
    for _ in 0..100 {
        for (worker, goes_on) in node.workers.iter_mut().zip(&mut left) {
            *goes_on = *goes_on && worker.turn();
        }
    }
    assert_eq!(left, [false, false]);
    assert_eq!(received(&mut stream), "STORED\r\n");
}

/// Each worker times the requests of one turn in 61, and a request that leaves in such a turn is
/// timed where it is executed.
#[test]
fn a_sample_of_requests_is_timed_wherever_they_are_executed() {
    let (mut node, listener) = node();
    let mut stream = connect(&listener, StreamFaults::default());
    let timed = |node: &DrivenNode, bytes| {
        let times = node.figures().times_of(SizeClass::of(bytes));
        times.requests()
    };
    let before = [10, 5_000].map(|bytes| timed(&node, bytes));
    // 30 turns each, so that each position in a period of 61 turns comes twice.
    for _ in 0..2 * SAMPLED_TURNS_EVERY {
        stream.send(&[set("small", 10), set("large", 5_000)].concat());
        run(&mut node);
        received(&mut stream);
    }
    let after = [10, 5_000].map(|bytes| timed(&node, bytes));
    assert_eq!([after[0] - before[0], after[1] - before[1]], [2, 2]);
}

/// A connection counts in the queue of the worker that it visits, until it is sent home.
#[test]
fn a_visitor_is_in_the_queue_of_the_worker_that_it_visits() {
    let (mut node, listener) = node();
    let mut stream = connect(&listener, StreamFaults::default());
    stream.send(&set("large", 5_000));
    let queues = |node: &DrivenNode| node.figures().dispatch().unwrap().queues;
    for _ in 0..30 {
        node.workers[0].rest();
        node.workers[0].turn();
    }
    assert_eq!(queues(&node), [(0, 0), (1, 1)]);
    run(&mut node);
    assert_eq!(received(&mut stream), "STORED\r\n");
    assert_eq!(queues(&node), [(0, 0), (0, 1)]);
}
