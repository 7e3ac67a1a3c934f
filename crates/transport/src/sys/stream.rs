//! Receiving into a part of a buffer's spare capacity, or to a place that is no buffer.
#![allow(
    unsafe_code,
    reason = "the kernel writes into memory that is not initialised"
)]

use glimmer_base::Region;
use rustix::io;
use rustix::net::{self, RecvAncillaryBuffer, RecvFlags};
use std::io::IoSliceMut;
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

/// Receives once to this region, and to `tail` what follows, without waiting. Returns the number of
/// bytes.
///
/// # Errors
///
/// Those of `recvmsg`.
pub fn receive_to(
    socket: impl AsFd,
    region: &mut Region<'_>,
    tail: &mut [u8],
) -> io::Result<usize> {
    let (start, bytes) = (region.start(), region.bytes());
    // SAFETY: all of the region can be stored to. Only the kernel stores to it, or looks at it, by
    // way of this slice.
    let region = unsafe { std::slice::from_raw_parts_mut(start, bytes) };
    let parts = &mut [IoSliceMut::new(region), IoSliceMut::new(tail)];
    let no_control = &mut RecvAncillaryBuffer::default();
    Ok(net::recvmsg(socket, parts, no_control, RecvFlags::DONTWAIT)?.bytes)
}
