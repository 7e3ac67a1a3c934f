//! Connections that any worker may serve, and connections that get another home, step by step.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::support::{Access, Admin, Habits, config, engines};
use glimmer_dispatch::{POLICIES, Policy, named};
use glimmer_node::{Devices, DrivenNode, Tally};
use glimmer_proto::Accepts;
use glimmer_transport::Received;
use glimmer_transport::stream::{ByteStream, LocalListener, LocalStream, StreamFaults};

/// A node of this many workers, all of whose connections arrive at worker 0.
fn node(workers: usize, dispatch: &str) -> (DrivenNode, LocalListener) {
    let mut config = config();
    config.dispatch = named(dispatch, &Default::default()).unwrap();
    let listener = LocalListener::new(SocketAddr::from(([10, 0, 0, 1], 1)));
    let mut devices: Vec<Devices> = (0..workers).map(|_| Devices::default()).collect();
    let at_listener: Box<LocalListener> = Box::new(listener.clone());
    devices[0].listeners.push((at_listener, Accepts::Any));
    let habits = Habits {
        access: Access::Crcw,
        ..Habits::EREW
    };
    let engines = engines(workers, habits);
    let node = DrivenNode::new(config, devices, engines, Arc::new(Admin)).unwrap();
    (node, listener)
}

fn connect(listener: &LocalListener) -> LocalStream {
    let faults = StreamFaults::default();
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
            return String::from_utf8(all).unwrap();
        }
    }
}

fn ask(node: &mut DrivenNode, stream: &mut LocalStream, request: &str, reply: &str) {
    stream.send(request.as_bytes());
    run(node);
    assert_eq!(received(stream), reply, "{request}");
}

fn by_worker(node: &DrivenNode, of: impl Fn(&Tally) -> u64) -> Vec<u64> {
    node.figures().tallies().iter().map(of).collect()
}

fn total(node: &DrivenNode, of: impl Fn(&Tally) -> u64) -> u64 {
    by_worker(node, of).iter().sum()
}

/// Connections are at home with the dispatching worker, which executes no request of theirs.
#[test]
fn a_dispatching_worker_hands_every_request_on() {
    let (mut node, listener) = node(3, "handoff");
    let mut streams: Vec<LocalStream> = (0..7).map(|_| connect(&listener)).collect();
    run(&mut node);
    assert_eq!(by_worker(&node, |tally| tally.curr_connections), [7, 0, 0]);
    for round in 0..3 {
        for (number, stream) in streams.iter_mut().enumerate() {
            stream.send(format!("set {number} 0 0 1\r\n{round}\r\nget {number}\r\n").as_bytes());
        }
        run(&mut node);
        for (number, stream) in streams.iter_mut().enumerate() {
            let value = format!("VALUE {number} 0 1\r\n{round}\r\nEND\r\n");
            assert_eq!(received(stream), format!("STORED\r\n{value}"));
        }
    }
    let requests = by_worker(&node, |tally| tally.requests);
    assert_eq!(requests[0], 0);
    assert_eq!(requests[1] + requests[2], 42);
    assert!(total(&node, |tally| tally.taken) >= 21);
    assert_eq!(by_worker(&node, |tally| tally.curr_connections), [7, 0, 0]);
}

/// A command about the server executes at home. Before and after it, requests travel.
#[test]
fn a_command_for_the_home_executes_there() {
    let (mut node, listener) = node(2, "handoff");
    let mut stream = connect(&listener);
    ask(
        &mut node,
        &mut stream,
        "get a\r\nstats here\r\nget b\r\n",
        "END\r\nSTAT argument here\r\nEND\r\nEND\r\n",
    );
    assert_eq!(by_worker(&node, |tally| tally.requests), [1, 1]);
    ask(&mut node, &mut stream, "get c\r\n", "END\r\n");
    assert_eq!(by_worker(&node, |tally| tally.requests), [1, 2]);
}

/// An idle worker takes what waits behind other requests, and only that.
#[test]
fn an_idle_worker_steals_what_waits() {
    let (mut node, listener) = node(2, "stealing");
    let mut streams: Vec<LocalStream> = (0..200).map(|_| connect(&listener)).collect();
    run(&mut node);
    assert_eq!(by_worker(&node, |tally| tally.curr_connections), [100, 100]);
    for stream in streams.iter_mut().step_by(2) {
        stream.send(b"get a\r\n");
    }
    for _ in 0..10 {
        node.workers[0].turn();
        node.workers[1].turn();
    }
    run(&mut node);
    for stream in streams.iter_mut().step_by(2) {
        assert_eq!(received(stream), "END\r\n");
    }
    let (requests, taken) = (
        by_worker(&node, |tally| tally.requests),
        by_worker(&node, |tally| tally.taken),
    );
    assert_eq!(requests.iter().sum::<u64>(), 100);
    assert!(requests.iter().all(|&count| count >= 20), "{requests:?}");
    assert_eq!(taken.iter().sum::<u64>(), *requests.iter().min().unwrap());
}

