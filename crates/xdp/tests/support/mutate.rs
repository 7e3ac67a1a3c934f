//! Random frames: requests of all forms, and what can be wrong with them.

use super::frames::{self, binary, client, server};
use rand::Rng;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom as _;

/// A frame that asks for one of these keys in some form, and then maybe something is changed.
pub fn frame(rng: &mut SmallRng, keys: &[Vec<u8>]) -> Vec<u8> {
    let is_v4 = rng.random();
    let mut request = request(rng, keys);
    if rng.random_bool(0.15) {
        damage(rng, &mut request);
    }
    let mut frame = if rng.random_bool(0.9) {
        frames::request(is_v4, &request)
    } else {
        let mut head = [0; 8];
        rng.fill(&mut head);
        head[4] &= 1;
        let datagram = [&head[..], &request].concat();
        frames::frame(client(is_v4), server(is_v4), &datagram)
    };
    if frame.len() < 60 && rng.random_bool(0.7) {
        frame.resize(60, if rng.random() { 0 } else { 0xA5 });
    }
    for _ in 0..[0, 0, 0, 1, 1, 2, 3].choose(rng).copied().unwrap() {
        if frame.len() > 14 {
            change(rng, &mut frame);
        }
    }
    // Half of what was changed has right checksums, so that later checks see it.
    if rng.random() {
        repair(&mut frame);
    }
    if rng.random_bool(0.02) {
        rng.fill(&mut frame[..]);
    }
    frame.resize(frame.len().clamp(14, 2000), 0);
    frame
}

fn request(rng: &mut SmallRng, keys: &[Vec<u8>]) -> Vec<u8> {
    let mut key = keys.choose(rng).unwrap().clone();
    match rng.random_range(0..20) {
        0 => key.push(b'x'),
        1 => _ = key.pop(),
        2 => key.resize(rng.random_range(0..300), b'k'),
        3 => damage(rng, &mut key),
        _ => {}
    }
    match rng.random_range(0..7) {
        0 | 1 => [b"get ", &key[..], b"\r\n"].concat(),
        2 => [b"gets ", &key[..], b"\r\n"].concat(),
        3 => {
            const VERBS: [&[u8]; 5] = [b"gat ", b"gets", b"get  ", b"GET ", b""];
            const ENDS: [&[u8]; 5] = [b"\n", b" \r\n", b"\r\n\r\n", b"", b"\r"];
            let (verb, end) = (VERBS.choose(rng).unwrap(), ENDS.choose(rng).unwrap());
            [verb, &key[..], end].concat()
        }
        _ => {
            let opcode = if rng.random_bool(0.9) {
                *[0, 9, 12, 13].choose(rng).unwrap()
            } else {
                rng.random()
            };
            let mut request = binary(opcode, &key, rng.random());
            if rng.random_bool(0.1) {
                let at = rng.random_range(0..24);
                request[at] ^= 1 << rng.random_range(0..8);
            }
            request
        }
    }
}

fn damage(rng: &mut SmallRng, bytes: &mut Vec<u8>) {
    if bytes.is_empty() {
        return;
    }
    let at = rng.random_range(0..bytes.len());
    match rng.random_range(0..5) {
        0 => bytes[at] ^= 1 << rng.random_range(0..8),
        1 => bytes[at] = *b" \r\n\0\x7f\x1f!\xff".choose(rng).unwrap(),
        2 => bytes.truncate(at),
        3 => bytes.insert(at, rng.random()),
        _ => bytes.extend_from_within(at..),
    }
}

fn change(rng: &mut SmallRng, frame: &mut Vec<u8>) {
    let is_v4 = frame[12..14] == [8, 0];
    let udp_at = if is_v4 { 34 } else { 54 };
    let set = |frame: &mut Vec<u8>, at: usize, byte: u8| {
        if let Some(place) = frame.get_mut(at) {
            *place = byte;
        }
    };
    match rng.random_range(0..16) {
        // A tag, and the rest two words later.
        0 => _ = frame.splice(12..12, [0x81, 0, 0, rng.random()]),
        // Options of IPv4, or another version.
        1 => set(
            frame,
            14,
            *[0x46, 0x44, 0x55, 0x60, 0x65, 0x45].choose(rng).unwrap(),
        ),
        // Fragments, flags, or an extension header of IPv6.
        2 => set(frame, 20, rng.random()),
        3 => set(frame, 21, rng.random_range(0..3)),
        // Lengths of IP and of UDP.
        4 => set(frame, if is_v4 { 17 } else { 19 }, rng.random()),
        5 => set(frame, udp_at + 5, rng.random()),
        // Ports, addresses, hardware addresses.
        6 => set(frame, udp_at + rng.random_range(0..4), rng.random()),
        7 => set(frame, 22 + rng.random_range(0..32), rng.random()),
        8 => set(frame, rng.random_range(0..12), rng.random()),
        9 => {
            let (first, last) = if is_v4 { (26, 29) } else { (22, 37) };
            // Groups and other networks, or the server itself and all hosts.
            match rng.random() {
                true => set(
                    frame,
                    first,
                    *[0, 127, 224, 255, 10, 0xFD].choose(rng).unwrap(),
                ),
                false => set(frame, last, *[0, 2, 255].choose(rng).unwrap()),
            }
        }
        // No checksum, or what the kernel leaves to hardware.
        10 => {
            set(frame, udp_at + 6, 0);
            set(frame, udp_at + 7, 0);
        }
        11 if frame.len() > udp_at + 8 => {
            let udp_bytes = frame.len() - udp_at;
            let sum = frames::pseudo_sum(client(is_v4), server(is_v4), udp_bytes);
            frame[udp_at + 6..udp_at + 8].copy_from_slice(&sum.to_be_bytes());
        }
        12 => frame.truncate(rng.random_range(14..=frame.len())),
        13 => frame.resize(frame.len() + rng.random_range(0..70), rng.random()),
        14 => frame.resize(60, 0),
        _ => {
            let at = rng.random_range(0..frame.len());
            frame[at] ^= 1 << rng.random_range(0..8);
        }
    }
}

/// Writes right checksums into a frame, as far as it has places for them.
fn repair(frame: &mut [u8]) {
    let is_v4 = frame[12..14] == [8, 0];
    let udp_at = if is_v4 { 34 } else { 54 };
    if frame.len() < udp_at + 8 {
        return;
    }
    if is_v4 {
        frame[24..26].fill(0);
        let sum = frames::checksum(&frame[14..34]);
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
    }
    let udp_bytes = usize::from(u16::from_be_bytes([frame[udp_at + 4], frame[udp_at + 5]]));
    let Some(end) = Some(udp_at + udp_bytes).filter(|&end| end <= frame.len() && udp_bytes >= 8)
    else {
        return;
    };
    frame[udp_at + 6..udp_at + 8].fill(0);
    let addresses = if is_v4 { 26..34 } else { 22..54 };
    let length = (udp_bytes as u32).to_be_bytes();
    let pseudo = [&frame[addresses], &length, &[0, 0, 0, 17]].concat();
    let sum = frames::checksum(&[&pseudo, &frame[udp_at..end]].concat());
    frame[udp_at + 6..udp_at + 8].copy_from_slice(&sum.to_be_bytes());
}
