//! Attaches programs to the sockets that share an address: which of them gets a datagram, and which
//! datagrams none gets.
#![allow(unsafe_code, reason = "the kernel is given pointers")]

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::packet::Instruction;

/// Has the kernel choose among the sockets of a group by a program. It may be any of the group's.
pub fn attach(socket: BorrowedFd<'_>, program: &[Instruction]) -> io::Result<()> {
    set(socket, libc::SO_ATTACH_REUSEPORT_CBPF, program)
}

/// Has a socket receive only what was sent to this host alone. The kernel gives a datagram for a
/// group of hosts, or for all, to each socket that is bound to its port.
///
/// The hardware address tells, where there is one, and so do the addresses of groups.
pub fn receive_unicast(socket: BorrowedFd<'_>, is_v4: bool) -> io::Result<()> {
    use libc::{BPF_ABS, BPF_B, BPF_JEQ, BPF_JGE, BPF_JMP, BPF_LD, BPF_RET, BPF_W};
    let instruction = |code: u32, if_true, if_false, operand| Instruction {
        code: code as u16,
        if_true,
        if_false,
        operand,
    };
    let packet_type = (libc::SKF_AD_OFF + libc::SKF_AD_PKTTYPE) as u32;
    // Where the destination is in a header of IP.
    let destination = |at: i32| (libc::SKF_NET_OFF + at) as u32;
    let is_group = match is_v4 {
        true => [
            instruction(BPF_LD | BPF_W | BPF_ABS, 0, 0, destination(16)),
            instruction(BPF_JMP | BPF_JGE, 2, 0, 0xE000_0000),
            instruction(BPF_JMP | BPF_JEQ, 1, 0, 0x7FFF_FFFF),
        ],
        false => [
            instruction(BPF_LD | BPF_B | BPF_ABS, 0, 0, destination(24)),
            instruction(BPF_JMP | BPF_JEQ, 2, 0, 0xFF),
            instruction(BPF_JMP, 0, 0, 0),
        ],
    };
    let [load, first, second] = is_group;
    let program = [
        instruction(BPF_LD | BPF_W | BPF_ABS, 0, 0, packet_type),
        instruction(BPF_JMP | BPF_JEQ, 0, 4, libc::PACKET_HOST.into()),
        load,
        first,
        second,
        instruction(BPF_RET, 0, 0, u32::MAX),
        instruction(BPF_RET, 0, 0, 0),
    ];
    set(socket, libc::SO_ATTACH_FILTER, &program).map_err(|error| {
        let reason = format!(
            "the kernel cannot keep what is sent to all hosts from a socket \
             (SO_ATTACH_FILTER: {error}); listen at one address (-l)"
        );
        io::Error::new(error.kind(), reason)
    })
}

fn set(socket: BorrowedFd<'_>, option: libc::c_int, program: &[Instruction]) -> io::Result<()> {
    let instruction = |one: &Instruction| libc::sock_filter {
        code: one.code,
        jt: one.if_true,
        jf: one.if_false,
        k: one.operand,
    };
    let mut filter: Vec<libc::sock_filter> = program.iter().map(instruction).collect();
    let program = libc::sock_fprog {
        len: u16::try_from(filter.len()).map_err(io::Error::other)?,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: the option's value, and the instructions that it points at, are borrowed for the call
    // and as long as stated; the kernel copies them.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            option,
            (&raw const program).cast(),
            size_of::<libc::sock_fprog>() as libc::socklen_t,
        )
    };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use crate::packet::Instruction;
    use crate::udp::UdpDevice;

    /// The kernel refuses a program that does not end with a return, as it refuses any where it
    /// cannot steer. The error says what was tried, and what to do instead.
    #[test]
    fn a_refused_program_is_explained() {
        let nothing = Instruction {
            code: 0,
            if_true: 0,
            if_false: 0,
            operand: 0,
        };
        let refused = UdpDevice::bind_steered(([127, 0, 0, 1], 0).into(), 2, &[nothing]);
        let error = refused.unwrap_err().to_string();
        assert!(error.contains("SO_ATTACH_REUSEPORT_CBPF"), "{error}");
        assert!(error.contains("use a port for each worker"), "{error}");
    }
}
