//! Many trains per system call. A train is datagrams of one length to or from one peer that cross the kernel as one: `UDP_SEGMENT` cuts it up as late
//! as possible, `UDP_GRO` puts it together as early as possible, and over loopback neither happens at all.
#![allow(unsafe_code, reason = "the kernel is given pointers")]

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::headers::{self, Control};
use super::mmsg::{DATAGRAMS_MAX, Peer};

/// Bytes of a train at most: what a datagram that is not cut up may have.
pub const TRAIN_BYTES_MAX: usize = 65_507;
/// Datagrams of a train that is sent, at most; the kernel's bound.
pub const TRAIN_DATAGRAMS_MAX: usize = 64;

/// A train to be sent.
#[derive(Clone, Copy)]
pub struct Train<'a> {
    /// Whom it goes to.
    pub peer: &'a Peer,
    /// Its datagrams, one behind the other.
    pub bytes: &'a [u8],
    /// Bytes of each of them; the last may be shorter.
    pub stride: usize,
}

/// A train that was received.
#[derive(Clone, Copy, Debug, Default)]
pub struct Arrival {
    /// Bytes of all its datagrams.
    pub bytes: usize,
    /// Bytes of each of them; the last may be shorter.
    pub stride: usize,
}

/// Has the kernel put datagrams of one peer together before they are received.
pub fn join_received(socket: BorrowedFd<'_>) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: the option's value is borrowed for the call and as long as stated.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_UDP,
            libc::UDP_GRO,
            (&raw const on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Receives up to [`DATAGRAMS_MAX`] trains that wait, each into one of `slots`. A train that is longer than its slot has no bytes. Returns how many
/// there were; none is no error. The second number is the kernel's count of datagrams that it dropped
/// on this socket, where it told of any.
pub fn receive(
    socket: BorrowedFd<'_>,
    slots: &mut [&mut [u8]],
    peers: &mut [Peer],
    arrivals: &mut [Arrival],
) -> io::Result<(usize, Option<u32>)> {
    let count = slots.len();
    assert!(count <= DATAGRAMS_MAX && count == peers.len() && count == arrivals.len());
    let mut parts = headers::room::<[libc::iovec; 1]>();
    let mut controls = [Control([0; 64]); DATAGRAMS_MAX];
    let mut headers = headers::room();
    for (index, slot) in slots.iter_mut().enumerate() {
        let parts = parts[index].write([headers::part_to_fill(slot)]);
        let mut header = headers::header(peers[index].as_mut_name(), parts);
        header.msg_hdr.msg_control = (&raw mut controls[index]).cast();
        header.msg_hdr.msg_controllen = size_of::<Control>() as _;
        headers[index].write(header);
    }
    // SAFETY: the first `count` headers are initialised, and each points at a name, a buffer list of one, a buffer and a control buffer that are
    // borrowed exclusively until this function returns.
    let received = unsafe { headers::receive(socket, &mut headers[..count]) }?;
    for (index, header) in received.iter().enumerate() {
        peers[index].set_name_bytes(header.msg_hdr.msg_namelen);
        let all = header.msg_len as usize;
        let bytes = if headers::is_whole(header) { all } else { 0 };
        // SAFETY: the header was filled in by the kernel, and the control buffer that it points at is still there.
        let stride = unsafe { headers::number_told(&header.msg_hdr, libc::SOL_UDP, libc::UDP_GRO) };
        let stride = stride.map_or(bytes, |stride| stride as usize);
        arrivals[index] = Arrival {
            bytes,
            stride: stride.clamp(1, bytes.max(1)),
        };
    }
    // SAFETY: as above.
    let drops = received
        .last()
        .and_then(|last| unsafe { headers::drops_told(&last.msg_hdr) });
    Ok((received.len(), drops))
}

/// Sends up to [`DATAGRAMS_MAX`] trains. Returns how many of them, from the front, were taken; an error concerns the first.
pub fn send(socket: BorrowedFd<'_>, trains: &[Train<'_>]) -> io::Result<usize> {
    let is_cut = |train: &Train<'_>| train.bytes.len() > train.stride;
    let count = match headers::can_segment(socket) {
        true => trains.len(),
        false => trains.iter().take_while(|train| !is_cut(train)).count(),
    };
    assert!(count <= DATAGRAMS_MAX);
    if count == 0 && !trains.is_empty() {
        return Err(io::Error::from_raw_os_error(libc::ENOPROTOOPT));
    }
    let mut parts = headers::room::<[libc::iovec; 1]>();
    let mut controls = [Control([0; 64]); DATAGRAMS_MAX];
    let mut headers = headers::room();
    for (index, train) in trains[..count].iter().enumerate() {
        let parts = parts[index].write([headers::part_to_send(train.bytes)]);
        let mut header = headers::header(train.peer.as_name(), parts);
        if is_cut(train) {
            let stride = u16::try_from(train.stride).expect("a datagram is shorter than 64 KiB");
            headers::tell_stride(&mut header, &mut controls[index], stride);
        }
        headers[index].write(header);
    }
    // SAFETY: the first `count` headers are initialised, and each points at a name, a list of one part, its bytes and a control buffer, all of which are
    // borrowed until this function returns.
    unsafe { headers::send(socket, &mut headers[..count]) }
}
