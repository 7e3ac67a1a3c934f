//! Datagrams by ports that DPDK drives, and the kernel at the other end: a pair of interfaces, and
//! a TAP interface.
#![cfg(all(feature = "dpdk", feature = "xdp"))]

#[path = "support/veth.rs"]
mod veth;
#[path = "support/wire.rs"]
mod wire_at;

use glimmer_transport::packet::{
    Bypass, Message, PacketDevice, PacketSender as _, PacketTransport, RxBatch,
};
use glimmer_transport::transports;
use glimmer_transport::udp::UdpDevice;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};
use veth::{End, INTERFACE, Veth, compute_sums, ip};
use wire_at::{Wire, interface};

const PATIENCE: Duration = Duration::from_secs(20);
/// The addresses of the port at the pair of interfaces, and of that at the TAP interface.
const AT_VETH: [&str; 2] = ["10.7.0.1", "fd00::1"];
const AT_TAP: [&str; 2] = ["10.9.0.1", "fd09::1"];
const TAP: &str = "glimmertap";

/// What all tests share: a process begins DPDK once.
struct Lab {
    veth: Veth,
    /// At the pair of interfaces, with two queues.
    port: Arc<dyn PacketTransport>,
    /// At a TAP interface in the same namespace, if the machine has such.
    tap: Option<Arc<dyn PacketTransport>>,
    /// Hears ARP at the kernel's end since before the port was opened.
    heard: Wire,
}

static LAB: LazyLock<Option<Lab>> = LazyLock::new(|| {
    let veth = Veth::new(false)?;
    let [here, there] = veth.ends();
    // The address is the port's. The kernel, which sees the frames, too, is not to answer.
    here.run(|| ip(&format!("address flush dev {INTERFACE}")).unwrap());
    there.run(compute_sums);
    let heard = Wire::of(there, rustix::net::eth::ARP);
    let mut eal =
        format!("--no-huge -m 128 --no-pci --vdev=net_af_packet0,iface={INTERFACE},qpairs=2");
    let has_tap = Path::new("/dev/net/tun").exists();
    if has_tap {
        eal += &format!(" --vdev=net_tap0,iface={TAP}");
    } else {
        println!("SKIPPED: a TAP interface needs /dev/net/tun");
    }
    let named = |port: u32, [v4, v6]: [&str; 2]| {
        let setting = format!("dpdk:ip={v4}/24,ip={v6}/64,port={port} {eal}");
        let named = transports::named(&setting).unwrap();
        named.expect_workers(2);
        // Devices of EAL are made in the namespace of whoever begins it.
        here.run(|| drop(named.open(SocketAddr::new(v4.parse().unwrap(), 9)).unwrap()));
        named
    };
    let port = named(0, AT_VETH);
    let tap = has_tap.then(|| {
        let tap = named(1, AT_TAP);
        here.run(|| {
            ip(&format!("address add 10.9.0.2/24 dev {TAP}")).unwrap();
            ip(&format!("address add fd09::2/64 dev {TAP} nodad")).unwrap();
            ip(&format!("link set {TAP} up")).unwrap();
        });
        tap
    });
    Some(Lab {
        veth,
        port,
        tap,
        heard,
    })
});

/// The lab, with the kernel's end and the port's end of the pair of interfaces.
fn lab() -> Option<(&'static Lab, &'static End)> {
    let lab = LAB.as_ref()?;
    Some((lab, &lab.veth.ends()[1]))
}

fn at(addresses: [&str; 2], is_v4: bool, port: u16) -> SocketAddr {
    let ip: IpAddr = addresses[usize::from(!is_v4)].parse().unwrap();
    SocketAddr::new(ip, port)
}

/// Answers what arrives at devices while something else runs. Others look at every queue meanwhile,
/// as each worker of a server does at its own.
fn serving<R: Send>(
    port: &dyn PacketTransport,
    devices: &mut [Box<dyn PacketDevice>],
    run: impl FnOnce() -> R + Send,
) -> R {
    let any = devices[0].address().unwrap().ip();
    let mut others = port.open_group(SocketAddr::new(any, 0), 2).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for device in devices.iter_mut().chain(&mut others) {
            let stop = &stop;
            scope.spawn(move || {
                let mut batch = RxBatch::default();
                while !stop.load(Ordering::Relaxed) {
                    device.receive(&mut batch);
                    device.send_back(&mut batch);
                    std::thread::yield_now();
                }
            });
        }
        let done = scope.spawn(run).join();
        stop.store(true, Ordering::Relaxed);
        done.unwrap()
    })
}

