//! What an interface says of itself.

use crate::error::Error;
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

const ETHERNET_BYTES: u32 = 14;

/// Longest frame that an interface sends, in bytes with Ethernet's header.
///
/// # Errors
///
/// If there is no such interface.
pub(crate) fn frame_bytes_max(ifindex: u32) -> Result<u32, Error> {
    let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC;
    // SAFETY: it takes no pointer.
    let socket = unsafe { libc::socket(libc::AF_INET, kind, 0) };
    if socket < 0 {
        return Err(Error::Io("opening a socket", io::Error::last_os_error()));
    }
    // SAFETY: the kernel has just returned it, and it is nobody else's.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    // SAFETY: all bytes zero is a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_ifru.ifru_ifindex = i32::try_from(ifindex).map_err(|_| Error::NoInterface)?;
    // SAFETY: both requests read and write an `ifreq`.
    let found = unsafe {
        libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFNAME as _, &raw mut request) == 0
            && libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFMTU as _, &raw mut request) == 0
    };
    if !found {
        return Err(Error::NoInterface);
    }
    // SAFETY: the second request has written this member.
    let mtu = unsafe { request.ifr_ifru.ifru_mtu };
    Ok(u32::try_from(mtu).unwrap_or(0) + ETHERNET_BYTES)
}
