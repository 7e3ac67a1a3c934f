//! A batch of requests on their way to the worker that executes them, and of replies on their way
//! back.
//!
//! **Native datagrams** travel whole, and the worker that executes them sends the replies, from the
//! device at which they came in. A batch of them comes home empty. A native request is admitted by
//! its completion record, executed and recorded as one step that holds the lock of the records. If
//! its parts were done by two workers, the record would have to outlive the batch. A reply to a
//! native read is written over the request, or is one window of a value whose digest only the
//! worker that reads it can compute, so a reply that came home would be copied once more.

use std::net::SocketAddr;
use std::ops::Range;

use arrayvec::ArrayVec;
use glimmer_base::limits::{
    BATCH_MAX, FORWARD_BATCH_BYTES_HIGH, FORWARD_DATAGRAM_BYTES_MAX, PACKET_BATCH_MAX,
};
use glimmer_base::sync::weakened;
use glimmer_base::{Keyhash, Moment};
use glimmer_engine::{Done, Engine, Job, LentPart, LentParts, Status};
use glimmer_proto::outcome::OutcomeKind;
use glimmer_proto::{Form, Request, Verb};
use glimmer_transport::packet::{RxBatch, SEGMENTS_MAX};

use crate::budget::homeward::InFlight;
use crate::dispatch::profile::Profile;
use crate::stream::key::ConnectionKey;

/// Who asked, and waits for the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asker {
    /// A connection, by slot and generation, so that a later connection in the slot is not mistaken
    /// for it.
    Connection(ConnectionKey),
    /// A datagram of memcached's UDP protocol, by the number that its worker gave it.
    Datagram(u64),
}

/// Where a reply belongs: who waits for it, and the slot in its reorder buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CompletionTag {
    pub asker: Asker,
    pub slot: u16,
    /// See [`Job::client`].
    pub client: i32,
}

/// A request whose bytes lie in the batch.
struct ForwardedRequest {
    tag: CompletionTag,
    keyhash: Keyhash,
    key: Range<u32>,
    value: Range<u32>,
    text: Range<u32>,
    /// What it borrows is left out here; it is `value`.
    verb: Verb<'static>,
    /// What it borrows is left out here; it is `text`.
    form: Form<'static>,
    /// See [`glimmer_proto::outcome::Emit::is_part`].
    is_part: bool,
}

/// Native datagrams of one length from one peer. The last may be shorter.
struct ForwardedDatagrams {
    peer: SocketAddr,
    segment_bytes: usize,
    bytes: Range<usize>,
}

/// Requests on the way out, replies on the way back. It makes as many trips as its replies need.
pub(crate) struct ForwardedBatch {
    /// The worker that the batch belongs to.
    home: usize,
    bytes: Vec<u8>,
    requests: ArrayVec<ForwardedRequest, BATCH_MAX>,
    /// Instead of requests: native datagrams.
    datagrams: ArrayVec<ForwardedDatagrams, PACKET_BATCH_MAX>,
    /// The number that the device at which they came in has among a worker's packet sources.
    source: usize,
    /// Requests answered so far, this trip's included.
    answered: usize,
    /// Requests answered before this trip.
    answered_before: usize,
    /// The replies of this trip, and where each ends.
    replies: Vec<u8>,
    ends: [usize; BATCH_MAX],
    /// What the owner's table lends to these replies.
    lent: LentParts,
    /// Some of the replies are for datagrams, which are sent from buffers alone.
    has_datagram_askers: bool,
    /// The home worker has little memory left for values of medium size.
    pub lends_medium: bool,
    /// Which outcome each request had.
    kinds: [Option<OutcomeKind>; BATCH_MAX],
    /// How often the owner has had it.
    trips: u32,
    /// What its replies take on their way home, if that is much.
    pub in_flight: Option<InFlight>,
    /// It may have requests for another worker than the owner of their partitions.
    pub is_beside_owners: bool,
    /// Bytes of memory behind the batch that its home worker has counted.
    counted: usize,
}

impl ForwardedBatch {
    pub fn new(home: usize) -> ForwardedBatch {
        ForwardedBatch {
            home,
            bytes: Vec::new(),
            requests: ArrayVec::new(),
            datagrams: ArrayVec::new(),
            source: 0,
            answered: 0,
            answered_before: 0,
            replies: Vec::new(),
            ends: [0; BATCH_MAX],
            lent: LentParts::default(),
            has_datagram_askers: false,
            lends_medium: false,
            kinds: [None; BATCH_MAX],
            trips: 0,
            is_beside_owners: false,
            in_flight: None,
            counted: 0,
        }
    }

