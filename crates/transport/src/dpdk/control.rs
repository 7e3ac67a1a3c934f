//! What a host has to answer beside its datagrams: who has an address (ARP, neighbour discovery),
//! and whether it is there (ping). The port is ours, so no kernel does it.
//!
//! Frames come as they are, from anybody. One that is malformed, is not for us, or comes from an
//! address that no host can have is not answered.

use std::net::{IpAddr, Ipv6Addr};

use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    ArpOperation, ArpPacket, ArpRepr, EthernetAddress, EthernetFrame, EthernetProtocol,
    EthernetRepr, Icmpv4Packet, Icmpv4Repr, Icmpv6Packet, Icmpv6Repr, IpProtocol, Ipv4Packet,
    Ipv4Repr, Ipv6Packet, Ipv6Repr, NdiscNeighborFlags, NdiscRepr, RawHardwareAddress,
};

use crate::bypass::wire::{ETHERNET_BYTES, IPV4_BYTES, IPV6_BYTES, Rules, is_host};

/// Routers that an answer may pass, and that neighbours are not behind.
const HOPS: u8 = 64;
const HOPS_ON_LINK: u8 = 255;
/// All hosts on a link.
const ALL_HOSTS: Ipv6Addr = Ipv6Addr::new(0xFF02, 0, 0, 0, 0, 0, 0, 1);

/// What was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Who has an IPv4 address.
    Arp,
    /// Who has an IPv6 address.
    Neighbour,
    /// Whether we are there.
    Ping,
}

impl Asked {
    /// Every question.
    pub const ALL: [Asked; 3] = [Asked::Arp, Asked::Neighbour, Asked::Ping];

    /// Its name in statistics.
    pub fn name(self) -> &'static str {
        match self {
            Asked::Arp => "arp",
            Asked::Neighbour => "neighbour",
            Asked::Ping => "ping",
        }
    }
}

/// What there is to do about a frame that is not a datagram.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Duty {
    /// The frame that answers it.
    pub answer: Option<(Asked, Vec<u8>)>,
    /// A host, and what it says its hardware address is.
    pub says: Option<(IpAddr, [u8; 6])>,
}

/// What there is to do about a frame; `None` if nothing.
pub fn duty(frame: &[u8], rules: &Rules) -> Option<Duty> {
    let ethernet = EthernetFrame::new_checked(frame).ok()?;
    let (to, from) = (ethernet.dst_addr(), ethernet.src_addr());
    let is_direct = to.0 == rules.mac;
    if !from.is_unicast() || !(is_direct || to.is_multicast() || to.is_broadcast()) {
        return None;
    }
    match ethernet.ethertype() {
        EthernetProtocol::Arp => arp(ethernet.payload(), rules),
        EthernetProtocol::Ipv4 if is_direct => ping_v4(ethernet.payload(), from, rules),
        EthernetProtocol::Ipv6 => icmp_v6(ethernet.payload(), from, is_direct, rules),
        _ => None,
    }
}

fn arp(packet: &[u8], rules: &Rules) -> Option<Duty> {
    let ArpRepr::EthernetIpv4 {
        operation,
        source_hardware_addr: their_mac,
        source_protocol_addr: theirs,
        target_protocol_addr: ours,
        ..
    } = ArpRepr::parse(&ArpPacket::new_checked(packet).ok()?).ok()?
    else {
        return None;
    };
    // A host without an address asks whether another one has it.
    let is_known = is_host(&theirs.into(), rules);
    if !their_mac.is_unicast() || !(is_known || theirs.is_unspecified()) {
        return None;
    }
    let is_asked = operation == ArpOperation::Request && rules.own.contains(&ours.into());
    let answer = is_asked.then(|| {
        let reply = ArpRepr::EthernetIpv4 {
            operation: ArpOperation::Reply,
            source_hardware_addr: EthernetAddress(rules.mac),
            source_protocol_addr: ours,
            target_hardware_addr: their_mac,
            target_protocol_addr: theirs,
        };
        (Asked::Arp, arp_frame(&reply, their_mac, rules))
    });
    let says = is_known.then_some((theirs.into(), their_mac.0));
    (answer.is_some() || says.is_some()).then_some(Duty { answer, says })
}

