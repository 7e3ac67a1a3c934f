//! One request under way.

use crate::Failure;
use glimmer_base::{Keyhash, Seed};
use glimmer_proto::native::fragment::{self, Assembly, digest};
use glimmer_proto::native::request::{Action, RECORD_BYTES};
use glimmer_proto::native::{DATAGRAM_BYTES_MAX, Reach, Record, RequestHeader, Status};

/// Where a flight stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The place is free.
    Free,
    /// It waits for its turn.
    Queued,
    /// It waits for the directory.
    Grounded,
    /// It waits until fewer mutations are under way.
    Held,
    /// It is to be sent.
    Ready,
    /// It has been sent and waits for its answer.
    Waiting,
}

/// A request under way. Its place is used again by others, and its buffer with it. Two lines of the cache, if the tag has no more than 48 bytes: all of
/// them are read and written anew for every request.
#[repr(align(64))]
pub struct Flight<T> {
    pub tag: Option<T>,
    pub sequence: u32,
    pub phase: Phase,
    /// Until when it waits, in microseconds, once it does.
    pub until_us: u64,
    /// The request as it is sent, without its datagram's header.
    pub record: Vec<u8>,
    /// The core whose port it goes to.
    pub core: u16,
    /// The core that owns its key, and counts it if it is a mutation.
    pub owner: u16,
    pub sends: u8,
    /// Copies that were sent and are not known to have been refused: one of them may have been executed. As many as can be counted: more, perhaps.
    pub open: u8,
    /// When the last copy was sent that is known to have been refused.
    refused_us: u32,
    pub is_read: bool,
    /// Whether it has its number among the mutations,
    pub is_numbered: bool,
    /// which is this one then.
    mutation: u32,
    /// When it was taken on. What answers an earlier request of the same place shows an earlier time.
    pub asked_us: u64,
    /// Of a reply in fragments: what has arrived.
    pub reply: Option<Box<Assembly>>,
    /// Of a request in fragments.
    pub upload: Option<Box<Upload>>,
    /// What was last answered instead of an answer.
    pub refusal: Option<Status>,
}

/// How far a request in fragments has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Upload {
    /// The server has everything before this byte.
    pub next: usize,
    /// Of the whole request.
    pub digest: u64,
}

/// Bytes of a request that go into one datagram.
pub const ALONE_BYTES_MAX: usize = DATAGRAM_BYTES_MAX - RequestHeader::BYTES;

const _: () = assert!(size_of::<Flight<(&(), [u64; 5])>>() == 2 * 64);

impl<T> Flight<T> {
    /// An unused place, where sequence numbers go on from this one.
    pub fn free(sequence: u32) -> Flight<T> {
        Flight {
            tag: None,
            sequence,
            phase: Phase::Free,
            until_us: 0,
            record: Vec::new(),
            core: 0,
            owner: 0,
            sends: 0,
            open: 0,
            is_read: true,
            refused_us: 0,
            is_numbered: false,
            mutation: 0,
            asked_us: 0,
            reply: None,
            upload: None,
            refusal: None,
        }
    }

    /// The keyhash that the request carries.
    #[inline]
    pub fn keyhash(&self) -> Keyhash {
        let bytes = self.record[8..].first_chunk().expect("a record has a head");
        Keyhash(u64::from_le_bytes(*bytes))
    }

    /// Makes it a request that has never been sent, but for the time that it was taken on: nothing that is under way to a server, or from one, is of
    /// this request any more.
    #[cold]
    pub fn begin_anew(&mut self, sequence_step: u32) {
        self.sequence = self.sequence.wrapping_add(sequence_step);
        self.sends = 0;
        self.open = 0;
        self.is_numbered = false;
        self.upload = None;
        self.refusal = None;
        if self.reply.take().is_some() {
            self.read_at(0);
        }
    }

    /// Takes the place for a request that was asked for now.
    #[inline]
    pub fn begin(&mut self, is_read: bool, now_us: u64) {
        self.sends = 0;
        self.open = 0;
        self.is_read = is_read;
        self.is_numbered = false;
        self.asked_us = now_us;
        self.refused_us = (now_us as u32).wrapping_sub(1);
        self.refusal = None;
    }

    /// The mutation's number, once it has one.
    #[inline]
    pub fn mutation(&self) -> Option<u32> {
        self.is_numbered.then_some(self.mutation)
    }

    /// A copy that was sent at this time was refused. What is heard of a time again, or of one before, may be the repetition of what has been counted.
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

    /// Why it has no answer in time. A server that has refused every copy is known not to have executed it; otherwise only its silence is known.
    pub fn failure(&self) -> Failure {
        match self.refusal {
            Some(Status::Overloaded) if self.open == 0 => Failure::Overloaded,
            Some(Status::TooManyWriters) if self.open == 0 => Failure::TooManyWriters,
            Some(Status::Malformed) if self.open == 0 => Failure::Protocol,
            _ => Failure::Silent,
        }
    }

    /// Makes the request, a read, ask for its reply from `offset` on.
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

    /// Computes the keyhash anew: the server has another seed.
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

    /// Gives the mutation its number.
    #[inline]
    pub fn set_mutation(&mut self, mutation: u32, reach: Reach) {
        self.is_numbered = true;
        self.mutation = mutation;
        Record::renumber(&mut self.record, mutation, reach);
        self.upload = (self.record.len() > ALONE_BYTES_MAX).then(|| {
            Box::new(Upload {
                next: 0,
                digest: digest(&self.record),
            })
        });
    }

    /// Bytes of the datagram that it is sent in; of a request in fragments, of each of them.
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
