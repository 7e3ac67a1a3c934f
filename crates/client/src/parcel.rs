//! Datagrams with several requests: which requests each has, until it is answered.
//!
//! The requests of a datagram share its sequence number, and with it the answer. Whatever becomes of the datagram, its requests are answered or sent
//! again one by one, so that a datagram may be forgotten at any time: the oldest is, when there are too many. What answers it afterwards is ignored.

use arrayvec::ArrayVec;
use glimmer_proto::native::REQUESTS_MAX;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// Datagrams that are remembered.
const PARCELS_MAX: usize = 1 << 12;

/// Sequence numbers of the requests of a datagram, in their order.
pub type Contents = ArrayVec<u32, REQUESTS_MAX>;

struct Parcel {
    sequence: u32,
    sent_us: u64,
    contents: Contents,
}

/// The last datagrams with several requests.
pub struct Parcels {
    parcels: Vec<Parcel>,
    /// The place of the next one.
    next: usize,
    /// What their sequence numbers have that those of requests do not: a bit above the place.
    mark: u32,
    /// Where the sequence numbers of each place begin.
    beginnings: SmallRng,
}

impl Parcels {
    /// Sequence numbers have `mark` set; below it is the place, and from `2 * mark` on how often the place has been used, counted from a number that
    /// follows from the seed.
    pub fn new(mark: u32, seed: u64) -> Parcels {
        assert!(mark.is_power_of_two() && PARCELS_MAX <= mark as usize);
        Parcels {
            parcels: Vec::new(),
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

    /// Notes a datagram's requests, and returns its sequence number.
    pub fn begin(&mut self, contents: Contents, now_us: u64) -> u32 {
        let place = self.next;
        self.next = (place + 1) % PARCELS_MAX;
        let used_before = self.parcels.get(place).map(|parcel| parcel.sequence);
        let parcel = Parcel {
            sequence: match used_before {
                Some(sequence) => sequence.wrapping_add(self.mark << 1),
                None => {
                    let uses = self.beginnings.random::<u32>() & !((self.mark << 1) - 1);
                    uses | self.mark | place as u32
                }
            },
            sent_us: now_us,
            contents,
        };
        let sequence = parcel.sequence;
        match self.parcels.get_mut(place) {
            Some(oldest) => *oldest = parcel,
            None => self.parcels.push(parcel),
        }
        sequence
    }

    /// The requests of a datagram that has not been answered.
    pub fn contents(&self, sequence: u32, timestamp: u32) -> &[u32] {
        let place = sequence & (self.mark - 1);
        match self.parcels.get(place as usize) {
            Some(parcel) if parcel.sequence == sequence && parcel.sent_us as u32 == timestamp => {
                &parcel.contents
            }
            _ => &[],
        }
    }

    /// Takes out the requests of the datagram that this answers: none if it is forgotten, or has been answered.
    pub fn end(&mut self, sequence: u32, timestamp: u32) -> Contents {
        let place = sequence & (self.mark - 1);
        match self.parcels.get_mut(place as usize) {
            Some(parcel) if parcel.sequence == sequence && parcel.sent_us as u32 == timestamp => {
                std::mem::take(&mut parcel.contents)
            }
            _ => Contents::new(),
        }
    }
}

/// How many requests a datagram may have, as replies have room: half as many after a datagram whose replies had none, one more after each whose
/// replies had.
#[derive(Clone, Copy, Debug)]
pub struct Packing {
    requests: usize,
    requests_max: usize,
}

impl Packing {
    /// At most so many, and as many to begin with.
    pub fn new(requests_max: usize) -> Packing {
        let requests_max = requests_max.clamp(1, REQUESTS_MAX);
        Packing {
            requests: requests_max,
            requests_max,
        }
    }

    /// Requests that a datagram may have now.
    #[inline]
    pub fn requests(self) -> usize {
        self.requests
    }

    /// Whether requests may ever share a datagram.
    #[inline]
    pub fn shares(self) -> bool {
        self.requests_max > 1
    }

    /// A datagram was answered; not wholly, if its replies did not fit.
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
        let mut parcels = Parcels::new(MARK, 1);
        let one = parcels.begin(contents(10), 5);
        let two = parcels.begin(contents(20), 5);
        assert!(one != two && parcels.has_mark(one) && !parcels.has_mark(10));
        assert!(parcels.end(one, 6).is_empty(), "of another time");
        assert_eq!(parcels.end(one, 5), contents(10));
        assert!(parcels.end(one, 5).is_empty(), "a repetition");
        assert_eq!(parcels.end(two, 5), contents(20));
        assert!(parcels.end(two + 1, 5).is_empty(), "never sent");
    }

    #[test]
    fn the_oldest_is_forgotten() {
        let mut parcels = Parcels::new(MARK, 1);
        let first = parcels.begin(contents(10), 5);
        let second = parcels.begin(contents(20), 5);
        for _ in 1..PARCELS_MAX {
            parcels.begin(contents(30), 5);
        }
        assert!(parcels.end(first, 5).is_empty());
        assert_eq!(parcels.end(second, 5), contents(20));
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
