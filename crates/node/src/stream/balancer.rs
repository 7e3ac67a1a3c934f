//! Assigns connections to workers.

use glimmer_base::sync::Ordering::Relaxed;
use glimmer_base::sync::{AtomicUsize, Mutex, lock};
use glimmer_dispatch::Plan;

/// Counts every worker's connections. The worker that accepts a connection asks here which worker
/// is to serve it. The answer is the worker with the fewest connections, of those that the plan
/// makes homes of connections, so that the load stays balanced however unevenly the kernel
/// distributes connections. It is asked once per connection, so a lock is fast enough.
pub(crate) struct AcceptBalancer {
    connections_max: AtomicUsize,
    counts: Mutex<Vec<usize>>,
}

impl AcceptBalancer {
    pub fn new(workers: usize, connections_max: usize) -> AcceptBalancer {
        AcceptBalancer {
            connections_max: AtomicUsize::new(connections_max),
            counts: Mutex::new(vec![0; workers]),
        }
    }

    /// The worker for a new connection that `me` accepted; `None` if there are too many
    /// connections.
    pub fn assign(&self, me: usize, plan: &Plan) -> Option<usize> {
        let mut counts = lock(&self.counts);
        if counts.iter().sum::<usize>() >= self.connections_max() {
            return None;
        }
        let worker = home_with_fewest(&counts, me, plan);
        counts[worker] += 1;
        Some(worker)
    }

    /// The worker that a connection of worker `me` moves to, because `me` is no home any more, or
    /// has more connections than others; `None` if the connection stays.
    pub fn reassign(&self, me: usize, plan: &Plan) -> Option<usize> {
        let mut counts = lock(&self.counts);
        let worker = home_with_fewest(&counts, me, plan);
        let stays = plan.is_home(me) && counts[me] <= counts[worker] + 1;
        if worker == me || stays {
            return None;
        }
        counts[me] -= 1;
        counts[worker] += 1;
        Some(worker)
    }

    /// The maximum number of connections.
    pub fn connections_max(&self) -> usize {
        self.connections_max.load(Relaxed)
    }

    /// Sets the maximum number of connections. It only bounds those that are assigned later, so
    /// nothing has to be seen with it.
    pub fn limit(&self, connections_max: usize) {
        self.connections_max.store(connections_max, Relaxed);
    }

    /// Whether the maximum number of connections is reached.
    pub fn is_full(&self) -> bool {
        lock(&self.counts).iter().sum::<usize>() >= self.connections_max()
    }

    /// A connection of a worker was closed.
    pub fn release(&self, worker: usize) {
        lock(&self.counts)[worker] -= 1;
    }
}

/// The home with the fewest connections, which is worker `me` if no other has fewer. A plan in
/// which no worker is a home does not move connections.
fn home_with_fewest(counts: &[usize], me: usize, plan: &Plan) -> usize {
    let homes = (0..counts.len()).filter(|&worker| plan.is_home(worker));
    homes
        .min_by_key(|&worker| (counts[worker], worker != me))
        .unwrap_or(me)
}

#[cfg(test)]
mod tests {
    use super::*;
    use glimmer_dispatch::{AccessMode, Handoff, Layout, PartitionMap, Policy};

    fn layout(workers: usize) -> Layout {
        Layout {
            map: PartitionMap::new(workers, workers),
            access: AccessMode::Crcw,
        }
    }

    #[test]
    fn the_worker_with_the_fewest_gets_the_next() {
        let balancer = AcceptBalancer::new(3, 7);
        let plan = Plan::by_keyhash(layout(3));
        assert_eq!(balancer.assign(1, &plan), Some(1));
        assert_eq!(balancer.assign(1, &plan), Some(0));
        assert_eq!(balancer.assign(1, &plan), Some(2));
        assert_eq!(balancer.assign(2, &plan), Some(2));
        balancer.release(0);
        assert_eq!(balancer.assign(2, &plan), Some(0));
        for _ in 0..3 {
            assert!(balancer.assign(0, &plan).is_some());
        }
        assert!(balancer.is_full());
        assert_eq!(balancer.assign(0, &plan), None);
        balancer.release(1);
        assert_eq!(balancer.assign(0, &plan), Some(1));
    }

    #[test]
    fn connections_move_to_homes_until_these_have_about_the_same_number() {
        let balancer = AcceptBalancer::new(3, 100);
        let (all, two) = (
            Plan::by_keyhash(layout(3)),
            Handoff { dispatchers: 2 }.plan(layout(3)),
        );
        for _ in 0..9 {
            assert!(balancer.assign(2, &all).is_some());
        }
        assert_eq!(balancer.reassign(0, &all), None);
        assert_eq!(balancer.reassign(2, &two), Some(0));
        assert_eq!(balancer.reassign(2, &two), Some(1));
        assert_eq!(balancer.reassign(2, &two), Some(0));
        assert_eq!(*lock(&balancer.counts), [5, 4, 0]);
        assert_eq!(balancer.reassign(0, &two), None);
        assert_eq!(balancer.reassign(0, &all), Some(2));
        assert_eq!(balancer.reassign(0, &all), Some(2));
        assert_eq!(balancer.reassign(1, &all), Some(2));
        assert_eq!(balancer.reassign(0, &all), None);
        assert_eq!(*lock(&balancer.counts), [3, 3, 3]);
    }
}
