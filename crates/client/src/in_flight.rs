//! A request in flight.

use crate::Failure;
use crate::download::Download;
use glimmer_base::limits::{NATIVE_RESEND_MS, NATIVE_RESTARTS_MAX, NATIVE_TURNS_MAX};
use glimmer_base::{Keyhash, Seed};
use glimmer_proto::native::fragment::{self, digest};
use glimmer_proto::native::request::{Action, RECORD_BYTES};
use glimmer_proto::native::{DATAGRAM_BYTES_MAX, Reach, Record, RequestHeader, Status};

/// The state of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The slot is free.
    Free,
    /// Waits for room in the congestion window.
    Queued,
    /// Waits for the directory.
    AwaitingDirectory,
    /// Waits until fewer mutations are in flight to its core.
    Held,
    /// Is to be sent.
    Ready,
    /// Was sent and waits for its answer.
    Waiting,
}

/// A request in flight. Later requests reuse the slot and its buffer. With a tag of at most 48
/// bytes it fills two cache lines, because every request reads and writes all of it.
#[repr(align(64))]
pub struct InFlight<T> {
    pub tag: Option<T>,
    pub sequence: u32,
    pub phase: Phase,
    /// When it times out, in microseconds. Valid while it waits for an answer.
    pub until_us: u64,
    /// The encoded request, without the datagram's header.
    pub record: Vec<u8>,
    /// The core to whose port it is sent.
    pub core: u16,
    /// The core that owns its key and, if it is a mutation, counts it.
    pub owner: u16,
    pub sends: u8,
    /// Copies that were sent and not refused: one of them may have been executed. The counter
    /// saturates.
    pub open: u8,
    /// How often it was sent again at once because of an answer.
    turns: u8,
    /// The timestamp of the last copy that was refused.
    refused_us: u32,
    pub is_read: bool,
    /// One more than the whole seconds, 254 at most, from when it was issued until a copy was first
    /// sent with which the server may have executed it; zero if none was.
    first_sent: u8,
    /// Whether `mutation` holds the number of this mutation.
    pub is_numbered: bool,
    /// The mutation number.
    mutation: u32,
    /// When the caller issued it. Answers to earlier requests in the same slot carry an earlier
    /// timestamp.
    pub asked_us: u64,
    /// The fragments received so far of a fragmented reply.
    pub reply: Option<Box<Download>>,
    /// The progress of a fragmented request.
    pub upload: Option<Box<Upload>>,
    /// The last status with which the server refused it.
    pub refusal: Option<Status>,
}

/// The progress of a fragmented request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Upload {
    /// The server has received everything before this byte.
    pub next: usize,
    /// Digest of the whole request.
    pub digest: u64,
    /// When the last fragment was first sent. Valid once it has been.
    pub sent_us: u64,
    /// How often the server has said that it has less than before.
    restarts: u32,
}

impl Upload {
    /// The server says that it has received everything before this byte, which is another one than
    /// [`Upload::next`]. Says whether the upload goes on from there.
    pub fn go_on(&mut self, next: usize) -> bool {
        self.restarts += u32::from(next < self.next);
        let goes_on = self.restarts <= NATIVE_RESTARTS_MAX;
        if goes_on {
            self.next = next;
        }
        goes_on
    }
}

/// The largest request that fits into one datagram, in bytes.
pub const ALONE_BYTES_MAX: usize = DATAGRAM_BYTES_MAX - RequestHeader::BYTES;

const _: () = assert!(size_of::<InFlight<(&(), [u64; 5])>>() == 2 * 64);

impl<T> InFlight<T> {
    /// A free slot. Its next request takes the sequence number after this one.
    pub fn free(sequence: u32) -> InFlight<T> {
        InFlight {
            tag: None,
            sequence,
            phase: Phase::Free,
            until_us: 0,
            record: Vec::new(),
            core: 0,
            owner: 0,
            sends: 0,
            open: 0,
            turns: 0,
            is_read: true,
            first_sent: 0,
            refused_us: 0,
            is_numbered: false,
            mutation: 0,
            asked_us: 0,
            reply: None,
            upload: None,
            refusal: None,
        }
    }

    /// The keyhash in the encoded request.
    #[inline]
    pub fn keyhash(&self) -> Keyhash {
        let bytes = self.record[8..].first_chunk().expect("a record has a head");
        Keyhash(u64::from_le_bytes(*bytes))
    }

    /// Turns it into a request that was never sent, but keeps the time of its deadline. Copies and
    /// answers that are still on the network no longer match.
    #[cold]
    pub fn restart(&mut self, sequence_step: u32) {
        self.sequence = self.sequence.wrapping_add(sequence_step);
        self.sends = 0;
        self.open = 0;
        self.first_sent = 0;
        self.is_numbered = false;
        self.upload = None;
        self.refusal = None;
        if self.reply.take().is_some() {
            self.read_at(0);
        }
    }

