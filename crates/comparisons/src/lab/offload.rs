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
const ETHTOOL_GFLAGS: u32 = 0x25;
const ETHTOOL_SFLAGS: u32 = 0x26;
const ETHTOOL_SGRO: u32 = 0x2c;
/// Frames lose their VLAN tag before a program sees them.
const ETH_FLAG_RXVLAN: u32 = 1 << 8;
const SIOCETHTOOL: libc::Ioctl = 0x8946;

/// The interface computes the checksums of what it sends itself, so that a program at the other
/// end sees whole frames.
pub fn checksums_off(interface: &str) -> Result<()> {
    set(interface, ETHTOOL_STXCSUM, 0).with_context(|| format!("checksums of {interface}"))?;
    Ok(())
}

/// The interface hands up frames as they come.
pub fn receive_coalescing_off(interface: &str) -> Result<()> {
    set(interface, ETHTOOL_SGRO, 0).with_context(|| format!("coalescing of {interface}"))?;
    Ok(())
}

/// Frames keep their VLAN tags, so that a program sees them.
pub fn tags_stay(interface: &str) -> Result<()> {
    let stay = || {
        let flags = set(interface, ETHTOOL_GFLAGS, 0)?;
        set(interface, ETHTOOL_SFLAGS, flags & !ETH_FLAG_RXVLAN)
    };
    stay().with_context(|| format!("VLAN tags of {interface}"))?;
    Ok(())
}

/// Gives the interface a command with its argument, in the namespace of the calling thread. Returns
/// the answer of a command that asks.
fn set(interface: &str, command: u32, data: u32) -> Result<u32> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    let mut value = Value { command, data };
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
    Ok(value.data)
}
