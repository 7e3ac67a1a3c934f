//! Replies that one worker has made for the connections of another one, until they arrive there.
//!
//! A reply takes memory from the moment at which it is made, but only the worker at which its
//! connection is at home can tell whether the client takes it, and close the connection if it does
//! not. On the way from one worker to the other the reply counts in neither one's budget. So a
//! worker makes no further large replies for others while many bytes of them are on their way.

use crossbeam_utils::CachePadded;
use glimmer_base::limits::HOMEWARD_BYTES_MAX;
use glimmer_base::sync::AtomicUsize;
use glimmer_base::sync::Ordering::Relaxed;

/// Bytes of replies on their way, for each worker that made them. These are counts, and order
/// nothing: a mailbox or a ring hands the replies over, and a doorbell orders what a worker does
/// after it is woken.
pub(crate) struct Homeward(Vec<CachePadded<AtomicUsize>>);

/// Replies on their way, as they are counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InFlight {
    /// The worker that made the replies.
    pub worker: usize,
    pub bytes: usize,
}

impl Homeward {
    /// Nothing is on its way.
    pub fn new(workers: usize) -> Homeward {
        Homeward((0..workers).map(|_| CachePadded::default()).collect())
    }

    /// Whether this worker is to make no further large replies for others.
    #[inline]
    pub fn is_full(&self, worker: usize) -> bool {
        self.0[worker].load(Relaxed) >= HOMEWARD_BYTES_MAX
    }

    /// Notes that replies leave.
    pub fn leave(&self, in_flight: InFlight) {
        self.0[in_flight.worker].fetch_add(in_flight.bytes, Relaxed);
    }

    /// Notes that replies have arrived. Returns whether the worker that made them may go on now:
    /// the caller wakes it.
    #[must_use]
    pub fn arrive(&self, in_flight: InFlight) -> bool {
        let before = self.0[in_flight.worker].fetch_sub(in_flight.bytes, Relaxed);
        let is_full = |bytes| bytes >= HOMEWARD_BYTES_MAX;
        is_full(before) && !is_full(before - in_flight.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_goes_on_once_enough_has_arrived() {
        let homeward = Homeward::new(2);
        let half = |worker| InFlight {
            worker,
            bytes: HOMEWARD_BYTES_MAX / 2,
        };
        for is_full in [false, true, true] {
            homeward.leave(half(1));
            assert_eq!(
                [0, 1].map(|worker| homeward.is_full(worker)),
                [false, is_full]
            );
        }
        assert!(!homeward.arrive(half(1)) && homeward.is_full(1));
        assert!(homeward.arrive(half(1)) && !homeward.is_full(1));
        assert!(!homeward.arrive(half(1)));
    }
}