    pub fn home(&self) -> usize {
        self.home
    }

    /// Brings `total`, the bytes of memory behind the home worker's batches, up to date with this
    /// batch.
    pub fn recharge(&mut self, total: &mut usize) {
        let bytes = self.bytes.capacity() + self.replies.capacity();
        *total = *total + bytes - self.counted;
        self.counted = bytes;
    }

    pub fn is_empty(&self) -> bool {
        self.requests.is_empty() && self.datagrams.is_empty()
    }

    /// Bytes of replies that it brings.
    pub fn reply_bytes(&self) -> usize {
        self.replies.len()
    }

    /// Whether the next request belongs into another batch.
    pub fn is_full(&self) -> bool {
        self.requests.is_full()
            || self.bytes.len() >= FORWARD_BATCH_BYTES_HIGH
            || self.has_datagrams()
    }

    /// Whether it holds native datagrams.
    pub fn has_datagrams(&self) -> bool {
        !self.datagrams.is_empty()
    }

    /// The packet source at which its datagrams came in.
    pub fn source(&self) -> usize {
        self.source
    }

    /// Copies in a native datagram that came in at this source, among others of `segment_bytes`
    /// bytes each. False: it belongs into another batch.
    pub fn push_datagram(
        &mut self,
        source: usize,
        peer: SocketAddr,
        datagram: &[u8],
        segment_bytes: usize,
    ) -> bool {
        let (start, end) = (self.bytes.len(), self.bytes.len() + datagram.len());
        let fits = end <= FORWARD_DATAGRAM_BYTES_MAX && self.requests.is_empty();
        if !fits || (self.has_datagrams() && self.source != source) {
            return false;
        }
        let is_full = self.datagrams.is_full();
        match self.datagrams.last_mut() {
            Some(last)
                if (last.peer, last.segment_bytes) == (peer, segment_bytes)
                    && last.bytes.len().is_multiple_of(segment_bytes)
                    && last.bytes.len() < SEGMENTS_MAX * segment_bytes =>
            {
                last.bytes.end = end;
            }
            _ if is_full => return false,
            _ => self.datagrams.push(ForwardedDatagrams {
                peer,
                segment_bytes,
                bytes: start..end,
            }),
        }
        self.source = source;
        self.bytes.extend_from_slice(datagram);
        true
    }

    /// Moves the datagrams to where they can be answered.
    pub fn unload(&self, received: &mut RxBatch) {
        received.clear();
        for run in &self.datagrams {
            received.push(run.peer, &self.bytes[run.bytes.clone()], run.segment_bytes);
        }
    }

    /// Copies a request in. The batch is not full.
    pub fn push(&mut self, tag: CompletionTag, keyhash: Keyhash, request: &Request<'_>) {
        let key = self.copy_in(request.key);
        let (verb, value) = request.verb.detach();
        let value = self.copy_in(value);
        let (form, text) = request.form.detach();
        let text = self.copy_in(text);
        self.has_datagram_askers |= matches!(tag.asker, Asker::Datagram(_));
        self.requests.push(ForwardedRequest {
            tag,
            keyhash,
            key,
            value,
            text,
            verb,
            form,
            is_part: request.is_part(),
        });
    }

    fn copy_in(&mut self, bytes: &[u8]) -> Range<u32> {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len() as u32
    }

    /// Takes back an asker's requests from slot `from` on. The batch has not been sent yet.
    pub fn retract(&mut self, asker: Asker, from: u16) {
        let keeps = |tag: CompletionTag| tag.asker != asker || tag.slot < from;
        self.requests.retain(|request| keeps(request.tag));
    }