/// Has a client of the kernel's ask, again until all datagrams have come back.
fn ask(client: &mut UdpDevice, to: SocketAddr, payload: &[u8]) {
    let deadline = Instant::now() + PATIENCE;
    let mut batch = RxBatch::default();
    loop {
        client.send(&[Message::alone(to, payload)]);
        let patience = Instant::now() + Duration::from_millis(100);
        while Instant::now() < patience {
            client.receive(&mut batch);
            let is_it =
                |index| batch.peer(index) == to && batch.segments(index).any(|it| it == payload);
            if (0..batch.count()).any(is_it) {
                return;
            }
            std::thread::yield_now();
        }
        assert!(Instant::now() < deadline, "no reply from {to}");
    }
}

fn client(end: &End, is_v4: bool) -> UdpDevice {
    end.run(|| UdpDevice::bind(end.address(is_v4)).unwrap())
}

fn answered(figures: &Bypass, kind: &str) -> u64 {
    let found = figures.answered.iter().find(|(name, _)| *name == kind);
    found.expect("it is counted").1
}

/// The kernel finds the port by ARP and neighbour discovery, and its datagrams are answered in
/// their frames.
#[test]
fn a_client_of_the_kernels_is_answered() {
    let Some((lab, there)) = lab() else { return };
    for is_v4 in [true, false] {
        let device = lab.port.open(at(AT_VETH, is_v4, 0)).unwrap();
        let to = device.address().unwrap();
        let mut client = client(there, is_v4);
        serving(&*lab.port, &mut [device], || {
            for bytes in [1, 2, 100, 1400] {
                ask(&mut client, to, &vec![bytes as u8; bytes]);
            }
        });
    }
    let figures = lab.port.figures().unwrap();
    assert!(answered(&figures, "arp") > 0 && answered(&figures, "neighbour") > 0);
    assert_eq!(
        (figures.mode.as_str(), figures.queues),
        ("net_af_packet", 2)
    );
    assert!(figures.received >= 8 && figures.sent >= 8, "{figures:?}");
}

/// Routers may fragment packets that a path may not take whole, and no others.
#[test]
fn long_packets_to_hosts_behind_routers_may_be_fragmented() {
    let Some((lab, there)) = lab() else { return };
    let far = there.run(|| {
        ip(&format!("address add 10.8.0.2/32 dev {INTERFACE}")).unwrap();
        UdpDevice::bind("10.8.0.2:0".parse().unwrap()).unwrap()
    });
    let near = client(there, true);
    let heard = Wire::of(there, rustix::net::eth::IP);
    let device = lab.port.open(at(AT_VETH, true, 0)).unwrap();
    let to = device.address().unwrap();
    serving(&*lab.port, &mut [device], || {
        for (mut client, bytes, expected) in [
            (near, 1400, [0x40, 0]),
            (far.clone(), 1252, [0x40, 0]),
            (far, 1253, [0, 0]),
        ] {
            ask(&mut client, to, &vec![7; bytes]);
            let port = client.address().unwrap().port().to_be_bytes();
            let deadline = Instant::now() + PATIENCE;
            let fragments = loop {
                let frame = heard.heard();
                let is_it = |it: &Vec<u8>| it.len() == 42 + bytes && it[36..38] == port;
                if let Some(frame) = frame.filter(is_it) {
                    break [frame[20], frame[21]];
                }
                assert!(Instant::now() < deadline, "{bytes} bytes are not heard");
            };
            assert_eq!(fragments, expected, "{bytes}");
        }
    });
}

/// All on the link are told who has the address when the port is opened, when nobody may hear it
/// yet, and twice when the link is found to be up.
#[test]
fn addresses_are_announced_when_the_link_is_up() {
    let Some((lab, _)) = lab() else { return };
    let device = lab.port.open(at(AT_VETH, true, 0)).unwrap();
    let ours: [u8; 4] = [10, 7, 0, 1];
    let is_it =
        |frame: &[u8]| frame[..6] == [0xFF; 6] && frame[28..32] == ours && frame[38..42] == ours;
    serving(&*lab.port, &mut [device], || {
        let deadline = Instant::now() + PATIENCE;
        let mut announced = 0;
        while announced < 3 {
            announced += usize::from(lab.heard.heard().is_some_and(|it| is_it(&it)));
            assert!(Instant::now() < deadline, "announced {announced} times");
            std::thread::yield_now();
        }
    });
}

