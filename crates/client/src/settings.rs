//! How a session behaves.

use glimmer_proto::native::REQUESTS_MAX;

/// Deadlines that a server may let pass one after another before it is away, unless [`Settings::away_after`] says otherwise.
const AWAY_AFTER: u32 = 3;
/// For how long nobody waits for a server that is away, in microseconds, unless [`Settings::retry_us`] says otherwise.
const RETRY_US: u64 = 5_000_000;

/// How a session behaves. Times are in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// A request that is not answered for so long is sent again; the next time after twice as long,
    pub resend_first_us: u64,
    /// and so on, up to this.
    pub resend_longest_us: u64,
    /// A request is given up after so long.
    pub deadline_us: u64,
    /// Whether unanswered requests are sent again at all. Those that measure how many are lost turn it off; a request is then lost after
    /// [`Settings::deadline_us`].
    pub resends: bool,
    /// Requests to one core that leave together share a datagram, so many at most; 1: each has one of its own. As many as 32 may, and fewer do where
    /// their replies would not fit a datagram together.
    pub requests_per_datagram: usize,
    /// Where the server directs requests itself (`--native-direction server`): whether each goes to the next port in turn instead of to its owner's. What
    /// goes in fragments goes to the owner's in any case.
    pub round_robin: bool,
    /// A server that lets so many deadlines pass one after another, and of which nothing is heard meanwhile, is away: requests for it fail at once with
    /// [`Failure::Away`](crate::Failure::Away). 0: no server ever is.
    pub away_after: u32,
    /// Then, after so long, one request is sent, and if it has no answer either, the next after as long again.
    pub retry_us: u64,
    /// Of several servers: whether the keys of one that is away are placed among the others until it is back. Then what it has of them is old, and what was
    /// stored elsewhere meanwhile is not seen again: for values that may be stale. With this, requests that are refused because nothing listens at the
    /// server's port count like those that had no answer.
    pub eject: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            resend_first_us: 10_000,
            resend_longest_us: 200_000,
            deadline_us: 2_000_000,
            resends: true,
            requests_per_datagram: REQUESTS_MAX,
            round_robin: false,
            away_after: AWAY_AFTER,
            retry_us: RETRY_US,
            eject: false,
        }
    }
}
