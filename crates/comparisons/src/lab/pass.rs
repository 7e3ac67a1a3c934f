//! A packet program that passes every frame. A virtual cable carries the replies of a program at
//! one end only if there is a program at the other.

use std::{
    io,
    os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
};

use anyhow::{Context, Result};
use rustix::net::netdevice::name_to_index;

const BPF_PROG_LOAD: libc::c_int = 5;
const BPF_LINK_CREATE: libc::c_int = 28;
const BPF_PROG_TYPE_XDP: u32 = 6;
const BPF_XDP: u32 = 37;
const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;
const XDP_PASS: i32 = 2;

/// `struct bpf_insn`.
#[repr(C)]
struct Instruction {
    code: u8,
    registers: u8,
    offset: i16,
    immediate: i32,
}

/// The part of `union bpf_attr` that loads a program.
#[repr(C)]
struct Load {
    kind: u32,
    instructions: u32,
    first: u64,
    license: u64,
    /// Level, length and place of the log.
    log: [u64; 2],
}

/// The part of `union bpf_attr` that makes a link.
#[repr(C)]
struct Link {
    program: RawFd,
    interface: u32,
    kind: u32,
    flags: u32,
}

/// Attaches the program to an interface in the namespace of the calling thread. It stays until the
/// descriptor is closed.
pub fn attach(interface: &str) -> Result<OwnedFd> {
    let instruction = |code, immediate| Instruction {
        code,
        registers: 0,
        offset: 0,
        immediate,
    };
    // Register 0 is the verdict.
    let program = [instruction(0xb7, XDP_PASS), instruction(0x95, 0)];
    let load = Load {
        kind: BPF_PROG_TYPE_XDP,
        instructions: program.len() as u32,
        first: program.as_ptr() as u64,
        license: c"MIT".as_ptr() as u64,
        log: [0; 2],
    };
    // SAFETY: the attributes are those of the command, and what they point to outlives the call.
    let loaded = unsafe { bpf(BPF_PROG_LOAD, &load) };
    let loaded = loaded.context(
        "loading a packet program needs root, or the capabilities CAP_BPF and CAP_NET_ADMIN",
    )?;
    let socket = std::net::UdpSocket::bind("0.0.0.0:0")?;
    let link = Link {
        program: loaded.as_raw_fd(),
        interface: name_to_index(&socket, interface)?,
        kind: BPF_XDP,
        flags: XDP_FLAGS_DRV_MODE,
    };
    // SAFETY: as above; nothing is pointed to.
    let link = unsafe { bpf(BPF_LINK_CREATE, &link) };
    link.with_context(|| format!("attaching a packet program to {interface} (Linux 5.9 or newer)"))
}

/// The system call `bpf`, for commands that return a descriptor.
///
/// # Safety
///
/// The attributes are those of the command, and their pointers are valid.
unsafe fn bpf<T>(command: libc::c_int, attributes: &T) -> io::Result<OwnedFd> {
    // SAFETY: the kernel reads as many bytes as it is told, and the caller vouches for the rest.
    let made = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            std::ptr::from_ref(attributes),
            size_of::<T>(),
        )
    };
    if made < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel made the descriptor for this call alone.
    Ok(unsafe { OwnedFd::from_raw_fd(made as RawFd) })
}
