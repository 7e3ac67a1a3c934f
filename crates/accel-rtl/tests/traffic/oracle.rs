//! What has to become of a frame: the twin's verdict.

use super::frames::{SERVER_MAC, checksum};
use super::item::Item;
use glimmer_base::Seed;
use glimmer_hotset::layout::{HotItem, NEVER_NS};
use glimmer_hotset::twin::{Interface, Prefix, Verdict, answer};
use glimmer_hotset::{Filled, Guard, Memory, Reader};
use std::net::Ipv4Addr;
use std::sync::Arc;

pub const HOST_MAC: u64 = u64::from_be_bytes([
    0,
    0,
    SERVER_MAC[0],
    SERVER_MAC[1],
    SERVER_MAC[2],
    SERVER_MAC[3],
    SERVER_MAC[4],
    SERVER_MAC[5],
]);
pub const HOST_IP: u64 = 0x0A07_0002;
pub const PORT: u64 = super::frames::PORT as u64;
pub const SOURCE_NET: u64 = 0x0A07_0001;
pub const SOURCE_MASK: u64 = 0xFFFF_FF00;

/// See the module's text.
#[derive(Debug)]
pub struct Oracle {
    guard: Guard,
    reader: Reader,
    pub interface: Interface,
}

impl Oracle {
    pub fn new() -> Oracle {
        let memory = Arc::new(Memory::new(4096, 1, 42));
        memory.control().set_datagram_bytes_max(65_535);
        Oracle {
            guard: Guard::new(memory.clone()),
            reader: Reader::new(memory, 0),
            interface: Interface {
                mac: SERVER_MAC,
                addresses: vec![Ipv4Addr::from_bits(HOST_IP as u32).into()],
                port: PORT as u16,
                sources: vec![Prefix {
                    address: Ipv4Addr::from_bits(SOURCE_NET as u32).into(),
                    bits: 24,
                }],
                not_hosts: Vec::new(),
                // The circuit takes every host for one on its link.
                links: vec![Prefix {
                    address: Ipv4Addr::UNSPECIFIED.into(),
                    bits: 0,
                }],
                frame_bytes_max: 1514,
                growth_bytes_max: 4096,
                partial_checksums: false,
            },
        }
    }

    /// Stores an item in the twin; says whether one of the key's two slots was empty. One that is
    /// not would lose its own item.
    #[must_use]
    pub fn fill(&self, key: &[u8], item: &Item) -> bool {
        let hot = HotItem {
            key,
            value: &item.value,
            flags: item.flags,
            cas: item.cas,
            deadline_ns: NEVER_NS,
        };
        let epoch = self.guard.epoch();
        let keyhash = Seed(7).keyhash(key);
        match self.guard.fill(epoch, keyhash, &hot, 1, |_| 1) {
            Filled::Live(_) => true,
            Filled::Outweighed => false,
            other => panic!("{other:?}"),
        }
    }

    /// The reply to a frame, or `None` if the CPU gets it. The circuit leaves text and IPv6 to the
    /// CPU, which the twin answers.
    pub fn reply(&self, frame: &[u8]) -> Option<Vec<u8>> {
        let is_binary = frame.get(50) == Some(&0x80) && frame[12..14] == [0x08, 0x00];
        if !is_binary {
            return None;
        }
        let mut answered = frame.to_vec();
        match answer(&self.reader, &self.interface, 0, &mut answered) {
            Verdict::Reply => Some(answered),
            Verdict::Pass(_) => None,
        }
    }
}

/// The sum of a datagram and its pseudo-header, which is 0 if its checksum is right.
pub fn datagram_sum(ip: &[u8], udp: &[u8]) -> u16 {
    let bytes = (udp.len() as u32).to_be_bytes();
    checksum(&[&ip[12..20], &bytes, &[0, 0, 0, 17], udp].concat())
}

/// Makes the checksums of a frame right, as far as it has such fields.
pub fn seal(frame: &mut [u8]) {
    if frame.len() < 42 {
        return;
    }
    let (ip, udp) = frame[14..].split_at_mut(20);
    ip[10..12].fill(0);
    let sum = checksum(ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    udp[6..8].fill(0);
    let sum = match datagram_sum(ip, udp) {
        0 => 0xFFFF,
        sum => sum,
    };
    udp[6..8].copy_from_slice(&sum.to_be_bytes());
}