/// Under every pair of policies, one after the other: connections find their homes, and every
/// request is answered.
#[test]
fn connections_move_when_the_homes_change() {
    let policies = ["size-aware:100", "handoff:2"];
    let policies = POLICIES.iter().map(|policy| policy.name()).chain(policies);
    let policies: Vec<&str> = policies.collect();
    let (mut node, listener) = node(3, "keyhash");
    let mut streams: Vec<LocalStream> = (0..150).map(|_| connect(&listener)).collect();
    let mut admin = connect(&listener);
    run(&mut node);
    for &before in &policies {
        for &after in &policies {
            for (at, policy) in [before, after].into_iter().enumerate() {
                admin.send(format!("dispatch {policy}\r\n").as_bytes());
                // Requests arrive while connections move.
                for stream in streams.iter_mut().skip(at).step_by(2) {
                    stream.send(b"get a\r\n");
                }
                run(&mut node);
                assert_eq!(received(&mut admin), "OK\r\n", "{before} {after}");
                for stream in streams.iter_mut().skip(at).step_by(2) {
                    assert_eq!(received(stream), "END\r\n", "{before} {after}");
                }
                let homes = by_worker(&node, |tally| tally.curr_connections);
                let view = node.figures().dispatch().unwrap();
                let count = (0..3).filter(|&worker| view.plan.is_home(worker)).count() as u64;
                for (worker, &connections) in homes.iter().enumerate() {
                    let share = match view.plan.is_home(worker) {
                        true => 151 / count..=151 / count + 2,
                        false => 0..=0,
                    };
                    assert!(share.contains(&connections), "{policy}: {homes:?}");
                }
            }
        }
    }
    assert!(total(&node, |tally| tally.moved) > 0);
}

/// Connections wait in the queue of a worker whose plan changes before another one takes them.
#[test]
fn a_worker_takes_back_what_waits_in_its_queue() {
    let (mut node, listener) = node(2, "handoff");
    let mut streams: Vec<LocalStream> = (0..5).map(|_| connect(&listener)).collect();
    let mut admin = connect(&listener);
    run(&mut node);
    admin.send(b"dispatch keyhash\r\n");
    for stream in &mut streams {
        stream.send(b"get a\r\n");
    }
    node.workers[0].turn();
    assert!(node.figures().tallies()[0].handed_on >= 5);
    run(&mut node);
    for stream in &mut streams {
        assert_eq!(received(stream), "END\r\n");
    }
    assert_eq!(received(&mut admin), "OK\r\n");
}

/// One turn of its home, and the connection waits in the queue. It is closed when it is home again.
#[test]
fn a_connection_may_close_while_it_waits_for_a_worker() {
    let (mut node, listener) = node(2, "handoff");
    let mut stream = connect(&listener);
    run(&mut node);
    stream.send(b"get a\r\n");
    node.workers[0].turn();
    assert_eq!(node.figures().tallies()[0].handed_on, 1);
    drop(stream);
    run(&mut node);
    assert_eq!(total(&node, |tally| tally.curr_connections), 0);
    for worker in &node.workers {
        assert_eq!(worker.held_bytes(), 0);
    }
}

/// A node that is told to stop still answers what waits in a queue.
#[test]
fn a_node_stops_while_connections_wait_in_a_queue() {
    for policy in ["handoff", "stealing"] {
        let (mut node, listener) = node(2, policy);
        let mut streams: Vec<LocalStream> = (0..90).map(|_| connect(&listener)).collect();
        run(&mut node);
        for stream in &mut streams {
            stream.send(b"get a\r\n");
        }
        node.workers[0].turn();
        assert!(node.figures().tallies()[0].handed_on > 0);
        node.stop();
        let mut left = vec![true, true];
        for _ in 0..100 {
            for (worker, goes_on) in node.workers.iter_mut().zip(&mut left) {
                *goes_on = *goes_on && worker.turn();
            }
        }
        assert_eq!(left, [false, false]);
        for stream in &mut streams {
            assert_eq!(received(stream), "END\r\n");
        }
    }
}
