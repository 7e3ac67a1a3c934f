//! Settings of a network interface that `ip` does not have: what `ethtool -K` does.

use std::{net::UdpSocket, os::fd::AsRawFd};

use anyhow::{Context, Result, ensure};

/// `struct ethtool_value` of linux/ethtool.h.
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

const ETHTOOL_STXCSUM: u32 = 0x17;
const ETHTOOL_SGRO: u32 = 0x2c;
const SIOCETHTOOL: libc::Ioctl = 0x8946;

/// The interface computes the checksums of what it sends itself, so that a program at the other
/// end sees whole frames.
pub fn checksums_off(interface: &str) -> Result<()> {
    off(interface, ETHTOOL_STXCSUM).with_context(|| format!("checksums of {interface}"))
}

/// The interface hands up frames as they come.
pub fn receive_coalescing_off(interface: &str) -> Result<()> {
    off(interface, ETHTOOL_SGRO).with_context(|| format!("coalescing of {interface}"))
}

/// Switches one of the interface's features off, in the namespace of the calling thread.
fn off(interface: &str, command: u32) -> Result<()> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    let mut value = Value { command, data: 0 };
    // SAFETY: all bytes zero are a value of this type of integers and pointers.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    ensure!(
        interface.len() < request.ifr_name.len(),
        "{interface} is too long a name"
    );
    for (to, &from) in request.ifr_name.iter_mut().zip(interface.as_bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    // SAFETY: the name ends with a zero, and the data are of the type that the command takes. Both
    // live longer than the call.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &mut request) };
    ensure!(done == 0, std::io::Error::last_os_error());
    Ok(())
}
