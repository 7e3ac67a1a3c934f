//! Packet devices from which several workers receive, step by step.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::support::{Access, Admin, Habits, config, engines};
use glimmer_base::limits::{DISPATCH_BATCH, SHARED_PACKETS_MAX, SWITCH_QUEUE_PACKETS};
use glimmer_dispatch::{LargeCores, Settings, named};
use glimmer_node::{Devices, DrivenNode, Rest, Tally};
use glimmer_proto::Accepts;
use glimmer_transport::packet::{Message, PacketDevice, PacketSender, RxBatch, Switch, SwitchPort};
use glimmer_transport::stream::{ByteStream, LocalListener, LocalStream, StreamFaults};

const PORT: u16 = 11211;

fn server(worker: usize) -> SocketAddr {
    ([10, 0, 0, 1], PORT + worker as u16).into()
}

/// A node in which each worker has a device, and the first one a listener.
struct Rig {
    node: DrivenNode,
    client: SwitchPort,
    listener: LocalListener,
}

impl Rig {
    fn new(workers: usize, dispatch: &str) -> Rig {
        let settings = Settings {
            large_cores: LargeCores::Fixed(1),
            ..Settings::DEFAULT
        };
        let network = Switch::new();
        let mut config = config();
        config.dispatch = named(dispatch, &settings).unwrap();
        let listener = LocalListener::new(server(0));
        let mut devices: Vec<Devices> = (0..workers)
            .map(|worker| Devices {
                memcached: vec![Box::new(network.attach(server(worker)))],
                ..Devices::default()
            })
            .collect();
        let at_listener: Box<LocalListener> = Box::new(listener.clone());
        devices[0].listeners.push((at_listener, Accepts::Any));
        let habits = Habits {
            access: Access::Crcw,
            ..Habits::EREW
        };
        let engines = engines(workers, habits);
        Rig {
            node: DrivenNode::new(config, devices, engines, Arc::new(Admin)).unwrap(),
            client: network.attach(([10, 0, 0, 2], 1).into()),
            listener,
        }
    }

    /// Sends this many requests to a worker's device, each in a datagram of its own.
    fn send(&mut self, worker: usize, count: usize) {
        for id in 0..count as u16 {
            let [high, low] = id.to_be_bytes();
            let datagram = [&[high, low, 0, 0, 0, 1, 0, 0][..], b"get a\r\n"].concat();
            (self.client).send(&[Message::alone(server(worker), &datagram)]);
        }
    }

    /// The number of replies from a worker's device.
    fn replies(&mut self) -> Vec<usize> {
        let mut from = vec![0; self.node.workers.len()];
        let mut batch = RxBatch::default();
        while self.client.receive(&mut batch) > 0 {
            for index in 0..batch.count() {
                let worker = usize::from(batch.peer(index).port() - PORT);
                from[worker] += batch.datagrams(index);
                for reply in batch.segments(index) {
                    assert_eq!(&reply[8..], b"END\r\n");
                }
            }
        }
        from
    }

    fn turn(&mut self, worker: usize) {
        self.node.workers[worker].rest();
        self.node.workers[worker].turn();
    }

    /// Every worker takes turns, more than anything here needs.
    fn run(&mut self) {
        for _ in 0..100 {
            (0..self.node.workers.len()).for_each(|worker| self.turn(worker));
        }
    }

    /// A connection that is at home with the first worker, which accepts it.
    fn connect(&mut self, number: u16) -> LocalStream {
        let from = SocketAddr::from(([10, 0, 0, 2], number));
        let stream = self.listener.connect(from, StreamFaults::default(), 1);
        self.run();
        stream
    }

    fn by_worker(&self, of: impl Fn(&Tally) -> u64) -> Vec<u64> {
        self.node.figures().tallies().iter().map(of).collect()
    }

    fn is_called(&self, worker: usize) -> bool {
        self.node.workers[worker].is_called()
    }
}

