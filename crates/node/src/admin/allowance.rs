//! What administrative commands may cost a worker, in one turn and in a millisecond.
//!
//! Each command that costs more than a read is priced: by what it is, by the chains of the index
//! that it walks, and by the bytes that it writes ([`glimmer_base::limits::ADMIN_TURN_NS`]).
//! Lists, crawls and statistics share the allowance of a worker's turn. When it is spent, a
//! connection with such a command waits for the next turn, and what it has sent after the command
//! is not parsed before. Other work of the worker therefore waits for one allowance per turn,
//! however many clients send such commands, and however many of them each sends.
//!
//! The allowances of all turns together are bounded too, by [`ADMIN_NS_PER_MS`]. When what was
//! saved up of that is spent, the connections wait for the next millisecond, and a worker that has
//! nothing else to do sleeps until then.

use glimmer_base::limits::{
    ADMIN_BYTE_NS, ADMIN_CHAIN_NS, ADMIN_COMMAND_NS, ADMIN_COPY_BYTES_PER_NS, ADMIN_COPY_NS,
    ADMIN_DATAGRAMS_PART, ADMIN_LINE_NS, ADMIN_NS_PER_MS, ADMIN_REMOVAL_NS, ADMIN_SAVED_NS_MAX,
    ADMIN_SHARE_NS, ADMIN_STEP_NS, ADMIN_TURN_NS, ADMIN_WORKER_NS,
};

/// What commands may cost, in nanoseconds as priced.
#[derive(Debug)]
pub(crate) struct Allowance {
    all: Account,
    /// The part of it that datagrams may take. The rest is left to connections, because a flood of
    /// datagrams comes first in each turn.
    datagrams: Account,
    /// The command that is executed came by a datagram.
    is_datagram: bool,
    /// Something was spent since the turn began.
    is_touched: bool,
    /// Up to when something was saved, in milliseconds since the epoch.
    saved_ms: u64,
}

/// What may be spent, in nanoseconds as priced.
#[derive(Clone, Copy, Debug)]
struct Account {
    /// What is left of a turn's allowance.
    left_ns: u64,
    /// What was saved up for this turn and later ones. The last command may have cost more.
    saved_ns: i64,
}

/// Where the allowance is when a walk has had its share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    end_ns: u64,
}

impl Account {
    fn full(part: u64) -> Account {
        Account {
            left_ns: ADMIN_TURN_NS / part,
            saved_ns: (ADMIN_SAVED_NS_MAX / part) as i64,
        }
    }

    /// This many milliseconds have passed, and a turn begins.
    fn save(&mut self, ms: u64, part: u64) {
        let saved_max_ns = ADMIN_SAVED_NS_MAX / part;
        let saved_ns = (ms.saturating_mul(ADMIN_NS_PER_MS / part)).min(2 * saved_max_ns) as i64;
        self.saved_ns = (self.saved_ns + saved_ns).min(saved_max_ns as i64);
        self.left_ns = (self.saved_ns.max(0) as u64).min(ADMIN_TURN_NS / part);
    }

    fn spend(&mut self, ns: u64) {
        self.left_ns = self.left_ns.saturating_sub(ns);
        self.saved_ns = (self.saved_ns - ns as i64).max(-(ADMIN_SAVED_NS_MAX as i64));
    }
}

impl Default for Allowance {
    fn default() -> Allowance {
        Allowance {
            all: Account::full(1),
            datagrams: Account::full(ADMIN_DATAGRAMS_PART),
            is_datagram: false,
            is_touched: false,
            saved_ms: 0,
        }
    }
}

impl Allowance {
    /// A turn begins.
    #[inline(always)]
    pub fn begin_turn(&mut self, now_ms: u64) {
        if self.is_touched || now_ms != self.saved_ms {
            self.save(now_ms);
        }
    }

    #[inline(never)]
    fn save(&mut self, now_ms: u64) {
        let ms = now_ms.saturating_sub(self.saved_ms);
        self.all.save(ms, 1);
        self.datagrams.save(ms, ADMIN_DATAGRAMS_PART);
        (self.saved_ms, self.is_touched) = (now_ms, false);
    }

    /// Whether further commands have to wait for the next turn.
    #[inline]
    pub fn is_spent(&self) -> bool {
        self.all.left_ns == 0
    }

    /// Whether further commands have to wait until time has passed.
    #[inline]
    pub fn is_overdrawn(&self) -> bool {
        self.all.saved_ns <= 0
    }

    /// Whether datagrams have had their part.
    #[inline]
    pub fn is_spent_by_datagrams(&self) -> bool {
        self.all.left_ns == 0 || self.datagrams.left_ns == 0
    }

    /// What is spent from now on is for a command of a connection, or of a datagram.
    pub fn begin_command(&mut self, is_stream: bool) {
        self.is_datagram = !is_stream;
    }

