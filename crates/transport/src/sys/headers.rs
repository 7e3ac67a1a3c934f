//! The headers of one call of `recvmmsg` or `sendmmsg`.
//!
//! They are made for each call, from borrows that outlive it, and dropped with it; no pointer
//! is kept. What they point at must therefore stay where it is from when they are made until the
//! call is over.
#![allow(unsafe_code, reason = "the kernel is given pointers")]

use std::io;
use std::mem::{MaybeUninit, size_of, zeroed};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::OnceLock;

use glimmer_base::limits::PACKET_BATCH_MAX;

use super::options::switch_on;

/// Space for one value per header of a call.
pub type Each<T> = [MaybeUninit<T>; PACKET_BATCH_MAX];

/// Uninitialised space.
pub const fn room<T>() -> Each<T> {
    [const { MaybeUninit::uninit() }; PACKET_BATCH_MAX]
}

/// Bytes that the kernel writes to.
#[inline(always)]
pub fn part_to_fill(bytes: &mut [u8]) -> libc::iovec {
    libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: bytes.len(),
    }
}

/// Bytes that the kernel reads: C has no `const` for them.
#[inline(always)]
pub fn part_to_send(bytes: &[u8]) -> libc::iovec {
    libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    }
}

/// Room for control messages: two with a number in them, and one with a time or an address.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub struct Control(pub [u8; CONTROL_BYTES]);

/// Bytes of [`Control`].
pub const CONTROL_BYTES: usize = 88;

/// A header with a name and a list of parts, and without control messages.
#[inline(always)]
pub fn header(
    (name, name_bytes): (*mut libc::c_void, libc::socklen_t),
    parts: &mut [libc::iovec],
) -> libc::mmsghdr {
    // SAFETY: a `msghdr` is numbers and pointers; zeros mean that none of its parts is there.
    let mut header: libc::msghdr = unsafe { zeroed() };
    header.msg_name = name;
    header.msg_namelen = name_bytes;
    header.msg_iov = parts.as_mut_ptr();
    header.msg_iovlen = parts.len() as _;
    libc::mmsghdr {
        msg_hdr: header,
        msg_len: 0,
    }
}

/// Has what a header points at leave as datagrams of `segment_bytes` bytes each, of which the last
/// may be shorter. The control buffer has to stay where it is as long as the header is used.
pub fn tell_segment_bytes(header: &mut libc::mmsghdr, control: &mut Control, segment_bytes: u16) {
    let kind = (libc::SOL_UDP, libc::UDP_SEGMENT);
    tell(header, control, kind, segment_bytes);
}

/// Gives a header one control message, of this level and type. The control buffer has to stay where
/// it is as long as the header is used.
pub fn tell<T: Copy>(
    header: &mut libc::mmsghdr,
    control: &mut Control,
    (level, kind): (libc::c_int, libc::c_int),
    value: T,
) {
    let header = &mut header.msg_hdr;
    header.msg_control = (&raw mut *control).cast();
    // SAFETY: the control buffer is aligned for a control message and longer than one with any of
    // the values that are told.
    unsafe {
        header.msg_controllen = libc::CMSG_SPACE(size_of::<T>() as u32) as _;
        let control = libc::CMSG_FIRSTHDR(header);
        (*control).cmsg_level = level;
        (*control).cmsg_type = kind;
        (*control).cmsg_len = libc::CMSG_LEN(size_of::<T>() as u32) as _;
        libc::CMSG_DATA(control).cast::<T>().write_unaligned(value);
    }
}

/// Whether this kernel segments what is sent. One before Linux 4.18 does not know the option, and
/// would send a segment batch as one datagram.
#[inline]
pub fn can_segment(socket: BorrowedFd<'_>) -> bool {
    static CAN: OnceLock<bool> = OnceLock::new();
    *CAN.get_or_init(|| {
        let mut segment_bytes: libc::c_int = 0;
        let mut bytes = size_of::<libc::c_int>() as libc::socklen_t;
        // SAFETY: the option's value is borrowed exclusively for the call and as long as stated.
        let result = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::SOL_UDP,
                libc::UDP_SEGMENT,
                (&raw mut segment_bytes).cast(),
                &raw mut bytes,
            )
        };
        result == 0
    })
}

/// Whether the kernel refused to segment something, as it does where the route to the peer does not
/// support it.
pub fn refuses_segments(error: &io::Error) -> bool {
    let codes = [libc::EINVAL, libc::EIO, libc::EMSGSIZE, libc::ENOPROTOOPT];
    error
        .raw_os_error()
        .is_some_and(|code| codes.contains(&code))
}