fn requests(tally: &Tally) -> u64 {
    tally.requests
}

/// Replies leave through the device at which requests arrived, whichever worker executes them.
#[test]
fn the_workers_of_the_plan_receive() {
    for (policy, executes) in [
        ("keyhash", [true, true, true]),
        ("handoff", [false, true, true]),
        ("handoff:2", [false, false, true]),
        ("stealing", [true, true, true]),
        ("size-aware", [true, true, false]),
    ] {
        let mut rig = Rig::new(3, policy);
        for round in 1..=20 {
            (0..3).for_each(|worker| rig.send(worker, 10));
            rig.run();
            assert_eq!(rig.replies(), [10; 3], "{policy}, round {round}");
        }
        let requests = rig.by_worker(requests);
        let has = [0, 1, 2].map(|worker| requests[worker] > 0);
        assert_eq!(has, executes, "{policy}: {requests:?}");
        let drained: u64 = rig.by_worker(|tally| tally.drained).iter().sum();
        assert_eq!(drained > 0, policy != "keyhash", "{policy}");
        for worker in &mut rig.node.workers {
            assert_eq!(worker.rest(), Rest::Asleep(None), "{policy}");
            assert!(!worker.is_called(), "{policy}");
        }
    }
}

/// The first worker takes no turn, as if it were busy with a large request.
#[test]
fn an_idle_worker_steals_from_a_busy_one() {
    let mut rig = Rig::new(2, "stealing");
    rig.run();
    rig.send(0, 50);
    assert!(rig.is_called(1), "the kernel calls those that are not busy");
    for _ in 0..50 {
        rig.turn(1);
    }
    assert_eq!(rig.replies(), [50, 0]);
    assert_eq!(rig.by_worker(|tally| tally.drained), [0, 50]);
}

/// A worker that steals begins with one datagram, and takes more at a time while more wait. Its own
/// it receives in small parts, so that others find the rest.
#[test]
fn what_is_taken_at_a_time() {
    let mut rig = Rig::new(2, "stealing");
    rig.run();
    rig.send(0, 100);
    for expected in [1, 2, 4, SHARED_PACKETS_MAX, SHARED_PACKETS_MAX] {
        let before = rig.by_worker(requests)[1];
        rig.turn(1);
        assert_eq!(rig.by_worker(requests)[1] - before, expected as u64);
    }
    rig.turn(0);
    assert_eq!(rig.by_worker(requests)[0], DISPATCH_BATCH as u64);
    rig.run();
    assert_eq!(rig.replies(), [100, 0]);
}

/// A small worker reads as many requests of each queue as the plan says.
#[test]
fn budgets_count_requests() {
    let mut rig = Rig::new(3, "size-aware");
    rig.run();
    (0..3).for_each(|worker| rig.send(worker, 100));
    let mut received = Vec::new();
    for _ in 0..2 {
        rig.turn(0);
        received.push(rig.replies());
    }
    let part = DISPATCH_BATCH / 2;
    assert_eq!(received, [[DISPATCH_BATCH, 0, part]; 2]);

    // Segment batches count as the requests that they have, and what is beyond the budget is taken
    // off.
    let mut rig = Rig::new(3, "size-aware");
    rig.run();
    let request = [&[0, 7, 0, 0, 0, 1, 0, 0][..], b"get a\r\n"].concat();
    for _ in 0..20 {
        for worker in [0, 2] {
            let segments = request.repeat(2 * DISPATCH_BATCH);
            let batch = Message::segments(server(worker), &segments, request.len());
            rig.client.send(&[batch]);
        }
    }
    let mut received = [0; 3];
    for _ in 0..8 {
        rig.turn(0);
        let replies = rig.replies();
        (0..3).for_each(|worker| received[worker] += replies[worker]);
    }
    // Two batches for each of the other queue: its budget is twice as large.
    let batches = received.map(|requests| requests / (2 * DISPATCH_BATCH));
    assert_eq!(batches[0], 2 * batches[2], "{batches:?}");
    rig.run();
}

