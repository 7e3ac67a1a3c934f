//! A lookup of any speed behind the traffic manager's ports.

use super::item::Item;
use super::streams::Beat;
use glimmer_accel_rtl::traffic::{In, Out};
use rand::Rng;
use rand::rngs::SmallRng;
use std::collections::{HashMap, VecDeque};

/// When the answer to a key of k bytes comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// After some cycles, and with pauses on every port.
    Random,
    /// As late as the narrow lookup's budget allows for a miss: 3k + 12 cycles after the key's
    /// first byte.
    Budget,
    /// This number of cycles after the key's last beat.
    After(u64),
}

/// Keys that are being looked up at a time.
const IN_FLIGHT: usize = 3;

/// See the module's text.
#[derive(Debug)]
pub struct Lookups {
    pub items: HashMap<Vec<u8>, Item>,
    pub pace: Pace,
    pub write_mode: bool,
    /// It takes no keys.
    pub is_asleep: bool,
    /// The keys that it was given.
    pub asked: Vec<Vec<u8>>,
    receiving: Option<Request>,
    replies: VecDeque<Reply>,
    is_offering_length: bool,
    value_at: Option<usize>,
    is_offering_value: bool,
    held_length: Option<(u64, u64)>,
}

#[derive(Debug)]
struct Request {
    tag: u64,
    length: usize,
    key: Vec<u8>,
    first: Option<u64>,
}

#[derive(Debug)]
struct Reply {
    from: u64,
    tag: u64,
    item: Option<Item>,
}

impl Lookups {
    pub fn new(pace: Pace) -> Lookups {
        Lookups {
            items: HashMap::new(),
            pace,
            write_mode: false,
            is_asleep: false,
            asked: Vec::new(),
            receiving: None,
            replies: VecDeque::new(),
            is_offering_length: false,
            value_at: None,
            is_offering_value: false,
            held_length: None,
        }
    }

    fn acts(&self, rng: &mut SmallRng) -> bool {
        self.pace != Pace::Random || rng.random_bool(0.7)
    }

    /// Drives the circuit's inputs in this cycle.
    pub fn drive(&mut self, inputs: &mut In, rng: &mut SmallRng, cycle: u64, width: usize) {
        inputs.write_mode = self.write_mode.into();
        let has_room = self.receiving.is_none() && self.replies.len() < IN_FLIGHT;
        inputs.key_len_ready =
            (has_room && !self.write_mode && !self.is_asleep && self.acts(rng)).into();
        inputs.key_ready = (self.receiving.is_some() && self.acts(rng)).into();
        (inputs.val_len_valid, inputs.val_valid) = (0, 0);
        let acts = self.acts(rng);
        let Some(reply) = self.replies.front() else {
            return;
        };
        if let (Some(at), Some(item)) = (self.value_at, &reply.item) {
            self.is_offering_value |= acts;
            if self.is_offering_value {
                let beat = Beat::of(&item.value, at, width);
                inputs.val_valid = 1;
                (inputs.val_data, inputs.val_keep) = (beat.data, beat.keep);
                inputs.val_last = beat.last.into();
            }
        } else if reply.from <= cycle && (acts || self.is_offering_length) {
            self.is_offering_length = true;
            inputs.val_len_valid = 1;
            inputs.val_tag = reply.tag;
            let item = reply.item.as_ref();
            inputs.val_len = item.map_or(0, |item| item.value.len() as u64);
            // A miss has neither; what the ports show then does not matter.
            inputs.val_flags = item.map_or(rng.random(), |item| item.flags).into();
            inputs.val_cas = item.map_or(rng.random(), |item| item.cas);
        }
    }

    /// The end of the cycle.
    pub fn step(&mut self, inputs: &In, out: &Out, rng: &mut SmallRng, cycle: u64, width: usize) {
        if let Some(held) = self.held_length.take()
            && !self.write_mode
        {
            assert_eq!((out.key_len_valid, held), (1, (out.key_len, out.key_tag)));
        }
        if out.key_len_valid == 1 && inputs.key_len_ready == 0 {
            self.held_length = Some((out.key_len, out.key_tag));
        }
        if out.key_valid == 1 && inputs.key_ready == 1 {
            self.take_key(out, rng, cycle, width);
        }
        if out.key_len_valid == 1 && inputs.key_len_ready == 1 {
            self.receiving = Some(Request {
                tag: out.key_tag,
                length: out.key_len as usize,
                key: Vec::new(),
                first: None,
            });
        }
        if inputs.val_len_valid == 1 && out.val_len_ready == 1 {
            self.is_offering_length = false;
            match inputs.val_len {
                0 => drop(self.replies.pop_front()),
                _ => self.value_at = Some(0),
            }
        }
        if inputs.val_valid == 1 && out.val_ready == 1 {
            self.is_offering_value = false;
            self.value_at = Some(self.value_at.expect("offered") + width);
            if inputs.val_last == 1 {
                self.value_at = None;
                self.replies.pop_front();
            }
        }
    }

    fn take_key(&mut self, out: &Out, rng: &mut SmallRng, cycle: u64, width: usize) {
        let request = self.receiving.as_mut().expect("a length came before");
        let first = *request.first.get_or_insert(cycle);
        let beat = Beat {
            data: out.key_data,
            keep: out.key_keep,
            last: out.key_last == 1,
        };
        beat.append_to(&mut request.key, width);
        if !beat.last {
            return;
        }
        let request = self.receiving.take().expect("it is being received");
        assert_eq!(request.key.len(), request.length);
        let from = match self.pace {
            Pace::Random => cycle + rng.random_range(1..40),
            Pace::Budget => first + 3 * request.length as u64 + 12,
            Pace::After(cycles) => cycle + cycles,
        };
        self.replies.push_back(Reply {
            from,
            tag: request.tag,
            item: self.items.get(&request.key).cloned(),
        });
        self.asked.push(request.key);
    }
}
