//! Queues that several cores share: one core at a time reads them, or puts into them.

/// For how long a core has such a queue to itself, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Held {
    /// Reading a batch from the RX queue of another core, whatever its length.
    pub look_ns: f64,
    /// Each request of the batch.
    pub receive_ns: f64,
    /// Putting a request into the software queue of another core.
    pub put_ns: f64,
}

/// Accesses to such queues.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Accesses {
    /// All of them.
    pub count: u64,
    /// Those that found another core at the queue.
    pub waited: u64,
    /// For how long they waited, in nanoseconds.
    pub waited_ns: f64,
}

impl Accesses {
    /// A core comes to a queue that is free at `free_ns`, and then has it for `held_ns`. Returns
    /// for how long it waits. Cores come in the order of time.
    pub(crate) fn add(&mut self, free_ns: &mut f64, came_ns: f64, held_ns: f64) -> f64 {
        let wait_ns = (*free_ns - came_ns).max(0.0);
        *free_ns = came_ns + wait_ns + held_ns;
        self.count += 1;
        self.waited += u64::from(wait_ns > 0.0);
        self.waited_ns += wait_ns;
        wait_ns
    }

    /// The share of the accesses that waited.
    pub fn waited_share(&self) -> f64 {
        self.waited as f64 / self.count.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_finds_another_one_waits_for_it() {
        let (mut accesses, mut free_ns) = (Accesses::default(), 0.0);
        // The third one comes while the second one still waits.
        let waits = [10.0, 12.0, 13.0, 100.0].map(|at| accesses.add(&mut free_ns, at, 5.0));
        assert_eq!(waits, [0.0, 3.0, 7.0, 0.0]);
        assert_eq!((accesses.count, accesses.waited_ns), (4, 10.0));
        assert_eq!(accesses.waited_share(), 0.5);
    }
}
