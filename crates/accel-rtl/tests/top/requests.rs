//! Requests to the whole circuit.

use super::bench::Bench;
use super::frames::{binary, request};
use super::item::Item;
use super::oracle::{Oracle, seal};
use super::streams;
use glimmer_accel_rtl::random::{each_seed, from_seed};
use glimmer_accel_rtl::tools::Tools;
use rand::Rng;

fn get(opcode: u8, key: &[u8], opaque: u32) -> Vec<u8> {
    let mut frame = request(true, &binary(opcode, key, opaque.to_be_bytes()));
    seal(&mut frame);
    frame
}

/// Hits are answered as the twin does; all else reaches the driver through memory, in its order,
/// and so do the driver's frames the network; and while all of this goes on, the driver switches
/// to write mode, stores more items, and back.
fn everything_at_once(tools: &Tools, width: usize, seed: u64) {
    let mut rng = from_seed(seed);
    let mut bench = Bench::new(tools, width, seed);
    let oracle = Oracle::new();
    let mut keys = Vec::new();
    let mut items = Vec::new();
    for number in 0..30u8 {
        let mut key = vec![b'k'; [1, 5, 30, 249, 250][number as usize % 5]];
        key[0] = number;
        let item = Item {
            value: (0..[1, 2, 64, 333, 1000][number as usize % 5])
                .map(|_| rng.random())
                .collect(),
            flags: rng.random(),
            cas: rng.random(),
        };
        keys.push(key.clone());
        if number < 20 {
            assert!(oracle.fill(&key, &item));
            items.push((key, item));
        }
    }
    let later = items.split_off(10);
    bench.switch(1);
    for (key, item) in &items {
        bench.store(key, item);
    }
    bench.switch(0);

    (bench.rx.offers, bench.tx.takes) = (0.9, 0.9);
    let (mut sent, mut from_cpu) = (Vec::new(), Vec::new());
    for number in 0..600u32 {
        let frame = if rng.random_bool(0.1) {
            let bytes = rng.random_range(1..1515);
            (0..bytes).map(|_| rng.random()).collect()
        } else {
            let key = &keys[rng.random_range(0..keys.len())];
            get([0, 9, 12, 13][number as usize % 4], key, number)
        };
        sent.push(frame.clone());
        bench.rx.frames.push_back(frame);
        if number % 8 == 0 {
            let frame = streams::from_cpu(&mut rng, 200);
            from_cpu.push(frame.clone());
            bench.to_send.push_back(frame);
        }
    }
    for (key, item) in &later {
        for _ in 0..2000 {
            bench.step();
        }
        bench.switch(1);
        bench.store(key, item);
        bench.switch(0);
    }
    bench.drain();
    assert!(bench.rx.frames.is_empty());

    let (theirs, ours) = bench.tx.parted();
    assert!(theirs == from_cpu, "frames of the CPU");
    let (mut replies, mut passed) = (ours.iter().peekable(), bench.received.iter().peekable());
    for (number, frame) in sent.iter().enumerate() {
        if passed.peek() == Some(&frame) {
            passed.next();
        } else {
            let reply = oracle
                .reply(frame)
                .unwrap_or_else(|| panic!("{number} is lost"));
            assert!(replies.next() == Some(&&reply[..]), "{number}");
        }
    }
    assert_eq!((replies.next(), passed.next()), (None, None));
    let out = bench.out;
    assert!(
        out.hits > 100 && out.misses > 50 && out.bypassed > 5,
        "{out:?}"
    );
    assert_eq!(
        (out.dropped_main, out.dropped_defer, out.has_wrong_tag),
        (0, 0, 0)
    );
}

#[test]
fn everything_at_once_narrow() {
    if let Some(tools) = Tools::for_test() {
        each_seed(&[], |seed| everything_at_once(&tools, 1, seed));
    }
}

#[test]
fn everything_at_once_wide() {
    if let Some(tools) = Tools::for_test() {
        each_seed(&[], |seed| everything_at_once(&tools, 8, seed));
    }
}

