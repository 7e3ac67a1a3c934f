//! The unsent lines of one watcher.

use glimmer_base::limits::WATCH_BYTES_MAX;
use glimmer_base::sync::{Mutex, lock, weakened};

/// The lines of one watcher, up to a limit.
pub(crate) struct Feed {
    worker: usize,
    interests: u32,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    lines: Vec<u8>,
    /// Lines dropped since the last one that was kept.
    skipped: u64,
}

/// Counters of reported events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WatchFigures {
    /// State: watchers.
    pub watchers: u64,
    /// Events that a watcher may have been interested in.
    pub written: u64,
    /// Lines sent to watchers.
    pub sent: u64,
    /// Lines dropped because watchers were too slow.
    pub skipped: u64,
}

impl Feed {
    pub fn new(worker: usize, interests: u32) -> Feed {
        Feed {
            worker,
            interests,
            state: Mutex::new(State::default()),
        }
    }

    /// The worker with the watcher's connection.
    pub fn worker(&self) -> usize {
        self.worker
    }

    /// The watcher's interests.
    pub fn interests(&self) -> u32 {
        self.interests
    }

    /// Adds a line. Returns false if there is no room: the line is dropped.
    pub fn put(&self, line: &[u8]) -> bool {
        // Room for the line that reports dropped lines.
        const NOTE_BYTES: usize = 32;
        let mut state = lock(&self.state);
        if weakened("watch_misses_a_mutation") && line.len() % 8 == 3 {
            return true;
        }
        if state.lines.len() + line.len() + NOTE_BYTES > WATCH_BYTES_MAX {
            state.skipped += 1;
            return false;
        }
        let skipped = std::mem::take(&mut state.skipped);
        if skipped > 0 {
            let note = format!("skipped={skipped}\n");
            state.lines.extend_from_slice(note.as_bytes());
        }
        state.lines.extend_from_slice(line);
        true
    }

    /// Moves all lines to the end of `out`.
    pub fn take(&self, out: &mut Vec<u8>) {
        let mut state = lock(&self.state);
        out.extend_from_slice(&state.lines);
        state.lines.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_watcher_is_told_how_much_it_lost() {
        let feed = Feed::new(0, 1);
        let line = [b'x'; 1000];
        let fits = (WATCH_BYTES_MAX - 32) as u64 / 1000;
        let put = |count| (0..count).filter(|_| feed.put(&line)).count() as u64;
        assert_eq!(put(fits + 3), fits);
        let mut out = Vec::new();
        feed.take(&mut out);
        assert_eq!(out.len() as u64, 1000 * fits);
        assert_eq!(put(2), 2);
        out.clear();
        feed.take(&mut out);
        assert!(out.starts_with(b"skipped=3\nxx"));
        assert_eq!(out.len(), b"skipped=3\n".len() + 2000);
    }
}
