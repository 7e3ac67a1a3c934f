//! From the bytes of a frame to a datagram.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::ops::Range;

use glimmer_base::limits::PATH_BYTES_MAX;

use super::{
    ETHERNET_BYTES, ETHERTYPE_IPV4, ETHERTYPE_IPV6, Ends, IPV4_BYTES, IPV6_BYTES, PROTOCOL_UDP,
    Reason, UDP_BYTES, checksum,
};

/// What is ours, and who can be answered.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The interface's hardware address.
    pub mac: [u8; 6],
    /// The interface's number, which is the scope of link-local addresses.
    pub interface: u32,
    /// The addresses that are served.
    pub addresses: Vec<IpAddr>,
    /// All our addresses: what claims to come from one of them lies. Where the kernel has other
    /// interfaces, theirs are among them, as the kernel would deliver a reply within the host.
    pub own: Vec<IpAddr>,
    /// Our port.
    pub port: u16,
    /// By which all hosts on our links are addressed.
    pub all_hosts: Vec<Ipv4Addr>,
    /// Our addresses, each with the length of the prefix that is on its link.
    pub links: Vec<(IpAddr, u8)>,
    /// Whether a checksum may be left to hardware: between two interfaces of one machine there is
    /// none to compute it, and nothing that could change a frame.
    pub accepts_partial: bool,
}

impl Rules {
    /// Whether a frame of this length reaches a peer in one piece: it is on one of our links, or
    /// every path takes such a packet.
    #[inline]
    pub fn fits_path(&self, peer: &IpAddr, frame_bytes: usize) -> bool {
        frame_bytes <= ETHERNET_BYTES + PATH_BYTES_MAX
            || self.links.iter().any(|link| is_within(peer, link))
    }
}

/// Whether an address is in a network.
pub fn is_within(ip: &IpAddr, (network, bits): &(IpAddr, u8)) -> bool {
    match (ip, network) {
        (IpAddr::V4(ip), IpAddr::V4(network)) => {
            let rest = 32 - u32::from(*bits);
            (ip.to_bits() ^ network.to_bits())
                .checked_shr(rest)
                .unwrap_or(0)
                == 0
        }
        (IpAddr::V6(ip), IpAddr::V6(network)) => {
            let rest = 128 - u32::from(*bits);
            (ip.to_bits() ^ network.to_bits())
                .checked_shr(rest)
                .unwrap_or(0)
                == 0
        }
        _ => false,
    }
}

/// What hardware has found out about the checksum of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SumSeen {
    /// Nothing that counts.
    Unknown,
    /// It may have been left to hardware that the datagram has not passed, as nothing between here
    /// and its sender could change it.
    Partial,
    /// It is right.
    Right,
}

/// The addresses by which all hosts on links are reached.
pub fn all_hosts(addresses: &[(IpAddr, u8)]) -> Vec<Ipv4Addr> {
    let all_of = |&(ip, bits): &(IpAddr, u8)| {
        let IpAddr::V4(ip) = ip else { return None };
        let rest = u32::MAX.checked_shr(bits.into()).unwrap_or(0);
        (bits < 31).then(|| (ip.to_bits() | rest).into())
    };
    addresses.iter().filter_map(all_of).collect()
}