fn ping_v4(packet: &[u8], from: EthernetAddress, rules: &Rules) -> Option<Duty> {
    let packet = Ipv4Packet::new_checked(packet).ok()?;
    let is_whole = !packet.more_frags() && packet.frag_offset() == 0;
    let is_plain = usize::from(packet.header_len()) == IPV4_BYTES && packet.version() == 4;
    let (theirs, ours) = (packet.src_addr(), packet.dst_addr());
    if !is_whole || !is_plain || packet.next_header() != IpProtocol::Icmp {
        return None;
    }
    if !packet.verify_checksum() || !is_answered(&theirs.into(), &ours.into(), rules) {
        return None;
    }
    let sums = ChecksumCapabilities::default();
    let icmp = Icmpv4Packet::new_checked(packet.payload()).ok()?;
    let Icmpv4Repr::EchoRequest {
        ident,
        seq_no,
        data,
    } = Icmpv4Repr::parse(&icmp, &sums).ok()?
    else {
        return None;
    };
    let reply = Icmpv4Repr::EchoReply {
        ident,
        seq_no,
        data,
    };
    let ip = Ipv4Repr {
        src_addr: ours,
        dst_addr: theirs,
        next_header: IpProtocol::Icmp,
        payload_len: reply.buffer_len(),
        hop_limit: HOPS,
    };
    let mut frame = framed(
        EthernetProtocol::Ipv4,
        from,
        IPV4_BYTES + reply.buffer_len(),
        rules,
    );
    let mut packet = Ipv4Packet::new_unchecked(&mut frame[ETHERNET_BYTES..]);
    ip.emit(&mut packet, &sums);
    reply.emit(
        &mut Icmpv4Packet::new_unchecked(packet.payload_mut()),
        &sums,
    );
    Some(answered(Asked::Ping, frame, None))
}

fn icmp_v6(packet: &[u8], from: EthernetAddress, is_direct: bool, rules: &Rules) -> Option<Duty> {
    let packet = Ipv6Packet::new_checked(packet).ok()?;
    if packet.version() != 6 || packet.next_header() != IpProtocol::Icmpv6 {
        return None;
    }
    let (theirs, ours) = (packet.src_addr(), packet.dst_addr());
    let is_on_link = packet.hop_limit() == HOPS_ON_LINK;
    let icmp = Icmpv6Packet::new_checked(packet.payload()).ok()?;
    let sums = ChecksumCapabilities::default();
    match Icmpv6Repr::parse(&theirs, &ours, &icmp, &sums).ok()? {
        Icmpv6Repr::EchoRequest {
            ident,
            seq_no,
            data,
        } if is_direct => {
            if !is_answered(&theirs.into(), &ours.into(), rules) {
                return None;
            }
            let reply = Icmpv6Repr::EchoReply {
                ident,
                seq_no,
                data,
            };
            let frame = icmp_v6_frame(&reply, (ours, theirs, HOPS), from, rules);
            Some(answered(Asked::Ping, frame, None))
        }
        Icmpv6Repr::Ndisc(NdiscRepr::NeighborSolicit {
            target_addr,
            lladdr,
        }) if is_on_link => solicited(theirs, ours, (target_addr, lladdr), from, rules),
        Icmpv6Repr::Ndisc(NdiscRepr::NeighborAdvert {
            target_addr,
            lladdr: Some(lladdr),
            ..
        }) if is_on_link => {
            let says = (target_addr.into(), unicast(lladdr)?);
            let is_right = is_host(&target_addr.into(), rules);
            is_right.then_some(Duty {
                answer: None,
                says: Some(says),
            })
        }
        _ => None,
    }
}

/// Answers who asks for one of our addresses.
fn solicited(
    theirs: Ipv6Addr,
    to: Ipv6Addr,
    (target, lladdr): (Ipv6Addr, Option<RawHardwareAddress>),
    from: EthernetAddress,
    rules: &Rules,
) -> Option<Duty> {
    let is_for_us = rules.own.contains(&target.into()) && (to == target || to == group_of(target));
    if !is_for_us {
        return None;
    }
    // A host without an address asks whether another one has it. The answer goes to all nodes (RFC
    // 4861, §7.2.4).
    let is_nameless = theirs.is_unspecified();
    if !is_nameless && !is_host(&theirs.into(), rules) {
        return None;
    }
    let (reply_to, their_mac) = if is_nameless {
        (ALL_HOSTS, group_mac(ALL_HOSTS))
    } else {
        let mac = lladdr.map_or(Some(from.0), unicast)?;
        (theirs, EthernetAddress(mac))
    };
    let mut flags = NdiscNeighborFlags::OVERRIDE;
    flags.set(NdiscNeighborFlags::SOLICITED, !is_nameless);
    let frame = advert_frame(target, flags, reply_to, their_mac, rules);
    let says = (!is_nameless).then_some((theirs.into(), their_mac.0));
    Some(answered(Asked::Neighbour, frame, says))
}

/// Asks who has an address, as one of ours of the same family.
pub fn question(ours: IpAddr, target: IpAddr, rules: &Rules) -> Vec<u8> {
    match (ours, target) {
        (IpAddr::V4(ours), IpAddr::V4(target)) => {
            let request = ArpRepr::EthernetIpv4 {
                operation: ArpOperation::Request,
                source_hardware_addr: EthernetAddress(rules.mac),
                source_protocol_addr: ours,
                target_hardware_addr: EthernetAddress([0; 6]),
                target_protocol_addr: target,
            };
            arp_frame(&request, EthernetAddress::BROADCAST, rules)
        }
        (IpAddr::V6(ours), IpAddr::V6(target)) => {
            let request = Icmpv6Repr::Ndisc(NdiscRepr::NeighborSolicit {
                target_addr: target,
                lladdr: Some(RawHardwareAddress::from_bytes(&rules.mac)),
            });
            let group = group_of(target);
            icmp_v6_frame(
                &request,
                (ours, group, HOPS_ON_LINK),
                group_mac(group),
                rules,
            )
        }
        _ => unreachable!("both addresses are of one family"),
    }
}

