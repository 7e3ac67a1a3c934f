//! One frame after the other, at the limits.

use super::bench::Bench;
use super::frames::checksum;
use super::frames::{binary, request};
use super::item::Item;
use super::lookups::Pace;
use super::oracle::{Oracle, datagram_sum, seal};
use super::streams;
use super::twin::same;
use glimmer_accel_rtl::random::from_seed;
use glimmer_accel_rtl::tools::Tools;
use rand::Rng;
use std::ops::Range;

/// What becomes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Reply,
    Cpu,
    Dropped,
}

fn get(opcode: u8, key: &[u8]) -> Vec<u8> {
    request(true, &binary(opcode, key, *b"opaq"))
}

/// A bench and an oracle with these items.
fn with_items(
    tools: &Tools,
    width: usize,
    bug: Option<&'static str>,
    seed: u64,
    items: &[(Vec<u8>, Vec<u8>)],
) -> (Bench, Oracle) {
    let mut bench = Bench::new(tools, width, bug, seed);
    let oracle = Oracle::new();
    for (key, value) in items {
        let item = Item {
            value: value.clone(),
            flags: 0x0102_0304,
            cas: 0x0506_0708_090a_0b0c,
        };
        if key.len() <= 250 && value.len() <= 1400 {
            assert!(oracle.fill(key, &item));
        }
        bench.lookups.items.insert(key.clone(), item);
    }
    (bench, oracle)
}

/// Sends frames without a gap, and compares where they went.
fn expect(bench: &mut Bench, oracle: &Oracle, frames: &[(Vec<u8>, Fate)]) {
    let (mut replies, mut passed) = (Vec::new(), Vec::new());
    for (frame, fate) in frames {
        bench.rx.frames.push_back(frame.clone());
        match fate {
            Fate::Reply => replies.push(oracle.reply(frame).expect("the twin answers it")),
            Fate::Cpu => {
                assert_eq!(oracle.reply(frame), None);
                passed.push(frame.clone());
            }
            Fate::Dropped => {}
        }
    }
    bench.drain();
    same("replies", &bench.tx.parted().1, &replies);
    same("frames to the CPU", &bench.cpu_rx.plain(), &passed);
}

/// Every kind of key and value at its limits. A reply of 1,514 bytes is the longest one.
pub fn lengths(tools: &Tools, width: usize, bug: Option<&'static str>, seed: u64) {
    let value = |bytes: usize| -> Vec<u8> { (0..bytes).map(|at| at as u8 ^ 0x5A).collect() };
    let key = |bytes: usize, mark: u8| [vec![mark], vec![b'k'; bytes - 1]].concat();
    let mut items = Vec::new();
    for (mark, key_bytes) in (0..).zip([1, 2, 3, 7, 8, 9, 16, 17, 249, 250]) {
        for (more, value_bytes) in (0..).zip([1, 2, 3, 7, 8, 9, 255, 256, 1186, 1187, 1400]) {
            if key_bytes > 1 || more == 0 {
                let mut key = key(key_bytes, mark);
                key[key_bytes - 1] = more;
                items.push((key, value(value_bytes)));
            }
        }
    }
    let (mut bench, oracle) = with_items(tools, width, bug, seed, &items);
    let mut frames = Vec::new();
    for (key, value) in &items {
        for opcode in [0x00, 0x09, 0x0c, 0x0d] {
            let key_bytes = if opcode >= 0x0c { key.len() } else { 0 };
            let fate = match 78 + key_bytes + value.len() {
                ..=1514 => Fate::Reply,
                _ => Fate::Cpu,
            };
            frames.push((get(opcode, key), fate));
        }
    }
    for key_bytes in 251..=255 {
        frames.push((get(0, &vec![b'l'; key_bytes]), Fate::Cpu));
    }
    frames.push((get(0, &[b'l'; 300]), Fate::Cpu));
    frames.push((get(0, b""), Fate::Cpu));
    expect(&mut bench, &oracle, &frames);
    assert!(bench.out.too_long > 0);
    // A longer limit than the twin's for values: what the lookup can hold is answered.
    let (mut bench, _) = with_items(tools, width, bug, seed, &[(b"key".to_vec(), value(1436))]);
    bench.rx.frames.push_back(get(0, b"key"));
    bench.drain();
    let reply = &bench.tx.frames[0].frame;
    assert_eq!((reply.len(), &reply[78..]), (1514, &value(1436)[..]));
    let (ip, udp) = reply[14..].split_at(20);
    assert_eq!((checksum(ip), datagram_sum(ip, udp)), (0, 0));
}

pub fn runts_and_jumbos(tools: &Tools, width: usize, bug: Option<&'static str>, seed: u64) {
    let items = [(b"key".to_vec(), b"value".to_vec())];
    let (mut bench, oracle) = with_items(tools, width, bug, seed, &items);
    let mut frames = Vec::new();
    let whole = get(0, b"key");
    for bytes in (1..=77).chain([1513, 1514, 1515, 1516, 1522, 9000, 66_000]) {
        let mut frame = whole.clone();
        frame.resize(bytes, 0xA5);
        let fate = match bytes {
            77 => Fate::Reply,
            ..=1514 => Fate::Cpu,
            _ => Fate::Dropped,
        };
        frames.push((frame, fate));
        frames.push((whole.clone(), Fate::Reply));
        frames.push((get(0, b"missing"), Fate::Cpu));
    }
    expect(&mut bench, &oracle, &frames);
    assert_eq!((bench.out.runts, bench.out.jumbos), (59, 5));
}

