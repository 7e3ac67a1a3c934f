//! Ports of DPDK's with several queues, over memory that both ends share.
#![cfg(feature = "dpdk")]

use glimmer_transport::dpdk::DpdkNamed;
use glimmer_transport::packet::{Message, PacketDevice, PacketTransport, RxBatch};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);

/// Two pairs of ports, with the number of queues that each is to have.
const QUEUES: [Option<u16>; 4] = [Some(2), Some(2), None, None];

/// The ports. A process begins DPDK once.
static PORTS: LazyLock<[Arc<dyn PacketTransport>; 4]> = LazyLock::new(|| {
    let own = std::process::id();
    let vdev = |port: usize| {
        let role = ["server", "client"][port % 2];
        let socket = format!("id=0,socket=glimmer-{own}-{},socket-abstract=yes", port / 2);
        format!("--vdev=net_memif{port},role={role},{socket}")
    };
    let vdevs: Vec<String> = (0..4).map(vdev).collect();
    let eal = format!("--no-huge -m 256 --no-pci {}", vdevs.join(" "));
    [0, 1, 2, 3].map(|port| {
        let queues = QUEUES[port].map_or(String::new(), |queues| format!("queues={queues},"));
        let setting = format!("{queues}ip={}/24,port={port} {eal}", ip(port));
        let named = DpdkNamed.with(Some(&setting)).unwrap();
        named.expect_workers(2);
        named
    })
});

fn ip(port: usize) -> IpAddr {
    [10, 20 + (port / 2) as u8, 0, 1 + (port % 2) as u8].into()
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
