//! Where a server is, and what it speaks.

use std::{fmt, net::SocketAddr, os::fd::AsFd, path::PathBuf};

use anyhow::{Result, bail};
use serde::{Serialize, Serializer};

use super::datagrams::Sending;
use super::{Binary, Datagrams, Link, Meta, Native, Protocol, Resp, Stream, Text, Way};

/// Where a server is, with its name looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// TCP.
    Tcp(SocketAddr),
    /// UDP with memcached's frames, in plain datagrams: each goes through the kernel by itself, as
    /// those of memcached's clients do.
    Udp(SocketAddr),
    /// The same, but datagrams of one length go through the kernel as one train (`UDP_SEGMENT`).
    UdpTrains(SocketAddr),
    /// A Unix socket.
    Unix(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => write!(out, "{address}"),
            Address::Udp(address) => write!(out, "udp:{address}"),
            Address::UdpTrains(address) => write!(out, "udp-trains:{address}"),
            Address::Unix(path) => write!(out, "unix:{}", path.display()),
        }
    }
}

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

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
    /// As [`Dialect::Native`], but to every port of the server in turn, which directs the requests itself.
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

/// Something to do with connections, whatever they are made of.
pub trait Job {
    /// What comes of it.
    type Output;

    /// Does it.
    fn run<L: Link + AsFd>(self, links: Vec<L>) -> Result<Self::Output>;
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

    /// Opens so many connections and does a job with them.
    pub fn open<J: Job>(&self, connections: usize, job: J) -> Result<J::Output> {
        match self.dialect {
            Dialect::Text => self.open_as::<Text, J>(connections, job),
            Dialect::Meta => self.open_as::<Meta, J>(connections, job),
            Dialect::Binary => self.open_as::<Binary, J>(connections, job),
            Dialect::Resp => self.open_as::<Resp, J>(connections, job),
            Dialect::Native => self.open_native(connections, Way::Trains, job),
            Dialect::NativePacked => self.open_native(connections, Way::Packed, job),
            Dialect::NativePlain => self.open_native(connections, Way::Plain, job),
            Dialect::NativeUndirected => self.open_native(connections, Way::Undirected, job),
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

    fn open_as<P: Protocol, J: Job>(&self, connections: usize, job: J) -> Result<J::Output> {
        fn all<L>(count: usize, open: impl Fn() -> Result<L>) -> Result<Vec<L>> {
            (0..count).map(|_| open()).collect()
        }
        match &self.address {
            Address::Tcp(address) => job.run(all(connections, || Stream::<P>::tcp(*address))?),
            Address::Unix(path) => job.run(all(connections, || Stream::<P>::unix(path))?),
            Address::Udp(address) => {
                let open = || Datagrams::<P>::open(*address, Sending::Plain);
                job.run(all(connections, open)?)
            }
            Address::UdpTrains(address) => {
                let open = || Datagrams::<P>::open(*address, Sending::Trains);
                job.run(all(connections, open)?)
            }
        }
    }
}
