//! What an address says about its owner.

use std::net::{IpAddr, SocketAddr};

/// The address without its port, as IPv6 writes it.
pub fn ip_octets(address: &SocketAddr) -> [u8; 16] {
    match address.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
        IpAddr::V6(ip) => ip.octets(),
    }
}

/// The network of an address as a number: an IPv4 address, or the first 64 bits of an IPv6 address.
/// One machine may use any number of ports, and any number of addresses in its IPv6 network.
#[inline]
pub fn network(address: &SocketAddr) -> u64 {
    let ip = u128::from_be_bytes(ip_octets(address));
    match ip >> 32 {
        0xFFFF => (ip as u32).into(),
        _ => (ip >> 64) as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_an_address_or_half_of_one() {
        let network = |address: &str| network(&address.parse().unwrap());
        assert_eq!(network("10.1.2.3:5"), 0x0A01_0203);
        assert_eq!(network("[::ffff:10.1.2.3]:9"), 0x0A01_0203);
        assert_eq!(network("[2001:db8:1:2::1]:5"), 0x2001_0DB8_0001_0002);
        assert_eq!(network("[2001:db8:1:2:3:4:5:6]:7"), 0x2001_0DB8_0001_0002);
    }

    #[test]
    fn an_address_has_the_same_octets_in_either_family() {
        let octets = |address: &str| ip_octets(&address.parse().unwrap());
        assert_eq!(octets("10.1.2.3:5"), octets("[::ffff:10.1.2.3]:9"));
        assert_ne!(octets("10.1.2.3:5"), octets("10.1.2.4:5"));
    }
}