    /// Starts using the slot for a request issued now.
    #[inline]
    pub fn begin(&mut self, is_read: bool, now_us: u64) {
        self.sends = 0;
        self.open = 0;
        self.turns = 0;
        self.first_sent = 0;
        self.is_read = is_read;
        self.is_numbered = false;
        self.asked_us = now_us;
        self.refused_us = (now_us as u32).wrapping_sub(1);
        self.refusal = None;
    }

    /// The mutation number, if this request has one.
    #[inline]
    pub fn mutation(&self) -> Option<u32> {
        self.is_numbered.then_some(self.mutation)
    }

    /// The copy with this timestamp was refused. Repeated or older timestamps are ignored, because
    /// they may be duplicates of refusals already counted.
    #[cold]
    pub fn refuse(&mut self, status: Status, timestamp: u32) {
        self.refusal = Some(status);
        let is_another = timestamp.wrapping_sub(self.refused_us).cast_signed() > 0;
        let is_known = !matches!(status, Status::AskAlone | Status::Forgotten);
        if is_another && is_known {
            self.refused_us = timestamp;
            if self.open < u8::MAX {
                self.open = self.open.saturating_sub(1);
            }
        }
    }

    /// A copy is sent with which the server may execute it.
    #[inline]
    pub fn note_sent(&mut self, now_us: u64) {
        if self.first_sent == 0 {
            let seconds = now_us.saturating_sub(self.asked_us) / 1_000_000;
            self.first_sent = 1 + seconds.min(254) as u8;
            if let Some(upload) = &mut self.upload {
                upload.sent_us = now_us;
            }
        }
    }

    /// Whether a copy may be sent now. The server may have forgotten that it has executed a change
    /// whose first copy was sent long ago, and would execute it again.
    #[inline]
    pub fn may_leave(&self, now_us: u64) -> bool {
        let Some(seconds) = self.first_sent.checked_sub(1) else {
            return true;
        };
        let since_us = match &self.upload {
            Some(upload) => upload.sent_us,
            None => self.asked_us.saturating_add(1_000_000 * u64::from(seconds)),
        };
        self.is_read || now_us.saturating_sub(since_us) <= 1_000 * NATIVE_RESEND_MS
    }

    /// Whether it may be sent again at once because of an answer, which is counted: a server may
    /// refuse each copy.
    #[cold]
    pub fn may_turn(&mut self) -> bool {
        let may = self.turns < NATIVE_TURNS_MAX;
        self.turns += u8::from(may);
        may
    }

    /// The failure to report at the deadline. If the server refused every copy, the request was
    /// certainly not executed; otherwise only the silence is known.
    pub fn failure(&self) -> Failure {
        match self.refusal {
            Some(Status::Overloaded) if self.open == 0 => Failure::Overloaded,
            Some(Status::TooManyWriters) if self.open == 0 => Failure::TooManyWriters,
            Some(Status::Malformed) if self.open == 0 => Failure::Protocol,
            _ => Failure::Silent,
        }
    }

    /// Changes a read so that it asks for the reply from `offset` on.
    pub fn read_at(&mut self, offset: u32) {
        let record = std::mem::take(&mut self.record);
        if let Some((read, _)) = Record::read(&record) {
            let action = match offset {
                0 => Action::Get,
                offset => Action::Read { offset },
            };
            self.record.reserve(record.len() + RECORD_BYTES);
            Record { action, ..read }.write(&mut self.record);
        }
    }

    /// Computes the keyhash again, for a server with a different seed.
    pub fn rehash(&mut self, seed: Seed) {
        let key_bytes = usize::from(self.record[2]);
        let key_at = RECORD_BYTES + self.extras_bytes();
        let keyhash = seed.keyhash(&self.record[key_at..key_at + key_bytes]);
        self.record[8..16].copy_from_slice(&keyhash.0.to_le_bytes());
    }

    fn extras_bytes(&self) -> usize {
        let key_bytes = usize::from(self.record[2]);
        let value_bytes = self.record[4..].first_chunk().expect("a record has a head");
        let value_bytes = u32::from_le_bytes(*value_bytes) as usize;
        self.record.len() - RECORD_BYTES - key_bytes - value_bytes
    }

    /// Assigns the mutation number.
    #[inline]
    pub fn set_mutation(&mut self, mutation: u32, reach: Reach) {
        self.is_numbered = true;
        self.mutation = mutation;
        Record::renumber(&mut self.record, mutation, reach);
        self.upload = (self.record.len() > ALONE_BYTES_MAX).then(|| {
            Box::new(Upload {
                next: 0,
                digest: digest(&self.record),
                sent_us: 0,
                restarts: 0,
            })
        });
    }

    /// The size of its datagram in bytes; for a fragmented request, of each fragment.
    #[inline]
    pub fn datagram_bytes(&self) -> usize {
        let fragment = fragment::HEAD_BYTES + fragment::DATA_BYTES;
        RequestHeader::BYTES
            + match self.upload {
                Some(_) => fragment,
                None => self.record.len(),
            }
    }
}
