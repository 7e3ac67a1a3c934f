//! Frames against the packet program's twin.

use super::bench::Bench;
use super::frames::{binary, client, frame, of_the_paper, reply, request, server};
use super::item::Item;
use super::lookups::Pace;
use super::oracle::{Oracle, seal};
use super::streams;
use glimmer_accel_rtl::random::{each_seed, from_seed};
use glimmer_accel_rtl::tools::Tools;
use rand::Rng;
use rand::rngs::SmallRng;

/// Seeds that change the client's address in a GET so that the first byte of its reply is 0xEE.
/// They fail where that byte alone tells the CPU's frames from replies.
const KEPT: [u64; 3] = [
    10456370476887895677,
    7106842395330232245,
    535546514179469074,
];

fn bytes(rng: &mut SmallRng, count: usize) -> Vec<u8> {
    (0..count).map(|_| rng.random()).collect()
}

/// A length, often a short one or the longest.
fn length(rng: &mut SmallRng, max: usize) -> usize {
    match rng.random_range(0..8) {
        0 => max,
        1 => rng.random_range(1..=max),
        _ => rng.random_range(1..=max.min(20)),
    }
}

fn items(rng: &mut SmallRng, oracle: &Oracle, bench: &mut Bench) -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    for number in 0..60u8 {
        let key_bytes = length(rng, 250);
        let value_bytes = length(rng, 1400);
        let mut key = bytes(rng, key_bytes);
        key[0] = number;
        let item = Item {
            value: bytes(rng, value_bytes),
            flags: rng.random(),
            cas: if rng.random() { rng.random() } else { 0 },
        };
        if number < 40 && oracle.fill(&key, &item) {
            bench.lookups.items.insert(key.clone(), item);
        }
        keys.push(key);
    }
    keys
}

/// A GET, now and then with the headers of other traffic.
fn some_request(rng: &mut SmallRng, keys: &[Vec<u8>]) -> Vec<u8> {
    let key = &keys[rng.random_range(0..keys.len())];
    let opcode = [0, 9, 12, 13][rng.random_range(0..4)];
    let mut frame = match rng.random_range(0..16) {
        0 => request(false, &binary(opcode, key, rng.random())),
        1 => request(true, &[b"get ", &key[..], b"\r\n"].concat()),
        2 => {
            let count = rng.random_range(0..1472);
            frame(client(true), server(true), &bytes(rng, count))
        }
        3 => {
            let count = rng.random_range(1..1515);
            bytes(rng, count)
        }
        4 => {
            let count = rng.random_range(1..80);
            bytes(rng, count)
        }
        _ => request(true, &binary(opcode, key, rng.random())),
    };
    if frame.len() > 50 {
        // The request's ID, and the field that is reserved.
        frame[42..44].copy_from_slice(&rng.random::<[u8; 2]>());
        frame[48..50].copy_from_slice(&rng.random::<[u8; 2]>());
    }
    if frame[..].get(12) == Some(&8) {
        seal(&mut frame);
    }
    frame
}

fn mutate(rng: &mut SmallRng, frame: &mut Vec<u8>) {
    for _ in 0..rng.random_range(1..3) {
        let header = frame.len().min(if rng.random() { 80 } else { usize::MAX });
        let at = rng.random_range(0..header);
        match rng.random_range(0..6) {
            0 => frame[at] = rng.random(),
            1 => frame.truncate(at.max(1)),
            2 => frame.insert(at, rng.random()),
            3 => frame[at] = frame[at].wrapping_add(1),
            _ => frame[at] ^= 1 << rng.random_range(0..8),
        }
    }
    frame.truncate(1514);
    match rng.random_range(0..4) {
        0 => {}
        1 if frame.len() > 42 => {
            seal(frame);
            frame[40..42].fill(0);
        }
        _ => seal(frame),
    }
}

