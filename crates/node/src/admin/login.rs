//! Clients that have yet to authenticate: what they send in the text protocol.

use glimmer_proto::text::lines;
use glimmer_proto::text::login::{self, Login};

use crate::core::Core;

/// What a client that has yet to authenticate has sent.
pub(crate) enum Attempt {
    /// Nothing complete: this many unfinished bytes are needed.
    Incomplete(usize),
    /// Something that ends the connection.
    Broken,
    /// `used` bytes, which are answered with a line.
    Answered {
        used: usize,
        line: &'static str,
        verdict: Verdict,
    },
}

/// Whether a client may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It has authenticated.
    Admitted,
    /// User or password are wrong.
    Wrong,
    /// It was no login.
    Refused,
}

/// Reads what is to authenticate a client, and asks the admin handler.
#[cold]
pub(crate) fn attempt(input: &[u8], core: &mut Core) -> Attempt {
    let (used, line, verdict) = match login::read(input) {
        Login::Need { need } => return Attempt::Incomplete(need),
        Login::Close => return Attempt::Broken,
        Login::Refuse { used, line } => (used, line, Verdict::Refused),
        Login::Try {
            used,
            user,
            password,
        } => {
            core.tally.auth_cmds += 1;
            match core.admin.admits(user, password) {
                true => (used, lines::STORED, Verdict::Admitted),
                false => (used, lines::WRONG_PASSWORD, Verdict::Wrong),
            }
        }
    };
    Attempt::Answered {
        used,
        line,
        verdict,
    }
}
