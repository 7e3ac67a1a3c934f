//! The resolved address of a server.

use std::{
    fmt,
    net::{SocketAddr, ToSocketAddrs},
    path::PathBuf,
};

use anyhow::{Context, Result, anyhow};
use glimmer_connect::OTHER_NAME;
use glimmer_notation::Location;
use serde::{Serialize, Serializer};

/// The resolved address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// TCP.
    Tcp(SocketAddr),
    /// UDP with memcached's frames, as plain datagrams: each one passes through the kernel
    /// separately, like those of memcached's clients.
    Udp(SocketAddr),
    /// UDP with memcached's frames. Datagrams of equal length pass through the kernel as one
    /// segment batch (`UDP_SEGMENT`).
    UdpTrains(SocketAddr),
    /// A Unix socket.
    Unix(PathBuf),
}

impl Address {
    /// Resolves the name in a location.
    ///
    /// # Errors
    ///
    /// If the name is unknown or has no address.
    pub fn resolve(location: &Location) -> Result<Address> {
        let (host, port) = match location {
            Location::Tcp(host, port)
            | Location::Udp(host, port)
            | Location::UdpTrains(host, port) => (host.as_str(), *port),
            Location::Unix(path) => return Ok(Address::Unix(path.clone())),
        };
        let mut found = (host, port)
            .to_socket_addrs()
            .map_err(|why| anyhow!("cannot look up {host}: {why}; {OTHER_NAME}"))?;
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
