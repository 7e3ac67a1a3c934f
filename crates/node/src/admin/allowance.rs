//! What administrative commands may cost a worker in one turn.
//!
//! Each command that costs more than a read is priced: by what it is, by the chains of the index
//! that it walks, and by the bytes that it writes ([`glimmer_base::limits::ADMIN_TURN_NS`]).
//! Lists, crawls and statistics share the allowance of a worker's turn. When it is spent, a
//! connection with such a command waits for the next turn, and what it has sent after the command
//! is not parsed before. Other work of the worker therefore waits for one allowance per turn,
//! however many clients send such commands, and however many of them each sends.

use glimmer_base::limits::{
    ADMIN_BYTE_NS, ADMIN_CHAIN_NS, ADMIN_COMMAND_NS, ADMIN_LINE_NS, ADMIN_REMOVAL_NS,
    ADMIN_SHARE_NS, ADMIN_TURN_NS, ADMIN_WORKER_NS,
};

/// What is left of a turn's allowance, in nanoseconds as priced.
#[derive(Debug)]
pub(crate) struct Allowance {
    left_ns: u64,
}

/// Where the allowance is when a walk has had its share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    end_ns: u64,
}

impl Default for Allowance {
    fn default() -> Allowance {
        Allowance {
            left_ns: ADMIN_TURN_NS,
        }
    }
}

impl Allowance {
    /// A turn begins.
    #[inline(always)]
    pub fn begin_turn(&mut self) {
        self.left_ns = ADMIN_TURN_NS;
    }

    /// Whether further commands have to wait for the next turn.
    #[inline]
    pub fn is_spent(&self) -> bool {
        self.left_ns == 0
    }

    /// Whether datagrams have had their part. The other half is left to connections, because a
    /// flood of datagrams comes first in each turn.
    #[inline]
    pub fn is_spent_by_datagrams(&self) -> bool {
        self.left_ns <= ADMIN_TURN_NS - ADMIN_SHARE_NS
    }

    /// A command was begun, or its reply was continued: it has written these bytes.
    pub fn spend_on_command(&mut self, bytes: usize) {
        self.spend(ADMIN_COMMAND_NS + ADMIN_BYTE_NS * bytes as u64);
    }

    /// Counters of this many workers were read, and this many lines of statistics written.
    pub fn spend_on_figures(&mut self, workers: usize, lines: usize) {
        self.spend(ADMIN_WORKER_NS * workers as u64 + ADMIN_LINE_NS * lines as u64);
    }

    /// A chain of the index was walked, and this many items of it removed.
    pub fn spend_on_chain(&mut self, removed: u64) {
        self.spend(ADMIN_CHAIN_NS + ADMIN_REMOVAL_NS * removed);
    }

    /// A list has got this many lines. `bytes` is their total length.
    pub fn spend_on_items(&mut self, lines: u64, bytes: usize) {
        self.spend(ADMIN_LINE_NS * lines + ADMIN_BYTE_NS * bytes as u64);
    }

    /// All of it: what follows waits for the next turn.
    pub fn spend_all(&mut self) {
        self.left_ns = 0;
    }

    fn spend(&mut self, ns: u64) {
        self.left_ns = self.left_ns.saturating_sub(ns);
    }

    /// The share of one walk in what is left now.
    pub fn share(&self) -> Share {
        Share {
            end_ns: self.left_ns.saturating_sub(ADMIN_SHARE_NS),
        }
    }

    /// Whether something is left of a share.
    #[inline]
    pub fn has(&self, share: Share) -> bool {
        self.left_ns > share.end_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_has_half_a_turn_and_leaves_the_rest() {
        let mut allowance = Allowance::default();
        for _ in 0..2 {
            let share = allowance.share();
            let mut chains = 0;
            while allowance.has(share) {
                allowance.spend_on_chain(0);
                chains += 1;
            }
            assert_eq!(chains, ADMIN_SHARE_NS.div_ceil(ADMIN_CHAIN_NS));
        }
        assert!(allowance.is_spent() && !allowance.has(allowance.share()));
        allowance.begin_turn();
        assert!(!allowance.is_spent() && !allowance.is_spent_by_datagrams());
    }

    /// A hundred lines take half a turn, as do 6 KB of a listing.
    #[test]
    fn lines_of_statistics_cost_more_than_their_bytes() {
        let mut allowance = Allowance::default();
        allowance.spend_on_figures(1, 100);
        assert!(allowance.is_spent_by_datagrams() && !allowance.is_spent());
        allowance.spend_on_figures(1, 100);
        assert!(allowance.is_spent());
    }
}
