//! Commands of a long transaction of RESP.
//!
//! Such a transaction does not stay in the receive buffer: there may be many, and each may be as
//! large as many values. Its commands are *kept* in the table, in places like those of values that
//! are being received, so that they take memory from items and not from other connections. At its
//! `EXEC` they become input that lies *ahead* of what the socket has: they are received again, a
//! little in each turn, and executed like all others. A large value among them is received from
//! there into a place of its own.
//!
//! **No connection waits forever for memory.** A transaction that needs one more place for its
//! commands waits for it; if it is in vain for
//! [`MEMORY_WAIT_MS_MAX`](glimmer_base::limits::MEMORY_WAIT_MS_MAX), it is refused, one at a time,
//! and what it had is there for others. What is kept takes at most half of what values under way
//! may take ([`QUEUES_PART`]), so a smaller value that a transaction stores has a place as soon as
//! other values are complete or given up. A larger one may wait for what transactions keep, its own
//! included. After the same time it is received into its connection's buffer.

use std::collections::VecDeque;
use std::sync::Arc;

use glimmer_base::limits::{
    DRAFT_BYTES_MIN, QUEUES_PART, RESP_QUEUE_PLACE_BYTES_MAX, RESP_QUEUE_PLACE_HASHES_MAX,
    RESP_QUEUE_PLACE_TRIES_MAX,
};
use glimmer_engine::{Announced, Begun, Headway, Upload};

use crate::core::Core;
use crate::shared::Shared;

/// The commands that a connection keeps, and input that lies ahead of that of its socket.
#[derive(Default)]
pub(crate) struct Queue {
    kept: VecDeque<Segment>,
    kept_bytes: usize,
    ahead: VecDeque<Segment>,
    /// There is no place for what comes next.
    pub is_refused: bool,
}

/// Some of these bytes.
struct Segment {
    memory: Memory,
    /// Bytes that are there.
    filled: usize,
    /// Bytes at the front that were taken.
    taken: usize,
}

enum Memory {
    Table(Place),
    /// Input that had arrived behind an `EXEC`, or commands for which tables have no places.
    Buffer(Vec<u8>),
}

/// What is known of a place that the commands of a transaction need.
pub(crate) struct QueuePlace {
    /// Its bytes at least.
    pub bytes: usize,
    /// Since when, in milliseconds since the epoch.
    pub since_ms: u64,
    /// It was asked for in vain.
    pub is_refused: bool,
    /// The number of its key, and the room that has been made for it.
    pub begun: Option<(u64, Headway)>,
}

/// What became of the search for one more place.
#[derive(PartialEq, Eq)]
pub(crate) enum Search {
    Found,
    /// It goes on in another turn: room is being made.
    GoesOn,
    /// No place is free at present.
    Failed,
}

/// A place in the table, and what is done when it is given up. The place is dropped first.
struct Place {
    upload: Upload,
    _end: EndOfUpload,
}

struct EndOfUpload(Arc<Shared>);

impl Drop for EndOfUpload {
    fn drop(&mut self) {
        self.0.end_upload();
    }
}

impl Segment {
    /// Bytes that it can still keep.
    fn spare(&self) -> usize {
        match &self.memory {
            Memory::Table(place) => place.upload.bytes() - self.filled,
            Memory::Buffer(bytes) => bytes.capacity() - self.filled,
        }
    }

    fn append(&mut self, more: &[u8]) {
        match &mut self.memory {
            Memory::Table(place) => place.upload.write(self.filled, more),
            Memory::Buffer(bytes) => bytes.extend_from_slice(more),
        }
        self.filled += more.len();
    }

    /// Moves at most this many bytes from its front.
    fn take(&mut self, into: &mut Vec<u8>, bytes_max: usize) -> usize {
        let bytes = bytes_max.min(self.filled - self.taken);
        let range = self.taken..self.taken + bytes;
        match &self.memory {
            Memory::Table(place) => place.upload.copy_to(range, into),
            Memory::Buffer(buffer) => into.extend_from_slice(&buffer[range]),
        }
        self.taken += bytes;
        bytes
    }
}

impl Queue {
    /// Keeps these bytes, if there is memory for them.
    pub fn keep(&mut self, mut bytes: &[u8]) -> bool {
        let spare: usize = self.kept.iter().rev().take(2).map(Segment::spare).sum();
        if spare < bytes.len() {
            return false;
        }
        self.kept_bytes += bytes.len();
        let first = self.kept.len().saturating_sub(2);
        for segment in self.kept.range_mut(first..) {
            let (now, later) = bytes.split_at(bytes.len().min(segment.spare()));
            segment.append(now);
            bytes = later;
        }
        true
    }

