//! Datagrams with several requests: which requests each one carries, until it is answered.
//!
//! The requests of a datagram share its sequence number and its answer. Whatever happens to the
//! datagram, its requests are answered or retransmitted one by one. A datagram can therefore be
//! forgotten at any time: the oldest is dropped when there are too many, and its late answer is
//! ignored.

use arrayvec::ArrayVec;
use glimmer_proto::native::REQUESTS_MAX;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// Datagrams that are remembered.
const SHARED_DATAGRAMS_MAX: usize = 1 << 12;

/// Sequence numbers of a datagram's requests, in order.
pub type Contents = ArrayVec<u32, REQUESTS_MAX>;

struct SharedDatagram {
    sequence: u32,
    sent_us: u64,
    contents: Contents,
}

/// The most recent datagrams with several requests.
pub struct SharedDatagrams {
    datagrams: Vec<SharedDatagram>,
    /// The slot of the next datagram.
    next: usize,
    /// The bit above the slot, set in sequence numbers of shared datagrams and clear in those of
    /// requests.
    mark: u32,
    /// Draws the first sequence number of each slot.
    beginnings: SmallRng,
}

impl SharedDatagrams {
    /// In a sequence number, `mark` is set, the bits below it are the slot, and the bits above it
    /// count the slot's uses, from a number derived from the seed.
    pub fn new(mark: u32, seed: u64) -> SharedDatagrams {
        assert!(mark.is_power_of_two() && SHARED_DATAGRAMS_MAX <= mark as usize);
        SharedDatagrams {
            datagrams: Vec::new(),
            next: 0,
            mark,
            beginnings: SmallRng::seed_from_u64(seed),
        }
    }

    /// Whether this is the sequence number of a datagram with several requests.
    #[inline]
    pub fn has_mark(&self, sequence: u32) -> bool {
        sequence & self.mark != 0
    }

    /// Records a datagram's requests and returns its sequence number.
    pub fn begin(&mut self, contents: Contents, now_us: u64) -> u32 {
        let slot = self.next;
        self.next = (slot + 1) % SHARED_DATAGRAMS_MAX;
        let used_before = self.datagrams.get(slot).map(|datagram| datagram.sequence);
        let datagram = SharedDatagram {
            sequence: match used_before {
                Some(sequence) => sequence.wrapping_add(self.mark << 1),
                None => {
                    let uses = self.beginnings.random::<u32>() & !((self.mark << 1) - 1);
                    uses | self.mark | slot as u32
                }
            },
            sent_us: now_us,
            contents,
        };
        let sequence = datagram.sequence;
        match self.datagrams.get_mut(slot) {
            Some(oldest) => *oldest = datagram,
            None => self.datagrams.push(datagram),
        }
        sequence
    }

    /// The requests of an unanswered datagram.
    pub fn contents(&self, sequence: u32, timestamp: u32) -> &[u32] {
        let slot = sequence & (self.mark - 1);
        match self.datagrams.get(slot as usize) {
            Some(datagram)
                if datagram.sequence == sequence && datagram.sent_us as u32 == timestamp =>
            {
                &datagram.contents
            }
            _ => &[],
        }
    }

    /// Removes and returns the requests of an answered datagram. Empty if the datagram is forgotten
    /// or was answered before.
    pub fn end(&mut self, sequence: u32, timestamp: u32) -> Contents {
        let slot = sequence & (self.mark - 1);
        match self.datagrams.get_mut(slot as usize) {
            Some(datagram)
                if datagram.sequence == sequence && datagram.sent_us as u32 == timestamp =>
            {
                std::mem::take(&mut datagram.contents)
            }
            _ => Contents::new(),
        }
    }
}

/// How many requests may share a datagram. The number is halved after a datagram whose replies did
/// not fit and grows by one after each whose replies did.
#[derive(Clone, Copy, Debug)]
pub struct Packing {
    requests: usize,
    requests_max: usize,
}

impl Packing {
    /// Starts at the maximum.
    pub fn new(requests_max: usize) -> Packing {
        let requests_max = requests_max.clamp(1, REQUESTS_MAX);
        Packing {
            requests: requests_max,
            requests_max,
        }
    }

    /// Requests that may share a datagram now.
    #[inline]
    pub fn requests(self) -> usize {
        self.requests
    }

    /// Whether requests may ever share a datagram.
    #[inline]
    pub fn shares(self) -> bool {
        self.requests_max > 1
    }

    /// A datagram was answered; `has_fitted` says whether all its replies fitted.
    pub fn learn(&mut self, has_fitted: bool) {
        self.requests = match has_fitted {
            true => (self.requests + 1).min(self.requests_max),
            false => (self.requests / 2).max(1),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARK: u32 = 1 << 17;

    fn contents(first: u32) -> Contents {
        (first..first + 3).collect()
    }

    #[test]
    fn a_datagram_is_answered_once_and_by_its_own_answer() {
        let mut datagrams = SharedDatagrams::new(MARK, 1);
        let one = datagrams.begin(contents(10), 5);
        let two = datagrams.begin(contents(20), 5);
        assert!(one != two && datagrams.has_mark(one) && !datagrams.has_mark(10));
        assert!(datagrams.end(one, 6).is_empty(), "of another time");
        assert_eq!(datagrams.end(one, 5), contents(10));
        assert!(datagrams.end(one, 5).is_empty(), "a repetition");
        assert_eq!(datagrams.end(two, 5), contents(20));
        assert!(datagrams.end(two + 1, 5).is_empty(), "never sent");
    }

    #[test]
    fn the_oldest_is_forgotten() {
        let mut datagrams = SharedDatagrams::new(MARK, 1);
        let first = datagrams.begin(contents(10), 5);
        let second = datagrams.begin(contents(20), 5);
        for _ in 1..SHARED_DATAGRAMS_MAX {
            datagrams.begin(contents(30), 5);
        }
        assert!(datagrams.end(first, 5).is_empty());
        assert_eq!(datagrams.end(second, 5), contents(20));
    }

    #[test]
    fn packing_gives_way_quickly_and_comes_back_slowly() {
        let mut packing = Packing::new(1000);
        assert_eq!(packing.requests(), REQUESTS_MAX);
        let learnt = [false, false, true, false, false, false, false, true].map(|has_fitted| {
            packing.learn(has_fitted);
            packing.requests()
        });
        assert_eq!(learnt, [16, 8, 9, 4, 2, 1, 1, 2]);
        assert!(!Packing::new(1).shares());
    }
}
