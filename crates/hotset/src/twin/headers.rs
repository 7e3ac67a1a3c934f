//! The headers of Ethernet, IP and UDP: the checks of a request's, and those of its reply.
//!
//! A reply has the addresses and ports of the request in the other direction, a hop limit of 64, no
//! options, no traffic class and no flow label. An IPv4 reply has the identification zero and may
//! not be fragmented.

use super::interface::Interface;
use crate::layout::Tally;
use crate::sums;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const ETHERNET_BYTES: usize = 14;
/// A shorter frame was padded to this length.
const FRAME_BYTES_MIN: usize = 60;
const IPV4_BYTES: usize = 20;
const IPV6_BYTES: usize = 40;
const UDP_BYTES: usize = 8;
const ETHERTYPE_IPV4: [u8; 2] = [0x08, 0x00];
const ETHERTYPE_IPV6: [u8; 2] = [0x86, 0xDD];
const UDP: u8 = 17;
const HOP_LIMIT: u8 = 64;
const DO_NOT_FRAGMENT: [u8; 2] = [0x40, 0x00];
/// The bits of "more fragments" and of the fragment's offset.
const FRAGMENT: u16 = 0x3FFF;

/// The headers of a frame that has passed all checks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Headers {
    is_v4: bool,
    /// Who has sent it.
    pub source: IpAddr,
    datagram_bytes: usize,
}

fn be(bytes: &[u8]) -> usize {
    usize::from(u16::from_be_bytes([bytes[0], bytes[1]]))
}

impl Headers {
    /// Checks a frame as far as the datagram.
    ///
    /// # Errors
    ///
    /// The first doubt.
    pub fn check(frame: &[u8], interface: &Interface) -> Result<Headers, Tally> {
        let (ethernet, packet) = frame
            .split_at_checked(ETHERNET_BYTES)
            .ok_or(Tally::Malformed)?;
        let is_v4 = match [ethernet[12], ethernet[13]] {
            ETHERTYPE_IPV4 => true,
            ETHERTYPE_IPV6 => false,
            _ => return Err(Tally::Foreign),
        };
        if ethernet[..6] != interface.mac {
            return Err(Tally::Foreign);
        }
        let ip_bytes = if is_v4 { IPV4_BYTES } else { IPV6_BYTES };
        let (ip, _) = packet.split_at_checked(ip_bytes).ok_or(Tally::Malformed)?;
        let (payload_bytes, source, destination) =
            if is_v4 { check_v4(ip)? } else { check_v6(ip)? };
        let packet_bytes = ip_bytes + payload_bytes;
        let is_padded = packet.len() > packet_bytes && frame.len() == FRAME_BYTES_MIN;
        if packet.len() != packet_bytes && !is_padded {
            return Err(Tally::Malformed);
        }
        let udp = packet[ip_bytes..]
            .get(..UDP_BYTES)
            .filter(|_| payload_bytes >= UDP_BYTES)
            .ok_or(Tally::Malformed)?;
        if be(&udp[2..]) != usize::from(interface.port)
            || !interface.addresses.contains(&destination)
        {
            return Err(Tally::Foreign);
        }
        if be(&udp[4..]) != payload_bytes {
            return Err(Tally::Malformed);
        }
        let is_group = ethernet[6] & 1 != 0;
        if is_group || be(udp) == 0 || !interface.answers(source) {
            return Err(Tally::Source);
        }
        Ok(Headers {
            is_v4,
            source,
            datagram_bytes: payload_bytes - UDP_BYTES,
        })
    }

    /// Bytes before the datagram's payload.
    pub fn bytes(self) -> usize {
        ETHERNET_BYTES + self.ip_bytes() + UDP_BYTES
    }

    /// The datagram's payload.
    pub fn payload(self, frame: &[u8]) -> &[u8] {
        &frame[self.bytes()..][..self.datagram_bytes]
    }

    /// The header of IP.
    pub fn ip(self, frame: &[u8]) -> &[u8] {
        &frame[ETHERNET_BYTES..][..self.ip_bytes()]
    }

    /// The datagram with UDP's header.
    pub fn udp(self, frame: &[u8]) -> &[u8] {
        &frame[self.bytes() - UDP_BYTES..][..UDP_BYTES + self.datagram_bytes]
    }

