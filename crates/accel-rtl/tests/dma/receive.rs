//! The receive ring. The driver sleeps until it sees an interrupt, clears it, and takes every
//! count. When it has a count, the frame must lie in its buffer.

use super::memory::OnTheWay;
use super::{Pace, lengths, random_lengths};
use glimmer_accel_rtl::dma::receive::{In, ReceivePorts};
use glimmer_accel_rtl::memory::LINE_BYTES;
use glimmer_accel_rtl::model::Model;
use glimmer_accel_rtl::random::{each_seed, from_seed};
use glimmer_accel_rtl::tools::Tools;
use glimmer_accel_rtl::tops::DMA_RX;
use glimmer_accel_rtl::verilate::Variant;
use rand::Rng;
use rand::rngs::SmallRng;
use std::collections::{HashMap, VecDeque};

const ENTRIES: u64 = 64;
const BUFFER_LINES: u64 = 24;
const PAD: usize = 2;
const LENGTH_MAX: usize = BUFFER_LINES as usize * LINE_BYTES - PAD;
const STUCK: u64 = 200_000;

/// Sends frames of these lengths, and panics unless each arrives.
pub fn arrive(
    tools: &Tools,
    width: usize,
    bug: Option<&'static str>,
    lengths: &[usize],
    pace: &Pace,
    rng: &mut SmallRng,
) {
    let mut variant = Variant::new(DMA_RX).with("W", width as u64);
    variant.bug = bug;
    let mut bench = Bench {
        model: Model::new(tools, &variant, rng.random()),
        inputs: In::default(),
        memory: HashMap::new(),
        on_the_way: OnTheWay::default(),
        posted: VecDeque::new(),
        next_line: rng.random_range(0..1 << 56),
        expected: VecDeque::new(),
        beats: VecDeque::new(),
        is_awake: false,
        done: 0,
        cycle: 0,
        moved: 0,
    };
    bench.inputs.rst = 1;
    for _ in 0..2 {
        bench.model.settle(&bench.inputs);
        bench.model.rise();
    }
    bench.inputs.rst = 0;
    for &length in lengths {
        let frame: Vec<u8> = (0..length).map(|_| rng.random()).collect();
        for (at, bytes) in frame.chunks(width).enumerate() {
            // A byte that is not kept is not zero.
            let mut word = [0xee; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            let mask = if width == 8 { u64::MAX } else { 0xff };
            bench.beats.push_back(Beat {
                data: u64::from_le_bytes(word) & mask,
                keep: (1 << bytes.len()) - 1,
                last: (at + 1) * width >= length,
            });
        }
        bench.expected.push_back(frame);
    }
    while !bench.expected.is_empty() {
        bench.step(pace, rng);
        assert!(bench.cycle < bench.moved + STUCK, "nothing moves any more");
    }
}

#[derive(Clone, Copy)]
struct Beat {
    data: u64,
    keep: u64,
    last: bool,
}

struct Bench {
    model: Model<ReceivePorts>,
    inputs: In,
    /// Lines that were written and acknowledged.
    memory: HashMap<u64, Vec<u8>>,
    on_the_way: OnTheWay,
    /// Buffers whose counts were not taken, by their first lines.
    posted: VecDeque<u64>,
    next_line: u64,
    /// Frames whose counts were not taken.
    expected: VecDeque<Vec<u8>>,
    beats: VecDeque<Beat>,
    is_awake: bool,
    /// `current_pointer` in the last cycle.
    done: u64,
    cycle: u64,
    moved: u64,
}

impl Bench {
    fn step(&mut self, pace: &Pace, rng: &mut SmallRng) {
        let inputs = &mut self.inputs;
        if inputs.in_valid == 0 && !self.beats.is_empty() && rng.random_bool(pace.offer) {
            let beat = self.beats[0];
            (inputs.in_valid, inputs.in_data) = (1, beat.data);
            (inputs.in_keep, inputs.in_last) = (beat.keep, beat.last.into());
        }
        if inputs.post_valid == 0 && rng.random_bool(pace.post) {
            (inputs.post_valid, inputs.post_line) = (1, self.next_line);
        }
        // An interrupt is seen, then cleared, then every count is taken.
        inputs.count_ready = self.is_awake.into();
        let due = self.on_the_way.due(self.cycle);
        inputs.mem_rsp_valid = due.is_some().into();
        inputs.mem_req_ready = rng.random_bool(pace.memory).into();

        let out = self.model.settle(inputs);
        self.model.rise();

        if out.mem_rsp_ready & inputs.mem_rsp_valid == 1 {
            let (address, data) = due.expect("offered");
            let bytes = data.iter().flat_map(|word| word.to_le_bytes()).collect();
            let old = self.memory.insert(address / LINE_BYTES as u64, bytes);
            assert!(old.is_none(), "a line is written twice");
            self.on_the_way.answered();
            self.moved = self.cycle;
        }
        if inputs.mem_req_ready & out.mem_req_valid == 1 {
            let (address, data) = (out.mem_req_addr, out.mem_req_data);
            self.on_the_way.take(rng, pace, self.cycle, address, data);
            self.moved = self.cycle;
        }
        if inputs.in_valid & out.in_ready == 1 {
            self.beats.pop_front();
            inputs.in_valid = 0;
            self.moved = self.cycle;
        }
        if inputs.post_valid & out.post_ready == 1 {
            self.posted.push_back(self.next_line);
            // A line between two buffers stays as it was.
            self.next_line += BUFFER_LINES + 1;
            inputs.post_valid = 0;
        }
        if std::mem::replace(&mut self.done, out.current_pointer) != out.current_pointer {
            assert_eq!(out.irq, 1, "a frame is done without an interrupt");
        }
        let held = out.write_pointer.wrapping_sub(out.read_pointer) % (2 * ENTRIES);
        assert!(held <= ENTRIES, "{held} buffers are in the ring");
        if self.is_awake {
            match out.count_valid {
                1 => self.received(out.count_data),
                _ => self.is_awake = false,
            }
        }
        self.inputs.irq_clear = 0;
        if !self.is_awake && self.inputs.count_ready == 0 && rng.random_bool(pace.look) {
            self.inputs.irq_clear = out.irq;
            self.is_awake = out.irq == 1;
        }
        self.cycle += 1;
    }

    fn received(&mut self, count: u64) {
        self.moved = self.cycle;
        let frame = self.expected.pop_front().expect("a count without a frame");
        let first = self.posted.pop_front().expect("a count without a buffer");
        let length = frame.len().min(LENGTH_MAX);
        let is_cut = frame.len() > LENGTH_MAX;
        assert_eq!(count, length as u64 | u64::from(is_cut) << 15, "the count");
        let mut bytes = Vec::new();
        for line in first..first + BUFFER_LINES {
            bytes.extend(self.memory.remove(&line).unwrap_or_default());
        }
        let lines = (PAD + length).div_ceil(LINE_BYTES);
        assert_eq!(bytes.len(), lines * LINE_BYTES, "lines of {length} bytes");
        let (pad, rest) = bytes.split_at(PAD);
        assert_eq!(pad, [0; PAD], "the pad");
        assert_eq!(
            rest[..length],
            frame[..length],
            "the frame of {length} bytes"
        );
        assert!(
            rest[length..].iter().all(|&byte| byte == 0),
            "after the frame"
        );
        // Nothing lies outside of buffers.
        let is_posted = |line: &u64| {
            let mut buffers = self.posted.iter();
            buffers.any(|&first| (first..first + BUFFER_LINES).contains(line))
        };
        assert!(
            self.memory.keys().all(is_posted),
            "a line outside of buffers"
        );
    }
}

fn each_width(test: impl Fn(&Tools, usize, &mut SmallRng)) {
    let Some(tools) = Tools::for_test() else {
        return;
    };
    each_seed(&[], |seed| {
        for width in [1, 8] {
            test(&tools, width, &mut from_seed(seed));
        }
    });
}

/// More frames than the ring has entries, of every length that matters.
pub fn all_lengths(tools: &Tools, width: usize, bug: Option<&'static str>, rng: &mut SmallRng) {
    let mut all = lengths();
    // Longer than a buffer, with a frame of one beat after it.
    for length in [
        LENGTH_MAX - 1,
        LENGTH_MAX,
        LENGTH_MAX + 1,
        LENGTH_MAX + 9,
        9_000,
    ] {
        all.extend([length, 8]);
    }
    arrive(tools, width, bug, &all, &Pace::FAST, rng);
}

/// A driver that looks seldom finds a full ring, and one that posts seldom has an empty one.
pub fn full_and_empty(tools: &Tools, width: usize, bug: Option<&'static str>, rng: &mut SmallRng) {
    let lengths = random_lengths(rng, 300, 200);
    let seldom = |post, look| Pace {
        post,
        look,
        ..Pace::FAST
    };
    arrive(tools, width, bug, &lengths, &seldom(1.0, 0.000_1), rng);
    arrive(tools, width, bug, &lengths, &seldom(0.002, 1.0), rng);
}

/// Short frames one after another, so that some are done in the cycle of a clear.
pub fn short_ones(tools: &Tools, width: usize, bug: Option<&'static str>, rng: &mut SmallRng) {
    let lengths: Vec<usize> = (0..1_000).map(|_| rng.random_range(1..30)).collect();
    let pace = Pace {
        look: 0.2,
        latency: 1..=20,
        ..Pace::FAST
    };
    arrive(tools, width, bug, &lengths, &pace, rng);
}

/// Random lengths, eagerness and latencies.
pub fn random(tools: &Tools, width: usize, bug: Option<&'static str>, rng: &mut SmallRng) {
    for _ in 0..20 {
        let pace = Pace::random(rng);
        let lengths = random_lengths(rng, 150, 1_700);
        arrive(tools, width, bug, &lengths, &pace, rng);
    }
}

#[test]
fn frames_of_all_lengths_arrive() {
    each_width(|tools, width, rng| all_lengths(tools, width, None, rng));
}

#[test]
fn rings_that_are_full_and_empty_lose_nothing() {
    each_width(|tools, width, rng| full_and_empty(tools, width, None, rng));
}

#[test]
fn no_interrupt_is_lost() {
    each_width(|tools, width, rng| short_ones(tools, width, None, rng));
}

#[test]
fn random_frames_arrive() {
    each_width(|tools, width, rng| random(tools, width, None, rng));
}
