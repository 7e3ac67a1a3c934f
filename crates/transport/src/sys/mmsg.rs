//! Many datagrams per system call: `recvmmsg` and `sendmmsg`.
//!
//! Both take arrays of headers that point at names, buffers and lengths. The headers are made anew for each call, from borrows that outlive it, and
//! dropped with it; no pointer is kept.
#![allow(unsafe_code, reason = "the kernel is given pointers")]

use std::io;
use std::mem::{MaybeUninit, size_of, size_of_val, zeroed};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, BorrowedFd};

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

    /// Where a name is read from.
    pub(super) fn as_name(&self) -> (*const libc::c_void, libc::socklen_t) {
        ((&raw const self.storage).cast(), self.bytes)
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
    let mut buffers: [MaybeUninit<libc::iovec>; DATAGRAMS_MAX] =
        [const { MaybeUninit::uninit() }; DATAGRAMS_MAX];
    let mut headers: [MaybeUninit<libc::mmsghdr>; DATAGRAMS_MAX] =
        [const { MaybeUninit::uninit() }; DATAGRAMS_MAX];
    for index in 0..count {
        let buffer = buffers[index].write(libc::iovec {
            iov_base: slots[index].as_mut_ptr().cast(),
            iov_len: slots[index].len(),
        });
        // SAFETY: a `msghdr` is numbers and pointers; zeros mean that none of its parts is there.
        let mut header: libc::msghdr = unsafe { zeroed() };
        header.msg_name = (&raw mut peers[index].storage).cast();
        header.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
        header.msg_iov = buffer;
        header.msg_iovlen = 1;
        headers[index].write(libc::mmsghdr {
            msg_hdr: header,
            msg_len: 0,
        });
    }
    // SAFETY: the first `count` headers are initialised, and each points at a name, a buffer list of one and a buffer that are borrowed exclusively
    // until this function returns.
    let received = unsafe {
        libc::recvmmsg(
            socket.as_raw_fd(),
            headers.as_mut_ptr().cast(),
            count as libc::c_uint,
            libc::MSG_DONTWAIT,
            std::ptr::null_mut(),
        )
    };
    if received < 0 {
        return match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            error => Err(error),
        };
    }
    let received = received as usize;
    for index in 0..received {
        // SAFETY: all of the first `count` headers were initialised, and `received` is at most `count`.
        let header = unsafe { headers[index].assume_init_ref() };
        peers[index].bytes = header.msg_hdr.msg_namelen;
        let is_whole = header.msg_hdr.msg_flags & libc::MSG_TRUNC == 0;
        lengths[index] = if is_whole { header.msg_len as usize } else { 0 };
    }
    Ok(received)
}

/// Sends up to [`DATAGRAMS_MAX`] datagrams. Returns how many of them, from the front, were taken; an error concerns the first.
pub fn send(socket: BorrowedFd<'_>, datagrams: &[Outgoing<'_>]) -> io::Result<usize> {
    let count = datagrams.len();
    assert!(count <= DATAGRAMS_MAX);
    let mut parts: [[MaybeUninit<libc::iovec>; 2]; DATAGRAMS_MAX] =
        [const { [const { MaybeUninit::uninit() }; 2] }; DATAGRAMS_MAX];
    let mut headers: [MaybeUninit<libc::mmsghdr>; DATAGRAMS_MAX] =
        [const { MaybeUninit::uninit() }; DATAGRAMS_MAX];
    for (index, datagram) in datagrams.iter().enumerate() {
        // The kernel reads what these pointers, which C has no `const` for, point at.
        parts[index][0].write(libc::iovec {
            iov_base: datagram.header.as_ptr().cast_mut().cast(),
            iov_len: datagram.header.len(),
        });
        parts[index][1].write(libc::iovec {
            iov_base: datagram.payload.as_ptr().cast_mut().cast(),
            iov_len: datagram.payload.len(),
        });
        // SAFETY: a `msghdr` is numbers and pointers; zeros mean that none of its parts is there.
        let mut header: libc::msghdr = unsafe { zeroed() };
        header.msg_name = (&raw const datagram.peer.storage).cast_mut().cast();
        header.msg_namelen = datagram.peer.bytes;
        header.msg_iov = parts[index].as_mut_ptr().cast();
        header.msg_iovlen = 2;
        headers[index].write(libc::mmsghdr {
            msg_hdr: header,
            msg_len: 0,
        });
    }
    // SAFETY: the first `count` headers are initialised, and each points at a name, a list of two parts and their bytes, all of which are borrowed until
    // this function returns; the kernel writes to nothing but the headers' `msg_len`.
    let sent = unsafe {
        libc::sendmmsg(
            socket.as_raw_fd(),
            headers.as_mut_ptr().cast(),
            count as libc::c_uint,
            libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
        )
    };
    if sent < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(sent as usize)
}