/// Each bit of a request in turn, with the checksums as they were and made right again.
pub fn every_bit(tools: &Tools, width: usize, bug: Option<&'static str>, seed: u64) {
    let items = [(b"key".to_vec(), b"value".to_vec())];
    let (mut bench, oracle) = with_items(tools, width, bug, seed, &items);
    let whole = get(12, b"key");
    let mut frames = vec![(whole.clone(), Fate::Reply)];
    for bit in 0..8 * whole.len() {
        let mut frame = whole.clone();
        frame[bit / 8] ^= 1 << (bit % 8);
        let mut sealed = frame.clone();
        seal(&mut sealed);
        let mut unsummed = frame.clone();
        unsummed[40..42].fill(0);
        for frame in [frame, sealed, unsummed] {
            let fate = match oracle.reply(&frame) {
                Some(_) => Fate::Reply,
                None => Fate::Cpu,
            };
            frames.push((frame, fate));
        }
    }
    let answered = frames.iter().filter(|(_, fate)| *fate == Fate::Reply);
    assert!(answered.count() > 100);
    expect(&mut bench, &oracle, &frames);
}

/// Clients of every address, and the CPU sends a frame to each of them meanwhile: a reply goes to
/// its client, a group has none, and no frame of either is lost, mixed up or out of order.
pub fn every_address(tools: &Tools, width: usize, bug: Option<&'static str>, seed: u64) {
    let mut rng = from_seed(seed);
    let items = [(b"key".to_vec(), b"value".to_vec())];
    let (mut bench, oracle) = with_items(tools, width, bug, seed, &items);
    bench.tx.takes = 0.7;
    let (mut frames, mut from_cpu) = (Vec::new(), Vec::new());
    for place in CLIENT_MAC_AT {
        for byte in 0..=255u8 {
            let mut get = get(0, b"key");
            get[place] = byte;
            let is_group = get[CLIENT_MAC_AT.start] & 1 == 1;
            let mut frame = streams::from_cpu(&mut rng, 90);
            frame[..6].copy_from_slice(&get[CLIENT_MAC_AT]);
            frames.push((get, if is_group { Fate::Cpu } else { Fate::Reply }));
            bench.cpu_tx.frames.push_back(frame.clone());
            from_cpu.push(frame);
        }
    }
    expect(&mut bench, &oracle, &frames);
    same("frames of the CPU", &bench.tx.parted().0, &from_cpu);
}

/// Where a request has its client's address.
const CLIENT_MAC_AT: Range<usize> = 6..12;

/// A sum of zero is sent as all ones: zero would say that there is none.
pub fn checksum_of_zero(tools: &Tools, width: usize, bug: Option<&'static str>, seed: u64) {
    // The checksum of the reply with a value of two zeros is the value that makes it zero.
    let (_, zeros) = with_items(tools, width, None, seed, &[(b"key".to_vec(), vec![0; 2])]);
    let value = zeros.reply(&get(0, b"key")).expect("an answer")[40..42].to_vec();
    let items = [(b"key".to_vec(), value)];
    let (mut bench, oracle) = with_items(tools, width, bug, seed, &items);
    expect(&mut bench, &oracle, &[(get(0, b"key"), Fate::Reply)]);
    assert_eq!(bench.tx.frames[0].frame[40..42], [0xFF, 0xFF]);
}

/// Write mode comes and goes under a stream of GETs: each is answered or is the CPU's, none is
/// lost, and both keep their order.
pub fn write_mode(tools: &Tools, width: usize, bug: Option<&'static str>, seed: u64) {
    let mut rng = from_seed(seed);
    let items: Vec<_> = (0..8u8)
        .map(|number| (vec![number; 9], vec![number; 30]))
        .collect();
    let (mut bench, oracle) = with_items(tools, width, bug, seed, &items);
    bench.lookups.pace = Pace::Random;
    let mut sent = Vec::new();
    for number in 0..1500u32 {
        let mut frame = get([0, 12][number as usize % 2], &[rng.random_range(0..10); 9]);
        frame[62..66].copy_from_slice(&number.to_be_bytes());
        seal(&mut frame);
        sent.push(frame.clone());
        bench.rx.frames.push_back(frame);
    }
    while !bench.rx.frames.is_empty() {
        if rng.random_bool(0.002) {
            bench.lookups.write_mode = !bench.lookups.write_mode;
        }
        bench.step();
    }
    bench.lookups.write_mode = true;
    bench.drain();
    let (mut replies, mut passed) = (bench.tx.frames.iter(), bench.cpu_rx.frames.iter());
    let (mut reply, mut pass) = (replies.next(), passed.next());
    for frame in &sent {
        if pass.is_some_and(|pass| pass.frame == *frame) {
            pass = passed.next();
        } else {
            let expected = oracle.reply(frame).expect("a miss is the CPU's");
            assert_eq!(reply.expect("it is lost").frame, expected);
            reply = replies.next();
        }
    }
    assert_eq!((reply, pass), (None, None));
    let out = &bench.out;
    assert_eq!(out.hits + out.misses + out.bypassed, 1500);
    assert!(
        out.hits > 200 && out.misses > 20 && out.bypassed > 200,
        "{out:?}"
    );
}

mod scenarios {
    use crate::both_widths;

    #[test]
    fn lengths() {
        both_widths(super::lengths);
    }

    #[test]
    fn runts_and_jumbos() {
        both_widths(super::runts_and_jumbos);
    }

    #[test]
    fn every_bit() {
        both_widths(super::every_bit);
    }

    #[test]
    fn every_address() {
        both_widths(super::every_address);
    }

    #[test]
    fn checksum_of_zero() {
        both_widths(super::checksum_of_zero);
    }

    #[test]
    fn write_mode() {
        both_widths(super::write_mode);
    }
}
