//! Clients and servers over every pair of transports, at both ends of a pair of virtual interfaces
//! in two network namespaces.
#![cfg(feature = "xdp")]
#![allow(unsafe_code, reason = "a test forks")]

#[path = "support/items.rs"]
mod items;
#[path = "../../transport/tests/support/veth.rs"]
mod veth;

use glimmer_client::{Client, ConnectError, GetError, PacketTransport, Settings, transports};
use items::Server;
use std::net::SocketAddr;
use std::sync::{Arc, LazyLock};
use veth::{End, INTERFACE, Veth, compute_sums, ip};

/// The deadline is longer than any test may take.
const SETTINGS: Settings = Settings {
    resend_first_us: 10_000,
    resend_longest_us: 50_000,
    deadline_us: 3600 * 1_000_000,
    resends: true,
    requests_per_datagram: 8,
    round_robin: false,
    away_after: 3,
    retry_us: 60_000_000,
    eject: false,
};

/// What one end has, with the address that a server has there.
#[derive(Clone)]
struct Side {
    name: &'static str,
    transport: Arc<dyn PacketTransport>,
    end: &'static End,
    at: SocketAddr,
}

impl Side {
    fn server(&self) -> Server {
        Server::start(self.end.run(|| self.transport.open(self.at).unwrap()))
    }

    fn client(&self, server: SocketAddr) -> Result<Client, ConnectError> {
        let transport = self.transport.clone();
        (self.end).run(|| Client::connect_over(transport, server, SETTINGS))
    }
}

static LAB: LazyLock<Option<Veth>> = LazyLock::new(|| {
    let veth = Veth::new(false)?;
    // Nothing between the ends computes checksums, which DPDK's port has to see.
    veth.ends()[1].run(compute_sums);
    Some(veth)
});

/// The transports of the kernel's interface at an end of the lab.
fn sides(of: usize, is_v4: bool) -> Option<Vec<Side>> {
    let end = &LAB.as_ref()?.ends()[of];
    let side = |name, transport| Side {
        name,
        transport,
        end,
        at: end.address(is_v4),
    };
    let named = |name| transports::named(name).unwrap();
    Some(vec![
        side("udp", named("udp")),
        side("udp-plain", named("udp-plain")),
        side("xdp", end.transport().clone()),
    ])
}

/// Every pair, the client's end first.
fn pairs() -> Vec<(Side, Side)> {
    let mut pairs = Vec::new();
    for is_v4 in [true, false] {
        let (Some(clients), Some(servers)) = (sides(0, is_v4), sides(1, is_v4)) else {
            return pairs;
        };
        for client in &clients {
            pairs.extend(
                servers
                    .iter()
                    .map(|server| (client.clone(), server.clone())),
            );
        }
    }
    #[cfg(feature = "dpdk")]
    pairs.extend(dpdk::pairs());
    pairs
}

/// Stores and reads some items.
fn talk(client: &mut Client) {
    assert_eq!(client.get(b"none").unwrap(), None);
    let keys: Vec<[u8; 2]> = (0..60u16).map(u16::to_be_bytes).collect();
    for key in keys.iter().step_by(2) {
        client.put(key, &key.repeat(400), 0, 0).unwrap();
    }
    let found = client.get_many(&keys.each_key()).unwrap();
    for (number, (key, found)) in keys.iter().zip(found).enumerate() {
        let value = found.unwrap().map(|item| item.value);
        assert_eq!(value, number.is_multiple_of(2).then(|| key.repeat(400)));
    }
}

trait EachKey {
    fn each_key(&self) -> Vec<&[u8]>;
}

impl EachKey for [[u8; 2]] {
    fn each_key(&self) -> Vec<&[u8]> {
        self.iter().map(|key| &key[..]).collect()
    }
}

#[test]
fn clients_are_served_over_every_pair_of_transports() {
    for (client, server) in pairs() {
        let serving = server.server();
        let connected = client.client(serving.address);
        let mut client_over =
            connected.unwrap_or_else(|error| panic!("{} to {}: {error}", client.name, server.name));
        talk(&mut client_over);
        serving.stop();
        println!("{} to {}: served", client.name, server.name);
    }
}

#[cfg(feature = "tokio")]
#[test]
fn tasks_are_served_over_every_pair_of_transports() {
    use glimmer_client::nonblocking;
    use tokio::runtime::Builder;

    for (client, server) in pairs() {
        let serving = server.server();
        client.end.run(|| {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let (transport, to) = (client.transport.clone(), serving.address);
                let connected = nonblocking::Client::connect_over(transport, to, SETTINGS).await;
                let client = connected.unwrap();
                let keys: Vec<[u8; 2]> = (0..30u16).map(u16::to_be_bytes).collect();
                for key in &keys {
                    client.put(key, key, 0, 0).await.unwrap();
                    assert_eq!(client.get(key).await.unwrap().unwrap().value, key);
                }
                let found = client.get_many(&keys.each_key()).await;
                assert!(found.into_iter().all(|found| found.unwrap().is_some()));
            });
        });
        serving.stop();
    }
}

/// A server behind a socket at one end, and at the other a client past the kernel's stack.
fn past_the_kernel(here: &End, there: &End) -> (Server, Client) {
    let device = there.run(|| transports::default().open(there.address(true)).unwrap());
    let serving = Server::start(device);
    let transport = here.transport().clone();
    let connected = here.run(|| Client::connect_over(transport, serving.address, SETTINGS));
    (serving, connected.unwrap())
}