    /// Length of a frame with a payload of this length.
    pub fn frame_bytes(self, datagram_bytes: usize) -> usize {
        self.bytes() + datagram_bytes
    }

    /// Length of the packet in such a frame.
    pub fn packet_bytes(self, datagram_bytes: usize) -> usize {
        self.frame_bytes(datagram_bytes) - ETHERNET_BYTES
    }

    fn ip_bytes(self) -> usize {
        if self.is_v4 { IPV4_BYTES } else { IPV6_BYTES }
    }

    /// Turns the headers of a frame whose payload is the reply, with this sum, to where the request
    /// came from.
    pub fn turn_back(self, frame: &mut [u8], payload_sum: u32) {
        let udp_bytes = (frame.len() - ETHERNET_BYTES - self.ip_bytes()) as u16;
        let (ethernet, packet) = frame.split_at_mut(ETHERNET_BYTES);
        swap(ethernet, 0, 6);
        let (ip, udp) = packet.split_at_mut(self.ip_bytes());
        let addresses = if self.is_v4 {
            swap(ip, 12, 4);
            let total_bytes = (udp_bytes + IPV4_BYTES as u16).to_be_bytes();
            ip[0] = 0x45;
            ip[1] = 0;
            ip[2..4].copy_from_slice(&total_bytes);
            ip[4..6].fill(0);
            ip[6..8].copy_from_slice(&DO_NOT_FRAGMENT);
            ip[8] = HOP_LIMIT;
            ip[10..12].fill(0);
            let checksum = sums::checksum(sums::of(ip));
            ip[10..12].copy_from_slice(&checksum.to_ne_bytes());
            &ip[12..20]
        } else {
            swap(ip, 8, 16);
            ip[..4].copy_from_slice(&[0x60, 0, 0, 0]);
            ip[4..6].copy_from_slice(&udp_bytes.to_be_bytes());
            ip[7] = HOP_LIMIT;
            &ip[8..40]
        };
        swap(udp, 0, 2);
        udp[4..6].copy_from_slice(&udp_bytes.to_be_bytes());
        udp[6..8].fill(0);
        // The pseudo-header: both addresses, the protocol, and the length.
        let [high, low] = udp_bytes.to_be_bytes();
        let pseudo = sums::add(sums::of(addresses), sums::of(&[0, UDP, high, low]));
        let header = sums::add(pseudo, sums::of(&udp[..UDP_BYTES]));
        let checksum = match sums::checksum(sums::add(header, payload_sum)) {
            // Zero would say that there is no checksum.
            0 => u16::MAX,
            checksum => checksum,
        };
        udp[6..8].copy_from_slice(&checksum.to_ne_bytes());
    }
}

/// Exchanges two neighbouring fields of this many bytes.
fn swap(bytes: &mut [u8], at: usize, field_bytes: usize) {
    let (first, second) = bytes[at..at + 2 * field_bytes].split_at_mut(field_bytes);
    first.swap_with_slice(second);
}

/// The length of the payload, source and destination.
fn check_v4(ip: &[u8]) -> Result<(usize, IpAddr, IpAddr), Tally> {
    if ip[0] != 0x45 || be(&ip[6..]) as u16 & FRAGMENT != 0 {
        return Err(Tally::Malformed);
    }
    if ip[9] != UDP {
        return Err(Tally::Foreign);
    }
    let payload_bytes = be(&ip[2..])
        .checked_sub(IPV4_BYTES)
        .ok_or(Tally::Malformed)?;
    let address = |at: usize| Ipv4Addr::new(ip[at], ip[at + 1], ip[at + 2], ip[at + 3]).into();
    Ok((payload_bytes, address(12), address(16)))
}

/// As [`check_v4`].
fn check_v6(ip: &[u8]) -> Result<(usize, IpAddr, IpAddr), Tally> {
    if ip[0] >> 4 != 6 {
        return Err(Tally::Malformed);
    }
    if ip[6] != UDP {
        return Err(Tally::Foreign);
    }
    let address = |at: usize| {
        let bytes: [u8; 16] = std::array::from_fn(|place| ip[at + place]);
        Ipv6Addr::from(bytes).into()
    };
    Ok((be(&ip[4..]), address(8), address(24)))
}
