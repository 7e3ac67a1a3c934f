//! What a client does that has yet to authenticate in the text protocol.

use glimmer_proto::text::lines;
use glimmer_proto::text::login::{self, Login};

use crate::burst::{Member, Stop, Tools};

impl Member {
    /// Reads what is to authenticate the client; nothing of it is in the batch yet.
    #[cold]
    pub fn log_in(&mut self, input: &[u8], out: &mut Vec<u8>, tools: &mut Tools<'_>) -> Stop {
        let (used, line) = match login::read(&input[self.at..]) {
            Login::Need { need } => return Stop::Hungry(need),
            Login::Close => return Stop::Broken,
            Login::Refuse { used, line } => (used, line),
            Login::Try {
                used,
                user,
                password,
            } => {
                let is_admitted = tools.frontdesk.admits(user, password);
                self.locked = !is_admitted;
                tools.tally.auth_cmds += 1;
                tools.tally.auth_errors += u64::from(!is_admitted);
                (
                    used,
                    if is_admitted {
                        lines::STORED
                    } else {
                        lines::WRONG_PASSWORD
                    },
                )
            }
        };
        out.extend_from_slice(line.as_bytes());
        self.at += used;
        self.requests += 1;
        // A batch is parsed again from where it began, and this is no request.
        self.batch_at = self.at;
        Stop::Live
    }
}
