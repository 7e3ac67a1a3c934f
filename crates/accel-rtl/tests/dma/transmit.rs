//! The transmit ring. The driver posts frames at any address, and sleeps until it sees an
//! interrupt; then it clears it and reads which frames are done.

use super::memory::OnTheWay;
use super::{Pace, lengths, random_lengths};
use glimmer_accel_rtl::dma::transmit::{In, Out, TransmitPorts};
use glimmer_accel_rtl::memory::{LINE_BYTES, Line};
use glimmer_accel_rtl::model::Model;
use glimmer_accel_rtl::random::{each_seed, from_seed};
use glimmer_accel_rtl::tools::Tools;
use glimmer_accel_rtl::tops::DMA_TX;
use glimmer_accel_rtl::verilate::Variant;
use rand::Rng;
use rand::rngs::SmallRng;
use std::collections::VecDeque;

const ENTRIES: u64 = 64;
const STUCK: u64 = 200_000;

/// Memory has this byte at an address.
fn byte(address: u64) -> u8 {
    (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

fn line(address: u64) -> Line {
    std::array::from_fn(|word| {
        let first = address + 8 * word as u64;
        u64::from_le_bytes(std::array::from_fn(|at| byte(first + at as u64)))
    })
}

/// A frame in memory.
#[derive(Clone, Copy, Debug)]
struct Frame {
    address: u64,
    length: u64,
}

/// Posts frames of these lengths, and panics unless each leaves and is reported. Returns the cycles
/// within frames in which the ring had nothing to send, and how many of them came after the first
/// [`LINE_BYTES`] of a frame, the first and second lines of which are its initial load.
fn leave(
    tools: &Tools,
    width: usize,
    bug: Option<&'static str>,
    lengths: &[usize],
    pace: &Pace,
    rng: &mut SmallRng,
) -> [u64; 2] {
    let lines = if width == 1 { 2 } else { 8 };
    let mut variant = Variant::new(DMA_TX)
        .with("W", width as u64)
        .with("QUEUE_LINES", lines);
    variant.bug = bug;
    let mut bench = Bench {
        model: Model::new(tools, &variant, rng.random()),
        inputs: In::default(),
        width,
        on_the_way: OnTheWay::default(),
        to_post: VecDeque::new(),
        posted: VecDeque::new(),
        leaving: Vec::new(),
        left: VecDeque::new(),
        reported: 0,
        stalled: None,
        done: 0,
        cycle: 0,
        moved: 0,
        idle: [0; 2],
    };
    bench.inputs.rst = 1;
    for _ in 0..2 {
        bench.model.settle(&bench.inputs);
        bench.model.rise();
    }
    bench.inputs.rst = 0;
    for &length in lengths {
        bench.to_post.push_back(Frame {
            address: rng.random_range(0..1 << 60),
            length: length as u64,
        });
    }
    while !(bench.to_post.is_empty() && bench.posted.is_empty()) {
        bench.step(pace, rng);
        assert!(bench.cycle < bench.moved + STUCK, "nothing moves any more");
    }
    assert!(bench.left.is_empty() && bench.leaving.is_empty());
    bench.idle
}

struct Bench {
    model: Model<TransmitPorts>,
    inputs: In,
    width: usize,
    on_the_way: OnTheWay,
    to_post: VecDeque<Frame>,
    /// Frames that were not reported as done.
    posted: VecDeque<Frame>,
    /// Bytes of the frame that is leaving.
    leaving: Vec<u8>,
    /// Frames that have left and were not reported.
    left: VecDeque<Vec<u8>>,
    /// The driver's own pointer.
    reported: u64,
    /// A beat that was not taken in the last cycle.
    stalled: Option<(u64, u64, u64)>,
    /// `read_pointer` in the last cycle.
    done: u64,
    cycle: u64,
    moved: u64,
    /// Cycles between the beats of a frame in which none was offered, and those after its initial
    /// load.
    idle: [u64; 2],
}

impl Bench {
    fn step(&mut self, pace: &Pace, rng: &mut SmallRng) {
        let inputs = &mut self.inputs;
        if inputs.post_valid == 0 && !self.to_post.is_empty() && rng.random_bool(pace.post) {
            let frame = self.to_post[0];
            inputs.post_valid = 1;
            (inputs.post_addr, inputs.post_count) = (frame.address, frame.length);
        }
        let due = self.on_the_way.due(self.cycle);
        inputs.mem_rsp_valid = due.is_some().into();
        inputs.mem_rsp_data = due.unwrap_or_default().1;
        inputs.mem_req_ready = rng.random_bool(pace.memory).into();
        inputs.out_ready = rng.random_bool(pace.take).into();

        let out = self.model.settle(inputs);
        self.model.rise();

        if inputs.mem_rsp_valid == 1 {
            assert_eq!(
                out.mem_rsp_ready, 1,
                "no room for a line that was asked for"
            );
            self.on_the_way.answered();
        }
        if inputs.mem_req_ready & out.mem_req_valid == 1 {
            let address = out.mem_req_addr;
            let ends = |frame: &Frame| frame.address + frame.length;
            let is_in = |frame: &Frame| {
                address + LINE_BYTES as u64 > frame.address && address < ends(frame)
            };
            assert!(self.posted.iter().any(is_in), "{address:#x} is in no frame");
            let data = line(address);
            self.on_the_way.take(rng, pace, self.cycle, address, data);
        }
        if inputs.post_valid & out.post_ready == 1 {
            self.posted.extend(self.to_post.pop_front());
            inputs.post_valid = 0;
            self.moved = self.cycle;
        }
        self.beat(&out);
        if std::mem::replace(&mut self.done, out.read_pointer) != out.read_pointer {
            assert_eq!(out.irq, 1, "a frame is done without an interrupt");
        }
        let held = out.write_pointer.wrapping_sub(out.read_pointer) % (2 * ENTRIES);
        assert!(held <= ENTRIES, "{held} frames are in the ring");
        let was_cleared = self.inputs.irq_clear == 1;
        self.inputs.irq_clear = 0;
        if was_cleared {
            // The pointer is read after the clear.
            self.report(out.read_pointer);
        } else if rng.random_bool(pace.look) {
            self.inputs.irq_clear = out.irq;
        }
        self.cycle += 1;
    }

    fn beat(&mut self, out: &Out) {
        let beat = (out.out_data, out.out_keep, out.out_last);
        if let Some(stalled) = self.stalled.take() {
            assert_eq!(
                (out.out_valid, beat),
                (1, stalled),
                "an offer was withdrawn"
            );
        }
        if out.out_valid == 0 {
            self.idle[0] += u64::from(!self.leaving.is_empty());
            self.idle[1] += u64::from(self.leaving.len() >= LINE_BYTES);
            return;
        }
        if self.inputs.out_ready == 0 {
            self.stalled = Some(beat);
            return;
        }
        self.moved = self.cycle;
        let bytes = out.out_keep.trailing_ones() as usize;
        assert_eq!(out.out_keep, (1 << bytes) - 1, "bytes have no gaps");
        assert!(
            bytes == self.width || out.out_last == 1,
            "only the last beat is short"
        );
        self.leaving.extend(&out.out_data.to_le_bytes()[..bytes]);
        if out.out_last == 1 {
            self.left.push_back(std::mem::take(&mut self.leaving));
        }
    }

    fn report(&mut self, read_pointer: u64) {
        while self.reported % (2 * ENTRIES) != read_pointer {
            self.reported += 1;
            let Frame { address, length } = self.posted.pop_front().expect("was posted");
            if length > 0 {
                let bytes: Vec<u8> = (address..address + length).map(byte).collect();
                let left = self.left.pop_front().expect("it has left");
                assert_eq!(left, bytes, "{length} bytes at {address:#x}");
            }
            self.moved = self.cycle;
        }
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

/// More frames than the ring has entries, of every length that matters, and of none.
pub fn all_lengths(tools: &Tools, width: usize, bug: Option<&'static str>, rng: &mut SmallRng) {
    let mut all = lengths();
    all.extend([0, 0, 60, 0]);
    leave(tools, width, bug, &all, &Pace::FAST, rng);
}

/// A slow sink fills the ring and the queue of lines, and a slow driver leaves them empty.
pub fn full_and_empty(tools: &Tools, width: usize, bug: Option<&'static str>, rng: &mut SmallRng) {
    let lengths = random_lengths(rng, 200, 200);
    for (take, post) in [(0.05, 1.0), (1.0, 0.002)] {
        let pace = Pace {
            take,
            post,
            ..Pace::FAST
        };
        leave(tools, width, bug, &lengths, &pace, rng);
    }
}

/// Short frames one after another, so that some are done in the cycle of a clear.
pub fn short_ones(tools: &Tools, width: usize, bug: Option<&'static str>, rng: &mut SmallRng) {
    let lengths: Vec<usize> = (0..1_000).map(|_| rng.random_range(1..30)).collect();
    let pace = Pace {
        look: 0.2,
        latency: 1..=20,
        ..Pace::FAST
    };
    leave(tools, width, bug, &lengths, &pace, rng);
}

/// Random lengths, eagerness and latencies.
pub fn random(tools: &Tools, width: usize, bug: Option<&'static str>, rng: &mut SmallRng) {
    for _ in 0..20 {
        let pace = Pace::random(rng);
        let lengths = random_lengths(rng, 100, 1_700);
        leave(tools, width, bug, &lengths, &pace, rng);
    }
}

/// What `accel/dma.csv` says of the longest frames, one after the other: cycles within them in
/// which the ring waits for memory, by the cycles that memory takes to answer.
#[test]
fn latency_of_memory_is_hidden() {
    const FRAMES: usize = 10;
    let Some(tools) = Tools::for_test() else {
        return;
    };
    let mut found = "width_bytes,latency_cycles,frames,idle_cycles,later_idle_cycles\n".to_owned();
    for width in [1, 8] {
        for latency in [10, 30, 40, 50, 60, 80, 100] {
            let pace = Pace {
                latency: latency..=latency,
                ..Pace::FAST
            };
            let lengths = [1_514; FRAMES];
            let [idle, later] = leave(&tools, width, None, &lengths, &pace, &mut from_seed(1));
            found += &format!("{width},{latency},{FRAMES},{idle},{later}\n");
        }
    }
    assert_eq!(found, include_str!("../../../../accel/dma.csv"));
}

#[test]
fn frames_of_all_lengths_leave() {
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
fn random_frames_leave() {
    each_width(|tools, width, rng| random(tools, width, None, rng));
}
