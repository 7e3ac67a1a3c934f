//! Many datagrams per system call: `recvmmsg` and `sendmmsg`.
#![allow(unsafe_code, reason = "the kernel is given pointers")]

use std::io;
use std::mem::{offset_of, size_of, size_of_val, zeroed};
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

use super::headers::{self, Control};
use super::train::{TRAIN_BYTES_MAX, TRAIN_DATAGRAMS_MAX};

/// Datagrams per system call.
pub const DATAGRAMS_MAX: usize = glimmer_base::limits::PACKET_BATCH_MAX;

/// Where a datagram came from, as the kernel wrote it.
#[derive(Clone, Copy)]
pub struct Peer {
    storage: libc::sockaddr_storage,
    bytes: libc::socklen_t,
}

/// Where a name has its port, of either family,
const PORT_AT: usize = offset_of!(libc::sockaddr_in, sin_port);
const _: () = assert!(PORT_AT == offset_of!(libc::sockaddr_in6, sin6_port));
/// and its address, behind family and port; of IPv6, behind the flow as well.
const V4_AT: usize = offset_of!(libc::sockaddr_in, sin_addr);
const V6_AT: usize = offset_of!(libc::sockaddr_in6, sin6_addr);
/// How an IPv6 address begins that stands for one of IPv4.
const MAPPED_V4: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

impl Peer {
    /// Nobody yet.
    pub fn nobody() -> Peer {
        Peer {
            // SAFETY: a `sockaddr_storage` is numbers throughout; zeros are the address family AF_UNSPEC.
            storage: unsafe { zeroed() },
            bytes: 0,
        }
    }

    /// The address as the kernel writes it: equal for equal peers.
    pub fn as_bytes(&self) -> &[u8] {
        let bytes = (self.bytes as usize).min(size_of::<libc::sockaddr_storage>());
        // SAFETY: the storage is numbers without padding, of which these are the first bytes.
        unsafe { std::slice::from_raw_parts((&raw const self.storage).cast(), bytes) }
    }

    /// The address without its port, as IPv6 writes it; zeros if there is none.
    pub fn ip(&self) -> [u8; 16] {
        let (name, mut ip) = (self.as_bytes(), [0; 16]);
        if i32::from(self.storage.ss_family) == libc::AF_INET6 {
            let bytes = name.get(V6_AT..).and_then(|bytes| bytes.first_chunk());
            ip = bytes.copied().unwrap_or(ip);
        } else if let Some(v4) = name.get(V4_AT..).and_then(|bytes| bytes.first_chunk::<4>()) {
            let (prefix, address) = ip.split_at_mut(MAPPED_V4.len());
            prefix.copy_from_slice(&MAPPED_V4);
            address.copy_from_slice(v4);
        }
        ip
    }

    /// Whose address it is, as a number: an IPv4 address, or the 64 bits of the network that an IPv6 address lies in. One machine may have as many
    /// ports as it likes, and as many addresses of its network.
    pub fn network(&self) -> u64 {
        let ip = u128::from_be_bytes(self.ip());
        match ip >> 32 {
            0xFFFF => (ip as u32).into(),
            _ => (ip >> 64) as u64,
        }
    }

    /// Its port; 0 if it is nobody.
    pub fn port(&self) -> u16 {
        let bytes = self.as_bytes().get(PORT_AT..);
        let bytes = bytes.and_then(|bytes| bytes.first_chunk());
        bytes.map_or(0, |bytes| u16::from_be_bytes(*bytes))
    }

    /// Whether both are the same.
    #[inline]
    pub fn is(&self, other: &Peer) -> bool {
        std::ptr::eq(self, other) || self.as_bytes() == other.as_bytes()
    }

    /// Where a name is read from. C has no `const` for it.
    pub(super) fn as_name(&self) -> (*mut libc::c_void, libc::socklen_t) {
        ((&raw const self.storage).cast_mut().cast(), self.bytes)
    }

