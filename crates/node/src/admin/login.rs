//! Clients that have yet to authenticate in the text protocol.

use glimmer_proto::text::lines;
use glimmer_proto::text::login::{self, Login};

use crate::admin::handler::Audited;
use crate::core::Core;

/// The input of a client that has yet to authenticate.
pub(crate) enum Attempt {
    /// Incomplete: this many unfinished bytes are needed.
    Incomplete(usize),
    /// Input that ends the connection.
    Broken,
    /// `used` bytes, answered with a line.
    Answered {
        used: usize,
        line: &'static str,
        verdict: Verdict,
    },
}

/// Whether a client may continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It has authenticated.
    Admitted,
    /// The user or the password is wrong.
    Wrong,
    /// The input was not a login.
    Refused,
}

/// Parses a login of the client with this number, and asks the admin handler.
#[cold]
pub(crate) fn attempt(input: &[u8], client: i32, core: &mut Core) -> Attempt {
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
            let is_admitted = core.admin.admits(user, password);
            core.audit(client, Audited::Login { user, is_admitted });
            match is_admitted {
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
