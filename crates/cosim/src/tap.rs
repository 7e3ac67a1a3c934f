//! A TAP device: a network interface of the kernel whose frames this process sends and receives.

use anyhow::{Context, Result, bail};
use std::ffi::c_short;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

/// Longest frame: an MTU of 1,500 bytes and the Ethernet header.
pub const FRAME_BYTES_MAX: usize = 1514;

/// A TAP device, which goes when this is dropped.
#[derive(Debug)]
pub struct Tap {
    file: File,
}

impl Tap {
    /// Makes a device of this name.
    ///
    /// # Errors
    ///
    /// Without CAP_NET_ADMIN, and if there is an interface of this name.
    pub fn new(name: &str) -> Result<Tap> {
        if name.is_empty() || name.len() >= libc::IFNAMSIZ {
            bail!("an interface's name has 1 to {} bytes", libc::IFNAMSIZ - 1);
        }
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open("/dev/net/tun")
            .context("/dev/net/tun; the kernel needs TUN/TAP")?;
        // SAFETY: zeros are a valid `ifreq`.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *to = from as _;
        }
        let flags = libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_TUN_EXCL;
        request.ifr_ifru.ifru_flags = flags as c_short;
        // SAFETY: the descriptor is open, and the request is an `ifreq`.
        if unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &request) } != 0 {
            return Err(io::Error::last_os_error())
                .with_context(|| format!("cannot make {name}; that takes CAP_NET_ADMIN"));
        }
        Ok(Tap { file })
    }

    /// The next frame that the kernel sends, if there is one.
    ///
    /// # Errors
    ///
    /// The device's.
    pub fn receive(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut frame = vec![0; FRAME_BYTES_MAX + 1];
        match self.file.read(&mut frame) {
            Ok(bytes) => {
                frame.truncate(bytes);
                Ok(Some(frame))
            }
            Err(error) if is_nothing(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Hands a frame to the kernel. As on a wire, it is lost if nobody is there.
    ///
    /// # Errors
    ///
    /// The device's.
    pub fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        match self.file.write(frame) {
            Ok(_) => Ok(()),
            Err(error) if is_nothing(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Whether there is nothing to read, no room, or the interface is down.
fn is_nothing(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EAGAIN | libc::EINTR | libc::EIO | libc::EBADFD)
    )
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
