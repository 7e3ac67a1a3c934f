//! Many datagrams per system call (`recvmmsg`, `sendmmsg`), and several datagrams as one segment
//! batch: `UDP_SEGMENT` (GSO) has the kernel cut them up as late as possible, `UDP_GRO` has it put
//! them together as early as possible, and over loopback neither happens at all.
#![allow(unsafe_code, reason = "the kernel is given pointers")]

use std::io;
use std::mem::size_of;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

use glimmer_base::limits::PACKET_BATCH_MAX;

use super::headers::{self, CONTROL_BYTES, Control};
use super::name::{self, NAME_BYTES, Name};
use super::options::switch_on;
use crate::packet::{Message, RxBatch, SEGMENTED_BYTES_MAX, SEGMENTS_MAX};

/// How messages go through the kernel.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// The socket is connected: everything goes to its peer, whatever the messages say.
    pub is_connected: bool,
    /// Single datagrams that follow one another to one peer and are of one length, the last perhaps
    /// shorter, go as one segment batch.
    pub coalesces: bool,
}

/// Has the kernel put datagrams of one peer together before they are received.
pub fn join_received(socket: BorrowedFd<'_>) -> io::Result<()> {
    switch_on(socket, libc::SOL_UDP, libc::UDP_GRO)
}

/// Replaces what is in a batch by what waits, with one call. A segment batch that is longer than
/// its slot has no bytes. Nothing is no error; after an error the batch is empty.
pub fn receive(socket: BorrowedFd<'_>, batch: &mut RxBatch) -> io::Result<()> {
    receive_noting(socket, batch, |_, _| ())
}

/// The same, and `note` is shown the sender of each, and the header that the kernel filled in with
/// the control buffer that it points at.
#[inline(always)]
pub fn receive_noting(
    socket: BorrowedFd<'_>,
    batch: &mut RxBatch,
    mut note: impl FnMut(SocketAddr, &libc::msghdr),
) -> io::Result<()> {
    batch.clear();
    let mut parts = headers::room::<[libc::iovec; 1]>();
    let mut names = headers::room::<Name>();
    let mut controls = headers::room::<Control>();
    let mut headers = headers::room();
    let most = batch.most();
    for (index, slot) in batch.frames.slots_mut().take(most).enumerate() {
        let parts = parts[index].write([headers::part_to_fill(slot)]);
        let name = (names[index].as_mut_ptr().cast(), NAME_BYTES);
        let mut header = headers::header(name, parts);
        header.msg_hdr.msg_control = controls[index].as_mut_ptr().cast();
        header.msg_hdr.msg_controllen = size_of::<Control>() as _;
        headers[index].write(header);
    }
    // SAFETY: the headers are initialised, and each points at a name, a buffer list of one, a
    // buffer and a control buffer that are borrowed exclusively until this function returns: the
    // buffers by the borrow of the batch, whose slots are not touched before the call is over.
    let received = unsafe { headers::receive(socket, &mut headers[..most]) }?;
    for (index, header) in received.iter().enumerate() {
        let all = header.msg_len as usize;
        let bytes = if headers::is_whole(header) { all } else { 0 };
        // SAFETY: the kernel filled the header in, and wrote the control buffer that it points at
        // as far as it says.
        let size = unsafe { headers::number_told(&header.msg_hdr, libc::SOL_UDP, libc::UDP_GRO) };
        let segment_bytes = size.map_or(bytes, |size| size as usize);
        // SAFETY: the kernel wrote the name as far as the header says, but no more than its room.
        let peer = unsafe { name::address(&names[index], header.msg_hdr.msg_namelen) };
        batch.frames.fill(bytes);
        batch.describe(index, peer, segment_bytes.clamp(1, bytes.max(1)));
        if batch.keeps_arrivals() {
            // SAFETY: as of the number above.
            let arrived_ns = unsafe { headers::arrival_told(&header.msg_hdr) };
            batch.note_arrival(index, arrived_ns.unwrap_or(0));
        }
        note(peer, &header.msg_hdr);
    }
    // SAFETY: as above.
    let drops = received
        .last()
        .and_then(|last| unsafe { headers::drops_told(&last.msg_hdr) });
    batch.note_drops(drops);
    Ok(())
}

