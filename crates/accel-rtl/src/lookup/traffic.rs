//! What is sent to the lookup and what came back, one cycle at a time. Checks the protocol of the
//! ports on the way.

use super::ports::{In, Out};
use super::pressure::Pressure;
use rand::Rng;
use rand::rngs::SmallRng;
use std::collections::VecDeque;

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The request's tag.
    pub tag: u8,
    /// `None` for a miss.
    pub item: Option<Item>,
    /// The cycle in which the request's first byte was taken; that of its length if it has none.
    pub begun: u64,
    /// The cycle in which the reply's last byte was taken; that of its length for a miss.
    pub ended: u64,
}

/// What a hit returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The value.
    pub value: Vec<u8>,
    /// Its flags.
    pub flags: u32,
    /// Its CAS.
    pub cas: u64,
}

/// The request side: lengths and bytes.
#[derive(Debug, Default)]
pub(super) struct Requests {
    waiting: VecDeque<(u8, Vec<u8>)>,
    /// The bytes of the request whose length was taken, and how many of them were.
    bytes: Option<(Vec<u8>, usize)>,
    length_offered: bool,
    beat_offered: bool,
    /// When each request that is under way began.
    begun: VecDeque<u64>,
}

impl Requests {
    pub(super) fn push(&mut self, tag: u8, key: &[u8]) {
        self.waiting.push_back((tag, key.to_vec()));
    }

    /// Whether something is still to be sent.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.bytes.is_none()
    }

    /// Takes out what was not sent. The bytes of a length that was taken stay.
    pub(super) fn withdraw(&mut self) -> Vec<(u8, Vec<u8>)> {
        self.length_offered = false;
        self.waiting.drain(..).collect()
    }

    /// What is offered in this cycle. Once offered it stays, but for a length in write mode.
    pub(super) fn drive(&mut self, inputs: &mut In, width: usize, go: bool, write_mode: bool) {
        inputs.key_len_valid = 0;
        inputs.key_valid = 0;
        if let Some((bytes, sent)) = &self.bytes {
            self.beat_offered |= go;
            if self.beat_offered {
                let beat = &bytes[*sent..bytes.len().min(sent + width)];
                let mut data = [0xA5; 8];
                data[..beat.len()].copy_from_slice(beat);
                inputs.key_valid = 1;
                inputs.key_data = u64::from_le_bytes(data) & mask(8 * width);
                inputs.key_keep = mask(beat.len());
                inputs.key_last = u64::from(sent + width >= bytes.len());
            }
        } else if let Some((tag, key)) = self.waiting.front() {
            self.length_offered |= go;
            if self.length_offered && !write_mode {
                inputs.key_len_valid = 1;
                inputs.key_len = key.len() as u64;
                inputs.key_tag = u64::from(*tag);
            }
        }
    }

    pub(super) fn sample(&mut self, inputs: &In, outputs: &Out, width: usize, cycle: u64) {
        if inputs.key_len_valid & outputs.key_len_ready == 1 {
            let (_, key) = self.waiting.pop_front().expect("offered");
            self.length_offered = false;
            if key.is_empty() {
                self.begun.push_back(cycle);
            } else {
                self.bytes = Some((key, 0));
            }
        }
        if inputs.key_valid & outputs.key_ready == 1 {
            let (bytes, sent) = self.bytes.as_mut().expect("offered");
            if *sent == 0 {
                self.begun.push_back(cycle);
            }
            *sent += width;
            self.beat_offered = false;
            if *sent >= bytes.len() {
                self.bytes = None;
            }
        }
    }
}

/// The reply side.
#[derive(Debug, Default)]
pub(super) struct Replies {
    /// The reply whose bytes are coming, and how many there are.
    coming: Option<(Reply, usize)>,
    /// Whole replies.
    pub(super) done: VecDeque<Reply>,
    /// The outputs that have to stay until they are taken: those of lengths and those of bytes.
    held: [Option<[u64; 4]>; 2],
}

impl Replies {
    pub(super) fn drive(inputs: &mut In, pressure: &Pressure, rng: &mut SmallRng) {
        inputs.val_len_ready = u64::from(!rng.random_bool(pressure.reply_length));
        inputs.val_ready = u64::from(!rng.random_bool(pressure.reply_bytes));
    }

    pub(super) fn sample(
        &mut self,
        inputs: &In,
        outputs: &Out,
        width: usize,
        cycle: u64,
        requests: &mut Requests,
    ) {
        let length = [
            outputs.val_len,
            outputs.val_tag,
            outputs.val_flags,
            outputs.val_cas,
        ];
        let bytes = [outputs.val_data, outputs.val_keep, outputs.val_last, 0];
        let ports = [
            (outputs.val_len_valid, inputs.val_len_ready, length),
            (outputs.val_valid, inputs.val_ready, bytes),
        ];
        for (held, (valid, ready, data)) in self.held.iter_mut().zip(ports) {
            if let Some(held) = held {
                assert_eq!(
                    (valid, data),
                    (1, *held),
                    "what is offered stays until it is taken"
                );
            }
            *held = (valid == 1 && ready == 0).then_some(data);
        }
        if outputs.val_valid & inputs.val_ready == 1 {
            self.beat(outputs, width, cycle);
        }
        if outputs.val_len_valid == 1 {
            assert!(
                self.coming.is_none(),
                "a length comes after the value before"
            );
            if inputs.val_len_ready == 1 {
                self.length(outputs, cycle, requests);
            }
        }
    }

    fn length(&mut self, outputs: &Out, cycle: u64, requests: &mut Requests) {
        let bytes = outputs.val_len as usize;
        let reply = Reply {
            tag: outputs.val_tag as u8,
            item: (bytes > 0).then(|| Item {
                value: Vec::new(),
                flags: outputs.val_flags as u32,
                cas: outputs.val_cas,
            }),
            begun: requests.begun.pop_front().expect("a reply has a request"),
            ended: cycle,
        };
        if bytes == 0 {
            self.done.push_back(reply);
        } else {
            self.coming = Some((reply, bytes));
        }
    }

    fn beat(&mut self, outputs: &Out, width: usize, cycle: u64) {
        let (reply, bytes) = self.coming.as_mut().expect("bytes come after their length");
        let value = &mut reply.item.as_mut().expect("a hit").value;
        let count = width.min(*bytes - value.len());
        assert_eq!(outputs.val_keep, mask(count), "bytes of a beat");
        value.extend_from_slice(&outputs.val_data.to_le_bytes()[..count]);
        let is_last = value.len() == *bytes;
        assert_eq!(outputs.val_last == 1, is_last, "the last beat says so");
        if is_last {
            reply.ended = cycle;
            let (reply, _) = self.coming.take().expect("coming");
            self.done.push_back(reply);
        }
    }
}

/// The lowest `bits` bits, at most 64.
fn mask(bits: usize) -> u64 {
    u64::MAX.checked_shr(64 - bits as u32).unwrap_or(0)
}