/// Receives what waits, at most one thing for each header, and returns the headers that were used,
/// as the kernel left them; none is no error.
///
/// # Safety
///
/// Each header is initialised, and points at a name, a list of parts, their bytes and perhaps a
/// control buffer, all borrowed exclusively until this function returns.
pub unsafe fn receive<'a>(
    socket: BorrowedFd<'_>,
    headers: &'a mut [MaybeUninit<libc::mmsghdr>],
) -> io::Result<&'a [libc::mmsghdr]> {
    // SAFETY: as the caller promises; `headers` is as long as stated.
    let received = unsafe {
        libc::recvmmsg(
            socket.as_raw_fd(),
            headers.as_mut_ptr().cast(),
            headers.len() as libc::c_uint,
            // Of another type with musl.
            libc::MSG_DONTWAIT as _,
            std::ptr::null_mut(),
        )
    };
    let received = match usize::try_from(received) {
        Ok(received) => received,
        Err(_) => match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::WouldBlock => 0,
            error => return Err(error),
        },
    };
    // SAFETY: all headers were initialised, and no more were used than there are.
    Ok(unsafe { headers[..received].assume_init_ref() })
}

/// Sends what the headers point at. Returns how many of them, from the front, were taken; an error
/// concerns the first.
///
/// # Safety
///
/// Each header is initialised, and points at a name, a list of parts, their bytes and perhaps a
/// control buffer, all borrowed until this function returns.
pub unsafe fn send(
    socket: BorrowedFd<'_>,
    headers: &mut [MaybeUninit<libc::mmsghdr>],
) -> io::Result<usize> {
    // SAFETY: as the caller promises; the kernel writes to nothing but the headers' `msg_len`, and
    // `headers` is as long as stated.
    let sent = unsafe {
        libc::sendmmsg(
            socket.as_raw_fd(),
            headers.as_mut_ptr().cast(),
            headers.len() as libc::c_uint,
            (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) as _,
        )
    };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Has the kernel tell with each datagram how many it has dropped on the socket, once it has
/// dropped any: because the socket's receive buffer was full, or because a checksum was wrong.
pub fn tell_drops(socket: BorrowedFd<'_>) -> io::Result<()> {
    switch_on(socket, libc::SOL_SOCKET, libc::SO_RXQ_OVFL)
}

/// How many datagrams the kernel had dropped on the socket when what was received arrived, if any.
///
/// # Safety
///
/// As for [`number_told`].
#[inline]
pub unsafe fn drops_told(header: &libc::msghdr) -> Option<u32> {
    // SAFETY: as the caller promises.
    unsafe { number_told(header, libc::SOL_SOCKET, libc::SO_RXQ_OVFL) }
}

/// The number in the control message of this kind, if there is one.
///
/// # Safety
///
/// The header's control buffer is initialised as far as its length says.
#[inline]
pub unsafe fn number_told(
    header: &libc::msghdr,
    level: libc::c_int,
    kind: libc::c_int,
) -> Option<u32> {
    // SAFETY: as the caller promises; the messages that are asked for hold 32 bits.
    unsafe { told(header, (level, kind)) }
}

/// The value in the control message of this level and type, if there is one.
///
/// # Safety
///
/// The header's control buffer is initialised as far as its length says, and a message of this kind
/// holds such a value.
#[inline]
pub unsafe fn told<T: Copy>(
    header: &libc::msghdr,
    wanted: (libc::c_int, libc::c_int),
) -> Option<T> {
    // SAFETY: as the caller promises; the macros' functions stay within the control buffer.
    unsafe {
        let mut control = libc::CMSG_FIRSTHDR(header);
        while !control.is_null() {
            if ((*control).cmsg_level, (*control).cmsg_type) == wanted {
                return Some(libc::CMSG_DATA(control).cast::<T>().read_unaligned());
            }
            control = libc::CMSG_NXTHDR(header, control);
        }
    }
    None
}

/// Has the kernel tell when it received what a socket receives ([`arrival_told`]).
pub fn tell_arrivals(socket: BorrowedFd<'_>) -> io::Result<()> {
    switch_on(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS)
}

/// When the kernel received this, in nanoseconds of `CLOCK_REALTIME`, if it tells.
///
/// # Safety
///
/// The header's control buffer is initialised as far as its length says.
pub unsafe fn arrival_told(header: &libc::msghdr) -> Option<u64> {
    let kind = (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS);
    // SAFETY: as the caller promises; a message of this kind holds a `timespec`.
    let time: libc::timespec = unsafe { told(header, kind) }?;
    Some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Whether what was received fitted its parts.
pub fn is_whole(header: &libc::mmsghdr) -> bool {
    header.msg_hdr.msg_flags & libc::MSG_TRUNC == 0
}
