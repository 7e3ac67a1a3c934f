//! Requests to the kernel about programs, as far as tests have them.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use nix::net::if_::if_nametoindex;

/// Commands of the system call in linux/bpf.h.
const LOAD_PROGRAM: libc::c_long = 5;
const GET_PROGRAM_BY_ID: libc::c_long = 13;
const QUERY: libc::c_long = 16;
const CREATE_LINK: libc::c_long = 28;
/// Hooks in linux/bpf.h.
const XDP: u32 = 37;
const TCX_INGRESS: u32 = 46;
/// BPF_PROG_TYPE_XDP.
const PROGRAM_TYPE_XDP: u32 = 6;

/// A program that passes every packet on, at an interface. A virtual interface takes packets from a
/// program in the driver at its other end only if it has a program itself.
pub fn pass_all(interface: &str) -> io::Result<[OwnedFd; 2]> {
    /// The first fields for BPF_PROG_LOAD.
    #[repr(C)]
    struct Load {
        program_type: u32,
        instructions: u32,
        code: *const u64,
        license: *const libc::c_char,
    }
    #[repr(C)]
    struct Create {
        program: u32,
        interface: u32,
        attach_type: u32,
        flags: u32,
    }
    // r0 = XDP_PASS; exit
    let code = [0x0000_0002_0000_00b7u64, 0x95];
    let load = Load {
        program_type: PROGRAM_TYPE_XDP,
        instructions: code.len() as u32,
        code: code.as_ptr(),
        license: c"GPL".as_ptr(),
    };
    // SAFETY: the code and the licence live until the call returns, and it returns a descriptor.
    let program = unsafe { descriptor(LOAD_PROGRAM, load) }?;
    let create = Create {
        program: program.as_raw_fd() as u32,
        interface: if_nametoindex(interface)?,
        attach_type: XDP,
        flags: 0,
    };
    // SAFETY: there are no pointers, and the call returns a descriptor.
    let link = unsafe { descriptor(CREATE_LINK, create) }?;
    Ok([program, link])
}

/// The programs at the tcx hook of an interface's incoming packets. A kernel without that hook has
/// none.
pub fn tcx_programs(interface: u32) -> Vec<u32> {
    /// The fields for BPF_PROG_QUERY.
    #[repr(C)]
    struct Query {
        interface: u32,
        attach_type: u32,
        flags: [u32; 2],
        programs: *mut u32,
        count: u32,
        rest: [u32; 9],
    }
    let mut programs = [0; 16];
    let query = Query {
        interface,
        attach_type: TCX_INGRESS,
        flags: [0; 2],
        programs: programs.as_mut_ptr(),
        count: programs.len() as u32,
        rest: [0; 9],
    };
    // SAFETY: the kernel writes at most as many numbers as there is room for.
    let (done, query) = unsafe { call(QUERY, query) };
    match done {
        0 => programs[..query.count as usize].to_vec(),
        _ => Vec::new(),
    }
}

/// Whether the kernel has a program with this number.
pub fn is_loaded(id: u32) -> bool {
    // SAFETY: there are no pointers, and the call returns a descriptor.
    unsafe { descriptor(GET_PROGRAM_BY_ID, [id, 0, 0]) }.is_ok()
}

/// Makes a request that returns a descriptor.
///
/// # Safety
///
/// As for [`call`].
unsafe fn descriptor<A>(command: libc::c_long, attributes: A) -> io::Result<OwnedFd> {
    // SAFETY: as the caller says.
    let (fd, _) = unsafe { call(command, attributes) };
    match i32::try_from(fd) {
        // SAFETY: the kernel has just returned it, and it is nobody else's.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Makes a request, and gives back what the kernel returned and wrote.
///
/// # Safety
///
/// The attributes are those of the command, and what they point to may be used as the command does.
unsafe fn call<A>(command: libc::c_long, mut attributes: A) -> (libc::c_long, A) {
    // SAFETY: as the caller says; the attributes live until the call returns.
    let done =
        unsafe { libc::syscall(libc::SYS_bpf, command, &raw mut attributes, size_of::<A>()) };
    (done, attributes)
}