/// Two workers with ports of their own and two queues, to which the driver brings datagrams by
/// their senders.
#[test]
fn what_arrives_elsewhere_reaches_its_worker() {
    let Some((lab, there)) = lab() else { return };
    let open = |_| lab.port.open(at(AT_VETH, true, 0)).unwrap();
    let mut workers: Vec<_> = (0..2).map(open).collect();
    let ports: Vec<_> = workers.iter().map(|it| it.address().unwrap()).collect();
    let clients: Vec<UdpDevice> = (0..24).map(|_| client(there, true)).collect();
    serving(&*lab.port, &mut workers, || {
        for mut client in clients {
            ports
                .iter()
                .for_each(|&to| ask(&mut client, to, b"request"));
        }
    });
    let figures = lab.port.figures().unwrap();
    assert!(
        figures.elsewhere > 0 && figures.steering.is_some(),
        "{figures:?}"
    );
}

/// Workers that share a port all answer, and one port has one owner.
#[test]
fn workers_share_a_port() {
    let Some((lab, there)) = lab() else { return };
    let to = at(AT_VETH, true, 7000);
    let mut workers = lab.port.open_group(to, 2).unwrap();
    assert_eq!(workers[1].address().unwrap(), to);
    let taken = lab.port.open(to).err().expect("it is taken");
    assert_eq!(taken.kind(), std::io::ErrorKind::AddrInUse);
    let clients: Vec<UdpDevice> = (0..8).map(|_| client(there, true)).collect();
    serving(&*lab.port, &mut workers, || {
        clients
            .into_iter()
            .for_each(|mut client| ask(&mut client, to, b"request"));
    });
    drop(workers);
    drop(lab.port.open(to).unwrap());
}

/// An address of the kernel's, where TCP listens, stands for all addresses of the port.
#[test]
fn another_address_stands_for_those_of_the_port() {
    let Some((lab, _)) = lab() else { return };
    for (asked, found) in [("192.0.2.1:7001", AT_VETH[0]), ("[::]:7001", AT_VETH[1])] {
        let device = lab.port.open(asked.parse().unwrap()).unwrap();
        let expected = SocketAddr::new(found.parse().unwrap(), 7001);
        assert_eq!(device.address().unwrap(), expected);
        let second = lab.port.open(asked.parse().unwrap()).unwrap();
        assert_eq!(second.address().unwrap(), asked.parse().unwrap());
    }
}