/// A worker that was called and then has something else to do lets another one look.
#[test]
fn a_call_is_passed_on() {
    let mut rig = Rig::new(2, "stealing");
    let mut stream = rig.connect(7);
    let home = rig.by_worker(|tally| tally.curr_connections);
    let (busy, other) = match home[0] {
        1 => (0, 1),
        _ => (1, 0),
    };
    // One datagram for each of several calls of the other's device: both are called.
    rig.send(other, 2);
    assert!(rig.is_called(0) && rig.is_called(1));
    // The other one receives both, and one more arrives, of which the busy one is told.
    rig.turn(other);
    assert_eq!(rig.replies().iter().sum::<usize>(), 2);
    rig.run();
    rig.node.workers[other].rest();
    rig.node.workers[busy].rest();
    for _ in 0..2 {
        rig.send(other, 1);
        if rig.is_called(busy) {
            break;
        }
        rig.turn(other);
        assert_eq!(rig.replies().iter().sum::<usize>(), 1);
    }
    if rig.is_called(other) {
        rig.turn(other);
        rig.replies();
        rig.node.workers[other].rest();
        rig.send(other, 1);
    }
    assert!(rig.is_called(busy) && !rig.is_called(other));
    // Many requests keep it busy for turns.
    stream.send("get a\r\n".repeat(5_000).as_bytes());
    rig.node.workers[busy].turn();
    assert!(rig.is_called(other), "it is woken to look");
    rig.turn(other);
    assert_eq!(rig.replies().iter().sum::<usize>(), 1);
    // So it is for each datagram of which it is told, as long as it is busy.
    let mut passed_on = 0;
    for nth in 0..6 {
        // Each finds that nothing waits any more.
        rig.turn(busy);
        rig.turn(other);
        rig.node.workers[other].rest();
        rig.send(other, 1);
        let is_told = !rig.is_called(other);
        rig.turn(busy);
        assert!(rig.is_called(other), "datagram {nth}");
        passed_on += usize::from(is_told);
        rig.turn(other);
        assert_eq!(rig.replies().iter().sum::<usize>(), 1, "datagram {nth}");
    }
    assert!(passed_on > 1, "the busy worker was told of {passed_on}");
    assert_eq!(rig.node.workers[busy].rest(), Rest::Busy);
}

/// Under the next plan, the worker that was called receives nothing from the device.
#[test]
fn a_call_is_passed_on_when_the_plan_changes() {
    for called in [0, 1] {
        let mut rig = Rig::new(2, "stealing");
        let mut admin = rig.connect(7);
        for next in [
            "keyhash",
            "handoff",
            "size-aware",
            "stealing",
            "handoff",
            "keyhash",
        ] {
            admin.send(format!("dispatch {next}\r\n").as_bytes());
            for worker in 0..2 {
                rig.send(worker, 1);
            }
            // Turns in either order, so that either worker goes by the next plan first.
            for step in 0..100 {
                rig.turn((called + step) % 2);
            }
            assert_eq!(rig.replies(), [1, 1], "to {next}");
            let mut buffer = Vec::with_capacity(64);
            admin.receive(&mut buffer);
            assert_eq!(buffer, b"OK\r\n");
        }
    }
}

/// Two workers are told of the same losses, which count once.
#[test]
fn what_a_device_has_dropped_is_counted_once() {
    let mut rig = Rig::new(2, "stealing");
    rig.run();
    for round in 1..=3 {
        rig.send(0, SWITCH_QUEUE_PACKETS + 7);
        rig.run();
        assert_eq!(rig.replies(), [SWITCH_QUEUE_PACKETS, 0]);
        let lost: u64 = rig
            .by_worker(|tally| tally.datagrams_overflowed)
            .iter()
            .sum();
        assert_eq!(lost, 7 * round);
    }
}
