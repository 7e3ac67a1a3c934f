//! Answers to wrong logins, which have to wait.

use glimmer_base::limits::{BUFFER_BYTES, LOGIN_DELAY_MS, LOGIN_FAILURES_MAX};

use super::Streams;
use super::key::ConnectionKey;
use super::phase::Phase;
use crate::admin::alarm::Failure;
use crate::admin::observe::CloseReason;
use crate::core::Core;

/// **Wrong logins.** Their answers are withheld for [`LOGIN_DELAY_MS`], in which the connection is
/// neither received from nor parsed, and after [`LOGIN_FAILURES_MAX`] of them it is closed. The
/// worker goes on serving others. A client that leaves without waiting for the answer gains
/// nothing: what it does is not looked at, so that its connection counts against `-c` as long as if
/// it had waited.
impl Streams {
    /// Withholds the replies of a connection whose login was wrong.
    #[cold]
    pub fn withhold(&mut self, key: ConnectionKey, core: &mut Core) {
        core.note_failure(Failure::Login, 1, None);
        let connection = &mut self.connections[key];
        debug_assert!(
            !connection.tx.borrows(),
            "it is sent before a login is read"
        );
        let mut replies = std::mem::take(&mut connection.tx.bytes);
        if replies.len() < BUFFER_BYTES / 8 {
            let answer = replies.as_slice().to_vec();
            core.memory
                .pool
                .give(std::mem::replace(&mut replies, answer));
        }
        connection.session.login_failures += 1;
        if connection.session.login_failures >= LOGIN_FAILURES_MAX {
            connection.close_for(CloseReason::Error);
        }
        connection.phase.begin(Phase::Withheld(replies));
        let until_ms = core.now.ms + LOGIN_DELAY_MS;
        self.withheld.push_back((until_ms, key));
    }

    /// Sends the answers that have been withheld until `now_ms`, but no more than `count_max`.
    #[cold]
    pub fn send_withheld(&mut self, now_ms: u64, count_max: usize, core: &mut Core) {
        for _ in 0..count_max {
            let is_due = |&mut (until_ms, _): &mut (u64, ConnectionKey)| until_ms <= now_ms;
            let Some((_, key)) = self.withheld.pop_front_if(is_due) else {
                return;
            };
            let is_withheld = |phase: &Phase| matches!(phase, Phase::Withheld(_));
            if let Some(connection) = self.connections.get_mut(key)
                && let Some(Phase::Withheld(replies)) = connection.phase.end_if(is_withheld)
            {
                connection.tx.bytes = replies;
                self.send_and_settle(key, core);
            }
        }
    }

    /// When the next of them may be sent, in milliseconds since the epoch.
    pub fn withheld_until_ms(&self) -> Option<u64> {
        self.withheld.front().map(|&(until_ms, _)| until_ms)
    }
}
