//! Where a server is, and what it speaks.

use std::{
    fmt,
    net::{SocketAddr, ToSocketAddrs},
    path::PathBuf,
};

use anyhow::{Context, Result, bail};
use glimmer_notation::Location;
use serde::{Serialize, Serializer};

use super::connect::{BURST_KEYS, burst_keys};
use super::{Binary, Connect, Endpoint, Job, Meta, Native, Protocol, Resp, Text, Way};

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

impl Address {
    /// Looks up the name in a location.
    ///
    /// # Errors
    /// A name that is unknown or has no address.
    pub fn resolve(location: &Location) -> Result<Address> {
        let (host, port) = match location {
            Location::Tcp(host, port)
            | Location::Udp(host, port)
            | Location::UdpTrains(host, port) => (host.as_str(), *port),
            Location::Unix(path) => return Ok(Address::Unix(path.clone())),
        };
        let mut found = (host, port)
            .to_socket_addrs()
            .with_context(|| format!("cannot look up {host}"))?;
        let address = found.next();
        let address = address.with_context(|| format!("{host} has no address"))?;
        Ok(match location {
            Location::Udp(..) => Address::Udp(address),
            Location::UdpTrains(..) => Address::UdpTrains(address),
            _ => Address::Tcp(address),
        })
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_looked_up_when_they_are_needed() {
        let resolve = |text: &str| Address::resolve(&text.parse().unwrap());
        let address = resolve("udp:127.0.0.1:5").unwrap();
        assert_eq!(address, Address::Udp("127.0.0.1:5".parse().unwrap()));
        let address = resolve("udp-trains:127.0.0.1:5").unwrap();
        assert_eq!(address, Address::UdpTrains("127.0.0.1:5".parse().unwrap()));
        assert_eq!(resolve("unix:/a").unwrap(), Address::Unix("/a".into()));
        let error = resolve("no-such-host.invalid:1").unwrap_err();
        assert!(
            error.to_string().contains("no-such-host.invalid"),
            "{error:#}"
        );
    }
}
