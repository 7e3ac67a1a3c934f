//! The checksums of a request. A packet that was damaged on its way would be dropped by the kernel,
//! so it must not be answered: its key may be another one.
//!
//! A datagram over IPv4 may have no checksum. Between two hosts on one machine, the kernel may
//! leave the datagram's checksum to hardware that does not exist: the field then has the sum of the
//! pseudo-header alone. Such a datagram has not been damaged. It is answered where the reply leaves
//! with a checksum of its own.

use super::interface::Interface;
use crate::sums;

/// Offset of the checksum in UDP's header.
const CHECKSUM_AT: usize = 6;
const COMPLETE: u32 = 0xFFFF;
const UDP: u8 = 17;

/// Whether the checksums of a packet without padding hold: IP's header, and UDP's datagram.
pub(super) fn hold(interface: &Interface, ip: &[u8], datagram: &[u8]) -> bool {
    let is_v4 = ip[0] >> 4 == 4;
    if is_v4 && sums::of(ip) != COMPLETE {
        return false;
    }
    let field = [datagram[CHECKSUM_AT], datagram[CHECKSUM_AT + 1]];
    if field == [0, 0] {
        return is_v4;
    }
    let addresses = if is_v4 { &ip[12..] } else { &ip[8..] };
    let udp_bytes = [datagram[4], datagram[5]];
    let rest = sums::of(&[0, UDP, udp_bytes[0], udp_bytes[1]]);
    let pseudo = sums::add(sums::of(addresses), rest);
    let is_partial = u32::from(u16::from_ne_bytes(field)) == pseudo;
    (is_partial && interface.partial_checksums) || sums::add(pseudo, sums::of(datagram)) == COMPLETE
}
