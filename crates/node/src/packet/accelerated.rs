//! Datagrams of memcached's UDP protocol that are answered from the accelerator's slots: those with
//! one text `get` or `gets` of one key, or one binary GET, GETQ, GETK or GETKQ. All others go on to
//! the parser unchanged, and so do reads of keys that are in no slot.
//!
//! If a body outside the process answers from the slots, what comes here was passed on by it. It is
//! sampled and goes on to the parser.

use std::ops::Range;
use std::sync::Arc;

use glimmer_base::limits::HOT_OFFERS_MAX;
use glimmer_base::{KeyHasher, Keyhash, Moment};
use glimmer_hotset::layout::Tally;
use glimmer_hotset::{Form, Reader, Request, SampledRead, Sampler};
use glimmer_proto::Accepts;
use glimmer_proto::udp::PAYLOAD_BYTES;

use super::pending::ReplyTo;
use crate::hot::Accelerator;

/// A worker's reader of the slots, and the replies of a burst.
pub(crate) struct Accelerated {
    accelerator: Arc<Accelerator>,
    /// None if a body outside the process reads the slots.
    reader: Option<Reader>,
    sampler: Sampler,
    /// Keys that were sampled, one after the other, with their ends.
    keys: Vec<u8>,
    samples: Vec<(Keyhash, Range<usize>)>,
    /// Replies, one after the other.
    bytes: Vec<u8>,
    replies: Vec<(ReplyTo, Range<usize>)>,
}

impl Accelerated {
    pub fn new(accelerator: &Arc<Accelerator>, worker: usize) -> Accelerated {
        Accelerated {
            accelerator: accelerator.clone(),
            reader: accelerator.reader(worker),
            sampler: Sampler::new(accelerator.sample_every(), 1 + worker as u64),
            keys: Vec::new(),
            samples: Vec::new(),
            bytes: Vec::new(),
            replies: Vec::new(),
        }
    }

    /// Looks a request up. Returns whether it is answered.
    pub fn answer(
        &mut self,
        to: ReplyTo,
        request: &[u8],
        (accepts, hasher): (Accepts, &KeyHasher),
        now: Moment,
    ) -> bool {
        let Some(reader) = &self.reader else {
            if self.sampler.takes()
                && let Some(request) = parse(request, accepts)
                && self.accelerator.may_answer(request.form)
            {
                self.sample(request.key, hasher);
            }
            return false;
        };
        let Some(request) = parse(request, accepts) else {
            reader.tally(Tally::Request);
            return false;
        };
        let (start, now_ns) = (self.bytes.len(), self.accelerator.now_ns(now));
        let out = &mut self.bytes;
        if reader.answer(&request, now_ns, PAYLOAD_BYTES, out).is_ok() {
            self.replies.push((to, start..self.bytes.len()));
            return true;
        }
        if self.sampler.takes() {
            self.sample(request.key, hasher);
        }
        false
    }

    /// Keeps a read that was sampled, unless there are many.
    fn sample(&mut self, key: &[u8], hasher: &KeyHasher) {
        if self.samples.len() < HOT_OFFERS_MAX {
            let start = self.keys.len();
            self.keys.extend_from_slice(key);
            let hash = hasher.keyhash(key);
            self.samples.push((hash, start..self.keys.len()));
        }
    }

    /// Number of replies.
    pub fn count(&self) -> usize {
        self.replies.len()
    }

    /// The replies, each for one datagram.
    pub fn replies(&self) -> impl Iterator<Item = (&ReplyTo, &[u8])> {
        let replies = self.replies.iter();
        replies.map(|(to, range)| (to, &self.bytes[range.clone()]))
    }

    /// Bytes of the replies.
    pub fn reply_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The replies are sent.
    pub fn clear_replies(&mut self) {
        self.replies.clear();
        self.bytes.clear();
    }

    /// Whether reads were sampled.
    pub fn has_samples(&self) -> bool {
        !self.samples.is_empty()
    }

    /// The reads that were sampled. How long their values are is not known.
    pub fn samples(&self) -> impl Iterator<Item = SampledRead<'_>> {
        let samples = self.samples.iter();
        samples.map(|(keyhash, range)| SampledRead {
            keyhash: *keyhash,
            key: &self.keys[range.clone()],
            value_bytes: 1,
        })
    }

    /// The samples have been handed in.
    pub fn clear_samples(&mut self) {
        self.samples.clear();
        self.keys.clear();
    }
}

/// The request of a datagram, if it is one that the accelerator answers and the server accepts.
fn parse(request: &[u8], accepts: Accepts) -> Option<Request<'_>> {
    Request::parse(request).filter(|request| {
        let protocol = match request.form {
            Form::Get | Form::Gets => Accepts::Text,
            Form::Binary { .. } => Accepts::Binary,
        };
        accepts == Accepts::Any || accepts == protocol
    })
}
