//! Socket options that are numbers.
#![allow(unsafe_code, reason = "the kernel is given pointers")]

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd};

use glimmer_base::limits::BUSY_POLL_BUDGET;

/// Switches an option of a socket on.
pub fn switch_on(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    option: libc::c_int,
) -> io::Result<()> {
    set(socket, level, option, 1)
}

/// Has the kernel look at the NIC's queue when this socket is asked and has nothing
/// (`SO_PREFER_BUSY_POLL`).
///
/// # Errors
///
/// Without CAP_NET_ADMIN, and if the kernel cannot (`CONFIG_NET_RX_BUSY_POLL`, Linux 5.11).
pub fn poll_busily(socket: BorrowedFd<'_>, time_us: u32) -> io::Result<()> {
    let budget = libc::c_int::from(BUSY_POLL_BUDGET);
    set(socket, libc::SOL_SOCKET, libc::SO_PREFER_BUSY_POLL, 1)?;
    let time = i32::try_from(time_us).unwrap_or(i32::MAX);
    set(socket, libc::SOL_SOCKET, libc::SO_BUSY_POLL, time)?;
    set(socket, libc::SOL_SOCKET, libc::SO_BUSY_POLL_BUDGET, budget)
}

/// Whether the kernel does, and the time that it was told.
///
/// # Errors
///
/// Those of the system.
#[cfg(test)]
pub fn busy_polling(socket: BorrowedFd<'_>) -> io::Result<(bool, u32)> {
    let get = |option| {
        let (mut value, mut bytes) = (0 as libc::c_int, size_of::<libc::c_int>() as u32);
        let (at, room) = ((&raw mut value).cast(), &raw mut bytes);
        // SAFETY: the kernel writes at most as many bytes as the value has.
        let result =
            unsafe { libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, at, room) };
        match result {
            0 => Ok(value),
            _ => Err(io::Error::last_os_error()),
        }
    };
    let prefers = get(libc::SO_PREFER_BUSY_POLL)? != 0;
    Ok((prefers, get(libc::SO_BUSY_POLL)? as u32))
}

fn set(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    option: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    // SAFETY: the option's value is borrowed for the call and as long as stated.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
