//! Devices and streams for the test suites.

use glimmer_transport::packet::SEGMENTED_BYTES_MAX;
use glimmer_transport::packet::TransportKind;
use glimmer_transport::packet::{FaultInjector, Faults, Microseconds, PacketDevice, Switch};
use glimmer_transport::transports::TRANSPORTS;
use glimmer_transport::udp::UdpDevice;
use std::net::SocketAddr;
#[cfg(feature = "xdp")]
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU16, Ordering};

#[cfg(feature = "dpdk")]
pub mod memif;
#[cfg(feature = "xdp")]
pub mod veth;

/// A datagram and its sender.
pub type Datagram = (SocketAddr, Vec<u8>);

/// Two connected devices.
pub struct Pair {
    pub one: Box<dyn PacketDevice>,
    pub other: Box<dyn PacketDevice>,
}

/// The name of a kind of device, and how to create two of them.
pub type Kind = (String, Box<dyn Fn() -> Pair>);

/// Every kind of device with its name: those of each transport, and those that only programs open.
pub fn devices() -> Vec<Kind> {
    let kind = |kind: &'static TransportKind| -> Kind {
        let name = format!("transport {}", kind.name);
        (name, Box::new(move || of_transport(kind)))
    };
    let other = |name: &str, open: fn() -> Pair| -> Kind { (name.to_owned(), Box::new(open)) };
    let others = [
        other("UDP without segmentation offload", udp_plain),
        other("UDP over IPv6", udp_v6),
        other("a switch", switch),
        other("a switch that splits segment batches", splitting_switch),
        other("faults that do not occur", without_faults),
    ];
    // These need an interface or a port.
    let transports = TRANSPORTS.iter();
    let transports = transports.filter(|one| !["dpdk", "xdp"].contains(&one.name));
    let all = transports.map(kind).chain(others);
    #[cfg(feature = "dpdk")]
    let all = all.chain(dpdk());
    #[cfg(feature = "xdp")]
    let all = all.chain(xdp());
    all.collect()
}

/// The longest datagram that a kind of device carries.
pub fn longest(name: &str) -> usize {
    match name.starts_with("dpdk") {
        true => 1_400,
        false => SEGMENTED_BYTES_MAX,
    }
}

/// Two ports of DPDK's that are joined by shared memory.
#[cfg(feature = "dpdk")]
fn dpdk() -> Vec<Kind> {
    let faulty = || {
        let [one, other] = memif::pair(true).map(|device| {
            let none = (Faults::default(), Faults::default());
            Box::new(FaultInjector::new(device, none, 1, Microseconds::default())) as _
        });
        Pair { one, other }
    };
    let kind = |name: &str, is_v4| -> Kind {
        let make = move || {
            let [one, other] = memif::pair(is_v4);
            Pair { one, other }
        };
        (name.to_owned(), Box::new(make))
    };
    vec![
        kind("dpdk over IPv4", true),
        kind("dpdk over IPv6", false),
        (
            "dpdk with faults that do not occur".to_owned(),
            Box::new(faulty),
        ),
    ]
}

/// Interfaces in namespaces of their own, with and without their driver.
#[cfg(feature = "xdp")]
fn xdp() -> Vec<Kind> {
    static NATIVE: LazyLock<Option<veth::Veth>> = LazyLock::new(|| veth::Veth::new(false));
    static GENERIC: LazyLock<Option<veth::Veth>> = LazyLock::new(|| veth::Veth::new(true));
    let kind = |name: &str, veth: &'static LazyLock<Option<veth::Veth>>, is_v4| -> Option<Kind> {
        let veth = LazyLock::force(veth).as_ref()?;
        let make = move || {
            let [one, other] = veth.pair(is_v4);
            Pair { one, other }
        };
        Some((name.to_owned(), Box::new(make)))
    };
    let faulty = |veth: &'static LazyLock<Option<veth::Veth>>| -> Option<Kind> {
        let veth = LazyLock::force(veth).as_ref()?;
        let make = move || {
            let [one, other] = veth.pair(true).map(|device| {
                let none = (Faults::default(), Faults::default());
                Box::new(FaultInjector::new(device, none, 1, Microseconds::default())) as _
            });
            Pair { one, other }
        };
        Some((
            "xdp with faults that do not occur".to_owned(),
            Box::new(make),
        ))
    };
    let all = [
        kind("xdp over IPv4", &NATIVE, true),
        kind("xdp over IPv6", &NATIVE, false),
        kind("xdp in the generic mode", &GENERIC, true),
        faulty(&NATIVE),
    ];
    all.into_iter().flatten().collect()
}

fn pair(one: impl PacketDevice + 'static, other: impl PacketDevice + 'static) -> Pair {
    Pair {
        one: Box::new(one),
        other: Box::new(other),
    }
}

fn of_transport(kind: &TransportKind) -> Pair {
    let transport = (kind.with)(None).unwrap();
    let open = || transport.open(([127, 0, 0, 1], 0).into()).unwrap();
    Pair {
        one: open(),
        other: open(),
    }
}

fn udp_plain() -> Pair {
    let bind = || UdpDevice::bind_shared(([127, 0, 0, 1], 0).into()).unwrap();
    pair(bind().without_coalescing(), bind().without_coalescing())
}

fn udp_v6() -> Pair {
    match UdpDevice::bind("[::1]:0".parse().unwrap()) {
        Ok(one) => pair(one, UdpDevice::bind("[::1]:0".parse().unwrap()).unwrap()),
        Err(error) => {
            println!("SKIPPED ::1: {error}");
            of_transport(&TRANSPORTS[0])
        }
    }
}

/// An address that no other device of this process has.
fn address() -> SocketAddr {
    static PORT: AtomicU16 = AtomicU16::new(1);
    ([10, 0, 0, 1], PORT.fetch_add(1, Ordering::Relaxed)).into()
}

/// One network for all devices, so that the address of a dropped port is not reused.
fn network() -> Switch {
    thread_local! {
        static NETWORK: Switch = Switch::new();
    }
    NETWORK.with(Switch::clone)
}

fn switch() -> Pair {
    pair(network().attach(address()), network().attach(address()))
}

fn splitting_switch() -> Pair {
    let attach = || network().attach_splitting(address());
    pair(attach(), attach())
}

fn without_faults() -> Pair {
    let faulty = |device| {
        let none = (Faults::default(), Faults::default());
        FaultInjector::new(device, none, 1, Microseconds::default())
    };
    pair(
        faulty(network().attach(address())),
        faulty(network().attach(address())),
    )
}