    /// What is spent from now on is not for a command of a datagram.
    pub fn end_command(&mut self) {
        self.is_datagram = false;
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

    /// Items of these chains were copied to a snapshot; together they have this many bytes.
    pub fn spend_on_copies(&mut self, chains: u32, items: u32, bytes: usize) {
        let (chains, items) = (u64::from(chains), u64::from(items));
        let bytes_ns = bytes as u64 / ADMIN_COPY_BYTES_PER_NS;
        self.spend(1 + ADMIN_CHAIN_NS * chains + ADMIN_COPY_NS * items + bytes_ns);
    }

    /// A list has got this many lines. `bytes` is their total length.
    pub fn spend_on_items(&mut self, lines: u64, bytes: usize) {
        self.spend(ADMIN_LINE_NS * lines + ADMIN_BYTE_NS * bytes as u64);
    }

    /// Keys were compared with a pattern, in this many steps.
    pub fn spend_on_steps(&mut self, steps: u64) {
        self.spend(ADMIN_STEP_NS * steps);
    }

    /// All of a turn's: what follows waits for the next turn.
    pub fn spend_all(&mut self) {
        self.spend(ADMIN_TURN_NS);
    }

    fn spend(&mut self, ns: u64) {
        self.is_touched = true;
        self.all.spend(ns);
        if self.is_datagram {
            self.datagrams.spend(ns);
        }
    }

    /// The share of one walk in what is left now.
    pub fn share(&self) -> Share {
        self.share_of(ADMIN_SHARE_NS)
    }

    /// A share of so much of what is left now.
    pub fn share_of(&self, ns: u64) -> Share {
        Share {
            end_ns: self.all.left_ns.saturating_sub(ns),
        }
    }

    /// Whether something is left of a share.
    #[inline]
    pub fn has(&self, share: Share) -> bool {
        self.all.left_ns > share.end_ns
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
        allowance.begin_turn(0);
        assert!(!allowance.is_spent() && !allowance.is_spent_by_datagrams());
    }

    /// A hundred lines take half a turn, as do 6 KB of a listing.
    #[test]
    fn lines_of_statistics_cost_more_than_their_bytes() {
        let mut allowance = Allowance::default();
        allowance.begin_command(false);
        allowance.spend_on_figures(1, 100);
        allowance.end_command();
        assert!(allowance.is_spent_by_datagrams() && !allowance.is_spent());
        allowance.spend_on_figures(1, 100);
        assert!(allowance.is_spent());
    }

    /// Spends all that there is in turns that take no time. Returns it, in nanoseconds.
    fn spend_all(allowance: &mut Allowance, now_ms: u64) -> u64 {
        let mut spent_ns = 0;
        allowance.begin_turn(now_ms);
        while !allowance.is_overdrawn() {
            while !allowance.is_spent() {
                allowance.spend_on_command(0);
                spent_ns += ADMIN_COMMAND_NS;
            }
            allowance.begin_turn(now_ms);
        }
        spent_ns
    }

    #[test]
    fn the_turns_of_a_millisecond_share_what_was_saved() {
        let mut allowance = Allowance::default();
        assert_eq!(spend_all(&mut allowance, 0), ADMIN_SAVED_NS_MAX);
        assert_eq!(spend_all(&mut allowance, 0), 0);
        let spent_ns: u64 = (1..=100).map(|ms| spend_all(&mut allowance, ms)).sum();
        assert_eq!(spent_ns, 100 * ADMIN_NS_PER_MS);
        // No more is saved than the most, however long nobody asks.
        assert_eq!(spend_all(&mut allowance, u64::MAX), ADMIN_SAVED_NS_MAX);
    }

    #[test]
    fn what_costs_more_than_was_saved_is_paid_later() {
        let mut allowance = Allowance::default();
        spend_all(&mut allowance, 0);
        allowance.begin_turn(1);
        allowance.spend_on_chain(10 * ADMIN_NS_PER_MS / ADMIN_REMOVAL_NS);
        for ms in 2..=10 {
            allowance.begin_turn(ms);
            assert!(allowance.is_spent() && allowance.is_overdrawn(), "{ms}");
        }
        allowance.begin_turn(12);
        assert!(!allowance.is_spent() && !allowance.is_overdrawn());
    }

    #[test]
    fn datagrams_leave_a_part_to_connections() {
        let mut allowance = Allowance::default();
        let mut spent_ns = 0;
        for ms in 0..100 {
            allowance.begin_turn(ms);
            allowance.begin_command(false);
            while !allowance.is_spent_by_datagrams() {
                allowance.spend_on_command(0);
                spent_ns += ADMIN_COMMAND_NS;
            }
            allowance.end_command();
        }
        let all_ns = ADMIN_SAVED_NS_MAX + 100 * ADMIN_NS_PER_MS;
        assert!(spent_ns <= all_ns / ADMIN_DATAGRAMS_PART + ADMIN_SHARE_NS);
        assert!(!allowance.is_spent() && !allowance.is_overdrawn());
    }
}
