//! For how long a connection may hold memory, or wait for it.

use glimmer_base::limits::{HELD_MS_MAX, MEMORY_WAIT_MS_MAX, PROGRESS_BYTES_PER_MS};

/// The progress of a client, and since when its connection has held memory or waited for it. All
/// times are in milliseconds since the epoch.
///
/// A worker goes by the time at which its turn began. A connection that comes from another worker
/// may have noted a later time; no time has passed since then.
pub(crate) struct Patience {
    /// When a byte was last received or sent, or its worker last saw to it.
    progress_ms: u64,
    /// Since when its connection has held memory.
    pub held_since_ms: Option<u64>,
    /// When it stopped making enough progress: each byte that it sends or takes moves this on
    /// towards now. Meaningless while its connection holds nothing.
    pace_ms: u64,
    /// Since when its connection has waited for memory.
    waits_since_ms: Option<u64>,
}

impl Patience {
    /// A client that has just come.
    pub fn new(now_ms: u64) -> Patience {
        Patience {
            progress_ms: now_ms,
            held_since_ms: None,
            pace_ms: now_ms,
            waits_since_ms: None,
        }
    }

    /// Bytes were received or sent.
    #[inline]
    pub fn note_progress(&mut self, bytes: usize, now_ms: u64) {
        if bytes > 0 {
            self.progress_ms = now_ms;
            let made_up_ms = bytes as u64 / PROGRESS_BYTES_PER_MS;
            self.pace_ms = now_ms.min(self.pace_ms + made_up_ms);
        }
    }

    /// Notes that its worker has done what there was to do. Its client is not to blame for the time
    /// until now.
    #[inline]
    pub fn note_served(&mut self, now_ms: u64) {
        self.progress_ms = now_ms;
    }

    /// Notes that its connection has the place for its value that it waited for: the client makes
    /// progress from here on.
    pub fn begin_pace(&mut self, now_ms: u64) {
        self.pace_ms = now_ms;
    }

    /// For how long no byte was received or sent, and nothing done for it.
    pub fn idle_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.progress_ms)
    }

    /// Notes that it has got an answer, or everything that it was to be sent: what its connection
    /// holds from here on it holds for something else.
    #[inline]
    pub fn end_hold(&mut self) {
        self.held_since_ms = None;
    }

    /// Notes whether its connection holds memory, and from when on.
    #[inline]
    pub fn note_held(&mut self, holds: bool, now_ms: u64) {
        if !holds {
            self.held_since_ms = None;
        } else if self.held_since_ms.is_none() {
            self.held_since_ms = Some(now_ms);
            self.pace_ms = now_ms;
        }
    }

    /// For how long its connection has held memory without enough progress, while it waits for the
    /// client. Nothing if it holds none.
    pub fn stalled_ms(&self, now_ms: u64) -> Option<u64> {
        let held_ms = now_ms.saturating_sub(self.held_since_ms?);
        let stalled_ms = now_ms.saturating_sub(self.pace_ms);
        Some(stalled_ms.max(held_ms.saturating_sub(HELD_MS_MAX)))
    }

    /// For how long its connection has made too little progress, since it has held memory.
    pub fn slow_ms(&self, now_ms: u64) -> u64 {
        (self.held_since_ms).map_or(0, |_| now_ms.saturating_sub(self.pace_ms))
    }

    /// Notes that its connection has to wait for memory.
    pub fn note_wait(&mut self, now_ms: u64) {
        self.waits_since_ms.get_or_insert(now_ms);
    }

    /// Notes that its connection has the memory that it waited for, or waits no longer. The client
    /// is not to blame for the wait.
    #[inline]
    pub fn end_wait(&mut self, now_ms: u64) {
        if self.waits_since_ms.take().is_some() {
            self.pace_ms = now_ms;
        }
    }

    /// Whether its connection waits for memory.
    pub fn is_waiting(&self) -> bool {
        self.waits_since_ms.is_some()
    }

    /// For how long its connection has waited for memory.
    pub fn waited_ms(&self, now_ms: u64) -> u64 {
        (self.waits_since_ms).map_or(0, |since_ms| now_ms.saturating_sub(since_ms))
    }

    /// Whether its connection has waited for memory for too long.
    pub fn has_waited_enough(&self, now_ms: u64) -> bool {
        self.waited_ms(now_ms) >= MEMORY_WAIT_MS_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One whose connection has held memory since 1,000 ms.
    fn holder() -> Patience {
        let mut holder = Patience::new(0);
        holder.note_held(true, 1_000);
        holder
    }

    #[test]
    fn a_worker_whose_turn_began_earlier_finds_nobody_idle() {
        let mut traveller = Patience::new(1_000);
        traveller.note_progress(1, 1_005);
        assert_eq!(
            [1_003, 1_005, 1_007].map(|ms| traveller.idle_ms(ms)),
            [0, 0, 2]
        );
    }

    #[test]
    fn a_byte_now_and_then_is_no_progress() {
        let (mut slow, mut fast) = (holder(), holder());
        for ms in 1_001..=10_000 {
            if ms % 1_000 == 0 {
                slow.note_progress(1, ms);
            }
            fast.note_progress(PROGRESS_BYTES_PER_MS as usize, ms);
        }
        assert_eq!(slow.stalled_ms(10_000), Some(9_000));
        assert_eq!(fast.stalled_ms(10_000), Some(0));
        assert_eq!(fast.stalled_ms(10_007), Some(7));
        fast.note_wait(10_007);
        fast.end_wait(12_000);
        assert_eq!(fast.stalled_ms(12_001), Some(1), "it has waited");
        fast.note_held(false, 12_002);
        assert_eq!(fast.stalled_ms(12_002), None);
    }
}
