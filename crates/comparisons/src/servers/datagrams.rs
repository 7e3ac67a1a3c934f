//! Which of a server's sockets at one UDP port gets a datagram.
#![allow(unsafe_code, reason = "the kernel is given a pointer to a program")]

use std::{
    fs, io,
    mem::size_of,
    net::SocketAddr,
    os::fd::{AsRawFd, OwnedFd},
};

use anyhow::{Context, Result, ensure};
use rustix::{
    net::{SocketType, getsockname, sockopt},
    process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open},
};

use super::Server;

/// Where a program finds a random number instead of a byte of the datagram.
const RANDOM: u32 = (libc::SKF_AD_OFF + libc::SKF_AD_RANDOM) as u32;

impl Server {
    /// Has the kernel bring each datagram to a socket at random, whichever flow it belongs to. It
    /// otherwise goes by the addresses of both ends. Over loopback there is no other queue.
    ///
    /// # Errors
    ///
    /// The server has one UDP socket or none, or the kernel refuses.
    pub fn scatter_datagrams(&self) -> Result<()> {
        let sockets = self.udp_sockets()?;
        ensure!(
            sockets.len() > 1,
            "the server has no sockets to choose from"
        );
        let instruction = |code: u32, operand| libc::sock_filter {
            code: code as u16,
            jt: 0,
            jf: 0,
            k: operand,
        };
        let mut program = [
            instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, RANDOM),
            instruction(
                libc::BPF_ALU | libc::BPF_MOD | libc::BPF_K,
                sockets.len() as u32,
            ),
            instruction(libc::BPF_RET | libc::BPF_A, 0),
        ];
        let filter = libc::sock_fprog {
            len: program.len() as u16,
            filter: program.as_mut_ptr(),
        };
        // SAFETY: the option's value and the instructions that it points at are borrowed for the
        // call and as long as stated; the kernel copies them.
        let result = unsafe {
            libc::setsockopt(
                sockets[0].as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_ATTACH_REUSEPORT_CBPF,
                (&raw const filter).cast(),
                size_of::<libc::sock_fprog>() as libc::socklen_t,
            )
        };
        ensure!(
            result == 0,
            "SO_ATTACH_REUSEPORT_CBPF: {}",
            io::Error::last_os_error()
        );
        Ok(())
    }

    /// Its sockets at its UDP port, which this process gets as its own.
    fn udp_sockets(&self) -> Result<Vec<OwnedFd>> {
        let pid = Pid::from_raw(self.pid() as i32).context("a process has a number")?;
        let process = pidfd_open(pid, PidfdFlags::empty())?;
        let mut sockets = Vec::new();
        for entry in fs::read_dir(format!("/proc/{}/fd", self.pid()))? {
            let number = entry?.file_name();
            let number = number.to_string_lossy().parse()?;
            // It may have closed the descriptor meanwhile.
            let Ok(ours) = pidfd_getfd(&process, number, PidfdGetfdFlags::empty()) else {
                continue;
            };
            let is_udp = sockopt::socket_type(&ours) == Ok(SocketType::DGRAM);
            let here = getsockname(&ours).ok().map(SocketAddr::try_from);
            if is_udp && here.is_some_and(|here| here == Ok(self.address())) {
                sockets.push(ours);
            }
        }
        Ok(sockets)
    }
}
