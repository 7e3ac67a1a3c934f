//! Ports of DPDK's with several queues, over memory that both ends share.
#![cfg(feature = "dpdk")]

use glimmer_transport::packet::{Message, PacketDevice, PacketTransport, RxBatch};
use glimmer_transport::transports;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);

/// Pairs of ports, with the number of queues that each is to have.
const QUEUES: [Option<u16>; PORT_COUNT] = [Some(2), Some(2), None, None, None, None, None, None];
const PORT_COUNT: usize = 8;
/// What the ports of the last pair but one have beside: the least length of the longest packet.
const MTU: &str = "mtu=1448,";

/// The ports. A process begins DPDK once.
static PORTS: LazyLock<[Arc<dyn PacketTransport>; PORT_COUNT]> = LazyLock::new(|| {
    let own = std::process::id();
    let vdev = |port: usize| {
        let role = ["server", "client"][port % 2];
        let socket = format!("id=0,socket=glimmer-{own}-{},socket-abstract=yes", port / 2);
        format!("--vdev=net_memif{port},role={role},{socket}")
    };
    let vdevs: Vec<String> = (0..PORT_COUNT).map(vdev).collect();
    let eal = format!("--no-huge -m 256 --no-pci {}", vdevs.join(" "));
    std::array::from_fn(|port| {
        let queues = QUEUES[port].map_or(String::new(), |queues| format!("queues={queues},"));
        let (own, v6) = (ip(port), ip_v6(port));
        let mtu = if port / 2 == 2 { MTU } else { "" };
        let setting = format!("dpdk:{queues}{mtu}ip={own}/24,ip={v6}/64,port={port} {eal}");
        let named = transports::named(&setting).unwrap();
        named.expect_workers(2);
        named
    })
});

fn ip(port: usize) -> IpAddr {
    [10, 20 + (port / 2) as u8, 0, 1 + (port % 2) as u8].into()
}

fn ip_v6(port: usize) -> IpAddr {
    let (network, host) = (0xFD20 + (port / 2) as u16, 1 + (port % 2) as u16);
    [network, 0, 0, 0, 0, 0, 0, host].into()
}

/// A device of each of this many workers at a port, each with a port of UDP for itself.
fn open(port: usize, workers: usize) -> Vec<Box<dyn PacketDevice>> {
    let at = SocketAddr::new(ip(port), 0);
    (0..workers)
        .map(|_| PORTS[port].open(at).unwrap())
        .collect()
}

/// Has each client ask each server by its own queue until all have answered.
fn all_are_answered(servers: &mut [Box<dyn PacketDevice>], clients: &mut [Box<dyn PacketDevice>]) {
    let to: Vec<_> = servers.iter().map(|it| it.address().unwrap()).collect();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for server in servers {
            let stop = &stop;
            scope.spawn(move || {
                let mut batch = RxBatch::default();
                while !stop.load(Ordering::Relaxed) {
                    server.receive(&mut batch);
                    server.send_back(&mut batch);
                    std::thread::yield_now();
                }
            });
        }
        let asked = scope.spawn(|| {
            let mut batch = RxBatch::default();
            let deadline = Instant::now() + PATIENCE;
            for asks in 0..clients.len() {
                for &to in &to {
                    let mut is_answered = false;
                    while !is_answered {
                        clients[asks].send(&[Message::alone(to, b"request")]);
                        // Replies come by the queue that their server uses.
                        for (index, client) in clients.iter_mut().enumerate() {
                            client.receive(&mut batch);
                            let is_it = |at| batch.peer(at) == to && index == asks;
                            is_answered |= (0..batch.count()).any(is_it);
                        }
                        std::thread::yield_now();
                        assert!(Instant::now() < deadline, "{to} does not answer {asks}");
                    }
                }
            }
        });
        let asked = asked.join();
        stop.store(true, Ordering::Relaxed);
        asked.unwrap();
    });
}

#[test]
fn workers_at_either_end_have_queues_of_their_own() {
    let (mut servers, mut clients) = (open(0, 2), open(1, 2));
    all_are_answered(&mut servers, &mut clients);
    let figures = PORTS[0].figures().unwrap();
    assert_eq!((figures.mode.as_str(), figures.queues), ("net_memif", 2));
    assert!(
        figures.elsewhere > 0 && figures.received > figures.elsewhere,
        "{figures:?}"
    );
}

/// Nobody knows how many queues the other end has, so there is one unless more are asked for.
#[test]
fn workers_share_a_queue() {
    let (mut servers, mut clients) = (open(2, 2), open(3, 2));
    all_are_answered(&mut servers, &mut clients);
    let figures = PORTS[2].figures().unwrap();
    assert_eq!((figures.queues, figures.elsewhere), (1, 0), "{figures:?}");
}

/// Has a client send to a server until something arrives there.
fn arrives(from: &mut dyn PacketDevice, at: &mut dyn PacketDevice, payload: &[u8]) {
    let to = at.address().unwrap();
    let deadline = Instant::now() + PATIENCE;
    let mut batch = RxBatch::default();
    while !(0..batch.count()).any(|index| batch.bytes(index) == payload) {
        from.send(&[Message::alone(to, payload)]);
        from.receive(&mut RxBatch::default());
        at.receive(&mut batch);
        assert!(Instant::now() < deadline, "nothing arrives at {to}");
        std::thread::yield_now();
    }
}

/// What long replies are cut into passes a port with the shortest packets that are taken.
#[test]
fn the_longest_datagram_fits_the_least_mtu() {
    for of in [ip, ip_v6] {
        let device = |port: usize| PORTS[port].open(SocketAddr::new(of(port), 0)).unwrap();
        let (mut one, mut other) = (device(4), device(5));
        arrives(&mut *one, &mut *other, &[7; 1400]);
        let too_long = one.send(&[Message::alone(other.address().unwrap(), &[7; 1429])]);
        assert_eq!((too_long.datagrams, too_long.lost), (0, 1));
    }
}

/// Frames wait for eight devices that do not receive, as many as each keeps and more. A ninth is
/// still answered, and all frames are free afterwards.
#[test]
fn devices_that_do_not_receive_leave_frames_to_others() {
    let mut devices = open(6, 9);
    let mut client = open(7, 1).pop().unwrap();
    let mut answers = devices.pop().unwrap();
    arrives(&mut *client, &mut *answers, b"hello");
    let free = |port: usize| PORTS[port].figures().unwrap().frames_free;
    let before = free(6);
    let mut batch = RxBatch::default();
    for stalled in &devices {
        let to = stalled.address().unwrap();
        for _ in 0..1000 {
            client.send(&[Message::alone(to, b"left")]);
            answers.receive(&mut batch);
        }
    }
    let full = PORTS[6].figures().unwrap();
    assert!(full.rx_waiting >= 2048, "{full:?}");
    arrives(&mut *client, &mut *answers, b"request");
    batch.clear();
    drop((devices, answers));
    let after = PORTS[6].figures().unwrap();
    assert_eq!(after.rx_waiting, 0, "{after:?}");
    assert!(after.frames_free + 64 > before, "{before}: {after:?}");
}
