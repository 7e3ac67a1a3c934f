//! The body of the fuzz target `accelerator_frame`: a frame for the packet program's twin.

use crate::guard::Guard;
use crate::layout::{HotItem, NEVER_NS};
use crate::lookup::Reader;
use crate::memory::Memory;
use crate::twin::{Interface, Prefix, Verdict, answer};
use glimmer_base::Seed;
use glimmer_base::sync::Arc;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Passes a frame on as it is, or answers it with a datagram whose checksums are right.
///
/// # Panics
///
/// If the twin does anything else.
pub fn frame(data: &[u8]) {
    let memory = Arc::new(Memory::new(16, 1, 0));
    let guard = Guard::new(memory.clone());
    let reader = Reader::new(memory, 0);
    for (key, value) in [(&b"key"[..], &b"value"[..]), (b"k", &[b'v'; 700])] {
        let item = HotItem {
            key,
            value,
            flags: 7,
            cas: 9,
            deadline_ns: NEVER_NS,
        };
        guard.fill(guard.epoch(), Seed(0).keyhash(key), &item, 1, |_| 0);
    }
    let any = |address| Prefix { address, bits: 0 };
    let interface = Interface {
        mac: [2, 0, 0, 0, 0, 2],
        addresses: vec![
            Ipv4Addr::new(10, 7, 0, 2).into(),
            Ipv6Addr::new(0xFD00, 0, 0, 0, 0, 0, 0, 2).into(),
        ],
        port: 11211,
        sources: vec![
            any(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
            any(IpAddr::V6(Ipv6Addr::UNSPECIFIED)),
        ],
        not_hosts: vec![
            Ipv4Addr::new(10, 7, 0, 2).into(),
            Ipv6Addr::new(0xFD00, 0, 0, 0, 0, 0, 0, 2).into(),
        ],
        links: Vec::new(),
        frame_bytes_max: 1514,
        growth_bytes_max: 1514,
        partial_checksums: true,
    };
    let mut frame = data.to_vec();
    match answer(&reader, &interface, 0, &mut frame) {
        Verdict::Pass(_) => assert_eq!(frame, data, "a frame that is passed is unchanged"),
        Verdict::Reply => check_checksums(&frame),
    }
}

/// RFC 1071, one big-endian word after the other.
fn sum(bytes: &[u8]) -> u32 {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
    bytes.chunks(2).map(word).sum()
}

fn is_complete(mut sum: u32) -> bool {
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    sum == 0xFFFF
}

fn check_checksums(frame: &[u8]) {
    let is_v4 = frame[12] == 0x08;
    let (ip, udp) = frame[14..].split_at(if is_v4 { 20 } else { 40 });
    let addresses = if is_v4 { &ip[12..] } else { &ip[8..] };
    assert!(
        !is_v4 || is_complete(sum(ip)),
        "the checksum of the IP header"
    );
    let pseudo = sum(addresses) + udp.len() as u32 + 17;
    assert!(
        is_complete(pseudo + sum(udp)),
        "the checksum of the datagram"
    );
}
