//! Trains of requests for the same port.
//!
//! The datagrams of a train have one length. Requests whose lengths are near one another travel together, padded to the longest of them; what is much
//! longer has a train of its own. Nothing waits for more to come: what is there when trains are asked for leaves.

use arrayvec::ArrayVec;
use glimmer_proto::native::DATAGRAM_BYTES_MAX;
use glimmer_transport::udp::{TRAIN_BYTES_MAX, TRAIN_DATAGRAMS_MAX};

/// Requests that travel together have lengths between two of these.
const CLASSES: [usize; 5] = [128, 256, 512, 1024, DATAGRAM_BYTES_MAX];

/// Requests that leave together.
#[derive(Default)]
pub struct Group {
    /// Which they are.
    pub flights: ArrayVec<u32, TRAIN_DATAGRAMS_MAX>,
    /// Bytes of the longest datagram.
    pub stride: usize,
}

/// Groups by core and class.
#[derive(Default)]
pub struct Groups {
    groups: Vec<Group>,
}

impl Groups {
    /// Groups for so many cores; those there were are forgotten.
    pub fn reset(&mut self, cores: usize) {
        self.groups.clear();
        self.groups
            .resize_with(cores * CLASSES.len(), Group::default);
    }

    /// Adds a request whose datagram has so many bytes. Returns its group's number if that has become full.
    #[inline]
    pub fn add(&mut self, core: u16, flight: u32, bytes: usize) -> Option<usize> {
        let class = CLASSES.iter().position(|&longest| bytes <= longest);
        let class = class.expect("a request that does not fit a datagram goes in fragments");
        let number = usize::from(core) * CLASSES.len() + class;
        let group = &mut self.groups[number];
        group.flights.push(flight);
        group.stride = group.stride.max(bytes);
        // The next may be as long as its class allows.
        let is_full =
            group.flights.is_full() || (group.flights.len() + 1) * CLASSES[class] > TRAIN_BYTES_MAX;
        is_full.then_some(number)
    }

    /// Takes a group out.
    #[inline]
    pub fn take(&mut self, number: usize) -> Group {
        std::mem::take(&mut self.groups[number])
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
        number / CLASSES.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_alike_travels_together() {
        let mut groups = Groups::default();
        groups.reset(2);
        assert_eq!(groups.add(0, 1, 56), None);
        assert_eq!(groups.add(0, 2, 76), None);
        assert_eq!(groups.add(0, 3, 1200), None);
        assert_eq!(groups.add(1, 4, 56), None);
        let full: Vec<_> = (0..groups.count())
            .filter(|&n| !groups.is_empty(n))
            .collect();
        let taken: Vec<_> = full
            .iter()
            .map(|&number| {
                let core = groups.core(number);
                let group = groups.take(number);
                (core, group.stride, group.flights.to_vec())
            })
            .collect();
        let expected = [(0, 76, vec![1, 2]), (0, 1200, vec![3]), (1, 56, vec![4])];
        assert_eq!(taken, expected);
    }

    #[test]
    fn a_train_is_never_longer_than_the_kernel_takes() {
        let mut groups = Groups::default();
        groups.reset(1);
        for bytes in [56, 1024, DATAGRAM_BYTES_MAX] {
            let full = (0..)
                .find_map(|flight| groups.add(0, flight, bytes))
                .unwrap();
            let group = groups.take(full);
            assert!(group.flights.len() * group.stride <= TRAIN_BYTES_MAX);
            assert!(group.flights.len() >= 46);
        }
    }
}
