//! From a datagram to the bytes of a frame.

use std::net::{IpAddr, SocketAddr};

use super::parse::{Rules, end_of};
use super::{
    ETHERNET_BYTES, ETHERTYPE_IPV4, ETHERTYPE_IPV6, Ends, IPV4_BYTES, IPV6_BYTES, PROTOCOL_UDP,
    UDP_BYTES, checksum, header_bytes,
};

/// Routers a datagram may pass, as the kernel's own.
const HOPS: u8 = 64;
/// "Do not fragment", in the word with the fragment's offset.
const WHOLE: [u8; 2] = [0x40, 0];

/// Writes the headers of a datagram to the peer over the first bytes of a frame, whose payload of
/// `payload_bytes` bytes follows them already, and computes the checksums.
///
/// # Panics
///
/// If the frame is shorter, or longer than a datagram may be.
#[inline]
pub fn finish(frame: &mut [u8], ends: &Ends, payload_bytes: usize) {
    finish_by(frame, ends, payload_bytes, Sums::Computed);
}

/// Who computes the checksum of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sums {
    /// It is computed here.
    Computed,
    /// Hardware does, and finds the sum of the addresses and the length in its place.
    LeftToHardware,
}

/// The same, with the checksum of the datagram computed here or by hardware.
///
/// # Panics
///
/// If the frame is shorter, or longer than a datagram may be.
#[inline]
pub fn finish_by(frame: &mut [u8], ends: &Ends, payload_bytes: usize, sums: Sums) {
    let (ours, theirs) = (ends.ours.ip(), ends.theirs.ip());
    let udp_bytes = u16::try_from(UDP_BYTES + payload_bytes).expect("a datagram is shorter");
    frame[..6].copy_from_slice(&ends.their_mac);
    frame[6..12].copy_from_slice(&ends.our_mac);
    let ip_bytes = match (ours, theirs) {
        (IpAddr::V4(ours), IpAddr::V4(theirs)) => {
            frame[12..14].copy_from_slice(&ETHERTYPE_IPV4.to_be_bytes());
            let header = &mut frame[ETHERNET_BYTES..][..IPV4_BYTES];
            header.fill(0);
            header[0] = 0x45;
            header[2..4].copy_from_slice(&(IPV4_BYTES as u16 + udp_bytes).to_be_bytes());
            header[6..8].copy_from_slice(&WHOLE);
            header[8] = HOPS;
            header[9] = PROTOCOL_UDP;
            header[12..16].copy_from_slice(&ours.octets());
            header[16..].copy_from_slice(&theirs.octets());
            let sum = checksum::of(checksum::sum(header));
            header[10..12].copy_from_slice(&sum);
            IPV4_BYTES
        }
        (IpAddr::V6(ours), IpAddr::V6(theirs)) => {
            frame[12..14].copy_from_slice(&ETHERTYPE_IPV6.to_be_bytes());
            let header = &mut frame[ETHERNET_BYTES..][..IPV6_BYTES];
            header[..4].copy_from_slice(&[0x60, 0, 0, 0]);
            header[4..6].copy_from_slice(&udp_bytes.to_be_bytes());
            header[6] = PROTOCOL_UDP;
            header[7] = HOPS;
            header[8..24].copy_from_slice(&ours.octets());
            header[24..].copy_from_slice(&theirs.octets());
            IPV6_BYTES
        }
        _ => unreachable!("both ends of a datagram are of one family"),
    };
    let udp = &mut frame[ETHERNET_BYTES + ip_bytes..][..UDP_BYTES + payload_bytes];
    udp[..2].copy_from_slice(&ends.ours.port().to_be_bytes());
    udp[2..4].copy_from_slice(&ends.theirs.port().to_be_bytes());
    udp[4..6].copy_from_slice(&udp_bytes.to_be_bytes());
    udp[6..8].fill(0);
    let pseudo = checksum::pseudo(&ours, &theirs, udp_bytes);
    if sums == Sums::LeftToHardware {
        udp[6..8].copy_from_slice(&checksum::folded(pseudo));
        return;
    }
    let sum = pseudo + checksum::sum(udp);
    // A checksum of zero says that there is none.
    let sum = match checksum::of(sum) {
        [0, 0] => [0xFF; 2],
        sum => sum,
    };
    udp[6..8].copy_from_slice(&sum);
}

/// Lets routers fragment a packet that [`finish`] has written, if it is one of IPv4: over IPv6, no
/// router does. The fragments of several packets are told apart by their identification, which is
/// not to be used again soon.
///
/// # Panics
///
/// If the frame is shorter than its headers.
#[cold]
pub fn allow_fragments(frame: &mut [u8], identification: u16) {
    if frame[12..14] != ETHERTYPE_IPV4.to_be_bytes() {
        return;
    }
    let header = &mut frame[ETHERNET_BYTES..][..IPV4_BYTES];
    header[4..6].copy_from_slice(&identification.to_be_bytes());
    header[6..8].fill(0);
    header[10..12].fill(0);
    let sum = checksum::of(checksum::sum(header));
    header[10..12].copy_from_slice(&sum);
}

/// The ends of a request from this peer, whose headers are still before its payload.
///
/// # Panics
///
/// If the frame is shorter than the headers.
#[inline]
pub fn ends_of(frame: &[u8], peer: SocketAddr, our_port: u16, rules: &Rules) -> Ends {
    let mac = |at: usize| frame[at..at + 6].try_into().expect("six bytes");
    let ours: IpAddr = match peer.ip() {
        IpAddr::V4(_) => <[u8; 4]>::try_from(&frame[30..34])
            .expect("four bytes")
            .into(),
        IpAddr::V6(_) => <[u8; 16]>::try_from(&frame[38..54])
            .expect("16 bytes")
            .into(),
    };
    Ends {
        our_mac: mac(0),
        their_mac: mac(6),
        ours: end_of(ours, our_port, rules),
        theirs: peer,
    }
}

/// Writes a datagram to the peer into a frame, and returns the frame's length; `None` if it does
/// not fit.
#[inline]
pub fn fill(frame: &mut [u8], ends: &Ends, header: &[u8], payload: &[u8]) -> Option<usize> {
    fill_by(frame, ends, (header, payload), Sums::Computed)
}

/// The same with the datagram's two parts, and with its checksum computed here or by hardware.
#[inline]
pub fn fill_by(
    frame: &mut [u8],
    ends: &Ends,
    (header, payload): (&[u8], &[u8]),
    sums: Sums,
) -> Option<usize> {
    let start = header_bytes(ends.theirs.ip());
    let payload_bytes = header.len() + payload.len();
    let frame = frame.get_mut(..start + payload_bytes)?;
    frame[start..start + header.len()].copy_from_slice(header);
    frame[start + header.len()..].copy_from_slice(payload);
    finish_by(frame, ends, payload_bytes, sums);
    Some(start + payload_bytes)
}
