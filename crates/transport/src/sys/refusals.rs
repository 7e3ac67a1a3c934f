//! What the kernel reports of datagrams that could not be delivered: the error queue of a socket.
#![allow(unsafe_code, reason = "the kernel is given pointers")]

use std::io;
use std::mem::{MaybeUninit, size_of, zeroed};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::headers::{self, Control};
use super::name::{self, NAME_BYTES, Name};
use super::options::switch_on;

/// Has the kernel report errors for a socket that is not connected, with the address that each
/// concerns.
pub fn report(socket: BorrowedFd<'_>, is_ipv4: bool) -> io::Result<()> {
    let (level, option) = match is_ipv4 {
        true => (libc::SOL_IP, libc::IP_RECVERR),
        false => (libc::SOL_IPV6, libc::IPV6_RECVERR),
    };
    switch_on(socket, level, option)
}

/// One entry of the error queue.
pub struct Report {
    /// Where the datagram was sent to.
    pub peer: SocketAddr,
    /// The beginning of the datagram, as far as the network returned it.
    pub bytes: usize,
    /// Whether no socket listens at the port.
    pub is_refusal: bool,
}

/// Takes the oldest entry out of the error queue; `None` if it is empty.
pub fn take(socket: BorrowedFd<'_>, quoted: &mut [u8]) -> Option<Report> {
    let mut name = MaybeUninit::<Name>::uninit();
    let mut parts = [headers::part_to_fill(quoted)];
    let mut control = Control([0; headers::CONTROL_BYTES]);
    let mut header = headers::header((name.as_mut_ptr().cast(), NAME_BYTES), &mut parts).msg_hdr;
    header.msg_control = (&raw mut control).cast();
    header.msg_controllen = size_of::<Control>() as _;
    let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
    // SAFETY: name, parts, bytes and control buffer are borrowed exclusively for the call and as
    // long as the header says.
    let bytes = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, flags) };
    let bytes = usize::try_from(bytes).ok()?;
    // SAFETY: the kernel filled the header in, and the control buffer is still there.
    let is_refusal = unsafe { says_refused(&header) };
    Some(Report {
        // SAFETY: the kernel wrote the name as far as the header says, but no more than its room.
        peer: unsafe { name::address(&name, header.msg_namelen) },
        bytes,
        is_refusal,
    })
}

/// Whether an entry says that no socket listens at the port.
///
/// # Safety
///
/// The kernel filled the header in, and the control buffer that it points at is still there.
unsafe fn says_refused(header: &libc::msghdr) -> bool {
    // SAFETY: as the caller promises.
    let mut control = unsafe { libc::CMSG_FIRSTHDR(header) };
    while !control.is_null() {
        // SAFETY: `CMSG_FIRSTHDR` and `CMSG_NXTHDR` return only messages within the buffer.
        let (level, kind) = unsafe { ((*control).cmsg_level, (*control).cmsg_type) };
        let is_error = (level == libc::SOL_IP && kind == libc::IP_RECVERR)
            || (level == libc::SOL_IPV6 && kind == libc::IPV6_RECVERR);
        if is_error {
            // SAFETY: zeros are a valid value of a struct of numbers.
            let mut error: libc::sock_extended_err = unsafe { zeroed() };
            // SAFETY: a message of this kind begins with this struct, which may be unaligned.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    libc::CMSG_DATA(control),
                    (&raw mut error).cast(),
                    size_of::<libc::sock_extended_err>(),
                );
            }
            return error.ee_errno == libc::ECONNREFUSED as u32;
        }
        // SAFETY: as above.
        control = unsafe { libc::CMSG_NXTHDR(header, control) };
    }
    false
}
