//! Whether a server answers at all.
//!
//! A server is *away* if several deadlines in a row pass and nothing is heard from it meanwhile.
//! While it is away, requests fail at once. After a retry interval, one request is sent as a probe;
//! other requests keep failing until the probe is answered or times out. Any datagram from the
//! server, even a late answer, ends the state.

use crate::Settings;

/// What is known about a server's silence. Times are in microseconds.
#[derive(Debug)]
pub struct Health {
    away_after: u32,
    retry_us: u64,
    deadline_us: u64,
    /// Whether refusals count as missed deadlines.
    counts_refusals: bool,
    /// When the server was last heard.
    heard_us: Option<u64>,
    /// Deadlines missed in a row.
    silences: u32,
    /// When the last missed deadline was counted.
    counted_us: u64,
    /// While the server is away: when the next probe may be sent.
    until_us: Option<u64>,
}

impl Health {
    /// A server about which nothing is known.
    pub fn new(settings: &Settings) -> Health {
        Health {
            away_after: settings.away_after,
            retry_us: settings.retry_us,
            deadline_us: settings.deadline_us,
            counts_refusals: settings.eject,
            heard_us: None,
            silences: 0,
            counted_us: 0,
            until_us: None,
        }
    }

    /// A datagram from the server arrived.
    #[inline]
    pub fn hear(&mut self, now_us: u64) {
        self.heard_us = Some(now_us);
    }

    /// A request passed its deadline. It was issued at `asked_us`.
    pub fn miss(&mut self, asked_us: u64, now_us: u64) {
        if self.has_heard_since(asked_us) {
            return;
        }
        if self.has_heard_since(self.counted_us) {
            self.silences = 0;
        }
        // Requests that waited at the same time count as one missed deadline.
        if self.silences > 0 && asked_us < self.counted_us {
            return;
        }
        self.silences = self.silences.saturating_add(1);
        self.counted_us = now_us;
        if self.away_after > 0 && self.silences >= self.away_after {
            self.until_us = Some(now_us.saturating_add(self.retry_us));
        }
    }

    /// A request issued at `asked_us` was refused: nothing listens at the server's port. A refusal
    /// costs the caller no waiting, so it counts only if keys can be placed on other servers.
    pub fn refuse(&mut self, asked_us: u64, now_us: u64) {
        if self.counts_refusals {
            self.miss(asked_us, now_us);
        }
    }

    /// Whether the server was away at the last check. If so, call [`Health::admit`] before sending.
    #[inline]
    pub fn is_doubtful(&self) -> bool {
        self.until_us.is_some()
    }

    /// Whether the server was away at the last check, and nothing has been heard since.
    pub fn is_silent(&self) -> bool {
        self.is_doubtful() && !self.has_heard_since(self.counted_us)
    }

    /// Whether requests fail at once.
    pub fn is_away(&self, now_us: u64) -> bool {
        let is_over = |until_us| now_us >= until_us || self.has_heard_since(self.counted_us);
        self.until_us.is_some_and(|until_us| !is_over(until_us))
    }

    /// Whether a request may be sent. After the retry interval, the first request may; all others
    /// must wait until that one is answered or times out.
    #[cold]
    pub fn admit(&mut self, now_us: u64) -> bool {
        if self.has_heard_since(self.counted_us) {
            self.until_us = None;
            return true;
        }
        let may = !self.is_away(now_us);
        if may {
            let longest_us = self.deadline_us.saturating_add(self.retry_us);
            self.until_us = Some(now_us.saturating_add(longest_us));
        }
        may
    }

    fn has_heard_since(&self, then_us: u64) -> bool {
        self.heard_us.is_some_and(|heard_us| heard_us >= then_us)
    }
}