/// Frames of all kinds, half of them mutated, with back-pressure on every port.
pub fn against_the_twin(
    tools: &Tools,
    width: usize,
    bug: Option<&'static str>,
    seed: u64,
    frames: usize,
) {
    let mut rng = from_seed(seed);
    let mut bench = Bench::new(tools, width, bug, seed);
    let oracle = Oracle::new();
    let keys = items(&mut rng, &oracle, &mut bench);
    bench.lookups.pace = Pace::Random;
    let (mut replies, mut passed, mut from_cpu) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..frames {
        let mut frame = some_request(&mut rng, &keys);
        if rng.random() {
            mutate(&mut rng, &mut frame);
        }
        match oracle.reply(&frame) {
            Some(reply) => replies.push(reply),
            None => passed.push(frame.clone()),
        }
        bench.rx.frames.push_back(frame);
        if rng.random_bool(0.2) {
            let frame = streams::from_cpu(&mut rng, 90);
            from_cpu.push(frame.clone());
            bench.cpu_tx.frames.push_back(frame);
        }
    }
    while !bench.rx.frames.is_empty() {
        if bench.cycle.is_multiple_of(5000) {
            // Sometimes a port is slow, and what is before it fills up.
            let mut pace = || [1.0, 0.9, 0.5, 0.1][rng.random_range(0..4)];
            (bench.rx.offers, bench.cpu_tx.offers) = (pace(), pace());
            (bench.tx.takes, bench.cpu_rx.takes) = (pace(), pace());
        }
        bench.step();
    }
    (bench.tx.takes, bench.cpu_rx.takes) = (1.0, 1.0);
    bench.drain();
    let (theirs, ours) = bench.tx.parted();
    same("replies", &ours, &replies);
    same("frames to the CPU", &bench.cpu_rx.plain(), &passed);
    same("frames of the CPU", &theirs, &from_cpu);
    assert!(
        frames < 200 || replies.len() * 6 > frames,
        "{}",
        replies.len()
    );
    assert_eq!(bench.out.hits, replies.len() as u64);
    let asked = bench.lookups.asked.len() as u64;
    assert_eq!(
        bench.out.hits + bench.out.misses + bench.out.too_long,
        asked
    );
    let runts = passed.iter().filter(|frame| frame.len() < 60).count();
    assert_eq!(bench.out.runts, runts as u64);
    assert_eq!((bench.out.dropped_main, bench.out.dropped_defer), (0, 0));
    assert_eq!(bench.out.has_wrong_tag, 0);
}

/// Names the first frame that differs.
pub fn same(what: &str, have: &[&[u8]], want: &[Vec<u8>]) {
    for (place, (have, want)) in have.iter().zip(want).enumerate() {
        let differs = have.iter().zip(want).position(|(have, want)| have != want);
        let lengths = (have.len(), want.len());
        assert!(
            have == want,
            "{what}: number {place} at {differs:?}, lengths {lengths:?}"
        );
    }
    assert_eq!(have.len(), want.len(), "{what}");
}

#[test]
fn narrow() {
    if let Some(tools) = Tools::for_test() {
        each_seed(&[], |seed| against_the_twin(&tools, 1, None, seed, 6000));
    }
}

#[test]
fn wide() {
    if let Some(tools) = Tools::for_test() {
        each_seed(&KEPT, |seed| {
            against_the_twin(&tools, 8, None, seed, 20_000);
        });
    }
}

/// Figures 6 and 7 of the paper, byte for byte. Flags and CAS are the item's, where the paper's
/// replies have 0xdeadbeef and zero whatever the item has.
#[test]
fn the_papers_frames() {
    let Some(tools) = Tools::for_test() else {
        return;
    };
    let [figure_6, figure_7] = of_the_paper();
    for width in [1, 8] {
        let mut bench = Bench::new(&tools, width, None, 1);
        let item = Item {
            value: b"value".to_vec(),
            flags: 0xDEAD_BEEF,
            cas: 0,
        };
        bench.lookups.items.insert(b"key".to_vec(), item);
        bench.rx.frames.push_back(request(true, &figure_6));
        bench.drain();
        assert_eq!(reply(&bench.tx.frames[0].frame), figure_7);
        assert_eq!((bench.tx.frames.len(), bench.cpu_rx.frames.len()), (1, 0));
    }
}

#[test]
fn the_twin_keeps_what_it_was_given() {
    let oracle = Oracle::new();
    let item = Item {
        value: vec![b'v'],
        flags: 0,
        cas: 0,
    };
    let keys = (0..1_000u32).map(u32::to_be_bytes);
    let (kept, refused): (Vec<_>, Vec<_>) = keys.partition(|key| oracle.fill(key, &item));
    assert!(!refused.is_empty(), "some keys met two full slots");
    for key in kept {
        let reply = oracle.reply(&request(true, &binary(0, &key, [7; 4])));
        assert!(reply.is_some(), "{key:?} was lost");
    }
}
