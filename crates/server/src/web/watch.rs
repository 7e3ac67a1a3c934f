//! Whether the workers take their turns. They are woken every [`WORKER_WATCH_MS`], and count a turn
//! each time.

use glimmer_base::limits::{WORKER_STALLED_MS, WORKER_WATCH_MS};

/// What has been seen of the workers, and of the pages.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watched {
    /// Of each worker: for how long it has taken no turn although it was woken.
    pub silent_ms: Vec<u64>,
    /// The server is stopping.
    pub is_draining: bool,
    /// Requests for pages so far.
    pub requests: u64,
}

impl Watched {
    /// Whether clients may be sent here.
    pub fn is_ready(&self) -> bool {
        !self.is_draining && self.stalled().next().is_none() && !self.silent_ms.is_empty()
    }

    /// The workers that take no turns, and for how long.
    pub fn stalled(&self) -> impl Iterator<Item = (usize, u64)> {
        let each = self.silent_ms.iter().copied().enumerate();
        each.filter(|(_, silent_ms)| *silent_ms >= WORKER_STALLED_MS)
    }
}

/// Watches the workers.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// Of each worker: its turns when they last changed, and since when they have not.
    seen: Vec<(u64, u64)>,
    /// When the workers are to be woken again.
    due_ms: u64,
}

impl Watch {
    /// Whether it is time to look at the workers.
    pub fn is_due(&self, now_ms: u64) -> bool {
        now_ms >= self.due_ms
    }

    /// How long there is nothing to look at.
    pub fn wait_ms(&self, now_ms: u64) -> u64 {
        self.due_ms.saturating_sub(now_ms)
    }

    /// The workers have taken this many turns each, and are woken now. Returns for how long each
    /// has taken none although it was woken.
    pub fn note(&mut self, now_ms: u64, turns: impl Iterator<Item = u64>) -> Vec<u64> {
        self.due_ms = now_ms + WORKER_WATCH_MS;
        let each = turns.enumerate().map(|(worker, turns)| {
            if self.seen.len() <= worker {
                // It has not been woken yet.
                self.seen.push((turns, now_ms));
            }
            let (seen, since_ms) = &mut self.seen[worker];
            if *seen != turns {
                (*seen, *since_ms) = (turns, now_ms);
            }
            now_ms - *since_ms
        });
        each.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_that_takes_no_turn_is_noticed_and_one_that_does_is_ready_again() {
        let mut watch = Watch::default();
        let mut watched = Watched::default();
        assert!(!watched.is_ready(), "nothing is known yet");
        for (now_ms, turns, is_ready) in [
            (10, [1, 1], true),
            (510, [2, 1], true),
            (1_010, [3, 1], false),
            (1_510, [4, 1], false),
            (2_010, [5, 2], true),
        ] {
            assert!(watch.is_due(now_ms));
            watched.silent_ms = watch.note(now_ms, turns.into_iter());
            assert_eq!(watched.is_ready(), is_ready, "{now_ms}: {watched:?}");
        }
        assert_eq!(watched.silent_ms, [0, 0]);
        watched.is_draining = true;
        assert!(!watched.is_ready());
    }
}
