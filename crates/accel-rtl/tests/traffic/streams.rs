//! Streams of frames: what offers them to the circuit, and what takes them from it.

use rand::Rng;
use rand::rngs::SmallRng;
use std::collections::VecDeque;

/// Up to eight bytes of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Beat {
    pub data: u64,
    pub keep: u64,
    pub last: bool,
}

impl Beat {
    /// The beat at this place of a frame.
    pub fn of(bytes: &[u8], at: usize, width: usize) -> Beat {
        let here = &bytes[at..bytes.len().min(at + width)];
        let mut word = [0; 8];
        word[..here.len()].copy_from_slice(here);
        Beat {
            data: u64::from_le_bytes(word),
            keep: (1 << here.len()) - 1,
            last: at + width >= bytes.len(),
        }
    }

    /// Adds its bytes to a frame. Those that count come first, and every beat but the last is full.
    pub fn append_to(self, frame: &mut Vec<u8>, width: usize) {
        let count = self.keep.trailing_ones() as usize;
        assert!((1..=width).contains(&count), "{self:x?}");
        assert_eq!(self.keep, (1 << count) - 1, "{self:x?}");
        assert!(self.last || count == width, "{self:x?}");
        frame.extend_from_slice(&self.data.to_le_bytes()[..count]);
    }
}

/// The EtherType of the CPU's own frames, one for local experiments. Replies leave among them. They
/// are IPv4, so no address of a client can make a reply look like one of the CPU's frames.
const FROM_CPU: [u8; 2] = [0x88, 0xB5];
const ETHERTYPE: std::ops::Range<usize> = 12..14;

/// A frame that the CPU sends, of random bytes.
pub fn from_cpu(rng: &mut SmallRng, bytes: usize) -> Vec<u8> {
    let mut frame: Vec<u8> = (0..bytes).map(|_| rng.random()).collect();
    frame[ETHERTYPE].copy_from_slice(&FROM_CPU);
    frame
}

/// A frame, and the cycles of its first and last beat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timed {
    pub frame: Vec<u8>,
    pub first: u64,
    pub last: u64,
}

/// Offers frames. In each cycle it begins to offer a beat with this probability.
#[derive(Debug)]
pub struct Source {
    pub frames: VecDeque<Vec<u8>>,
    pub offers: f64,
    pub taken: Vec<Timed>,
    at: usize,
    first: u64,
    is_offering: bool,
}

impl Source {
    pub fn new(offers: f64) -> Source {
        Source {
            frames: VecDeque::new(),
            offers,
            taken: Vec::new(),
            at: 0,
            first: 0,
            is_offering: false,
        }
    }

    /// What it offers in this cycle.
    pub fn offer(&mut self, rng: &mut SmallRng, width: usize) -> Option<Beat> {
        let frame = self.frames.front()?;
        self.is_offering = self.is_offering || rng.random_bool(self.offers);
        self.is_offering.then(|| Beat::of(frame, self.at, width))
    }

    /// The end of the cycle.
    pub fn step(&mut self, is_ready: bool, cycle: u64, width: usize) {
        if !(self.is_offering && is_ready) {
            return;
        }
        self.is_offering = false;
        if self.at == 0 {
            self.first = cycle;
        }
        self.at += width;
        if self.at >= self.frames[0].len() {
            let frame = self.frames.pop_front().expect("offered");
            let (first, last) = (self.first, cycle);
            self.taken.push(Timed { frame, first, last });
            self.at = 0;
        }
    }
}

/// Takes frames. In each cycle it is ready with this probability.
#[derive(Debug)]
pub struct Sink {
    pub takes: f64,
    pub frames: Vec<Timed>,
    is_ready: bool,
    partial: Vec<u8>,
    first: u64,
    /// What was offered and has not been taken.
    held: Option<Beat>,
}

impl Sink {
    pub fn new(takes: f64) -> Sink {
        Sink {
            takes,
            frames: Vec::new(),
            is_ready: false,
            partial: Vec::new(),
            first: 0,
            held: None,
        }
    }

    /// Whether it is ready in this cycle.
    pub fn ready(&mut self, rng: &mut SmallRng) -> u64 {
        self.is_ready = rng.random_bool(self.takes);
        self.is_ready.into()
    }

    /// The end of the cycle. What is offered stays until it is taken.
    pub fn step(&mut self, offered: Option<Beat>, cycle: u64, width: usize) {
        if let Some(held) = self.held {
            assert_eq!(offered, Some(held), "withdrawn");
        }
        self.held = offered.filter(|_| !self.is_ready);
        let Some(beat) = offered.filter(|_| self.is_ready) else {
            return;
        };
        if self.partial.is_empty() {
            self.first = cycle;
        }
        beat.append_to(&mut self.partial, width);
        if beat.last {
            let frame = std::mem::take(&mut self.partial);
            let (first, last) = (self.first, cycle);
            self.frames.push(Timed { frame, first, last });
        }
    }

    /// The frames without their times.
    pub fn plain(&self) -> Vec<&[u8]> {
        self.frames.iter().map(|timed| &timed.frame[..]).collect()
    }

    /// The frames of [`from_cpu`], and the others.
    pub fn parted(&self) -> (Vec<&[u8]>, Vec<&[u8]>) {
        let is_from_cpu = |frame: &&[u8]| frame.get(ETHERTYPE) == Some(&FROM_CPU[..]);
        self.plain().into_iter().partition(is_from_cpu)
    }
}
