//! Which frames are addressed to the server, and which clients are answered.

use glimmer_base::limits::PATH_BYTES_MAX;
use std::net::IpAddr;

/// What the packet program is told when it is attached.
#[derive(Clone, Debug)]
pub struct Interface {
    /// The interface's hardware address.
    pub mac: [u8; 6],
    /// The addresses that are answered for: those of the interface.
    pub addresses: Vec<IpAddr>,
    /// The server's UDP port.
    pub port: u16,
    /// Who is answered. A source in none of these goes to the server.
    pub sources: Vec<Prefix>,
    /// Sources that are not answered in any case: our own addresses, and those by which all hosts
    /// on a link are addressed.
    pub not_hosts: Vec<IpAddr>,
    /// The networks on the interface's links. Hosts elsewhere are answered with packets of at most
    /// [`PATH_BYTES_MAX`].
    pub links: Vec<Prefix>,
    /// Longest frame that the interface sends, in bytes.
    pub frame_bytes_max: usize,
    /// Bytes by which a frame may grow.
    pub growth_bytes_max: usize,
    /// Whether a datagram is answered whose checksum the kernel has left to hardware.
    pub partial_checksums: bool,
}

/// Addresses that begin with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// One of the addresses.
    pub address: IpAddr,
    /// The number of bits that all of them share.
    pub bits: u8,
}

impl Prefix {
    /// Whether an address begins with the same bits.
    pub fn has(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(ours), IpAddr::V4(theirs)) => {
                let differ = (ours.to_bits() ^ theirs.to_bits()).leading_zeros();
                differ >= u32::from(self.bits)
            }
            (IpAddr::V6(ours), IpAddr::V6(theirs)) => {
                let differ = (ours.to_bits() ^ theirs.to_bits()).leading_zeros();
                differ >= u32::from(self.bits)
            }
            _ => false,
        }
    }
}

impl Interface {
    /// Whether a packet of this length reaches a host in one piece: it is on one of the links, or
    /// every path takes such a packet.
    pub fn fits_path(&self, host: IpAddr, packet_bytes: usize) -> bool {
        packet_bytes <= PATH_BYTES_MAX || self.links.iter().any(|link| link.has(host))
    }

    /// Whether a source may be answered: it is one host that is not ours, and it is among the
    /// sources.
    pub fn answers(&self, source: IpAddr) -> bool {
        let is_broadcast = match source {
            IpAddr::V4(source) => source.is_broadcast(),
            IpAddr::V6(_) => false,
        };
        let is_one_host = !source.is_multicast()
            && !source.is_unspecified()
            && !source.is_loopback()
            && !is_broadcast
            && !self.not_hosts.contains(&source);
        is_one_host && self.sources.iter().any(|prefix| prefix.has(source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_has_what_begins_with_its_bits() {
        let prefix = |address: &str, bits| Prefix {
            address: address.parse().unwrap(),
            bits,
        };
        let has = |prefix: Prefix, address: &str| prefix.has(address.parse().unwrap());
        assert!(has(prefix("10.1.2.3", 24), "10.1.2.99"));
        assert!(!has(prefix("10.1.2.3", 24), "10.1.3.3"));
        assert!(has(prefix("10.1.2.3", 32), "10.1.2.3"));
        assert!(!has(prefix("10.1.2.3", 32), "10.1.2.2"));
        assert!(has(prefix("0.0.0.0", 0), "255.0.0.1"));
        assert!(!has(prefix("0.0.0.0", 0), "fe80::1"));
        assert!(has(prefix("fe80::", 10), "febf::1"));
        assert!(!has(prefix("fe80::", 10), "fec0::1"));
    }
}