    /// Looks for one more place, in a partition that this worker may write to. Where tables have
    /// none for this, a buffer takes its place, if there is memory for one. `items_left` items may
    /// leave for it.
    pub fn find_place(
        &mut self,
        wanted: &mut QueuePlace,
        (seed, items_left): (&mut u64, &mut u64),
        core: &mut Core,
    ) -> Search {
        let item_bytes_max = core.shared.config.limits.item_bytes_max;
        let bytes = self.kept_bytes;
        let bytes = bytes.clamp(DRAFT_BYTES_MIN, RESP_QUEUE_PLACE_BYTES_MAX);
        let bytes = bytes.min(item_bytes_max / 2).max(wanted.bytes);
        let layout = core.plan.layout();
        let mut tries = 0;
        for _ in 0..RESP_QUEUE_PLACE_HASHES_MAX {
            let (number, mut headway) = wanted.begun.take().unwrap_or_else(|| {
                *seed += 1;
                (*seed, Headway::new(0))
            });
            let key = number.to_le_bytes();
            let keyhash = core.hasher.keyhash(&key);
            if !layout.may_run(core.me, keyhash, false) {
                continue;
            }
            headway.items_left = *items_left;
            let announced = Announced {
                key: &key,
                keyhash,
                value_bytes: bytes,
                part: QUEUES_PART,
                now: core.now,
            };
            let begun = core.engine.begin_upload(&announced, &mut headway);
            *items_left = headway.items_left;
            match begun {
                Begun::Yes(upload) => {
                    let _end = EndOfUpload(core.shared.clone());
                    self.push(Memory::Table(Place { upload, _end }));
                    return Search::Found;
                }
                Begun::Again => {
                    wanted.begun = Some((number, headway));
                    return Search::GoesOn;
                }
                Begun::Full => tries += 1,
                Begun::Never if core.memory.room() >= bytes => {
                    self.push(Memory::Buffer(Vec::with_capacity(bytes)));
                    return Search::Found;
                }
                Begun::Never => return Search::Failed,
            }
            if tries == RESP_QUEUE_PLACE_TRIES_MAX {
                break;
            }
        }
        Search::Failed
    }

    fn push(&mut self, memory: Memory) {
        self.kept.push_back(Segment {
            memory,
            filled: 0,
            taken: 0,
        });
    }

    /// Gives up what it keeps.
    pub fn give_up(&mut self) {
        self.kept.clear();
        self.kept_bytes = 0;
        self.is_refused = false;
    }

    /// Has what it keeps lie ahead, and behind that the rest of the input, from byte `start` on.
    pub fn replay(&mut self, input: Vec<u8>, start: usize) {
        let mut ahead = std::mem::take(&mut self.kept);
        self.kept_bytes = 0;
        if start < input.len() {
            ahead.push_back(Segment {
                filled: input.len(),
                memory: Memory::Buffer(input),
                taken: start,
            });
        }
        ahead.append(&mut self.ahead);
        self.ahead = ahead;
    }

    /// Whether input lies ahead.
    #[inline]
    pub fn has_ahead(&self) -> bool {
        !self.ahead.is_empty()
    }

    /// Moves at most this many bytes of what lies ahead. Returns their number.
    pub fn take_ahead(&mut self, into: &mut Vec<u8>, bytes_max: usize) -> usize {
        let mut left = bytes_max;
        while let Some(segment) = self.ahead.front_mut() {
            left -= segment.take(into, left);
            if segment.taken < segment.filled {
                break;
            }
            self.ahead.pop_front();
        }
        bytes_max - left
    }

    /// Whether it has places in the table.
    pub fn has_places(&self) -> bool {
        let mut all = self.kept.iter().chain(&self.ahead);
        all.any(|segment| matches!(segment.memory, Memory::Table(_)))
    }

    /// Whether it has nothing.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty() && self.ahead.is_empty() && !self.is_refused
    }

    /// Bytes of its buffers.
    pub fn buffer_bytes(&self) -> usize {
        let bytes = |segment: &Segment| match &segment.memory {
            Memory::Table(_) => 0,
            Memory::Buffer(bytes) => bytes.capacity(),
        };
        self.kept.iter().chain(&self.ahead).map(bytes).sum()
    }
}
