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
    let socket = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    let mut value = Value {
        command: GET_FLAGS,
        data: 0,
    };
    let mut request = libc::ifreq {
        ifr_name: [0; libc::IFNAMSIZ],
        ifr_ifru: libc::__c_anonymous_ifr_ifru {
            ifru_data: (&raw mut value).cast(),
        },
    };
    // The last byte stays zero and ends the name.
    for (to, from) in request.ifr_name[..libc::IFNAMSIZ - 1]
        .iter_mut()
        .zip(name.bytes())
    {
        *to = from as libc::c_char;
    }
    // SAFETY: the kernel reads the name and writes to `value`, which both live until it returns.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) };
    if done == 0 {
        return Ok(value.data & RX_VLAN != 0);
    }
    match io::Error::last_os_error() {
        // A driver that knows no such request changes nothing.
        error if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(false),
        error => Err(error),
    }
}
