//! Datagrams of memcached's UDP protocol reach workers by any packet device.

mod support;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use glimmer_base::limits::BURST_CONNECTIONS_MAX;
use glimmer_node::{Devices, DrivenNode, Rest};
use glimmer_transport::packet::{
    FaultInjector, Faults, Message, Microseconds, PacketDevice, PacketSender, RxBatch, Switch,
    SwitchPort, TxBatch,
};
use support::{Admin, Habits, config, engines};

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
    let mut devices: Vec<Devices> = (0..workers).map(|_| Devices::default()).collect();
    devices[0].memcached.push(device);
    let engines = engines(workers, Habits::EREW);
    DrivenNode::new(config(), devices, engines, Arc::new(Admin)).unwrap()
}

/// A request with its frame.
fn request(id: u16) -> Vec<u8> {
    let [high, low] = id.to_be_bytes();
    let frame = [high, low, 0, 0, 0, 1, 0, 0];
    let command = format!("set key{id:05} 0 0 1\r\nx\r\n");
    [&frame[..], command.as_bytes()].concat()
}

/// Sends requests that travel together, and lets the workers take turns. Returns the replies by the
/// id of the request.
fn ask(node: &mut DrivenNode, client: &mut SwitchPort) -> BTreeMap<u16, Vec<u8>> {
    let requests: Vec<u8> = (0..REQUESTS).flat_map(request).collect();
    let mut out = TxBatch::new(client);
    out.push(Message::segments(server(), &requests, request(0).len()));
    out.finish();
    for _ in 0..20 {
        for worker in &mut node.workers {
            worker.rest();
            worker.turn();
        }
    }
    let mut replies = BTreeMap::new();
    let mut batch = RxBatch::default();
    while client.receive(&mut batch) > 0 {
        for index in 0..batch.count() {
            assert_eq!(batch.peer(index), server());
            for reply in batch.bytes(index).chunks(batch.segment_bytes(index)) {
                let (&[high, low, rest @ ..], payload) = reply.split_first_chunk::<8>().unwrap();
                assert_eq!(rest, [0, 0, 0, 1, 0, 0]);
                let before = replies.insert(u16::from_be_bytes([high, low]), payload.to_vec());
                assert_eq!(before, None);
            }
        }
    }
    replies
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