/// The budget with the circuit's own lookup: a missed frame of F bytes loses F + 3k + 16 cycles at
/// most.
#[test]
fn a_missed_frame() {
    let Some(tools) = Tools::for_test() else {
        return;
    };
    let mut bench = Bench::new(&tools, 1, 1);
    bench.switch(0);
    for key_bytes in [1, 2, 9, 30, 100, 249, 250] {
        let frame = get(0, &vec![b'm'; key_bytes], 0);
        let budget = (frame.len() + 3 * key_bytes + 16) as u64;
        bench.rx.frames.push_back(frame);
        bench.drain();
        let taken = bench.rx.taken.last().expect("taken").last;
        let added = bench.passed.last().expect("passed on") - taken;
        println!("k = {key_bytes}: {added} of {budget} cycles");
        assert!(added <= budget, "k = {key_bytes}: {added} of {budget}");
    }
    assert_eq!(bench.received.len(), 7);
}

/// What `accel/cycles.csv` says of a request that is alone, which the figures show in microseconds.
/// A hit counts from the first beat of the request to the last one of the reply, and a miss to the
/// last beat that the CPU is offered; both beats are included.
#[test]
fn cycles_of_frames() {
    let Some(tools) = Tools::for_test() else {
        return;
    };
    let (key, absent, value_bytes) = ([b'k'; 16], [b'm'; 16], 64);
    let mut found = "width_bytes,key_bytes,value_bytes,hit_cycles,miss_cycles\n".to_owned();
    for width in [1, 8] {
        let mut bench = Bench::new(&tools, width, 1);
        let item = Item {
            value: vec![b'v'; value_bytes],
            flags: 0,
            cas: 0,
        };
        bench.switch(1);
        bench.store(&key, &item);
        bench.switch(0);
        for key in [key, absent] {
            bench.rx.frames.push_back(get(0, &key, 0));
            bench.drain();
        }
        let [hit, miss] = [0, 1].map(|frame| bench.rx.taken[frame].first);
        let hit_cycles = bench.tx.frames[0].last - hit + 1;
        let miss_cycles = bench.passed[0] - miss + 1;
        let key_bytes = key.len();
        found += &format!("{width},{key_bytes},{value_bytes},{hit_cycles},{miss_cycles}\n");
    }
    assert_eq!(found, include_str!("../../../../accel/cycles.csv"));
}

/// What `accel/modes.csv` says of requests for a key that is stored: in read mode all are answered,
/// and in write mode none, and the CPU has them.
#[test]
fn answers_by_mode() {
    let Some(tools) = Tools::for_test() else {
        return;
    };
    const REQUESTS: usize = 20;
    let mut found = "width_bytes,mode,requests,answered\n".to_owned();
    for width in [1, 8] {
        let mut bench = Bench::new(&tools, width, 1);
        let item = Item {
            value: vec![b'v'; 64],
            flags: 0,
            cas: 0,
        };
        bench.switch(1);
        bench.store(b"key", &item);
        for (number, mode) in ["read", "write"].into_iter().enumerate() {
            bench.switch(number as u64);
            let (answered, passed) = (bench.tx.frames.len(), bench.passed.len());
            for opaque in 0..REQUESTS as u32 {
                bench.rx.frames.push_back(get(0, b"key", opaque));
            }
            bench.drain();
            let answered = bench.tx.frames.len() - answered;
            assert_eq!(bench.passed.len() - passed + answered, REQUESTS);
            found += &format!("{width},{mode},{REQUESTS},{answered}\n");
        }
    }
    assert_eq!(found, include_str!("../../../../accel/modes.csv"));
}

/// Hits without a gap in the wide circuit: requests and replies of these lengths at 10 Gb/s, with
/// 24 bytes between two frames.
#[test]
fn line_rate_of_hits() {
    let Some(tools) = Tools::for_test() else {
        return;
    };
    for (key_bytes, value_bytes) in [(1, 1), (8, 2), (8, 8), (16, 32), (31, 64)] {
        let mut bench = Bench::new(&tools, 8, 1);
        let key = vec![b'k'; key_bytes];
        let item = Item {
            value: vec![b'v'; value_bytes],
            flags: 0,
            cas: 0,
        };
        bench.switch(1);
        bench.store(&key, &item);
        bench.switch(0);
        let frame = get(0, &key, 0);
        bench.rx.frames.extend(vec![frame.clone(); 2000]);
        bench.drain();
        let replies = &bench.tx.frames;
        assert_eq!(replies.len(), 2000);
        let cycles = (replies[1999].last - replies[0].last) as f64 / 1999.0;
        let line = (24 + frame.len().max(replies[0].frame.len())) as f64 / 8.0;
        println!("k = {key_bytes}, v = {value_bytes}: {cycles:.2} of {line} cycles");
        assert!(
            cycles <= line,
            "{key_bytes} {value_bytes}: {cycles} of {line}"
        );
    }
}
