//! Frames: Ethernet, IP and UDP, from bytes to plain values and back. Nothing here reads a clock or
//! a socket.
//!
//! What arrives is hostile. A frame either is a whole datagram for one of our addresses, from one
//! host that can be answered, or there is a [`Reason`] why not.

mod build;
pub mod checksum;
pub mod fuzzing;
mod parse;

use std::net::{IpAddr, SocketAddr};

pub use build::{Sums, allow_fragments, ends_of, fill, fill_by, finish, finish_by};
pub use parse::{Rules, SumSeen, all_hosts, is_host, is_one_host, is_within, parse, parse_for};

/// Bytes of a header of Ethernet.
pub const ETHERNET_BYTES: usize = 14;
/// Bytes of a header of IPv4 without options.
pub const IPV4_BYTES: usize = 20;
/// Bytes of a header of IPv6.
pub const IPV6_BYTES: usize = 40;
/// Bytes of a header of UDP.
pub const UDP_BYTES: usize = 8;
/// What a frame says that carries IPv4.
pub const ETHERTYPE_IPV4: u16 = 0x0800;
/// What a frame says that carries IPv6.
pub const ETHERTYPE_IPV6: u16 = 0x86DD;
/// What a packet says that carries UDP.
pub const PROTOCOL_UDP: u8 = 17;

/// The two ends of a datagram, as a frame says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// Our hardware address.
    pub our_mac: [u8; 6],
    /// The hardware address that the frame came from: the peer's, or that of a router.
    pub their_mac: [u8; 6],
    /// Our address and port.
    pub ours: SocketAddr,
    /// The peer's address and port.
    pub theirs: SocketAddr,
}

/// Bytes before the payload of a datagram to or from this address.
#[inline]
pub fn header_bytes(ip: IpAddr) -> usize {
    ETHERNET_BYTES + UDP_BYTES + if ip.is_ipv4() { IPV4_BYTES } else { IPV6_BYTES }
}

/// Why a frame is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It is shorter than its headers.
    Short,
    /// It is no datagram of UDP for our hardware address, or has what the kernel is to look at: a
    /// tag, another protocol, IP options, a fragment.
    NotOurs,
    /// A header says more than there is, or less than the header itself takes.
    Length,
    /// The checksum of the IP header or the datagram is wrong, or lacks where it must not.
    Checksum,
    /// It is for an address or a port that is not ours.
    Address,
    /// No host can be answered: the source is ours, a group, all hosts of a link, nobody, or
    /// port 0.
    Source,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Reason; 6] = [
        Reason::Short,
        Reason::NotOurs,
        Reason::Length,
        Reason::Checksum,
        Reason::Address,
        Reason::Source,
    ];

    /// Its name in statistics.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Short => "short",
            Reason::NotOurs => "not_ours",
            Reason::Length => "length",
            Reason::Checksum => "checksum",
            Reason::Address => "address",
            Reason::Source => "source",
        }
    }
}

#[cfg(test)]
mod tests;