/// Tells all hosts on the link that an address is ours.
pub fn announcement(ours: IpAddr, rules: &Rules) -> Vec<u8> {
    match ours {
        // RFC 5227, §3: a request for the address that it comes from.
        IpAddr::V4(_) => question(ours, ours, rules),
        IpAddr::V6(ours) => {
            let flags = NdiscNeighborFlags::OVERRIDE;
            advert_frame(ours, flags, ALL_HOSTS, group_mac(ALL_HOSTS), rules)
        }
    }
}

fn is_answered(theirs: &IpAddr, ours: &IpAddr, rules: &Rules) -> bool {
    rules.own.contains(ours) && is_host(theirs, rules)
}

fn answered(asked: Asked, frame: Vec<u8>, says: Option<(IpAddr, [u8; 6])>) -> Duty {
    Duty {
        answer: Some((asked, frame)),
        says,
    }
}

/// The hardware addresses of the groups to which hosts with these addresses belong.
pub fn groups(addresses: &[IpAddr]) -> Vec<[u8; 6]> {
    let v6 = addresses.iter().filter_map(|ip| match ip {
        IpAddr::V4(_) => None,
        IpAddr::V6(ip) => Some(group_mac(group_of(*ip)).0),
    });
    let mut groups: Vec<_> = v6.collect();
    if !groups.is_empty() {
        groups.push(group_mac(ALL_HOSTS).0);
    }
    groups.sort_unstable();
    groups.dedup();
    groups
}

/// The group of those that are asked for an address (RFC 4291, §2.7.1).
fn group_of(ip: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b, c] = ip.octets();
    Ipv6Addr::new(
        0xFF02,
        0,
        0,
        0,
        0,
        1,
        0xFF00 | u16::from(a),
        u16::from_be_bytes([b, c]),
    )
}

/// The hardware address of a group (RFC 2464, §7).
fn group_mac(group: Ipv6Addr) -> EthernetAddress {
    let [.., a, b, c, d] = group.octets();
    EthernetAddress([0x33, 0x33, a, b, c, d])
}

fn unicast(address: RawHardwareAddress) -> Option<[u8; 6]> {
    let mac: [u8; 6] = address.as_bytes().try_into().ok()?;
    EthernetAddress(mac).is_unicast().then_some(mac)
}

/// A frame from us with room for a packet.
fn framed(carries: EthernetProtocol, to: EthernetAddress, bytes: usize, rules: &Rules) -> Vec<u8> {
    let mut frame = vec![0; ETHERNET_BYTES + bytes];
    let ethernet = EthernetRepr {
        src_addr: EthernetAddress(rules.mac),
        dst_addr: to,
        ethertype: carries,
    };
    ethernet.emit(&mut EthernetFrame::new_unchecked(&mut frame[..]));
    frame
}

fn arp_frame(arp: &ArpRepr, to: EthernetAddress, rules: &Rules) -> Vec<u8> {
    let mut frame = framed(EthernetProtocol::Arp, to, arp.buffer_len(), rules);
    arp.emit(&mut ArpPacket::new_unchecked(&mut frame[ETHERNET_BYTES..]));
    frame
}

fn advert_frame(
    ours: Ipv6Addr,
    flags: NdiscNeighborFlags,
    to: Ipv6Addr,
    to_mac: EthernetAddress,
    rules: &Rules,
) -> Vec<u8> {
    let advert = Icmpv6Repr::Ndisc(NdiscRepr::NeighborAdvert {
        flags,
        target_addr: ours,
        lladdr: Some(RawHardwareAddress::from_bytes(&rules.mac)),
    });
    icmp_v6_frame(&advert, (ours, to, HOPS_ON_LINK), to_mac, rules)
}

fn icmp_v6_frame(
    icmp: &Icmpv6Repr<'_>,
    (from, to, hop_limit): (Ipv6Addr, Ipv6Addr, u8),
    to_mac: EthernetAddress,
    rules: &Rules,
) -> Vec<u8> {
    let ip = Ipv6Repr {
        src_addr: from,
        dst_addr: to,
        next_header: IpProtocol::Icmpv6,
        payload_len: icmp.buffer_len(),
        hop_limit,
    };
    let mut frame = framed(
        EthernetProtocol::Ipv6,
        to_mac,
        IPV6_BYTES + icmp.buffer_len(),
        rules,
    );
    let mut packet = Ipv6Packet::new_unchecked(&mut frame[ETHERNET_BYTES..]);
    ip.emit(&mut packet);
    let mut icmp_packet = Icmpv6Packet::new_unchecked(packet.payload_mut());
    icmp.emit(
        &from,
        &to,
        &mut icmp_packet,
        &ChecksumCapabilities::default(),
    );
    frame
}

#[cfg(test)]
#[path = "control_tests.rs"]
mod tests;
