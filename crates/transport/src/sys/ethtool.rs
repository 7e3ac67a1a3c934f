//! What an interface's driver does to frames, by the requests that the program ethtool makes.
#![allow(unsafe_code, reason = "the kernel is given pointers")]

use std::io;
use std::os::fd::AsRawFd;

use rustix::net::{AddressFamily, SocketType, socket};

/// Bytes of a feature's name with zeros after it (ETH_GSTRING_LEN).
const NAME_BYTES: usize = 32;
/// Features that an interface is asked for at most. Linux has some 60.
const FEATURES_MAX: usize = 512;

/// The names of the features that are on, as `ethtool -k` shows those that have no shorter one.
/// Empty if the driver knows no such request.
pub fn features(name: &str) -> io::Result<Vec<String>> {
    /// `struct ethtool_sset_info` with room for one number.
    #[repr(C)]
    struct Count {
        command: u32,
        reserved: u32,
        sets: u64,
        count: u32,
    }
    /// `struct ethtool_gstrings`.
    #[repr(C)]
    struct Names {
        command: u32,
        set: u32,
        count: u32,
        names: [[u8; NAME_BYTES]; FEATURES_MAX],
    }
    /// `struct ethtool_gfeatures`. Of 32 features each: those that can be changed, those that are
    /// asked for, those that are on, and those that never change.
    #[repr(C)]
    struct Features {
        command: u32,
        blocks: u32,
        features: [[u32; 4]; FEATURES_MAX / 32],
    }
    /// ETHTOOL_GSSET_INFO, ETHTOOL_GSTRINGS and ETHTOOL_GFEATURES in linux/ethtool.h.
    const GET_COUNT: u32 = 0x37;
    const GET_NAMES: u32 = 0x1B;
    const GET_FEATURES: u32 = 0x3A;
    /// ETH_SS_FEATURES: the set of the features' names.
    const SET: u32 = 4;

    let mut count = Count {
        command: GET_COUNT,
        reserved: 0,
        sets: 1 << SET,
        count: 0,
    };
    // The kernel writes as many names as there are, however much room it is given.
    if !ask(name, &mut count)? || count.sets == 0 || count.count as usize > FEATURES_MAX {
        return Ok(Vec::new());
    }
    let mut names = Box::new(Names {
        command: GET_NAMES,
        set: SET,
        count: count.count,
        names: [[0; NAME_BYTES]; FEATURES_MAX],
    });
    let mut features = Features {
        command: GET_FEATURES,
        blocks: (FEATURES_MAX / 32) as u32,
        features: [[0; 4]; FEATURES_MAX / 32],
    };
    if !ask(name, &mut *names)? || !ask(name, &mut features)? {
        return Ok(Vec::new());
    }
    let are_on = |&place: &usize| features.features[place / 32][2] & 1 << (place % 32) != 0;
    let name_of = |place: usize| text(&names.names[place]);
    Ok((0..count.count as usize)
        .filter(are_on)
        .map(name_of)
        .collect())
}

/// The text before the zeros.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0);
    String::from_utf8_lossy(&bytes[..end.unwrap_or(bytes.len())]).into_owned()
}

/// `struct ethtool_drvinfo`, of which only the name counts here.
#[repr(C)]
struct DriverInfo {
    command: u32,
    driver: [u8; 32],
    rest: [u8; 160],
}

/// The name of the interface's driver; empty if it says nothing.
pub fn driver(name: &str) -> io::Result<String> {
    /// ETHTOOL_GDRVINFO.
    const GET_DRIVER: u32 = 0x03;
    let mut info = DriverInfo {
        command: GET_DRIVER,
        driver: [0; 32],
        rest: [0; 160],
    };
    ask(name, &mut info)?;
    Ok(text(&info.driver))
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
