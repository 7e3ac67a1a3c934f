//! A server whose protocol is one of this crate's, chosen at run time.

use std::{net::SocketAddr, sync::Arc};

use anyhow::{Result, bail, ensure};
use glimmer_connect::Admission;
use glimmer_transport::packet::PacketTransport;
use serde::{Serialize, Serializer};

use super::connect::{BURST_KEYS, burst_keys};
use super::{
    Address, Binary, Connect, Endpoint, Job, Masstree, Meta, Native, Protocol, Resp, Text,
    native::SendMode,
};

/// The protocol of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dialect {
    /// memcached's classic text protocol.
    #[default]
    Text,
    /// memcached's meta commands.
    Meta,
    /// memcached's binary protocol.
    Binary,
    /// RESP2: Redis, Valkey and compatible servers.
    Resp,
    /// The protocol of `mtd`, Masstree's server.
    Masstree,
    /// Glimmer's native protocol over UDP: one request per datagram, datagrams in segment batches.
    Native,
    /// The native protocol with several requests per datagram.
    NativePacked,
    /// The native protocol without segment batches, which shows what segmentation offload saves.
    NativePlain,
    /// Like [`Dialect::Native`], but to all ports of the server in turn. The server directs the
    /// requests itself.
    NativeUndirected,
}

impl Dialect {
    /// Every dialect.
    pub const ALL: [Dialect; 9] = [
        Dialect::Text,
        Dialect::Meta,
        Dialect::Binary,
        Dialect::Resp,
        Dialect::Masstree,
        Dialect::Native,
        Dialect::NativePacked,
        Dialect::NativePlain,
        Dialect::NativeUndirected,
    ];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Dialect::Text => "text",
            Dialect::Meta => "meta",
            Dialect::Binary => "binary",
            Dialect::Resp => "resp",
            Dialect::Masstree => "masstree",
            Dialect::Native => "native",
            Dialect::NativePacked => "native-packed",
            Dialect::NativePlain => "native-plain",
            Dialect::NativeUndirected => "native-undirected",
        }
    }
}

/// A server as a client sees it.
#[derive(Clone, Debug, Serialize)]
pub struct Target {
    /// The server's address.
    pub address: Address,
    /// The server's protocol.
    pub dialect: Dialect,
    /// What the server wants of its clients.
    #[serde(skip)]
    pub admission: Admission,
    /// What carries datagrams; the kernel's sockets if there is none.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "name_of")]
    pub transport: Option<Arc<dyn PacketTransport>>,
}

fn name_of<S: Serializer>(
    transport: &Option<Arc<dyn PacketTransport>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_str(
        transport
            .as_ref()
            .map_or("udp", |transport| transport.name()),
    )
}

impl Dialect {
    /// Whether it is a variant of the native protocol.
    pub fn is_native(self) -> bool {
        use Dialect::{Native, NativePacked, NativePlain, NativeUndirected};
        matches!(self, Native | NativePacked | NativePlain | NativeUndirected)
    }
}

impl Target {
    /// A server that admits everyone.
    pub fn new(address: Address, dialect: Dialect) -> Target {
        Target {
            address,
            dialect,
            admission: Admission::default(),
            transport: None,
        }
    }

    /// memcached's text protocol over TCP.
    pub fn text(address: SocketAddr) -> Target {
        Target::new(Address::Tcp(address), Dialect::Text)
    }

    fn open_native<J: Job>(&self, connections: usize, way: SendMode, job: J) -> Result<J::Output> {
        let (Address::Tcp(address) | Address::Udp(address) | Address::UdpTrains(address)) =
            self.address
        else {
            bail!("the native protocol goes over UDP: give the server's native port");
        };
        let Admission { tls, login, .. } = &self.admission;
        ensure!(
            tls.is_none() && login.is_none(),
            "the native protocol has no encryption and no login: leave --tls and --auth-user out, \
             and have the server listen for it where it needs neither"
        );
        let open = |_| Native::open(address, way, self.transport.as_deref());
        let links = (0..connections).map(open);
        job.run(links.collect::<Result<Vec<_>>>()?)
    }
}

impl Connect for Target {
    fn open<J: Job>(&self, connections: usize, job: J) -> Result<J::Output> {
        fn open<P: Protocol, J: Job>(target: &Target, count: usize, job: J) -> Result<J::Output> {
            let endpoint = Endpoint::<P>::new(target.address.clone());
            let endpoint = endpoint.admitting(target.admission.clone());
            endpoint.over(target.transport.clone()).open(count, job)
        }
        match self.dialect {
            Dialect::Text => open::<Text, J>(self, connections, job),
            Dialect::Meta => open::<Meta, J>(self, connections, job),
            Dialect::Binary => open::<Binary, J>(self, connections, job),
            Dialect::Resp | Dialect::Masstree
                if matches!(self.address, Address::Udp(_) | Address::UdpTrains(_)) =>
            {
                let name = self.dialect.name();
                bail!("{name} goes over TCP or a Unix socket: leave udp: out of the address")
            }
            Dialect::Resp => open::<Resp, J>(self, connections, job),
            Dialect::Masstree => open::<Masstree, J>(self, connections, job),
            Dialect::Native => self.open_native(connections, SendMode::Segmented, job),
            Dialect::NativePacked => self.open_native(connections, SendMode::Packed, job),
            Dialect::NativePlain => self.open_native(connections, SendMode::Plain, job),
            Dialect::NativeUndirected => self.open_native(connections, SendMode::Undirected, job),
        }
    }

    fn burst_keys(&self) -> u32 {
        match self.dialect.is_native() {
            true => BURST_KEYS,
            false => burst_keys(&self.address),
        }
    }
}
