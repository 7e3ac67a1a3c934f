//! What an interface says of itself.

use crate::error::Error;
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

const ETHERNET_BYTES: u32 = 14;
/// Bytes of a driver's name with zeros after it, in `struct ethtool_drvinfo`.
const DRIVER_BYTES: usize = 32;
/// ETHTOOL_GDRVINFO in linux/ethtool.h.
const GET_DRIVER: u32 = 3;

/// Longest frame that an interface sends, in bytes with Ethernet's header.
///
/// # Errors
///
/// If there is no such interface.
pub(crate) fn frame_bytes_max(ifindex: u32) -> Result<u32, Error> {
    let (socket, mut request) = named(ifindex)?;
    // SAFETY: the request reads and writes an `ifreq`.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFMTU as _, &raw mut request) };
    if done != 0 {
        return Err(Error::NoInterface);
    }
    // SAFETY: the request has written this member.
    let mtu = unsafe { request.ifr_ifru.ifru_mtu };
    Ok(u32::try_from(mtu).unwrap_or(0) + ETHERNET_BYTES)
}

/// The name of an interface's driver, with zeros after it. Empty if it has none.
///
/// # Errors
///
/// If there is no such interface.
pub(crate) fn driver(ifindex: u32) -> Result<[u8; DRIVER_BYTES], Error> {
    /// The first members of `struct ethtool_drvinfo`, and its length.
    #[repr(C)]
    struct Driver {
        command: u32,
        name: [u8; DRIVER_BYTES],
        rest: [u8; 160],
    }
    let mut driver = Driver {
        command: GET_DRIVER,
        name: [0; DRIVER_BYTES],
        rest: [0; 160],
    };
    let (socket, mut request) = named(ifindex)?;
    request.ifr_ifru.ifru_data = (&raw mut driver).cast();
    // SAFETY: the kernel reads the name and writes to `driver`, which both live until it returns.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) };
    Ok(if done == 0 { driver.name } else { [0; _] })
}

/// A request that has the name of an interface, and a socket for it.
fn named(ifindex: u32) -> Result<(OwnedFd, libc::ifreq), Error> {
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
    // SAFETY: the request reads and writes an `ifreq`.
    let found =
        unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFNAME as _, &raw mut request) };
    match found {
        0 => Ok((socket, request)),
        _ => Err(Error::NoInterface),
    }
}
