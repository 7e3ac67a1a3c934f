//! A server whose protocol is chosen at run time, among those of this crate.

use std::net::SocketAddr;

use anyhow::{Result, bail};
use serde::Serialize;

use super::connect::{BURST_KEYS, burst_keys};
use super::{
    Address, Binary, Connect, Endpoint, Job, Meta, Native, Protocol, Resp, Text, native::Way,
};

/// What a server speaks.
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
    /// RESP2: Redis, Valkey and their relatives.
    Resp,
    /// Our native protocol over UDP, each request in a datagram of its own, datagrams in trains.
    Native,
    /// The same with several requests in a datagram.
    NativePacked,
    /// The same with each datagram by itself: what is lost without segmentation offload.
    NativePlain,
    /// As [`Dialect::Native`], but to every port of the server in turn, which directs the requests
    /// itself.
    NativeUndirected,
}

impl Dialect {
    /// All of them.
    pub const ALL: [Dialect; 8] = [
        Dialect::Text,
        Dialect::Meta,
        Dialect::Binary,
        Dialect::Resp,
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
            Dialect::Native => "native",
            Dialect::NativePacked => "native-packed",
            Dialect::NativePlain => "native-plain",
            Dialect::NativeUndirected => "native-undirected",
        }
    }
}

/// A server as a client sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Target {
    /// Where it is.
    pub address: Address,
    /// What it speaks.
    pub dialect: Dialect,
}

impl Dialect {
    /// Whether it is one of the native protocol's.
    pub fn is_native(self) -> bool {
        use Dialect::{Native, NativePacked, NativePlain, NativeUndirected};
        matches!(self, Native | NativePacked | NativePlain | NativeUndirected)
    }
}

impl Target {
    /// memcached's text protocol over TCP.
    pub fn text(address: SocketAddr) -> Target {
        Target {
            address: Address::Tcp(address),
            dialect: Dialect::Text,
        }
    }

    fn open_native<J: Job>(&self, connections: usize, way: Way, job: J) -> Result<J::Output> {
        let (Address::Tcp(address) | Address::Udp(address) | Address::UdpTrains(address)) =
            self.address
        else {
            bail!("the native protocol goes over UDP: give the server's native port");
        };
        let links = (0..connections).map(|_| Native::open(address, way));
        job.run(links.collect::<Result<Vec<_>>>()?)
    }
}

impl Connect for Target {
    fn open<J: Job>(&self, connections: usize, job: J) -> Result<J::Output> {
        fn open<P: Protocol, J: Job>(address: &Address, count: usize, job: J) -> Result<J::Output> {
            Endpoint::<P>::new(address.clone()).open(count, job)
        }
        let address = &self.address;
        match self.dialect {
            Dialect::Text => open::<Text, J>(address, connections, job),
            Dialect::Meta => open::<Meta, J>(address, connections, job),
            Dialect::Binary => open::<Binary, J>(address, connections, job),
            Dialect::Resp => open::<Resp, J>(address, connections, job),
            Dialect::Native => self.open_native(connections, Way::Trains, job),
            Dialect::NativePacked => self.open_native(connections, Way::Packed, job),
            Dialect::NativePlain => self.open_native(connections, Way::Plain, job),
            Dialect::NativeUndirected => self.open_native(connections, Way::Undirected, job),
        }
    }

    fn burst_keys(&self) -> u32 {
        match self.dialect.is_native() {
            true => BURST_KEYS,
            false => burst_keys(&self.address),
        }
    }
}
