//! How many cycles the traffic manager takes.

use super::bench::Bench;
use super::frames::{binary, request};
use super::item::Item;
use super::lookups::Pace;
use glimmer_accel_rtl::tools::Tools;

fn get(key: &[u8]) -> Vec<u8> {
    request(true, &binary(0, key, *b"opaq"))
}

/// Cycles that one frame alone loses on its way to the CPU, beside a wire.
fn added(bench: &mut Bench, frame: Vec<u8>) -> u64 {
    bench.rx.frames.push_back(frame);
    bench.drain();
    let (taken, left) = (bench.rx.taken.last(), bench.cpu_rx.frames.last());
    let (taken, left) = (taken.expect("taken"), left.expect("passed on"));
    assert_eq!(taken.frame, left.frame);
    assert_eq!(left.last - left.first, taken.last - taken.first);
    left.last - taken.last
}

/// The narrow budget: F + 3k + 16 cycles for a frame of F bytes, if the lookup needs its whole
/// 3k + 12.
#[test]
fn a_missed_frame() {
    let Some(tools) = Tools::for_test() else {
        return;
    };
    let mut bench = Bench::new(&tools, 1, None, 1);
    for key_bytes in (1..=250).step_by(13).chain([250]) {
        let frame = get(&vec![b'm'; key_bytes]);
        let budget = (frame.len() + 3 * key_bytes + 16) as u64;
        assert_eq!(added(&mut bench, frame), budget, "k = {key_bytes}");
    }
}

/// A frame that is no GET waits for its own last byte, and two cycles more.
#[test]
fn another_frame() {
    let Some(tools) = Tools::for_test() else {
        return;
    };
    for width in [1, 8] {
        let mut bench = Bench::new(&tools, width, None, 1);
        for bytes in [1, 14, 60, 61, 64, 1000, 1514] {
            let beats = (bytes as u64).div_ceil(width as u64);
            assert_eq!(added(&mut bench, vec![0; bytes]), beats + PASS_CYCLES);
        }
    }
}

/// Cycles in the classifier, in the queue of frames, and in the defer buffer's register.
const PASS_CYCLES: u64 = 2;

/// Cycles for the beats of frames that come and go without a gap.
fn cycles_per_frame(bench: &mut Bench, frame: &[u8], frames: usize) -> f64 {
    bench.rx.frames.extend(vec![frame.to_vec(); frames]);
    bench.drain();
    let taken = &bench.rx.taken;
    assert_eq!(taken.len(), frames);
    (taken[frames - 1].last - taken[0].first + 1) as f64 / frames as f64
}

/// At 10 Gb/s and 156.25 MHz a frame of 64 bytes, 60 without its checksum, has 84 bytes of time
/// on the wire, which are 10.5 beats of 8 bytes. The traffic manager takes and passes one in 8.
#[test]
fn line_rate_of_the_shortest_frames() {
    let Some(tools) = Tools::for_test() else {
        return;
    };
    let mut bench = Bench::new(&tools, 8, None, 1);
    let cycles = cycles_per_frame(&mut bench, &[0; 60], 10_000);
    println!("60 bytes: {cycles} cycles of 10.5");
    assert!(cycles <= 8.0, "{cycles}");
    let left = &bench.cpu_rx.frames;
    let cycles = (left[9999].last - left[0].first + 1) as f64 / 1e4;
    assert!(cycles <= 8.0, "{cycles}");
}

/// GETs at line rate: the time of a request on the wire is that of its bytes and 24 more, the
/// reply's as well. With a lookup that keeps up, the traffic manager does.
#[test]
fn line_rate_of_gets() {
    let Some(tools) = Tools::for_test() else {
        return;
    };
    for (width, key_bytes, value_bytes) in [
        (8, 1, 1),
        (8, 1, 8),
        (8, 8, 8),
        (8, 16, 2),
        (8, 31, 64),
        (1, 1, 1),
        (1, 30, 30),
        (1, 250, 1000),
    ] {
        for (opcode, is_hit) in [(0, true), (0, false), (12, true)] {
            let mut bench = Bench::new(&tools, width, None, 1);
            bench.lookups.pace = Pace::After(2);
            let item = Item {
                value: vec![b'v'; value_bytes],
                flags: 0,
                cas: 0,
            };
            let key = vec![b'k'; key_bytes];
            if is_hit {
                bench.lookups.items.insert(key.clone(), item);
            }
            let frame = request(true, &binary(opcode, &key, *b"opaq"));
            let cycles = cycles_per_frame(&mut bench, &frame, 1000);
            let reply_bytes = if !is_hit {
                0
            } else if opcode == 12 {
                78 + key_bytes + value_bytes
            } else {
                78 + value_bytes
            };
            let wire_bytes = 24 + frame.len().max(reply_bytes);
            let line = wire_bytes as f64 / width as f64;
            println!("W={width} k={key_bytes} v={value_bytes} {is_hit}: {cycles} of {line}");
            // The buffers fill once.
            assert!(
                cycles <= line,
                "{width} {key_bytes} {value_bytes} {is_hit} {cycles}"
            );
            let done = if is_hit {
                &bench.tx.frames
            } else {
                &bench.cpu_rx.frames
            };
            let cycles = (done[999].last - done[0].first + 1) as f64 / 1000.0;
            assert!(
                cycles <= line,
                "{width} {key_bytes} {value_bytes} {is_hit} {cycles}"
            );
        }
    }
}

/// Frames of all lengths back to back: the MAC never waits, as long as nothing is looked up.
#[test]
fn no_gap() {
    let Some(tools) = Tools::for_test() else {
        return;
    };
    for width in [1, 8] {
        let mut bench = Bench::new(&tools, width, None, 1);
        bench
            .rx
            .frames
            .extend((1..600).map(|bytes| vec![bytes as u8; bytes]));
        bench.drain();
        for pair in bench.rx.taken.windows(2) {
            assert_eq!(pair[1].first, pair[0].last + 1);
        }
    }
}
