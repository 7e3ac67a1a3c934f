//! What happens when a buffer is full.

use super::bench::Bench;
use super::frames::{binary, request};
use super::item::Item;
use super::lookups::Pace;
use super::oracle::seal;
use glimmer_accel_rtl::tools::Tools;

const PATIENCE: u64 = 300;
const DEFER_BYTES: u64 = 16_384;
const MAIN_BYTES: usize = 8192;

fn get(number: u32, key: &[u8]) -> Vec<u8> {
    let mut frame = request(true, &binary(0, key, number.to_be_bytes()));
    seal(&mut frame);
    frame
}

fn bench(tools: &Tools, width: usize, bug: Option<&'static str>, seed: u64) -> Bench {
    let mut bench = Bench::new(tools, width, bug, seed);
    let item = Item {
        value: b"value".to_vec(),
        flags: 0,
        cas: 0,
    };
    bench.lookups.items.insert(b"key".to_vec(), item);
    bench.inputs.patience = PATIENCE;
    bench.lookups.pace = Pace::After(2);
    bench
}

/// The CPU takes nothing for a while: its frames are dropped whole once the defer buffer is full,
/// and hits are answered all the time.
pub fn a_cpu_that_sleeps(tools: &Tools, width: usize, bug: Option<&'static str>, seed: u64) {
    let mut bench = bench(tools, width, bug, seed);
    bench.cpu_rx.takes = 0.0;
    let mut missed = Vec::new();
    for number in 0..300u32 {
        let key_bytes = 100 + number as usize % 140;
        missed.push(get(number, &vec![b'm'; key_bytes]));
        bench.rx.frames.push_back(missed[number as usize].clone());
        bench.rx.frames.push_back(get(number, b"key"));
    }
    bench.drain();
    assert_eq!(bench.tx.frames.len(), 300, "every hit is answered");
    let out = bench.out;
    assert_eq!((out.hits, out.misses, out.dropped_main), (300, 300, 0));
    assert!(out.dropped_defer > 100, "{out:?}");
    assert!(
        (DEFER_BYTES - 400..=DEFER_BYTES).contains(&out.defer_high_water),
        "{out:?}"
    );

    bench.cpu_rx.takes = 0.7;
    for number in 300..400u32 {
        missed.push(get(number, b"missing"));
        bench.rx.frames.push_back(missed[number as usize].clone());
    }
    bench.drain();
    let dropped = bench.out.dropped_defer as usize;
    assert_eq!(bench.cpu_rx.frames.len(), 400 - dropped);
    let mut rest = missed.iter();
    for taken in bench.cpu_rx.plain() {
        assert!(rest.any(|frame| frame == taken), "damaged or out of order");
    }
    assert_eq!(rest.len(), 0, "the last frame has arrived");
}

/// The lookup takes nothing for a while: the main buffer fills up, and whole frames are dropped
/// before it. What it holds is looked up afterwards.
pub fn a_lookup_that_sleeps(tools: &Tools, width: usize, bug: Option<&'static str>, seed: u64) {
    let mut bench = bench(tools, width, bug, seed);
    // Frames that pass behind a GET fill the buffer in the midst of a frame.
    let mut sent = Vec::new();
    for number in 0..40u32 {
        let mut other = vec![number as u8; 1000];
        other[12] = 0x08;
        sent.extend([get(number, b"key"), other]);
    }
    bench.rx.frames.extend(sent.clone());
    bench.lookups.is_asleep = true;
    while !bench.rx.frames.is_empty() {
        bench.step();
    }
    assert!(bench.out.dropped_main > 20, "{:?}", bench.out);
    bench.lookups.is_asleep = false;
    bench.drain();
    let taken: Vec<_> = bench.cpu_rx.plain();
    let mut rest = sent.iter();
    for frame in &taken {
        assert!(rest.any(|sent| sent == frame), "damaged or out of order");
    }
    let arrived = taken.len() + bench.tx.frames.len();
    assert_eq!(arrived + bench.out.dropped_main as usize, sent.len());
    assert_eq!(bench.out.dropped_defer, 0);
}

/// A MAC that cannot wait: with no patience each beat is taken in its cycle.
pub fn no_patience(tools: &Tools, width: usize, bug: Option<&'static str>, seed: u64) {
    let mut bench = bench(tools, width, bug, seed);
    bench.inputs.patience = 0;
    bench.lookups.is_asleep = true;
    let frames: Vec<_> = (0..60).map(|number| get(number, b"key")).collect();
    bench.rx.frames.extend(frames.clone());
    while !bench.rx.frames.is_empty() {
        bench.step();
        assert_eq!(bench.out.rx_ready, 1);
    }
    bench.lookups.is_asleep = false;
    bench.drain();
    let answered = bench.tx.frames.len();
    assert!((10..30).contains(&answered), "{answered}");
    for (number, reply) in bench.tx.frames.iter().enumerate() {
        assert_eq!(reply.frame[62..66], (number as u32).to_be_bytes());
    }
    assert_eq!(bench.out.dropped_main, 60 - answered as u64);
}

/// The main buffer is full when the last beat of a GET comes: the whole GET is dropped, and nobody
/// looks it up.
pub fn no_room_for_a_last_beat(tools: &Tools, width: usize, bug: Option<&'static str>, seed: u64) {
    let mut bench = bench(tools, width, bug, seed);
    bench.inputs.patience = 0;
    bench.lookups.is_asleep = true;
    let words = |frame: &[u8]| frame.len().div_ceil(width);
    let (first, last) = (get(0, b"key"), get(1, b"key"));
    // All of these wait for the verdict on the first.
    let mut others = vec![vec![0x11; 1000]; 7];
    let used = words(&first) + 7 * words(&others[0]);
    let rest = MAIN_BYTES / width - 1 - used - (words(&last) - 1);
    others.push(vec![0x11; rest * width]);
    bench.rx.frames.push_back(first);
    bench.rx.frames.extend(others.clone());
    bench.rx.frames.push_back(last);
    while !bench.rx.frames.is_empty() {
        bench.step();
    }
    bench.lookups.is_asleep = false;
    bench.drain();
    assert_eq!((bench.out.hits, bench.out.dropped_main), (1, 1));
    assert_eq!(bench.tx.frames.len(), 1);
    assert_eq!(bench.cpu_rx.plain().len(), others.len());
}

mod scenarios {
    use crate::both_widths;

    #[test]
    fn a_cpu_that_sleeps() {
        both_widths(super::a_cpu_that_sleeps);
    }

    #[test]
    fn a_lookup_that_sleeps() {
        both_widths(super::a_lookup_that_sleeps);
    }

    #[test]
    fn no_patience() {
        both_widths(super::no_patience);
    }

    #[test]
    fn no_room_for_a_last_beat() {
        both_widths(super::no_room_for_a_last_beat);
    }
}
