//! Frames as they are, and pings, by the kernel's raw sockets.
#![allow(unsafe_code, reason = "the kernel is given pointers")]
#![allow(dead_code, reason = "each test needs a part of it")]

use crate::veth::{End, INTERFACE};
use glimmer_transport::Interface;
use glimmer_transport::bypass::wire::{Ends, fill};
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketType, ipproto, recv, sendto, socket,
};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::time::{Duration, Instant};

/// Writes frames to the interface at an end as they are.
pub struct Wire(OwnedFd);

impl Wire {
    pub fn at(end: &End) -> Wire {
        end.run(|| Wire(socket(AddressFamily::PACKET, SocketType::RAW, None).unwrap()))
    }

    /// Hears what arrives at an end from now on, if it carries this.
    pub fn of(end: &End, carried: Protocol) -> Wire {
        let carried = Some(carried);
        end.run(|| Wire(socket(AddressFamily::PACKET, SocketType::RAW, carried).unwrap()))
    }

    /// A frame that was heard, if there is one.
    pub fn heard(&self) -> Option<Vec<u8>> {
        let mut frame = vec![0; 2048];
        let (bytes, _) = recv(&self.0, &mut frame[..], RecvFlags::DONTWAIT).ok()?;
        frame.truncate(bytes);
        Some(frame)
    }

    pub fn put(&self, interface: i32, frame: &[u8]) {
        // SAFETY: all bytes zero is a valid address.
        let mut to: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        to.sll_family = libc::AF_PACKET as u16;
        to.sll_ifindex = interface;
        let bytes = size_of::<libc::sockaddr_ll>() as u32;
        // SAFETY: frame and address are borrowed for the call.
        let sent = unsafe {
            let (frame, length) = (frame.as_ptr().cast(), frame.len());
            libc::sendto(
                self.0.as_raw_fd(),
                frame,
                length,
                0,
                (&raw const to).cast(),
                bytes,
            )
        };
        assert_eq!(
            sent,
            frame.len() as isize,
            "{}",
            std::io::Error::last_os_error()
        );
    }

    /// Sends a server frames from an interface, each with a datagram of 40 bytes. Four are right:
    /// one of them is to all hosts, and one goes on behind its datagram. 1 has a wrong length, 3
    /// have a wrong checksum, and 5 a wrong source. The others are the kernel's.
    pub fn put_hostile(&self, theirs: &Interface, ours: &Interface, server: SocketAddr) {
        let frame = |theirs_at: &str, change: &dyn Fn(&mut Vec<u8>)| {
            let ends = Ends {
                our_mac: theirs.mac,
                their_mac: ours.mac,
                ours: theirs_at.parse().unwrap(),
                theirs: server,
            };
            let mut frame = vec![0; 200];
            let bytes = fill(&mut frame, &ends, &[], &[5; 40]).unwrap();
            frame.truncate(bytes);
            change(&mut frame);
            frame
        };
        let usual = "10.7.0.2:9";
        let frames = [
            frame(usual, &|_| ()),
            frame(usual, &|frame| frame[50] ^= 1),
            frame(usual, &|frame| frame[24] ^= 1),
            frame(usual, &|frame| frame.truncate(70)),
            frame(usual, &|frame| frame.extend([0; 9])),
            frame(usual, &|frame| frame[39] -= 1),
            frame("10.7.0.1:9", &|_| ()),
            frame("10.7.0.255:9", &|_| ()),
            frame("127.0.0.1:9", &|_| ()),
            frame("224.0.0.1:9", &|_| ()),
            frame("10.7.0.2:0", &|_| ()),
            // A group, options, a fragment, another protocol, a virtual network.
            frame(usual, &|frame| frame[..6].fill(0xFF)),
            frame(usual, &|frame| frame[14] = 0x46),
            frame(usual, &|frame| frame[20] = 0x20),
            frame(usual, &|frame| frame[23] = 6),
            frame(usual, &|frame| frame[12..14].copy_from_slice(&[0x81, 0])),
            frame(usual, &|_| ()),
        ];
        for frame in &frames {
            self.put(theirs.index as i32, frame);
        }
    }
}

/// The interface at an end.
pub fn interface(end: &End) -> Interface {
    end.run(|| Interface::named(INTERFACE)).unwrap().unwrap()
}

/// Pings a host from this thread's namespace until it answers.
pub fn ping(host: IpAddr, patience: Duration) {
    let (family, protocol, request, reply) = match host {
        IpAddr::V4(_) => (AddressFamily::INET, ipproto::ICMP, 8, 0),
        IpAddr::V6(_) => (AddressFamily::INET6, ipproto::ICMPV6, 128, 129),
    };
    let raw = socket(family, SocketType::RAW, Some(protocol)).unwrap();
    let mut message = vec![request, 0, 0, 0, 0x12, 0x34, 0, 1];
    message.extend(b"data of a ping");
    if host.is_ipv4() {
        let sum: u32 = message
            .chunks(2)
            .map(|it| u32::from(it[0]) << 8 | u32::from(it[1]))
            .sum();
        let sum = !((sum & 0xFFFF) + (sum >> 16)) as u16;
        message[2..4].copy_from_slice(&sum.to_be_bytes());
    }
    let deadline = Instant::now() + patience;
    let mut buffer = [0; 200];
    loop {
        sendto(
            &raw,
            &message,
            SendFlags::empty(),
            &SocketAddr::new(host, 0),
        )
        .unwrap();
        let soon = Instant::now() + Duration::from_millis(100);
        while Instant::now() < soon {
            if let Ok((bytes, _)) = recv(&raw, &mut buffer[..], RecvFlags::DONTWAIT) {
                // Over IPv4, the packet's header is there, too.
                let packet = &buffer[if host.is_ipv4() { 20 } else { 0 }..bytes];
                if packet[0] == reply && packet[4..] == message[4..] {
                    return;
                }
            }
            std::thread::yield_now();
        }
        assert!(Instant::now() < deadline, "{host} does not answer");
    }
}