    /// Where a name may be written to.
    pub(super) fn as_mut_name(&mut self) -> (*mut libc::c_void, libc::socklen_t) {
        let bytes = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
        ((&raw mut self.storage).cast(), bytes)
    }

    /// Says how long the name is that was written.
    pub(super) fn set_name_bytes(&mut self, bytes: libc::socklen_t) {
        self.bytes = bytes;
    }
}

impl From<SocketAddr> for Peer {
    fn from(address: SocketAddr) -> Peer {
        let mut peer = Peer::nobody();
        match address {
            SocketAddr::V4(address) => {
                let name = libc::sockaddr_in {
                    sin_family: libc::AF_INET as libc::sa_family_t,
                    sin_port: address.port().to_be(),
                    sin_addr: libc::in_addr {
                        s_addr: u32::from_ne_bytes(address.ip().octets()),
                    },
                    sin_zero: [0; 8],
                };
                peer.bytes = size_of_val(&name) as libc::socklen_t;
                // SAFETY: a `sockaddr_storage` is as large as any address and aligned for it.
                unsafe {
                    (&raw mut peer.storage)
                        .cast::<libc::sockaddr_in>()
                        .write(name)
                };
            }
            SocketAddr::V6(address) => {
                let name = libc::sockaddr_in6 {
                    sin6_family: libc::AF_INET6 as libc::sa_family_t,
                    sin6_port: address.port().to_be(),
                    sin6_flowinfo: 0,
                    sin6_addr: libc::in6_addr {
                        s6_addr: address.ip().octets(),
                    },
                    sin6_scope_id: address.scope_id(),
                };
                peer.bytes = size_of_val(&name) as libc::socklen_t;
                // SAFETY: as above.
                unsafe {
                    (&raw mut peer.storage)
                        .cast::<libc::sockaddr_in6>()
                        .write(name)
                };
            }
        }
        peer
    }
}

/// A datagram to be sent: two parts, one behind the other.
#[derive(Clone, Copy)]
pub struct Outgoing<'a> {
    /// Whom it goes to.
    pub peer: &'a Peer,
    /// Its beginning.
    pub header: [u8; 8],
    /// Its rest.
    pub payload: &'a [u8],
}

/// Receives up to [`DATAGRAMS_MAX`] datagrams that wait, each into one of `slots`; notes their senders and lengths. A datagram that is longer than
/// its slot has its length noted as 0. Returns how many there were; none is no error. The second
/// number is the kernel's count of datagrams that it dropped on this socket, where it told of any.
pub fn receive(
    socket: BorrowedFd<'_>,
    slots: &mut [&mut [u8]],
    peers: &mut [Peer],
    lengths: &mut [usize],
) -> io::Result<(usize, Option<u32>)> {
    let count = slots.len();
    assert!(count <= DATAGRAMS_MAX && count == peers.len() && count == lengths.len());
    let mut parts = headers::room::<[libc::iovec; 1]>();
    let mut controls = headers::room::<Control>();
    let mut headers = headers::room();
    for (index, slot) in slots.iter_mut().enumerate() {
        let parts = parts[index].write([headers::part_to_fill(slot)]);
        let mut header = headers::header(peers[index].as_mut_name(), parts);
        header.msg_hdr.msg_control = controls[index].as_mut_ptr().cast();
        header.msg_hdr.msg_controllen = size_of::<Control>() as _;
        headers[index].write(header);
    }
    // SAFETY: the first `count` headers are initialised, and each points at a name, a buffer list of one, a buffer and a control buffer that are
    // borrowed exclusively until this function returns.
    let received = unsafe { headers::receive(socket, &mut headers[..count]) }?;
    for (index, header) in received.iter().enumerate() {
        peers[index].set_name_bytes(header.msg_hdr.msg_namelen);
        let bytes = header.msg_len as usize;
        lengths[index] = if headers::is_whole(header) { bytes } else { 0 };
    }
    // SAFETY: the kernel filled the header in, and wrote the control buffer that it points at as far as it says.
    let drops = received
        .last()
        .and_then(|last| unsafe { headers::drops_told(&last.msg_hdr) });
    Ok((received.len(), drops))
}

