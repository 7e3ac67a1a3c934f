//! Two ports of DPDK's in this process, joined by shared memory, without huge pages and rights.
#![allow(dead_code, reason = "each test needs a part of it")]

use glimmer_transport::packet::{Message, PacketDevice, PacketTransport, RxBatch};
use glimmer_transport::transports;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);

/// The addresses of either end.
pub const ADDRESSES: [[&str; 2]; 2] = [["10.8.0.1", "fd08::1"], ["10.8.0.2", "fd08::2"]];

/// Both ends. A process begins DPDK once, so all tests share them.
static ENDS: LazyLock<[Arc<dyn PacketTransport>; 2]> = LazyLock::new(|| {
    // The socket has no file, and its name is this process's own.
    let socket = format!(
        "id=0,socket=glimmer-{},socket-abstract=yes",
        std::process::id()
    );
    let eal = format!(
        "--no-huge -m 128 --no-pci --vdev=net_memif0,role=server,{socket} \
         --vdev=net_memif1,role=client,{socket}"
    );
    [0, 1].map(|port| {
        let [v4, v6] = ADDRESSES[port];
        let setting = format!("dpdk:ip={v4}/24,ip={v6}/64,port={port} {eal}");
        transports::named(&setting).unwrap()
    })
});

/// The transports at both ends.
pub fn ends() -> &'static [Arc<dyn PacketTransport>; 2] {
    &ENDS
}

/// An address at an end, at any port.
pub fn address(end: usize, is_v4: bool) -> SocketAddr {
    let ip: IpAddr = ADDRESSES[end][usize::from(!is_v4)].parse().unwrap();
    SocketAddr::new(ip, 0)
}

/// A device at each end, which know one another's hardware addresses.
pub fn pair(is_v4: bool) -> [Box<dyn PacketDevice>; 2] {
    let [mut one, mut other] = [0, 1].map(|end| ENDS[end].open(address(end, is_v4)).unwrap());
    meet(&mut *one, &mut *other);
    [one, other]
}

/// Has two devices send to each other until either has received something.
pub fn meet(one: &mut dyn PacketDevice, other: &mut dyn PacketDevice) {
    let deadline = Instant::now() + PATIENCE;
    let mut batch = RxBatch::default();
    let (mut has_asked, mut has_heard) = (false, false);
    while !has_heard {
        let (from, to) = (one.address().unwrap(), other.address().unwrap());
        if !has_asked {
            one.send(&[Message::alone(to, b"hello")]);
        }
        if other.receive(&mut batch) > 0 {
            assert_eq!(batch.peer(0), from);
            has_asked = true;
            other.send_back(&mut batch);
        }
        has_heard = one.receive(&mut batch) > 0;
        assert!(Instant::now() < deadline, "the ends do not meet");
        std::thread::sleep(Duration::from_millis(1));
    }
    // More than one may have been under way.
    let quiet = Instant::now() + Duration::from_millis(20);
    while Instant::now() < quiet {
        other.receive(&mut batch);
        one.receive(&mut batch);
    }
}
