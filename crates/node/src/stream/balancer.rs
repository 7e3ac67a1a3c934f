//! Assigns connections to workers.

use glimmer_base::sync::{Mutex, lock};

/// Counts every worker's connections. The worker that accepts a connection asks here which worker
/// is to serve it. The answer is the worker with the fewest connections, so that the load stays
/// balanced however unevenly the kernel distributes connections. It is asked once per connection,
/// so a lock is fast enough.
pub(crate) struct AcceptBalancer {
    connections_max: usize,
    counts: Mutex<Vec<usize>>,
}

impl AcceptBalancer {
    pub fn new(workers: usize, connections_max: usize) -> AcceptBalancer {
        AcceptBalancer {
            connections_max,
            counts: Mutex::new(vec![0; workers]),
        }
    }

    /// The worker for a new connection that `me` accepted; `None` if there are too many
    /// connections.
    pub fn assign(&self, me: usize) -> Option<usize> {
        let mut counts = lock(&self.counts);
        if counts.iter().sum::<usize>() >= self.connections_max {
            return None;
        }
        let fewest = *counts.iter().min().expect("there is a worker");
        let worker = if counts[me] == fewest {
            me
        } else {
            counts
                .iter()
                .position(|&count| count == fewest)
                .expect("one has the fewest")
        };
        counts[worker] += 1;
        Some(worker)
    }

    /// Whether the maximum number of connections is reached.
    pub fn is_full(&self) -> bool {
        lock(&self.counts).iter().sum::<usize>() >= self.connections_max
    }

    /// A connection of a worker was closed.
    pub fn release(&self, worker: usize) {
        lock(&self.counts)[worker] -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worker_with_the_fewest_gets_the_next() {
        let balancer = AcceptBalancer::new(3, 7);
        assert_eq!(balancer.assign(1), Some(1));
        assert_eq!(balancer.assign(1), Some(0));
        assert_eq!(balancer.assign(1), Some(2));
        assert_eq!(balancer.assign(2), Some(2));
        balancer.release(0);
        assert_eq!(balancer.assign(2), Some(0));
        for _ in 0..3 {
            assert!(balancer.assign(0).is_some());
        }
        assert!(balancer.is_full());
        assert_eq!(balancer.assign(0), None);
        balancer.release(1);
        assert_eq!(balancer.assign(0), Some(1));
    }
}
