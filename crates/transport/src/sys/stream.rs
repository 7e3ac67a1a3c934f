//! Receiving into a part of a buffer's spare capacity.
#![allow(
    unsafe_code,
    reason = "the kernel writes into memory that is not initialised"
)]

use rustix::io;
use rustix::net::{self, RecvFlags};
use std::os::fd::AsFd;

/// Receives once, at most this many bytes, behind what is in the buffer, without waiting. Returns
/// the number of bytes.
///
/// # Errors
///
/// Those of `recv`.
#[inline]
pub fn receive(socket: impl AsFd, into: &mut Vec<u8>, bytes_max: usize) -> io::Result<usize> {
    let spare = into.spare_capacity_mut();
    let room = spare.len().min(bytes_max);
    let ((received, _), _) = net::recv(socket, &mut spare[..room], RecvFlags::DONTWAIT)?;
    let bytes = received.len();
    // SAFETY: the kernel has written the first `bytes` bytes of the spare capacity.
    unsafe { into.set_len(into.len() + bytes) };
    Ok(bytes)
}
