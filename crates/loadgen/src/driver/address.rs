//! Where a server is, and what it speaks.

use std::{
    fmt,
    net::{SocketAddr, ToSocketAddrs},
    os::fd::AsFd,
    path::PathBuf,
    str::FromStr,
};

use anyhow::{Result, bail};
use serde::{Serialize, Serializer};

use super::{Binary, Datagrams, Link, Meta, Native, Protocol, Resp, Stream, Text, Way};

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// TCP.
    Tcp(SocketAddr),
    /// UDP with memcached's frames.
    Udp(SocketAddr),
    /// A Unix socket.
    Unix(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => write!(out, "{address}"),
            Address::Udp(address) => write!(out, "udp:{address}"),
            Address::Unix(path) => write!(out, "unix:{}", path.display()),
        }
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Address, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            return Ok(Address::Unix(path.into()));
        }
        let (udp, host) = match text.strip_prefix("udp:") {
            Some(host) => (true, host),
            None => (false, text.strip_prefix("tcp:").unwrap_or(text)),
        };
        let found = host.to_socket_addrs().map_err(|error| {
            format!("{error}; an address is HOST:PORT, udp:HOST:PORT or unix:PATH")
        })?;
        let address = found
            .into_iter()
            .next()
            .ok_or_else(|| format!("{host} has no address"))?;
        Ok(if udp {
            Address::Udp(address)
        } else {
            Address::Tcp(address)
        })
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
        let (Address::Tcp(address) | Address::Udp(address)) = self.address else {
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
            Address::Udp(address) => job.run(all(connections, || Datagrams::<P>::open(*address))?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_they_are_written() {
        for text in [
            "127.0.0.1:11211",
            "udp:127.0.0.1:11211",
            "unix:/run/memcached.sock",
            "[::1]:11211",
        ] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        assert_eq!(
            "tcp:127.0.0.1:1".parse::<Address>().unwrap(),
            "127.0.0.1:1".parse().unwrap()
        );
        for wrong in ["", "127.0.0.1", "127.0.0.1:x"] {
            assert!(wrong.parse::<Address>().is_err(), "{wrong}");
        }
    }
}
