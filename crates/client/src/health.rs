//! Whether a server answers at all.
//!
//! A server that lets several deadlines pass, one after another, and of which nothing is heard meanwhile, is *away*: for some time nobody waits for
//! it again. Then one request is sent, and everybody else goes on without waiting until that is answered or has waited in vain. Whatever is heard of
//! the server ends it, a late answer too.

use crate::Settings;

/// What is known of a server's silence. Times are in microseconds.
#[derive(Debug)]
pub struct Health {
    away_after: u32,
    retry_us: u64,
    deadline_us: u64,
    /// Whether refusals count as deadlines that passed.
    counts_refusals: bool,
    /// When something was last heard.
    heard_us: Option<u64>,
    /// Deadlines that passed one after another.
    silences: u32,
    /// When the last of them passed.
    counted_us: u64,
    /// Until when nothing is sent, once the server is away.
    until_us: Option<u64>,
}

impl Health {
    /// A server of which nothing is known.
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

    /// Something was heard.
    #[inline]
    pub fn hear(&mut self, now_us: u64) {
        self.heard_us = Some(now_us);
    }

    /// The deadline of a request passed that was taken on at this time.
    pub fn miss(&mut self, asked_us: u64, now_us: u64) {
        if self.has_heard_since(asked_us) {
            return;
        }
        if self.has_heard_since(self.counted_us) {
            self.silences = 0;
        }
        // Requests that wait at the same time wait for the same thing.
        if self.silences > 0 && asked_us < self.counted_us {
            return;
        }
        self.silences = self.silences.saturating_add(1);
        self.counted_us = now_us;
        if self.away_after > 0 && self.silences >= self.away_after {
            self.until_us = Some(now_us.saturating_add(self.retry_us));
        }
    }

    /// A request that was taken on at this time was refused: nothing listens at the server's port.
    /// It cost no time, so that only those count it who place the keys elsewhere.
    pub fn refuse(&mut self, asked_us: u64, now_us: u64) {
        if self.counts_refusals {
            self.miss(asked_us, now_us);
        }
    }

    /// Whether the server was away when it was last looked at, so that [`Health::admit`] is to be asked.
    #[inline]
    pub fn is_doubtful(&self) -> bool {
        self.until_us.is_some()
    }

    /// Whether requests fail at once.
    pub fn is_away(&self, now_us: u64) -> bool {
        let is_over = |until_us| now_us >= until_us || self.has_heard_since(self.counted_us);
        self.until_us.is_some_and(|until_us| !is_over(until_us))
    }

    /// Whether a request may be sent. The first one after the time is over may, and nobody else until it is answered or has waited in vain.
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
