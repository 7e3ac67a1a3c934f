//! What an interface's driver does to frames, by the requests that the program ethtool makes.
#![allow(unsafe_code, reason = "the kernel is given pointers")]

use std::io;
use std::os::fd::AsRawFd;

use rustix::net::{AddressFamily, SocketType, socket};

/// ETHTOOL_GFLAGS in linux/ethtool.h: the flags of what can be switched on and off.
const GET_FLAGS: u32 = 0x25;
/// ETH_FLAG_RXVLAN: the tags of virtual networks are removed from received frames.
const RX_VLAN: u32 = 1 << 8;

/// `struct ethtool_value`.
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

/// Whether the interface removes the tags of virtual networks from the frames that it receives.
pub fn strips_vlan_tags(name: &str) -> io::Result<bool> {
    let mut value = Value {
        command: GET_FLAGS,
        data: 0,
    };
    // A driver that knows no such request changes nothing.
    Ok(ask(name, &mut value)? && value.data & RX_VLAN != 0)
}

/// `struct ethtool_drvinfo`, of which only the name counts here.
#[cfg(feature = "xdp")]
#[repr(C)]
struct DriverInfo {
    command: u32,
    driver: [u8; 32],
    rest: [u8; 160],
}

/// The name of the interface's driver; empty if it says nothing.
#[cfg(feature = "xdp")]
pub fn driver(name: &str) -> io::Result<String> {
    /// ETHTOOL_GDRVINFO.
    const GET_DRIVER: u32 = 0x03;
    let mut info = DriverInfo {
        command: GET_DRIVER,
        driver: [0; 32],
        rest: [0; 160],
    };
    ask(name, &mut info)?;
    let end = info.driver.iter().position(|&byte| byte == 0);
    Ok(String::from_utf8_lossy(&info.driver[..end.unwrap_or(32)]).into_owned())
}

/// The interface's queues for receiving; 1 if its driver does not say.
#[cfg(feature = "xdp")]
pub fn receive_queues(name: &str) -> io::Result<u32> {
    /// ETHTOOL_GCHANNELS.
    const GET_CHANNELS: u32 = 0x3C;
    /// The command, then the most of receiving, sending, other and combined, and those there are.
    type Channels = [u32; 9];
    let mut channels: Channels = [0; 9];
    channels[0] = GET_CHANNELS;
    let is_told = ask(name, &mut channels)?;
    let queues = if is_told {
        channels[5] + channels[8]
    } else {
        1
    };
    Ok(queues.max(1))
}

/// Bytes of the longest packet that the interface sends.
#[cfg(feature = "xdp")]
pub fn mtu(name: &str) -> io::Result<u32> {
    let mut request = request_for(name);
    control(libc::SIOCGIFMTU as _, &mut request)?;
    // SAFETY: the kernel has written the number.
    let mtu = unsafe { request.ifr_ifru.ifru_mtu };
    Ok(mtu.try_into().unwrap_or(0))
}

/// Makes a request of the program ethtool, whose structure begins with the number of its command.
/// False: the driver knows no such request.
fn ask<T>(name: &str, structure: &mut T) -> io::Result<bool> {
    let mut request = request_for(name);
    request.ifr_ifru.ifru_data = std::ptr::from_mut(structure).cast();
    match control(libc::SIOCETHTOOL as _, &mut request) {
        Ok(()) => Ok(true),
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(false),
        Err(error) => Err(error),
    }
}

fn request_for(name: &str) -> libc::ifreq {
    let mut request = libc::ifreq {
        ifr_name: [0; libc::IFNAMSIZ],
        ifr_ifru: libc::__c_anonymous_ifr_ifru {
            ifru_data: std::ptr::null_mut(),
        },
    };
    // The last byte stays zero and ends the name.
    for (to, from) in request.ifr_name[..libc::IFNAMSIZ - 1]
        .iter_mut()
        .zip(name.bytes())
    {
        *to = from as libc::c_char;
    }
    request
}

fn control(kind: libc::Ioctl, request: &mut libc::ifreq) -> io::Result<()> {
    let socket = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    // SAFETY: the kernel reads the name and writes to the request, or to what it points at, which
    // both live until it returns and are as long as the kind of request says.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), kind, std::ptr::from_mut(request)) };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