/// Sends up to [`PACKET_BATCH_MAX`] messages. Returns how many of them, from the front, were taken;
/// an error concerns the first.
pub fn send(socket: BorrowedFd<'_>, messages: &[Message<'_>], way: Way) -> io::Result<usize> {
    let can_segment = headers::can_segment(socket);
    if !can_segment && messages.first().is_some_and(Message::is_segmented) {
        return Err(io::Error::from_raw_os_error(libc::ENOPROTOOPT));
    }
    if !can_segment || !way.coalesces {
        let count = match can_segment {
            true => messages.len(),
            false => messages
                .iter()
                .take_while(|one| !one.is_segmented())
                .count(),
        };
        return send_groups(socket, &messages[..count], way, |_| 1);
    }
    match send_groups(socket, messages, way, group_length) {
        Err(error) if headers::refuses_segments(&error) && group_length(messages) > 1 => {
            send_groups(socket, messages, way, |_| 1)
        }
        result => result,
    }
}

/// Sends messages, as many of them under one header as `length` says of those that are left.
#[inline(always)]
fn send_groups(
    socket: BorrowedFd<'_>,
    messages: &[Message<'_>],
    way: Way,
    length: impl Fn(&[Message<'_>]) -> usize,
) -> io::Result<usize> {
    assert!(messages.len() <= PACKET_BATCH_MAX);
    let mut parts = headers::room::<[libc::iovec; 2]>();
    for (message, parts) in messages.iter().zip(&mut parts) {
        parts.write([
            headers::part_to_send(message.header()),
            headers::part_to_send(message.payload),
        ]);
    }
    // SAFETY: the parts of as many messages as there are have just been written.
    let mut parts = unsafe { parts[..messages.len()].assume_init_mut() };
    let mut names = headers::room::<Name>();
    let mut controls = headers::room::<Control>();
    let mut headers = headers::room();
    let mut ends = [0; PACKET_BATCH_MAX];
    let (mut count, mut end) = (0, 0);
    while let Some(first) = messages.get(end) {
        let length = length(&messages[end..]);
        let (its, others) = parts.split_at_mut(length);
        parts = others;
        let name = match way.is_connected {
            true => (std::ptr::null_mut(), 0),
            false => {
                let (name, bytes) = Name::of(first.to);
                ((&raw mut *names[count].write(name)).cast(), bytes)
            }
        };
        // A segment batch has nothing in its first part.
        let its = its.as_flattened_mut();
        let is_one_part = length == 1 && first.header.is_none();
        let its = if is_one_part { &mut its[1..] } else { its };
        let header = headers[count].write(headers::header(name, its));
        if length > 1 || first.is_segmented() {
            let size = u16::try_from(first.segment_bytes.min(first.bytes()));
            let size = size.expect("a datagram is shorter than 64 KiB");
            headers::tell_segment_bytes(
                header,
                controls[count].write(Control([0; CONTROL_BYTES])),
                size,
            );
        }
        end += length;
        ends[count] = end;
        count += 1;
    }
    // SAFETY: the first `count` headers are initialised, and each points at a name or none, a list
    // of parts, their bytes and perhaps a control buffer, all of which are borrowed until this
    // function returns.
    let sent = unsafe { headers::send(socket, &mut headers[..count]) }?;
    Ok(sent.checked_sub(1).map_or(0, |last| ends[last]))
}

/// How many of these messages, from the front, go under one header: one that is a segment batch by
/// itself; or single datagrams to one peer, of one length, the last perhaps shorter.
#[inline]
fn group_length(messages: &[Message<'_>]) -> usize {
    let Some((first, others)) = messages.split_first() else {
        return 0;
    };
    let size = first.bytes();
    if first.is_segmented() || size == 0 {
        return 1;
    }
    let longest = (SEGMENTED_BYTES_MAX / size).clamp(1, SEGMENTS_MAX);
    let mut length = 1;
    for message in others.iter().take(longest - 1) {
        let bytes = message.bytes();
        let belongs =
            (1..=size).contains(&bytes) && !message.is_segmented() && message.to == first.to;
        if !belongs {
            break;
        }
        length += 1;
        if bytes < size {
            break;
        }
    }
    length
}

/// Has a socket send without checksums, for which the kernel refuses segmentation.
#[cfg(test)]
pub fn without_checksums(socket: BorrowedFd<'_>) {
    switch_on(socket, libc::SOL_SOCKET, libc::SO_NO_CHECK).unwrap();
}
