//! Timeouts and other behaviour of a session.

use glimmer_proto::native::REQUESTS_MAX;

/// Default of [`Settings::away_after`]: deadlines in a row that a server may miss before it is
/// away.
const AWAY_AFTER: u32 = 3;
/// Default of [`Settings::retry_us`]: time between two probes of a server that is away, in
/// microseconds.
const RETRY_US: u64 = 5_000_000;

/// Timeouts and other behaviour of a session. Times are in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The first timeout of a request. After it, the request is retransmitted, and each further
    /// timeout is twice the previous one.
    pub resend_first_us: u64,
    /// The longest timeout.
    pub resend_longest_us: u64,
    /// The deadline after which a request fails. However late it is, a change is not sent again to
    /// the same server more than 25 s after its first copy, or after the last of its fragments was
    /// first sent, because the server remembers for 30 s what it has executed. After that, the
    /// client only waits for an answer.
    pub deadline_us: u64,
    /// Whether unanswered requests are retransmitted. Measurements of packet loss turn this off: a
    /// request then counts as lost at [`Settings::deadline_us`].
    pub resends: bool,
    /// Requests for one core that may share a datagram, from 1 (none) to 32. Fewer share one if
    /// their replies would not fit into one datagram.
    pub requests_per_datagram: usize,
    /// With `--native-direction server`: whether requests go to the ports in turn instead of to the
    /// owner's port. Fragmented requests always go to the owner.
    pub round_robin: bool,
    /// A server that misses this many deadlines in a row, while nothing is heard from it, is away:
    /// its requests fail at once with [`Failure::Away`](crate::Failure::Away). With 0, no server is
    /// ever away.
    pub away_after: u32,
    /// The interval after which one request probes a server that is away.
    pub retry_us: u64,
    /// With several servers: whether the keys of a server that is away are placed on the others
    /// until it is back. The server then holds outdated values, and values stored elsewhere
    /// meanwhile are no longer found, so this suits only values that may be stale. With this
    /// setting, refused requests count like requests without an answer.
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

impl Settings {
    /// The timeout of a copy that was sent after this many others.
    #[inline]
    pub(crate) fn timeout_us(&self, copies: u8) -> u64 {
        let timeout_us = self.resend_first_us.saturating_mul(1 << copies.min(16));
        timeout_us.min(self.resend_longest_us)
    }
}
