//! Segment batches of requests for one port.
//!
//! All datagrams of a segment batch have the same length. Requests of similar length travel
//! together and are padded to the longest; much longer requests get a segment batch of their own.
//! No request waits for others: a segment batch carries the requests that are ready when the caller
//! transmits.

use glimmer_proto::native::{DATAGRAM_BYTES_MAX, REQUESTS_MAX, RequestHeader};
use glimmer_transport::packet::{SEGMENTED_BYTES_MAX, SEGMENTS_MAX};

/// Length classes. Requests share a segment batch if their datagrams, with one request each, have a
/// length between the same two of these bounds.
const CLASSES: [usize; 5] = [128, 256, 512, 1024, DATAGRAM_BYTES_MAX];

/// Requests that are sent together.
#[derive(Default)]
pub struct Group {
    /// The slots of the requests.
    pub requests: Vec<u32>,
    /// Length of the longest datagram in bytes, with one request per datagram.
    segment_bytes: usize,
}

/// How a group's requests are packed into datagrams. Every datagram but the last has this many
/// requests and bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Requests per datagram.
    pub requests: usize,
    /// Bytes per datagram.
    pub segment_bytes: usize,
}

impl Group {
    /// Packs at most `requests_max` requests into a datagram. Uses as few datagrams as possible and
    /// fills them as evenly as possible.
    pub fn shape(&self, requests_max: usize) -> Shape {
        let record_bytes = self.segment_bytes - RequestHeader::BYTES;
        let fit = (DATAGRAM_BYTES_MAX - RequestHeader::BYTES) / record_bytes.max(1);
        let requests_max = requests_max.min(fit).clamp(1, REQUESTS_MAX);
        let datagrams = self.requests.len().div_ceil(requests_max).max(1);
        let requests = self.requests.len().div_ceil(datagrams).max(1);
        Shape {
            requests,
            segment_bytes: RequestHeader::BYTES + requests * record_bytes,
        }
    }
}

/// Groups by core and length class. Requests that may share a datagram and requests that may not
/// are in different groups.
#[derive(Default)]
pub struct Groups {
    groups: Vec<Group>,
}

impl Groups {
    /// Starts again with empty groups for this many cores.
    pub fn reset(&mut self, cores: usize) {
        self.groups.clear();
        (self.groups).resize_with(cores * 2 * CLASSES.len(), Group::default);
    }

    /// Adds a request. `bytes` is the length of its datagram if it is sent alone; `shares` says
    /// whether it may share a datagram. Returns the group's number if the group is now full.
    #[inline]
    pub fn add(&mut self, core: u16, request: u32, bytes: usize, shares: bool) -> Option<usize> {
        let class = CLASSES.iter().position(|&longest| bytes <= longest);
        let class = class.expect("a request that does not fit a datagram goes in fragments");
        let number = (usize::from(core) * 2 + usize::from(shares)) * CLASSES.len() + class;
        let group = &mut self.groups[number];
        group.requests.push(request);
        group.segment_bytes = group.segment_bytes.max(bytes);
        // The next request may be as long as its class allows.
        let is_full = group.requests.len() == SEGMENTS_MAX
            || (group.requests.len() + 1) * CLASSES[class] > SEGMENTED_BYTES_MAX;
        is_full.then_some(number)
    }

    /// Takes a group out. [`Groups::put_back`] returns it, so that its memory is reused.
    #[inline]
    pub fn take(&mut self, number: usize) -> Group {
        std::mem::take(&mut self.groups[number])
    }

    /// Returns the memory of a group that [`Groups::take`] took out.
    #[inline]
    pub fn put_back(&mut self, number: usize, mut group: Group) {
        group.requests.clear();
        group.segment_bytes = 0;
        self.groups[number] = group;
    }

    /// The number of groups.
    pub fn count(&self) -> usize {
        self.groups.len()
    }

    /// Whether a group is empty.
    pub fn is_empty(&self, number: usize) -> bool {
        self.groups[number].requests.is_empty()
    }

    /// The core to which a group is sent.
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
                (core, shares, group.segment_bytes, group.requests)
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
                    .find_map(|request| groups.add(0, request, bytes, requests_max > 1))
                    .unwrap();
                let group = groups.take(full);
                assert!(group.requests.len() >= 46);
                let shape = group.shape(requests_max);
                let datagrams = group.requests.len().div_ceil(shape.requests);
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
                requests: (0..requests).collect(),
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
        // 48 records of 28 bytes would fit, but 32 is the limit, and two datagrams of 24 are more
        // even than 32 and 16.
        assert_eq!(shape(48, 64), (24, 32 + 24 * 28));
    }
}