    /// Executes what has not been answered yet, on the worker that the batch was sent to. Returns
    /// the number of requests.
    pub fn run(&mut self, engine: &mut dyn Engine, now: Moment, profile: Option<&Profile>) -> u64 {
        let ForwardedBatch {
            bytes,
            requests,
            replies,
            lent,
            ..
        } = self;
        let jobs: ArrayVec<Job<'_>, BATCH_MAX> = requests[self.answered..]
            .iter()
            .map(|request| request.job(bytes))
            .collect();
        let mut done = [Done::SKIPPED; BATCH_MAX];
        let done = &mut done[..jobs.len()];
        replies.clear();
        let outs = std::slice::from_mut(replies);
        if weakened("forwarded_twice") {
            let first = &jobs[..jobs.len().min(1)];
            let mut done = [Done::SKIPPED];
            engine.run(now, first, &mut [Vec::new()], &mut done[..first.len()]);
        }
        lent.lend_to(u64::from(!self.has_datagram_askers));
        lent.lend_medium(self.lends_medium);
        engine.run_with(now, &jobs, outs, lent, done);
        if let Some(profile) = profile {
            profile.note(&jobs, done);
        }
        self.answered_before = self.answered;
        for done in done.iter().take_while(|done| done.status == Status::Done) {
            self.ends[self.answered] = done.end;
            self.kinds[self.answered] = done.kind;
            self.answered += 1;
        }
        self.trips += 1;
        (self.answered - self.answered_before) as u64
    }

    /// Goes home without further replies, and is sent again when there is memory for them.
    pub fn run_none(&mut self) {
        self.replies.clear();
        self.answered_before = self.answered;
        self.trips += 1;
    }

    /// Whether every request has been answered.
    pub fn is_answered(&self) -> bool {
        self.answered == self.requests.len()
    }

    /// Who waits for the first reply that is yet to be made.
    pub fn first_unanswered(&self) -> Option<CompletionTag> {
        let request = self.requests.get(self.answered);
        request.map(|request| request.tag)
    }

    /// Whether others wait for replies than the one who waits for the first.
    pub fn has_several_askers(&self) -> bool {
        let mut askers = (self.requests[self.answered..].iter()).map(|it| it.tag.asker);
        let first = askers.next();
        askers.any(|asker| Some(asker) != first)
    }

    /// Whether this trip is not the first.
    pub fn is_resumed(&self) -> bool {
        self.trips > 0
    }

    /// Passes on the replies of this trip, in the order of the requests: the bytes of each, and the
    /// parts that are lent, by their places in it. A reply may end with one; none begins with one.
    pub fn take_replies(
        &mut self,
        mut take: impl FnMut(CompletionTag, &[u8], &mut dyn Iterator<Item = LentPart>),
    ) {
        let mut lent = self.lent.take(0).peekable();
        let mut start = 0;
        for index in self.answered_before..self.answered {
            let end = self.ends[index];
            let mut parts = std::iter::from_fn(|| {
                let part = lent.next_if(|part| part.at <= end);
                part.map(|part| part.moved(start, 0))
            });
            let reply = &self.replies[start..end];
            take(self.requests[index].tag, reply, &mut parts);
            // Those of an asker that has gone.
            parts.for_each(drop);
            start = end;
        }
    }

    /// The parts of commands that are answered with one sum among the requests of this trip, and
    /// which outcome each had.
    pub fn parts(&self) -> impl Iterator<Item = (CompletionTag, OutcomeKind)> {
        (self.answered_before..self.answered).filter_map(|index| {
            let request = &self.requests[index];
            let kind = self.kinds[index].filter(|_| request.is_part);
            kind.map(|kind| (request.tag, kind))
        })
    }

    /// Frees the memory of this trip's replies, which have been unpacked.
    pub fn free_replies(&mut self) {
        self.replies = Vec::new();
    }

    /// Makes the batch ready for other requests; keeps at most `bytes_kept` of each buffer.
    pub fn reset(&mut self, bytes_kept: usize) {
        self.requests.clear();
        self.datagrams.clear();
        self.has_datagram_askers = false;
        self.answered = 0;
        self.answered_before = 0;
        self.trips = 0;
        for buffer in [&mut self.bytes, &mut self.replies] {
            buffer.clear();
            buffer.shrink_to(bytes_kept);
        }
    }
}

impl ForwardedRequest {
    fn job<'a>(&self, bytes: &'a [u8]) -> Job<'a> {
        let at = |range: &Range<u32>| &bytes[range.start as usize..range.end as usize];
        let request = Request {
            key: at(&self.key),
            verb: self.verb.attach(at(&self.value)),
            form: self.form.attach(at(&self.text)),
        };
        Job {
            keyhash: self.keyhash,
            request,
            out: 0,
            size_max: Job::ANY_SIZE,
            copy_max: Job::ANY_SIZE,
            client: self.tag.client,
        }
    }
}