/// Almost all datagrams of a client go past the kernel's stack, not only those that arrive.
#[test]
fn what_follows_the_first_answer_goes_past_the_kernels_stack() {
    let Some(veth) = Veth::new(false) else { return };
    let [here, there] = veth.ends();
    let (serving, mut client) = past_the_kernel(here, there);
    talk(&mut client);
    serving.stop();
    let figures = here.transport().figures().unwrap();
    // The first one may have been sent several times before its answer arrived.
    let by_kernel = figures.kernel_sent;
    assert!(by_kernel > 0 && by_kernel * 2 < figures.sent, "{figures:?}");
    assert!(figures.sent >= 30 && figures.received >= 30, "{figures:?}");
}

/// The kernel is told that a port is closed whatever the datagram went by.
#[test]
fn a_closed_port_is_noticed_past_the_kernels_stack() {
    let (Some(clients), Some(servers)) = (sides(0, true), sides(1, true)) else {
        return;
    };
    let (client, server) = (&clients[2], &servers[0]);
    let serving = server.server();
    let address = serving.address;
    let mut connected = client.client(address).unwrap();
    talk(&mut connected);
    serving.stop();
    for _ in 0..3 {
        let error = connected.get(b"key").unwrap_err();
        assert!(
            matches!(error, GetError::Refused(it) if it == address),
            "{error}"
        );
    }
    let error = client.client(address).err().expect("nothing listens there");
    assert!(
        matches!(error, ConnectError::Refused(it) if it == address),
        "{error}"
    );
}

/// A server whose address another machine has taken over is found there.
#[test]
fn a_client_follows_a_server_to_another_hardware_address() {
    let Some(veth) = Veth::new(false) else { return };
    let [here, there] = veth.ends();
    let (serving, mut client) = past_the_kernel(here, there);
    talk(&mut client);
    there.run(|| {
        ip(&format!(
            "link set dev {INTERFACE} address 02:00:00:00:00:77"
        ))
        .unwrap()
    });
    // The kernel would ask again by itself after some seconds.
    here.run(|| ip(&format!("neigh flush dev {INTERFACE}")).unwrap());
    talk(&mut client);
    serving.stop();
}

/// Both processes would use the same rings.
#[test]
fn a_forked_child_is_refused_and_leaves_its_parent_alone() {
    let (Some(clients), Some(servers)) = (sides(0, true), sides(1, true)) else {
        return;
    };
    let serving = servers[0].server();
    let mut client = clients[2].client(serving.address).unwrap();
    // SAFETY: the child only uses its own client, allocates, and ends without running handlers.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let refused = client
            .get(b"key")
            .is_err_and(|it| it.to_string().contains("forked child"));
        drop(client);
        // SAFETY: it does not return.
        unsafe { libc::_exit(i32::from(!refused)) };
    }
    let mut status = 0;
    // SAFETY: the status is borrowed for the call.
    let ended = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!((ended, status), (child, 0));
    talk(&mut client);
    serving.stop();
}

/// DPDK drives a port at the first end, beside the kernel, and two that share memory.
#[cfg(feature = "dpdk")]
mod dpdk {
    use super::*;

    /// The address of the port at the first end, and those of the others.
    const ADDRESSES: [&str; 3] = ["10.7.0.3", "10.8.0.1", "10.8.0.2"];

    /// The ports. A process begins DPDK once.
    static PORTS: LazyLock<Option<[Arc<dyn PacketTransport>; 3]>> = LazyLock::new(|| {
        let here = &LAB.as_ref()?.ends()[0];
        let socket = format!(
            "id=0,socket=glimmer-{},socket-abstract=yes",
            std::process::id()
        );
        let eal = format!(
            "--no-huge -m 128 --no-pci --vdev=net_af_packet0,iface={INTERFACE} \
             --vdev=net_memif0,role=server,{socket} --vdev=net_memif1,role=client,{socket}"
        );
        let mut port = 0..;
        Some(ADDRESSES.map(|ip| {
            let port = port.next().unwrap();
            let transport =
                transports::named(&format!("dpdk:ip={ip}/24,port={port} {eal}")).unwrap();
            // EAL begins in the namespace of the interface. The port is kept.
            here.run(|| drop(transport.open((ip.parse::<std::net::IpAddr>().unwrap(), 0).into())));
            transport
        }))
    });

    /// The port's transport in either direction with each of the kernel's, and with itself.
    pub fn pairs() -> Vec<(Side, Side)> {
        let (Some(ports), Some(others)) = (PORTS.as_ref(), sides(1, true)) else {
            return Vec::new();
        };
        let end = &LAB.as_ref().expect("there are ports").ends()[0];
        let [port, one, other] = [0, 1, 2].map(|number| Side {
            name: "dpdk",
            transport: ports[number].clone(),
            end,
            at: SocketAddr::new(ADDRESSES[number].parse().unwrap(), 0),
        });
        let mut pairs = vec![(one, other)];
        for side in others {
            pairs.push((port.clone(), side.clone()));
            pairs.push((side, port.clone()));
        }
        pairs
    }
}
