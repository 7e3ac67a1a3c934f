//! Segment batches of requests for the same port.
//!
//! The datagrams of a segment batch have one length. Requests whose lengths are near one another travel together, padded to the longest of them; what is much
//! longer has a segment batch of its own. Nothing waits for more to come: what is there when segment batches are asked for leaves.

use glimmer_proto::native::{DATAGRAM_BYTES_MAX, REQUESTS_MAX, RequestHeader};
use glimmer_transport::packet::{SEGMENTED_BYTES_MAX, SEGMENTS_MAX};

/// Datagrams of requests that travel together have, with one request each, lengths between two of these.
const CLASSES: [usize; 5] = [128, 256, 512, 1024, DATAGRAM_BYTES_MAX];

/// Requests that leave together.
#[derive(Default)]
pub struct Group {
    /// Which they are.
    pub flights: Vec<u32>,
    /// Bytes of the longest datagram, each having one request.
    segment_bytes: usize,
}

/// How a group's requests are put into datagrams: all but the last have so many requests, and so many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Requests of each datagram.
    pub requests: usize,
    /// Bytes of each datagram.
    pub segment_bytes: usize,
}

impl Group {
    /// With at most so many requests in a datagram. Datagrams are as few as that allows, and as even.
    pub fn shape(&self, requests_max: usize) -> Shape {
        let record_bytes = self.segment_bytes - RequestHeader::BYTES;
        let fit = (DATAGRAM_BYTES_MAX - RequestHeader::BYTES) / record_bytes.max(1);
        let requests_max = requests_max.min(fit).clamp(1, REQUESTS_MAX);
        let datagrams = self.flights.len().div_ceil(requests_max).max(1);
        let requests = self.flights.len().div_ceil(datagrams).max(1);
        Shape {
            requests,
            segment_bytes: RequestHeader::BYTES + requests * record_bytes,
        }
    }
}

/// Groups by core and class; and, beside those that may share datagrams, those that may not.
#[derive(Default)]
pub struct Groups {
    groups: Vec<Group>,
}

impl Groups {
    /// Groups for so many cores; those there were are forgotten.
    pub fn reset(&mut self, cores: usize) {
        self.groups.clear();
        (self.groups).resize_with(cores * 2 * CLASSES.len(), Group::default);
    }

    /// Adds a request whose datagram has so many bytes if it goes alone, as it does if it is not to share one. Returns its group's number if that
    /// has become full.
    #[inline]
    pub fn add(&mut self, core: u16, flight: u32, bytes: usize, shares: bool) -> Option<usize> {
        let class = CLASSES.iter().position(|&longest| bytes <= longest);
        let class = class.expect("a request that does not fit a datagram goes in fragments");
        let number = (usize::from(core) * 2 + usize::from(shares)) * CLASSES.len() + class;
        let group = &mut self.groups[number];
        group.flights.push(flight);
        group.segment_bytes = group.segment_bytes.max(bytes);
        // The next may be as long as its class allows.
        let is_full = group.flights.len() == SEGMENTS_MAX
            || (group.flights.len() + 1) * CLASSES[class] > SEGMENTED_BYTES_MAX;
        is_full.then_some(number)
    }

    /// Takes a group out; [`Groups::put_back`] has its memory used again.
    #[inline]
    pub fn take(&mut self, number: usize) -> Group {
        std::mem::take(&mut self.groups[number])
    }

    /// Makes room for the next group of this number where the last one was.
    #[inline]
    pub fn put_back(&mut self, number: usize, mut group: Group) {
        group.flights.clear();
        group.segment_bytes = 0;
        self.groups[number] = group;
    }

    /// How many groups there are.
    pub fn count(&self) -> usize {
        self.groups.len()
    }

    /// Whether a group has nobody in it.
    pub fn is_empty(&self, number: usize) -> bool {
        self.groups[number].flights.is_empty()
    }

    /// The core that a group goes to.
    pub fn core(&self, number: usize) -> usize {
        number / CLASSES.len() / 2
    }

    /// Whether a group's requests may share datagrams.
    pub fn shares(&self, number: usize) -> bool {
        number / CLASSES.len() % 2 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_alike_travels_together() {
        let mut groups = Groups::default();
        groups.reset(2);
        assert_eq!(groups.add(0, 1, 56, false), None);
        assert_eq!(groups.add(0, 2, 76, false), None);
        assert_eq!(groups.add(0, 3, 1200, false), None);
        assert_eq!(groups.add(1, 4, 56, false), None);
        assert_eq!(groups.add(1, 5, 56, true), None);
        let full: Vec<_> = (0..groups.count())
            .filter(|&n| !groups.is_empty(n))
            .collect();
        let taken: Vec<_> = full
            .iter()
            .map(|&number| {
                let (core, shares) = (groups.core(number), groups.shares(number));
                let group = groups.take(number);
                (core, shares, group.segment_bytes, group.flights)
            })
            .collect();
        let expected = [
            (0, false, 76, vec![1, 2]),
            (0, false, 1200, vec![3]),
            (1, false, 56, vec![4]),
            (1, true, 56, vec![5]),
        ];
        assert_eq!(taken, expected);
    }

    #[test]
    fn a_segment_batch_is_never_longer_than_the_kernel_takes() {
        let mut groups = Groups::default();
        groups.reset(1);
        for bytes in [56, 1024, DATAGRAM_BYTES_MAX] {
            for requests_max in [1, 2, REQUESTS_MAX] {
                let full = (0..)
                    .find_map(|flight| groups.add(0, flight, bytes, requests_max > 1))
                    .unwrap();
                let group = groups.take(full);
                assert!(group.flights.len() >= 46);
                let shape = group.shape(requests_max);
                let datagrams = group.flights.len().div_ceil(shape.requests);
                assert!(
                    shape.requests <= requests_max && shape.segment_bytes <= DATAGRAM_BYTES_MAX
                );
                assert!(datagrams * shape.segment_bytes <= SEGMENTED_BYTES_MAX);
                groups.put_back(full, group);
            }
        }
    }

    #[test]
    fn datagrams_are_few_and_even() {
        let shape = |requests: u32, requests_max| {
            let group = Group {
                flights: (0..requests).collect(),
                segment_bytes: 60,
            };
            let Shape {
                requests,
                segment_bytes,
            } = group.shape(requests_max);
            (requests, segment_bytes)
        };
        assert_eq!(shape(10, 1), (1, 60));
        assert_eq!(shape(10, 32), (10, 32 + 280));
        assert_eq!(shape(10, 8), (5, 32 + 140));
        // 48 records of 28 bytes would fit, but 32 is the bound, and two of 24 are more even than 32 and 16.
        assert_eq!(shape(48, 64), (24, 32 + 24 * 28));
    }
}
