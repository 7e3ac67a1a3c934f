//! What can carry datagrams between two network namespaces, with everything at its ends.

use std::{
    net::Ipv4Addr,
    os::fd::{AsFd, AsRawFd},
    sync::Arc,
};

use anyhow::{Context, Error, Result};
use glimmer_measure::namespaces::{Namespace, Visit, ip, tc};
use glimmer_transport::{
    packet::{PacketDevice, PacketTransport},
    transports,
};

use crate::lab::{Place, Receiver, tags_stay};

/// The name of both interfaces, each in its namespace.
const INTERFACE: &str = "veth0";
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 212, 0, 1);
const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 212, 0, 2);
/// The transports of the kernel's interfaces with their names on the command line. All others are
/// compared with the first.
pub const TRANSPORTS: [(&str, &str); 3] = [
    ("udp", "udp"),
    ("udp-plain", "udp-plain"),
    ("xdp", "xdp:veth0"),
];

/// The machine's two halves: a namespace for servers and one for clients.
pub struct Halves {
    servers: Arc<Namespace>,
    clients: Namespace,
    /// The queues of either interface.
    pub queues: usize,
}

/// One end of a transport.
pub struct End {
    /// Makes the transport. An interface is another process's again when this is dropped.
    pub transport: Box<dyn Fn() -> Result<Arc<dyn PacketTransport>> + Send + Sync>,
    /// Its address.
    pub at: Ipv4Addr,
    /// Whether it is in the namespace of the servers.
    pub is_server: bool,
}

/// What is measured: a transport with everything at its ends.
pub struct Way {
    /// The transport's kind: udp, udp-plain, xdp or dpdk.
    pub kind: &'static str,
    pub name: String,
    /// What the server is told.
    pub server: String,
    /// Where the server is reached by this transport.
    pub server_at: Ipv4Addr,
    /// The ends of its client, of an echo, and of the echo's client.
    pub client: End,
    pub echo: End,
    pub echo_client: End,
}

impl End {
    /// A device for each of this many workers. Those of a server share a port.
    pub fn open(&self, halves: &Halves, workers: usize) -> Result<Vec<Box<dyn PacketDevice>>> {
        let (transport, at) = ((self.transport)()?, self.at);
        transport.expect_workers(halves.queues);
        let namespace = match self.is_server {
            true => &*halves.servers,
            false => &halves.clients,
        };
        let (is_group, address) = (self.is_server && workers > 1, (at, 0).into());
        namespace.inside(|| {
            Ok(match is_group {
                true => transport.open_group(address, workers)?,
                false => (0..workers)
                    .map(|_| transport.open(address))
                    .collect::<Result<_, _>>()?,
            })
        })
    }
}

impl Way {
    /// A transport at the pair of interfaces between both halves.
    pub fn of_interface((kind, name): (&'static str, &'static str)) -> Way {
        let end = |is_server, at| End {
            transport: Box::new(move || transports::named(name).map_err(Error::msg)),
            at,
            is_server,
        };
        Way {
            kind,
            name: name.to_owned(),
            server: name.to_owned(),
            server_at: SERVER,
            client: end(false, CLIENT),
            echo: end(true, SERVER),
            echo_client: end(false, CLIENT),
        }
    }
}

impl Halves {
    /// Two new namespaces with a pair of interfaces between them, each with this many queues.
    ///
    /// # Errors
    ///
    /// The process may not make namespaces, or `ip` fails.
    pub fn new(queues: usize) -> Result<Halves> {
        let lacks = "two network namespaces: this needs root, or CAP_SYS_ADMIN and CAP_NET_ADMIN";
        let (servers, clients) = (Namespace::new(), Namespace::new());
        let (servers, clients) = (servers.context(lacks)?, clients.context(lacks)?);
        let there = format!(
            "/proc/{}/fd/{}",
            std::process::id(),
            clients.as_fd().as_raw_fd()
        );
        servers.inside(|| {
            ip(&format!(
                "link add {INTERFACE} numrxqueues {queues} numtxqueues {queues} type veth \
                 peer name {INTERFACE} numrxqueues {queues} numtxqueues {queues} netns {there}"
            ))
        })?;
        for (namespace, address) in [(&servers, SERVER), (&clients, CLIENT)] {
            namespace.inside(|| -> Result<()> {
                tags_stay(INTERFACE)?;
                ip("link set lo up")?;
                ip(&format!("address add {address}/24 dev {INTERFACE}"))?;
                Ok(ip(&format!("link set {INTERFACE} up"))?)
            })?;
        }
        Ok(Halves {
            servers: Arc::new(servers),
            clients,
            queues,
        })
    }

    /// Cuts what either interface sends to this many megabits per second, or no longer.
    ///
    /// # Errors
    ///
    /// `tc` is missing, or fails.
    pub fn limit(&self, mbit_per_s: Option<u32>) -> Result<()> {
        let set = || match mbit_per_s {
            Some(mbit) => tc(&format!(
                "qdisc replace dev {INTERFACE} root tbf rate {mbit}mbit burst 128kb limit 8mb"
            )),
            None => tc(&format!("qdisc delete dev {INTERFACE} root")),
        };
        self.servers.inside(set)?;
        Ok(self.clients.inside(set)?)
    }

    /// Moves the calling thread to the clients, until the result is dropped.
    ///
    /// # Errors
    ///
    /// Those of the kernel.
    pub fn visit_clients(&self) -> Result<Visit> {
        Ok(self.clients.visit()?)
    }

    /// Where servers run.
    pub fn place(&self) -> Place {
        Place {
            ip: SERVER.into(),
            interface: Some(INTERFACE.into()),
            receiver: Receiver::Sender,
            namespace: Some(self.servers.clone()),
        }
    }
}
