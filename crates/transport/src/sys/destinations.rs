//! To which address of ours a datagram came by a socket that has several, and from which it leaves.
#![allow(unsafe_code, reason = "the kernel is given pointers")]

use std::io;
use std::mem::{MaybeUninit, zeroed};
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::BorrowedFd;

use super::headers::{self, CONTROL_BYTES, Control};
use super::name::Name;
use super::options::switch_on;
use super::udp::receive_noting;
use crate::packet::{Message, RxBatch};

/// What a control message of either family is: its level and type.
const V4: (libc::c_int, libc::c_int) = (libc::IPPROTO_IP, libc::IP_PKTINFO);
const V6: (libc::c_int, libc::c_int) = (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO);

/// Has the kernel tell to which of our addresses datagrams come to a socket of this family.
pub fn tell(socket: BorrowedFd<'_>, is_v4: bool) -> io::Result<()> {
    match is_v4 {
        true => switch_on(socket, libc::IPPROTO_IP, libc::IP_PKTINFO),
        false => switch_on(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO),
    }
}

/// As [`super::udp::receive`], and `note` is given the sender of each, and the address of ours that
/// it came to if the kernel tells. That has no port, and the scope of a link-local one is the
/// interface.
pub fn receive(
    socket: BorrowedFd<'_>,
    batch: &mut RxBatch,
    mut note: impl FnMut(SocketAddr, Option<SocketAddr>),
) -> io::Result<()> {
    receive_noting(socket, batch, |peer, header| {
        // SAFETY: the kernel has filled the header in, and the control buffer as far as it says.
        // Messages of these kinds hold such structures.
        let (v4, v6) = unsafe {
            let v4: Option<libc::in_pktinfo> = headers::told(header, V4);
            let v6: Option<libc::in6_pktinfo> = headers::told(header, V6);
            (v4, v6)
        };
        let v4 = v4.map(|told| {
            let ip = told.ipi_spec_dst.s_addr.to_ne_bytes();
            SocketAddrV4::new(ip.into(), 0).into()
        });
        let v6 = v6.map(|told| {
            let ip = Ipv6Addr::from(told.ipi6_addr.s6_addr);
            let scope = match ip.is_unicast_link_local() {
                true => told.ipi6_ifindex,
                false => 0,
            };
            SocketAddrV6::new(ip, 0, 0, scope).into()
        });
        note(peer, v4.or(v6));
    })
}

/// Sends one datagram from this of our addresses, whichever the route to its peer would choose. Its
/// port does not count, and the scope of a link-local one is the interface.
pub fn send_from(
    socket: BorrowedFd<'_>,
    message: &Message<'_>,
    source: SocketAddr,
) -> io::Result<()> {
    let mut parts = [
        headers::part_to_send(message.header()),
        headers::part_to_send(message.payload),
    ];
    let (mut name, bytes) = Name::of(message.to);
    let mut control = Control([0; CONTROL_BYTES]);
    let mut header = headers::header(((&raw mut name).cast(), bytes), &mut parts);
    match source {
        SocketAddr::V4(source) => {
            // SAFETY: the structure is numbers, for which zeros are valid.
            let mut told: libc::in_pktinfo = unsafe { zeroed() };
            told.ipi_spec_dst.s_addr = u32::from_ne_bytes(source.ip().octets());
            headers::tell(&mut header, &mut control, V4, told);
        }
        SocketAddr::V6(source) => {
            // SAFETY: as above.
            let mut told: libc::in6_pktinfo = unsafe { zeroed() };
            told.ipi6_addr.s6_addr = source.ip().octets();
            told.ipi6_ifindex = source.scope_id();
            headers::tell(&mut header, &mut control, V6, told);
        }
    }
    // SAFETY: the header is initialised, and points at a name, a list of parts, their bytes and a
    // control buffer, all of which are borrowed until this function returns.
    unsafe { headers::send(socket, &mut [MaybeUninit::new(header)]) }.map(drop)
}