/// The big-endian number at a place.
#[inline]
fn number(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

#[inline]
fn array<const BYTES: usize>(bytes: &[u8], at: usize) -> [u8; BYTES] {
    let mut array = [0; BYTES];
    array.copy_from_slice(&bytes[at..at + BYTES]);
    array
}

/// The ends of the datagram in a frame, and where its payload lies.
///
/// # Errors
///
/// Why it is not answered.
#[inline]
pub fn parse(frame: &[u8], rules: &Rules) -> Result<(Ends, Range<usize>), Reason> {
    let is_ours =
        |ip: &IpAddr, port| (port == rules.port && rules.addresses.contains(ip)).then_some(());
    let seen = match rules.accepts_partial {
        true => SumSeen::Partial,
        false => SumSeen::Unknown,
    };
    let ((), ends, payload) = parse_for(frame, rules, seen, is_ours)?;
    Ok((ends, payload))
}

/// The same where several devices share the frames: `owner` says who serves an address and a port,
/// and decides instead of the rules' own. `sum`: what hardware has found out about the checksum of
/// the datagram, which decides instead of [`Rules::accepts_partial`].
///
/// # Errors
///
/// Why it is not answered.
#[inline]
pub fn parse_for<T>(
    frame: &[u8],
    rules: &Rules,
    sum: SumSeen,
    owner: impl FnOnce(&IpAddr, u16) -> Option<T>,
) -> Result<(T, Ends, Range<usize>), Reason> {
    if frame.len() < ETHERNET_BYTES + IPV4_BYTES + UDP_BYTES {
        return Err(Reason::Short);
    }
    let (our_mac, their_mac): ([u8; 6], [u8; 6]) = (array(frame, 0), array(frame, 6));
    if our_mac != rules.mac {
        return Err(Reason::NotOurs);
    }
    let (source, destination, ip_bytes, rest) = match number(frame, 12) {
        ETHERTYPE_IPV4 => ipv4(&frame[ETHERNET_BYTES..])?,
        ETHERTYPE_IPV6 => ipv6(&frame[ETHERNET_BYTES..])?,
        _ => return Err(Reason::NotOurs),
    };
    let start = ETHERNET_BYTES + ip_bytes;
    let rest = (frame.get(start..start + rest)).filter(|rest| rest.len() >= UDP_BYTES);
    let rest = rest.ok_or(Reason::Length)?;
    // As for the kernel, frame and packet may go on behind what they carry.
    let udp_bytes = usize::from(number(rest, 4));
    let udp = rest.get(..udp_bytes).filter(|_| udp_bytes >= UDP_BYTES);
    let udp = udp.ok_or(Reason::Length)?;
    check_sum(udp, &source, &destination, sum)?;
    let port = number(udp, 2);
    let owner = owner(&destination, port).ok_or(Reason::Address)?;
    let from = number(udp, 0);
    if from == 0 || their_mac[0] & 1 != 0 || !is_host(&source, rules) {
        return Err(Reason::Source);
    }
    let ends = Ends {
        our_mac,
        their_mac,
        ours: end_of(destination, port, rules),
        theirs: end_of(source, from, rules),
    };
    Ok((owner, ends, start + UDP_BYTES..start + udp_bytes))
}

/// Source, destination, bytes of the header, and of what follows it.
type Packet = (IpAddr, IpAddr, usize, usize);

fn ipv4(packet: &[u8]) -> Result<Packet, Reason> {
    let header = &packet[..IPV4_BYTES];
    let is_fragment = number(header, 6) & 0x3FFF != 0;
    if header[0] != 0x45 || is_fragment || header[9] != PROTOCOL_UDP {
        return Err(Reason::NotOurs);
    }
    if !checksum::holds(checksum::sum(header)) {
        return Err(Reason::Checksum);
    }
    let bytes = usize::from(number(header, 2));
    let rest = bytes.checked_sub(IPV4_BYTES).ok_or(Reason::Length)?;
    let source: [u8; 4] = array(header, 12);
    let destination: [u8; 4] = array(header, 16);
    Ok((source.into(), destination.into(), IPV4_BYTES, rest))
}

fn ipv6(packet: &[u8]) -> Result<Packet, Reason> {
    let header = packet.get(..IPV6_BYTES).ok_or(Reason::Short)?;
    if header[0] >> 4 != 6 || header[6] != PROTOCOL_UDP {
        return Err(Reason::NotOurs);
    }
    let source: [u8; 16] = array(header, 8);
    let destination: [u8; 16] = array(header, 24);
    let rest = usize::from(number(header, 4));
    Ok((source.into(), destination.into(), IPV6_BYTES, rest))
}

/// Checks the checksum of a datagram: IPv4 may have none.
#[inline]
fn check_sum(udp: &[u8], from: &IpAddr, to: &IpAddr, seen: SumSeen) -> Result<(), Reason> {
    let given = [udp[6], udp[7]];
    if given == [0, 0] {
        return if from.is_ipv4() {
            Ok(())
        } else {
            Err(Reason::Checksum)
        };
    }
    if seen == SumSeen::Right {
        return Ok(());
    }
    let pseudo = checksum::pseudo(from, to, udp.len() as u16);
    let is_right = match given {
        _ if seen == SumSeen::Partial && given == checksum::folded(pseudo) => true,
        _ => checksum::holds(pseudo + checksum::sum(udp)),
    };
    if is_right {
        Ok(())
    } else {
        Err(Reason::Checksum)
    }
}

/// Whether an address is that of one host, and not ours.
pub fn is_host(ip: &IpAddr, rules: &Rules) -> bool {
    let is_of_all = matches!(ip, IpAddr::V4(ip) if rules.all_hosts.contains(ip));
    is_one_host(ip) && !is_of_all && !rules.own.contains(ip)
}

/// Whether an address can be that of one host on a link. The kernel takes the same ones: addresses
/// that begin with 0, and those from 240.0.0.0 on, are ordinary ones for it (Linux 5.3).
pub fn is_one_host(ip: &IpAddr) -> bool {
    let is_special = match ip {
        IpAddr::V4(ip) => ip.is_broadcast(),
        IpAddr::V6(ip) => is_mapped(ip),
    };
    !is_special && !ip.is_multicast() && !ip.is_unspecified() && !ip.is_loopback()
}

/// An IPv4 address within IPv6 is never on a wire.
fn is_mapped(ip: &Ipv6Addr) -> bool {
    ip.to_ipv4_mapped().is_some()
}

/// An address and a port. The scope of a link-local address is the interface.
pub(super) fn end_of(ip: IpAddr, port: u16, rules: &Rules) -> SocketAddr {
    match ip {
        IpAddr::V4(ip) => SocketAddrV4::new(ip, port).into(),
        IpAddr::V6(ip) => {
            let scope = if ip.is_unicast_link_local() {
                rules.interface
            } else {
                0
            };
            SocketAddrV6::new(ip, port, 0, scope).into()
        }
    }
}
