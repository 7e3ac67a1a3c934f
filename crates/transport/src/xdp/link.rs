//! What ties a program to an interface. The kernel takes a link away when its last descriptor is
//! closed, so nothing is left when the process ends, however it ends. The library's own way falls
//! back to one that would stay.
#![allow(unsafe_code, reason = "the kernel is given pointers")]

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

/// Where in a packet's way a program is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkPoint {
    /// XDP in the driver.
    XdpDriver,
    /// XDP in the kernel's receive path.
    XdpGeneric,
    /// The tcx hook of incoming packets.
    TcxIngress,
}

/// A link, for as long as it exists.
#[derive(Debug)]
pub struct Link {
    fd: OwnedFd,
}

/// The members of `union bpf_attr` for BPF_LINK_CREATE. Those that follow are zero.
#[repr(C)]
struct Attributes {
    program: u32,
    interface: u32,
    kind: u32,
    flags: u32,
    rest: [u64; 6],
}

/// The members of `union bpf_attr` for BPF_OBJ_GET_INFO_BY_FD.
#[repr(C)]
struct InfoAttributes {
    link: u32,
    bytes: u32,
    /// Address of an [`Info`].
    info: u64,
}

/// The first members of `struct bpf_link_info` of a link of XDP or tcx.
#[repr(C)]
#[derive(Default)]
struct Info {
    kind: u32,
    number: u32,
    program: u32,
    padding: u32,
    /// Zero if the interface has gone.
    interface: u32,
    rest: u32,
}

const BPF_OBJ_GET_INFO_BY_FD: libc::c_int = 15;
const BPF_LINK_CREATE: libc::c_int = 28;
const BPF_XDP: u32 = 37;
const BPF_TCX_INGRESS: u32 = 46;
const XDP_FLAGS_SKB_MODE: u32 = 1 << 1;
const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;

impl Link {
    /// Ties a program to an interface. Another program is never replaced.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn create(program: BorrowedFd<'_>, interface: u32, at: LinkPoint) -> io::Result<Link> {
        let (kind, flags) = match at {
            LinkPoint::XdpDriver => (BPF_XDP, XDP_FLAGS_DRV_MODE),
            LinkPoint::XdpGeneric => (BPF_XDP, XDP_FLAGS_SKB_MODE),
            LinkPoint::TcxIngress => (BPF_TCX_INGRESS, 0),
        };
        let attributes = Attributes {
            program: program.as_raw_fd() as u32,
            interface,
            kind,
            flags,
            rest: [0; 6],
        };
        // SAFETY: the kernel reads as many bytes as the structure has, and keeps no pointer to it.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_bpf,
                BPF_LINK_CREATE,
                &raw const attributes,
                size_of::<Attributes>(),
            )
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just returned it, and nothing else owns it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd as i32) };
        Ok(Link { fd })
    }

    /// Whether the program is still at an interface. It is not once the interface has gone. Where
    /// the system does not say, it is.
    pub fn is_tied(&self) -> bool {
        let mut info = Info::default();
        let attributes = InfoAttributes {
            link: self.fd.as_raw_fd() as u32,
            bytes: size_of::<Info>() as u32,
            info: &raw mut info as u64,
        };
        // SAFETY: the kernel reads as many bytes as the structure has, and writes at most as many
        // to `info` as that has. It keeps no pointer to either.
        let done = unsafe {
            libc::syscall(
                libc::SYS_bpf,
                BPF_OBJ_GET_INFO_BY_FD,
                &raw const attributes,
                size_of::<InfoAttributes>(),
            )
        };
        done != 0 || info.interface != 0
    }
}