impl Outgoing<'_> {
    fn bytes(&self) -> usize {
        self.header.len() + self.payload.len()
    }
}

/// Sends up to [`DATAGRAMS_MAX`] datagrams. Those that follow one another to one peer and are of one length, the last perhaps shorter, go through the
/// kernel as one train and are cut up where they arrive or leave the machine. Returns how many of them, from the front, were taken; an error concerns the
/// first.
pub fn send(socket: BorrowedFd<'_>, datagrams: &[Outgoing<'_>]) -> io::Result<usize> {
    if !headers::can_segment(socket) {
        return send_by(socket, datagrams, |_| 1);
    }
    match send_by(socket, datagrams, train_length) {
        Err(error) if headers::refuses_segments(&error) && train_length(datagrams) > 1 => {
            send_by(socket, datagrams, |_| 1)
        }
        result => result,
    }
}

/// As [`send`], each datagram by itself (plain `sendmmsg`).
pub fn send_apart(socket: BorrowedFd<'_>, datagrams: &[Outgoing<'_>]) -> io::Result<usize> {
    send_by(socket, datagrams, |_| 1)
}

/// Sends datagrams, as many of them at a time as `length` says of those that are left.
#[inline(always)]
fn send_by(
    socket: BorrowedFd<'_>,
    datagrams: &[Outgoing<'_>],
    length: impl Fn(&[Outgoing<'_>]) -> usize,
) -> io::Result<usize> {
    assert!(datagrams.len() <= DATAGRAMS_MAX);
    let mut parts = headers::room::<[libc::iovec; 2]>();
    for (datagram, parts) in datagrams.iter().zip(&mut parts) {
        parts.write([
            headers::part_to_send(&datagram.header),
            headers::part_to_send(datagram.payload),
        ]);
    }
    // SAFETY: the parts of the first so many datagrams have just been written.
    let mut parts = unsafe { parts[..datagrams.len()].assume_init_mut() };
    let mut controls = headers::room::<Control>();
    let mut headers = headers::room();
    let mut ends = [0; DATAGRAMS_MAX];
    let (mut count, mut end) = (0, 0);
    while let Some(first) = datagrams.get(end) {
        let length = length(&datagrams[end..]);
        let (its, others) = parts.split_at_mut(length);
        parts = others;
        let header = headers[count].write(headers::header(
            first.peer.as_name(),
            its.as_flattened_mut(),
        ));
        if length > 1 {
            let stride = u16::try_from(first.bytes()).expect("a train is shorter than 64 KiB");
            headers::tell_stride(header, controls[count].write(Control([0; 64])), stride);
        }
        end += length;
        ends[count] = end;
        count += 1;
    }
    // SAFETY: the first `count` headers are initialised, and each points at a name, a list of parts, their bytes and perhaps a control buffer, all of which
    // are borrowed until this function returns.
    let sent = unsafe { headers::send(socket, &mut headers[..count]) }?;
    Ok(sent.checked_sub(1).map_or(0, |last| ends[last]))
}

/// How many of these datagrams, from the front, make a train: to one peer, of one length, the last perhaps shorter.
#[inline]
fn train_length(datagrams: &[Outgoing<'_>]) -> usize {
    let Some((first, others)) = datagrams.split_first() else {
        return 0;
    };
    let stride = first.bytes();
    let longest = (TRAIN_BYTES_MAX / stride).clamp(1, TRAIN_DATAGRAMS_MAX);
    let mut length = 1;
    for datagram in others.iter().take(longest - 1) {
        let is_of_it = datagram.bytes() <= stride && datagram.peer.is(first.peer);
        if !is_of_it {
            break;
        }
        length += 1;
        if datagram.bytes() < stride {
            break;
        }
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::os::fd::{AsFd, AsRawFd};
    use std::time::Duration;

    #[test]
    fn a_network_is_an_address_or_half_of_one() {
        let network = |address: &str| Peer::from(address.parse::<SocketAddr>().unwrap()).network();
        assert_eq!(network("10.1.2.3:5"), 0x0A01_0203);
        assert_eq!(network("[::ffff:10.1.2.3]:9"), 0x0A01_0203);
        assert_eq!(network("[2001:db8:1:2::1]:5"), 0x2001_0DB8_0001_0002);
        assert_eq!(network("[2001:db8:1:2:3:4:5:6]:7"), 0x2001_0DB8_0001_0002);
        assert_eq!(Peer::nobody().network(), 0);
    }

    #[test]
    fn a_port_is_that_of_the_address() {
        for address in ["10.1.2.3:513", "[2001:db8::1]:513"] {
            assert_eq!(
                Peer::from(address.parse::<SocketAddr>().unwrap()).port(),
                513
            );
        }
        assert_eq!(Peer::nobody().port(), 0);
    }

    fn socket() -> (UdpSocket, Peer) {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let patience = Some(Duration::from_secs(10));
        socket.set_read_timeout(patience).unwrap();
        let peer = Peer::from(socket.local_addr().unwrap());
        (socket, peer)
    }

    /// Payload lengths in which trains begin and end: alike, one shorter at the end of a train, and longer ones behind shorter ones.
    const LENGTHS: [usize; 12] = [5, 5, 5, 3, 5, 5, 0, 9, 9, 9, 1400, 1400];

    fn is_sent_as_it_is(sender: &UdpSocket) {
        let ((one, to_one), (other, to_other)) = (socket(), socket());
        let payloads = LENGTHS.map(|bytes| vec![bytes as u8; bytes]);
        let outgoing = |(at, payload)| Outgoing {
            // Two for the one, two for the other, so that trains end with their peers as well.
            peer: if at & 2 == 0 { &to_one } else { &to_other },
            header: [at as u8; 8],
            payload,
        };
        let numbered = payloads.iter().map(Vec::as_slice).enumerate();
        let alternating: Vec<_> = numbered.clone().map(outgoing).collect();
        let to_one_alone = numbered.map(|(at, payload)| Outgoing {
            peer: &to_one,
            ..outgoing((at, payload))
        });
        let to_one_alone: Vec<_> = to_one_alone.collect();
        for datagrams in [alternating, to_one_alone] {
            let mut rest = &datagrams[..];
            while !rest.is_empty() {
                rest = &rest[send(sender.as_fd(), rest).unwrap()..];
            }
            let mut buffer = [0; 2000];
            for sent in &datagrams {
                let at_one = std::ptr::eq(sent.peer, &to_one);
                let bytes = if at_one { &one } else { &other }
                    .recv(&mut buffer)
                    .unwrap();
                assert_eq!(buffer[..bytes], [&sent.header[..], sent.payload].concat());
            }
        }
    }

    #[test]
    fn datagrams_arrive_apart_however_they_travel() {
        is_sent_as_it_is(&socket().0);
    }

    #[test]
    fn datagrams_arrive_where_trains_are_refused() {
        let (sender, _) = socket();
        let on: libc::c_int = 1;
        // SAFETY: the option's value is borrowed for the call and as long as stated.
        let result = unsafe {
            libc::setsockopt(
                sender.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_NO_CHECK,
                (&raw const on).cast(),
                size_of::<libc::c_int>() as libc::socklen_t,
            )
        };
        assert_eq!(result, 0);
        let (_keep, peer) = socket();
        let two = [Outgoing {
            peer: &peer,
            header: [0; 8],
            payload: b"alike",
        }; 2];
        let refused = send_by(sender.as_fd(), &two, train_length).unwrap_err();
        assert!(headers::refuses_segments(&refused), "{refused}");
        is_sent_as_it_is(&sender);
    }
}
