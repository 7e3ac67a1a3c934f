//! Clients that have yet to authenticate: what they send in the text protocol, and what becomes of
//! them in either protocol if it is wrong.

use glimmer_base::limits::{BUFFER_BYTES, LOGIN_DELAY_MS, LOGIN_FAILURES_MAX};
use glimmer_proto::text::lines;
use glimmer_proto::text::login::{self, Login};

use crate::admin::alarm::Failure;
use crate::admin::observe::CloseReason;
use crate::stream::burst::Tools;
use crate::stream::key::ConnectionKey;
use crate::stream::member::{Member, Stop};
use crate::worker::Worker;

impl Member {
    /// Reads what is to authenticate the client; nothing of it is in the batch yet.
    #[cold]
    pub fn log_in(&mut self, input: &[u8], out: &mut Vec<u8>, tools: &mut Tools<'_>) -> Stop {
        let mut stop = Stop::Live;
        let (used, line) = match login::read(&input[self.at..]) {
            Login::Need { need } => return Stop::Hungry(need),
            Login::Close => return Stop::Broken,
            Login::Refuse { used, line } => (used, line),
            Login::Try {
                used,
                user,
                password,
            } => {
                let is_admitted = tools.admin.admits(user, password);
                self.locked = !is_admitted;
                tools.tally.auth_cmds += 1;
                if is_admitted {
                    (used, lines::STORED)
                } else {
                    stop = Stop::Withheld;
                    (used, lines::WRONG_PASSWORD)
                }
            }
        };
        out.extend_from_slice(line.as_bytes());
        self.at += used;
        self.requests += 1;
        // A batch is parsed again from where it began, and this is no request.
        self.batch_at = self.at;
        stop
    }
}

/// **Wrong logins.** Their answers are withheld for [`LOGIN_DELAY_MS`], in which the connection is
/// neither received from nor parsed, and after [`LOGIN_FAILURES_MAX`] of them it is closed. The
/// worker goes on serving others. A client that leaves without waiting for the answer gains
/// nothing: what it does is not looked at, so that its connection counts against `-c` as long as if
/// it had waited.
impl Worker {
    /// Withholds the replies of a connection whose login was wrong.
    #[cold]
    pub fn withhold(&mut self, key: ConnectionKey, mut replies: Vec<u8>) {
        self.note_failure(Failure::Login, 1, None);
        if replies.len() < BUFFER_BYTES / 8 {
            let answer = replies.as_slice().to_vec();
            self.pool.give(std::mem::replace(&mut replies, answer));
        }
        let connection = &mut self.connections[key];
        connection.login_failures += 1;
        if connection.login_failures >= LOGIN_FAILURES_MAX {
            connection.closing = true;
            connection.reason = CloseReason::Error;
        }
        connection.withheld = Some(replies);
        let until_ms = self.now.ms + LOGIN_DELAY_MS;
        self.withheld.push_back((until_ms, key));
    }

    /// Sends the answers that have been withheld until `now_ms`.
    #[cold]
    pub fn send_withheld(&mut self, now_ms: u64) {
        while let Some(&(until_ms, key)) = self.withheld.front()
            && until_ms <= now_ms
        {
            self.withheld.pop_front();
            if let Some(connection) = self.connections.get_mut(key)
                && let Some(replies) = connection.withheld.take()
            {
                connection.tx = replies;
                self.send_and_settle(key);
            }
        }
    }
}
