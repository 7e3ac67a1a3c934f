//! The Internet checksum (RFC 1071).

use std::net::IpAddr;

use super::PROTOCOL_UDP;

/// The sum of the bytes as 16-bit words in the order of the wire, not folded. An odd last byte is
/// the first one of a word. Sums of several parts add up if all but the last have an even length.
#[inline]
pub fn sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<4>();
    // The sum is the same in either order of bytes, with its own bytes swapped (RFC 1071, 2B), so
    // long words of the machine do.
    let mut sum: u64 = words
        .iter()
        .map(|word| u64::from(u32::from_ne_bytes(*word)))
        .sum();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    sum += u64::from(u32::from_ne_bytes(last));
    sum
}

/// The sum of the addresses, the protocol and the length of a datagram.
#[inline]
pub fn pseudo(source: &IpAddr, destination: &IpAddr, udp_bytes: u16) -> u64 {
    let address = |ip: &IpAddr| match ip {
        IpAddr::V4(ip) => sum(&ip.octets()),
        IpAddr::V6(ip) => sum(&ip.octets()),
    };
    let protocol = [0, PROTOCOL_UDP];
    address(source) + address(destination) + sum(&protocol) + sum(&udp_bytes.to_be_bytes())
}

/// The sum in one word, as two bytes of the wire.
#[inline]
pub fn folded(sum: u64) -> [u8; 2] {
    let mut sum = (sum >> 32) + (sum & 0xFFFF_FFFF);
    sum = (sum >> 16) + (sum & 0xFFFF);
    sum = (sum >> 16) + (sum & 0xFFFF);
    sum = (sum >> 16) + (sum & 0xFFFF);
    (sum as u16).to_ne_bytes()
}

/// The checksum for what has this sum.
#[inline]
pub fn of(sum: u64) -> [u8; 2] {
    folded(sum).map(|byte| !byte)
}

/// Whether what has this sum, its checksum included, is as it was sent.
#[inline]
pub fn holds(sum: u64) -> bool {
    folded(sum) == [0xFF; 2]
}
