//! The unsent lines of one watcher.

use glimmer_base::sync::{AtomicBool, AtomicU64, Mutex, Ordering, lock, weakened};

/// The lines of one watcher, up to a limit.
pub struct Feed {
    worker: usize,
    interests: u32,
    /// A line did not fit, and no further one is put until all are taken. Changed under the lock
    /// of all feeds.
    is_full: AtomicBool,
    /// Lines that this feed alone has left out and not told of.
    left_out: AtomicU64,
    state: Mutex<State>,
    /// When its worker first saw it full of those times that follow one another, in milliseconds
    /// since the epoch; 0 if it has not. Used by that worker only.
    full_since_ms: AtomicU64,
}

#[derive(Default)]
struct State {
    lines: Vec<u8>,
    /// Of the events that nobody was shown, how many this watcher has been told of, or happened
    /// before it came.
    seen_missed: u64,
    /// Lines left out that it has been told of.
    told: u64,
}

/// What became of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Put {
    Kept,
    /// It did not fit: the feed is full from here on.
    Filled,
    /// The feed is full.
    LeftOut,
}

impl Feed {
    pub(super) fn new(worker: usize, interests: u32) -> Feed {
        Feed {
            worker,
            interests,
            is_full: AtomicBool::new(false),
            left_out: AtomicU64::new(0),
            state: Mutex::new(State::default()),
            full_since_ms: AtomicU64::new(0),
        }
    }

    /// Begins after this many events that nobody was shown.
    pub(super) fn begin(&self, missed: u64) {
        lock(&self.state).seen_missed = missed;
    }

    /// The worker with the watcher's connection.
    pub fn worker(&self) -> usize {
        self.worker
    }

    /// The watcher's interests.
    pub fn interests(&self) -> u32 {
        self.interests
    }

    /// Whether it takes no further line.
    pub(super) fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Relaxed)
    }

    /// Takes lines again. The caller holds the lock of all feeds.
    pub(super) fn open(&self) {
        self.is_full.store(false, Ordering::Relaxed);
    }

    /// Adds a line, or counts it. The caller holds the lock of all feeds.
    pub(super) fn put(&self, line: &[u8], bytes_max: usize) -> Put {
        if weakened("watch_misses_a_mutation") && line.len() % 8 == 3 {
            return Put::Kept;
        }
        if !self.is_full() {
            let lines = &mut lock(&self.state).lines;
            if lines.len() + line.len() <= bytes_max {
                lines.extend_from_slice(line);
                return Put::Kept;
            }
        }
        self.left_out.fetch_add(1, Ordering::Relaxed);
        match self.is_full.swap(true, Ordering::Relaxed) {
            false => Put::Filled,
            true => Put::LeftOut,
        }
    }

    /// Moves all lines to the end of `out`.
    pub(super) fn take_lines(&self, out: &mut Vec<u8>) {
        let mut state = lock(&self.state);
        out.extend_from_slice(&state.lines);
        state.lines.clear();
        self.full_since_ms.store(0, Ordering::Relaxed);
    }

    /// How many lines were left out that the watcher is told of now, where nobody was shown this
    /// many events.
    pub(super) fn take_skipped(&self, missed: u64) -> u64 {
        let mut state = lock(&self.state);
        let skipped = self.left_out.swap(0, Ordering::Relaxed) + (missed - state.seen_missed);
        state.seen_missed = missed;
        state.told += skipped;
        skipped
    }

    /// How many lines were left out, where nobody was shown this many events.
    pub(super) fn skipped(&self, missed: u64) -> u64 {
        let state = lock(&self.state);
        let seen = state.seen_missed;
        state.told + self.left_out.load(Ordering::Relaxed) + missed.saturating_sub(seen)
    }

    /// For how long it has been full, in milliseconds, as its worker has seen it now and before. It
    /// is not if lines were taken in between.
    pub fn full_ms(&self, now_ms: u64) -> u64 {
        let since_ms = match (self.is_full(), self.full_since_ms.load(Ordering::Relaxed)) {
            (false, _) => 0,
            (true, 0) => now_ms,
            (true, since_ms) => since_ms,
        };
        self.full_since_ms.store(since_ms, Ordering::Relaxed);
        if since_ms == 0 {
            0
        } else {
            now_ms.saturating_sub(since_ms)
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_feed_is_full_for_as_long_as_nothing_is_taken() {
        let feed = Feed::new(0, 1);
        assert_eq!(feed.full_ms(1_000), 0);
        assert_eq!(feed.put(b"12345", 8), Put::Kept);
        assert_eq!(feed.put(b"6789", 8), Put::Filled);
        assert_eq!(feed.put(b"6", 8), Put::LeftOut, "however short it is");
        assert_eq!([1_000, 3_000].map(|ms| feed.full_ms(ms)), [0, 2_000]);
        let mut out = Vec::new();
        feed.take_lines(&mut out);
        assert_eq!(out, b"12345");
        // It was emptied and filled in between.
        assert_eq!([3_000, 4_000].map(|ms| feed.full_ms(ms)), [0, 1_000]);
        feed.open();
        assert_eq!(feed.full_ms(5_000), 0);
        assert_eq!((feed.skipped(5), feed.take_skipped(5)), (7, 7));
        assert_eq!((feed.skipped(5), feed.take_skipped(5)), (7, 0));
    }
}
