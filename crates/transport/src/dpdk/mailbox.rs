//! Where frames wait for a device that arrived at a queue which another one looks at.

use std::collections::VecDeque;
use std::ops::Range;

use glimmer_base::limits::DPDK_ELSEWHERE_MAX;
use glimmer_base::sync::{AtomicUsize, Mutex, Ordering::Relaxed};

use super::nic::Held;
use crate::bypass::wire::Ends;

/// A frame that waits: its number, its datagram's ends, and where the payload lies.
#[derive(Debug)]
pub struct Parked {
    pub id: u64,
    pub ends: Ends,
    pub payload: Range<usize>,
}

/// The frames that wait for one device. Its port closes it before it forgets it.
#[derive(Debug)]
pub struct Mailbox {
    /// The queue that the device looks at.
    pub home: usize,
    /// Whether the device has its port for itself.
    pub is_alone: bool,
    frames: Mutex<Frames>,
    /// How many frames wait. Who misses one for being too early looks again with its next call, so
    /// this orders nothing.
    count: AtomicUsize,
}

#[derive(Debug, Default)]
struct Frames {
    waiting: VecDeque<Parked>,
    is_closed: bool,
}

impl Mailbox {
    /// The mailbox of a device that looks at this queue.
    pub fn new(home: usize, is_alone: bool) -> Mailbox {
        Mailbox {
            home,
            is_alone,
            frames: Mutex::default(),
            count: AtomicUsize::new(0),
        }
    }

    /// Leaves a frame. False: there are too many, or the device is gone; the frame is given up.
    pub fn leave(&self, frame: Held<'_>, ends: Ends, payload: Range<usize>) -> bool {
        let mut frames = self.frames.lock();
        if frames.is_closed || frames.waiting.len() >= DPDK_ELSEWHERE_MAX {
            return false;
        }
        let id = frame.into_id();
        frames.waiting.push_back(Parked { id, ends, payload });
        self.count.store(frames.waiting.len(), Relaxed);
        true
    }

    /// Frames that wait.
    #[inline]
    pub fn count(&self) -> usize {
        self.count.load(Relaxed)
    }

    /// The frame that waits for longest, which the caller owns from here on.
    pub fn next(&self) -> Option<Parked> {
        let mut frames = self.frames.lock();
        let next = frames.waiting.pop_front();
        self.count.store(frames.waiting.len(), Relaxed);
        next
    }

    /// Takes no more frames. Returns those that wait, which the caller owns.
    pub fn close(&self) -> Vec<Parked> {
        let mut frames = self.frames.lock();
        frames.is_closed = true;
        self.count.store(0, Relaxed);
        frames.waiting.drain(..).collect()
    }
}