/// The port is the first to send something: it asks who has the address.
#[test]
fn the_port_asks_for_its_peers() {
    let Some((lab, there)) = lab() else { return };
    for is_v4 in [true, false] {
        let mut device = lab.port.open(at(AT_VETH, is_v4, 0)).unwrap();
        let mut client = client(there, is_v4);
        let to = client.address().unwrap();
        let deadline = Instant::now() + PATIENCE;
        let mut batch = RxBatch::default();
        while client.receive(&mut batch) == 0 {
            device.send(&[Message::alone(to, b"first")]);
            device.receive(&mut RxBatch::default());
            assert!(Instant::now() < deadline, "nobody answers");
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(batch.bytes(0), b"first");
    }
    assert!(lab.port.figures().unwrap().unresolved > Some(0));
    let mut device = lab.port.open(at(AT_VETH, true, 0)).unwrap();
    let far = "192.0.2.9:9".parse().unwrap();
    let lost = device.send(&[Message::alone(far, b"without a gateway")]);
    assert_eq!((lost.datagrams, lost.lost), (0, 1));
}

#[test]
fn pings_are_answered() {
    let Some((lab, there)) = lab() else { return };
    let device = lab.port.open(at(AT_VETH, true, 0)).unwrap();
    serving(&*lab.port, &mut [device], || {
        for is_v4 in [true, false] {
            there.run(|| wire_at::ping(at(AT_VETH, is_v4, 0).ip(), PATIENCE));
        }
    });
    assert!(answered(&lab.port.figures().unwrap(), "ping") >= 2);
}

/// Frames that lie are counted and not answered, and all frames are free again afterwards.
#[test]
fn hostile_frames_are_counted_and_not_answered() {
    let Some((lab, there)) = lab() else { return };
    let mut server = lab.port.open(at(AT_VETH, true, 7002)).unwrap();
    let [ours, theirs] = lab.veth.ends().each_ref().map(interface);
    let of = |figures: &Bypass| {
        let count = |name| {
            figures
                .refused
                .iter()
                .find(|(it, _)| *it == name)
                .unwrap()
                .1
        };
        ["length", "checksum", "address", "source", "not_ours"].map(count)
    };
    let before = lab.port.figures().unwrap();
    Wire::at(there).put_hostile(&theirs, &ours, server.address().unwrap());
    let deadline = Instant::now() + PATIENCE;
    let mut batch = RxBatch::default();
    let (mut received, mut rounds) = (0, 0);
    // The frames are at either queue, of which others look at both.
    let mut others = lab.port.open_group(at(AT_VETH, true, 0), 2).unwrap();
    // Other tests' threads may have taken a frame and have not looked at it yet.
    let (before_of, expected) = (of(&before), [1, 3, 5]);
    let is_done = || {
        let now = of(&lab.port.figures().unwrap());
        let more = [0, 1, 3].map(|at: usize| now[at] - before_of[at]);
        more.iter()
            .zip(expected)
            .all(|(more, expected)| *more >= expected)
            && now[4] - before_of[4] >= 4
    };
    while received < 3 || rounds < 100 || !is_done() {
        received += server.receive(&mut batch);
        (0..batch.count()).for_each(|index| assert_eq!(batch.bytes(index), [5; 40]));
        others.iter_mut().for_each(|other| {
            other.receive(&mut batch);
        });
        rounds += 1;
        assert!(Instant::now() < deadline, "{received} arrived");
    }
    let after = lab.port.figures().unwrap();
    let more = |at: usize| of(&after)[at] - before_of[at];
    assert_eq!([more(0), more(1), more(3)], expected, "{after:?}");
    // Other tests' hosts send what is not ours, too. The kernel keeps the fragment, as it spreads
    // frames over the sockets of this driver by their flows.
    assert!(more(4) >= 4, "{after:?}");
    assert_eq!(received, 3);
}

/// Whoever keeps frames keeps the port, and gives them back from any thread.
#[test]
fn frames_come_back() {
    let Some((lab, there)) = lab() else { return };
    let mut device = lab.port.open(at(AT_VETH, true, 0)).unwrap();
    let to = device.address().unwrap();
    let mut client = client(there, true);
    let deadline = Instant::now() + PATIENCE;
    let mut batch = RxBatch::default();
    while batch.count() == 0 {
        client.send(&[Message::alone(to, b"request")]);
        device.receive(&mut batch);
        assert!(Instant::now() < deadline);
    }
    drop(device);
    std::thread::spawn(move || {
        assert_eq!(batch.bytes(0), b"request");
        batch.bytes_mut(0).fill(7);
    })
    .join()
    .unwrap();
}

/// Over a driver that computes and checks checksums.
#[test]
fn a_driver_computes_checksums() {
    let Some(lab) = LAB.as_ref() else { return };
    let Some(tap) = &lab.tap else { return };
    let here = &lab.veth.ends()[0];
    for is_v4 in [true, false] {
        let device = tap.open(at(AT_TAP, is_v4, 0)).unwrap();
        let to = device.address().unwrap();
        let any: SocketAddr = if is_v4 { "10.9.0.2:0" } else { "[fd09::2]:0" }
            .parse()
            .unwrap();
        let mut client = here.run(|| UdpDevice::bind(any).unwrap());
        serving(&**tap, &mut [device], || {
            (1..300).for_each(|bytes| ask(&mut client, to, &vec![bytes as u8; bytes]));
            here.run(|| wire_at::ping(to.ip(), PATIENCE));
        });
    }
    let figures = tap.figures().unwrap();
    assert!(figures.mode.starts_with("net_tap"), "{figures:?}");
    assert!(
        figures.mode.ends_with("checksums by the port"),
        "{figures:?}"
    );
}
