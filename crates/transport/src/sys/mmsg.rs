//! Many datagrams per system call: `recvmmsg` and `sendmmsg`.
#![allow(unsafe_code, reason = "the kernel is given pointers")]

use std::io;
use std::mem::{size_of, size_of_val, zeroed};
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

use super::headers;

/// Datagrams per system call.
pub const DATAGRAMS_MAX: usize = 32;

/// Where a datagram came from, as the kernel wrote it.
#[derive(Clone, Copy)]
pub struct Peer {
    storage: libc::sockaddr_storage,
    bytes: libc::socklen_t,
}

impl Peer {
    /// Nobody yet.
    pub fn nobody() -> Peer {
        Peer {
            // SAFETY: a `sockaddr_storage` is numbers throughout; zeros are the address family AF_UNSPEC.
            storage: unsafe { zeroed() },
            bytes: 0,
        }
    }

    /// The address as the kernel writes it: equal for equal peers.
    pub fn as_bytes(&self) -> &[u8] {
        let bytes = (self.bytes as usize).min(size_of::<libc::sockaddr_storage>());
        // SAFETY: the storage is numbers without padding, of which these are the first bytes.
        unsafe { std::slice::from_raw_parts((&raw const self.storage).cast(), bytes) }
    }

    /// Where a name is read from. C has no `const` for it.
    pub(super) fn as_name(&self) -> (*mut libc::c_void, libc::socklen_t) {
        ((&raw const self.storage).cast_mut().cast(), self.bytes)
    }

    /// Where a name may be written to.
    pub(super) fn as_mut_name(&mut self) -> (*mut libc::c_void, libc::socklen_t) {
        let bytes = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
        ((&raw mut self.storage).cast(), bytes)
    }

    /// Says how long the name is that was written.
    pub(super) fn set_name_bytes(&mut self, bytes: libc::socklen_t) {
        self.bytes = bytes;
    }
}

impl From<SocketAddr> for Peer {
    fn from(address: SocketAddr) -> Peer {
        let mut peer = Peer::nobody();
        match address {
            SocketAddr::V4(address) => {
                let name = libc::sockaddr_in {
                    sin_family: libc::AF_INET as libc::sa_family_t,
                    sin_port: address.port().to_be(),
                    sin_addr: libc::in_addr {
                        s_addr: u32::from_ne_bytes(address.ip().octets()),
                    },
                    sin_zero: [0; 8],
                };
                peer.bytes = size_of_val(&name) as libc::socklen_t;
                // SAFETY: a `sockaddr_storage` is as large as any address and aligned for it.
                unsafe {
                    (&raw mut peer.storage)
                        .cast::<libc::sockaddr_in>()
                        .write(name)
                };
            }
            SocketAddr::V6(address) => {
                let name = libc::sockaddr_in6 {
                    sin6_family: libc::AF_INET6 as libc::sa_family_t,
                    sin6_port: address.port().to_be(),
                    sin6_flowinfo: 0,
                    sin6_addr: libc::in6_addr {
                        s6_addr: address.ip().octets(),
                    },
                    sin6_scope_id: address.scope_id(),
                };
                peer.bytes = size_of_val(&name) as libc::socklen_t;
                // SAFETY: as above.
                unsafe {
                    (&raw mut peer.storage)
                        .cast::<libc::sockaddr_in6>()
                        .write(name)
                };
            }
        }
        peer
    }
}

/// A datagram to be sent: two parts, one behind the other.
#[derive(Clone, Copy)]
pub struct Outgoing<'a> {
    /// Whom it goes to.
    pub peer: &'a Peer,
    /// Its beginning.
    pub header: [u8; 8],
    /// Its rest.
    pub payload: &'a [u8],
}

/// Receives up to [`DATAGRAMS_MAX`] datagrams that wait, each into one of `slots`; notes their senders and lengths. A datagram that is longer than
/// its slot has its length noted as 0. Returns how many there were; none is no error.
pub fn receive(
    socket: BorrowedFd<'_>,
    slots: &mut [&mut [u8]],
    peers: &mut [Peer],
    lengths: &mut [usize],
) -> io::Result<usize> {
    let count = slots.len();
    assert!(count <= DATAGRAMS_MAX && count == peers.len() && count == lengths.len());
    let mut parts = headers::room::<[libc::iovec; 1]>();
    let mut headers = headers::room();
    for (index, slot) in slots.iter_mut().enumerate() {
        let parts = parts[index].write([headers::part_to_fill(slot)]);
        headers[index].write(headers::header(peers[index].as_mut_name(), parts));
    }
    // SAFETY: the first `count` headers are initialised, and each points at a name, a buffer list of one and a buffer that are borrowed exclusively
    // until this function returns.
    let received = unsafe { headers::receive(socket, &mut headers[..count]) }?;
    for (index, header) in received.iter().enumerate() {
        peers[index].set_name_bytes(header.msg_hdr.msg_namelen);
        let bytes = header.msg_len as usize;
        lengths[index] = if headers::is_whole(header) { bytes } else { 0 };
    }
    Ok(received.len())
}

/// Sends up to [`DATAGRAMS_MAX`] datagrams. Returns how many of them, from the front, were taken; an error concerns the first.
pub fn send(socket: BorrowedFd<'_>, datagrams: &[Outgoing<'_>]) -> io::Result<usize> {
    let count = datagrams.len();
    assert!(count <= DATAGRAMS_MAX);
    let mut parts = headers::room::<[libc::iovec; 2]>();
    let mut headers = headers::room();
    for (index, datagram) in datagrams.iter().enumerate() {
        let parts = parts[index].write([
            headers::part_to_send(&datagram.header),
            headers::part_to_send(datagram.payload),
        ]);
        headers[index].write(headers::header(datagram.peer.as_name(), parts));
    }
    // SAFETY: the first `count` headers are initialised, and each points at a name, a list of two parts and their bytes, all of which are borrowed until
    // this function returns.
    unsafe { headers::send(socket, &mut headers[..count]) }
}
