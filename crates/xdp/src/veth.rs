//! Whether the replies of a program in the driver reach anybody.
//!
//! A network card sends what a program at it sends. The driver of virtual pairs (veth) hands it to
//! the other end, which takes it only if it is prepared for frames of programs: it has a program
//! itself. Otherwise the frame is dropped and nobody is told. The other end may be in another
//! network namespace, so it cannot be asked. But the kernel says of an interface whether frames of
//! programs can be sent out of it, and for a pair that depends on the other end.

use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

use crate::error::Error;
use crate::interface;

/// What the kernel calls the driver.
const DRIVER: &[u8] = b"veth\0";
/// The family of requests about network devices, since Linux 6.3, and numbers of
/// linux/netdev.h and linux/genetlink.h.
const FAMILY: &[u8] = b"netdev\0";
const DEVICE_GET: u8 = 1;
const DEVICE_INDEX: u16 = 1;
const DEVICE_XDP_FEATURES: u16 = 3;
const FAMILY_GET: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
/// NETDEV_XDP_ACT_NDO_XMIT: frames of programs can be sent out of the interface.
const SENDS: u64 = 1 << 2;
/// Bytes of a message's header, and of what follows in a request of this kind.
const HEADER_BYTES: usize = 16;
const KIND_BYTES: usize = 4;

/// Whether what a program in an interface's driver sends is known to reach nobody: the interface is
/// one end of a virtual pair, and the other end takes no frames of programs. Before Linux 6.3 the
/// kernel does not say.
///
/// # Errors
///
/// If there is no such interface.
pub fn sends_to_nobody(ifindex: u32) -> Result<bool, Error> {
    if !interface::driver(ifindex)?.starts_with(DRIVER) {
        return Ok(false);
    }
    Ok(features(ifindex).is_ok_and(|features| features & SENDS == 0))
}

/// What an interface can do with frames of programs.
fn features(ifindex: u32) -> io::Result<u64> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    // SAFETY: it takes no pointer.
    let socket = unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_GENERIC) };
    if socket < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just returned it, and it is nobody else's.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    let family = ask(
        &socket,
        libc::GENL_ID_CTRL as u16,
        FAMILY_GET,
        (FAMILY_NAME, FAMILY),
    )?;
    let family = u16::from_ne_bytes(attribute(&family, FAMILY_ID)?);
    let index = (DEVICE_INDEX, &ifindex.to_ne_bytes()[..]);
    let device = ask(&socket, family, DEVICE_GET, index)?;
    attribute(&device, DEVICE_XDP_FEATURES).map(u64::from_ne_bytes)
}

/// Makes a request with one attribute, and returns the attributes of the answer.
fn ask(
    socket: &OwnedFd,
    family: u16,
    command: u8,
    (kind, value): (u16, &[u8]),
) -> io::Result<Vec<u8>> {
    let attribute_bytes = KIND_BYTES + value.len();
    let bytes = HEADER_BYTES + KIND_BYTES + attribute_bytes.next_multiple_of(4);
    let mut message = Vec::with_capacity(bytes);
    message.extend((bytes as u32).to_ne_bytes());
    message.extend(family.to_ne_bytes());
    message.extend((libc::NLM_F_REQUEST as u16).to_ne_bytes());
    // Number and sender: the kernel fills the sender in.
    message.extend([0; 8]);
    message.extend([command, 1, 0, 0]);
    message.extend((attribute_bytes as u16).to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(value);
    message.resize(bytes, 0);
    let mut answer = vec![0; 8192];
    // SAFETY: both buffers live until the calls return, which are told their lengths.
    let received = unsafe {
        match libc::send(socket.as_raw_fd(), message.as_ptr().cast(), bytes, 0) {
            0.. => libc::recv(
                socket.as_raw_fd(),
                answer.as_mut_ptr().cast(),
                answer.len(),
                0,
            ),
            failed => failed,
        }
    };
    let received = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
    answer.truncate(received);
    let is_error = answer.get(4..6) == Some(&(libc::NLMSG_ERROR as u16).to_ne_bytes()[..]);
    if is_error || received < HEADER_BYTES + KIND_BYTES {
        return Err(io::ErrorKind::Unsupported.into());
    }
    Ok(answer.split_off(HEADER_BYTES + KIND_BYTES))
}

/// The value of an attribute that has as many bytes.
fn attribute<const BYTES: usize>(attributes: &[u8], wanted: u16) -> io::Result<[u8; BYTES]> {
    let mut rest = attributes;
    while let [b0, b1, k0, k1, ..] = *rest {
        let bytes = usize::from(u16::from_ne_bytes([b0, b1]));
        if u16::from_ne_bytes([k0, k1]) == wanted {
            let value = rest.get(KIND_BYTES..bytes).map(<[u8; BYTES]>::try_from);
            return value
                .and_then(Result::ok)
                .ok_or(io::ErrorKind::InvalidData.into());
        }
        rest = rest
            .get(bytes.next_multiple_of(4).max(KIND_BYTES)..)
            .unwrap_or_default();
    }
    Err(io::ErrorKind::NotFound.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_is_no_pair() {
        assert!(!sends_to_nobody(1).unwrap());
        assert!(sends_to_nobody(u32::MAX).is_err());
    }

    #[test]
    fn attributes_are_found_by_their_kind() {
        let attributes = [&[5, 0, 1, 0, 9, 0, 0, 0][..], &[8, 0, 2, 0, 4, 3, 2, 1]].concat();
        let number = attribute(&attributes, 2).map(u32::from_le_bytes);
        assert_eq!(number.unwrap(), 0x01020304);
        assert_eq!(attribute(&attributes, 1).unwrap(), [9]);
        assert!(attribute::<2>(&attributes, 1).is_err(), "another length");
        assert!(attribute::<1>(&attributes, 3).is_err(), "no such attribute");
        assert!(attribute::<1>(&[0; 12], 3).is_err(), "no length");
        assert!(attribute::<4>(&attributes[..10], 2).is_err(), "cut off");
    }
}
