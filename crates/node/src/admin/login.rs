//! Clients that have yet to authenticate in the text protocol.

use glimmer_proto::text::lines;
use glimmer_proto::text::login::{self, Login};

use crate::admin::handler::{Audited, Login as Found};
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
    /// It has authenticated as the user of this number.
    Admitted(u16),
    /// It has, and is one too many.
    Full,
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
            let found = core.log_in(user, password);
            let is_admitted = matches!(found, Found::Admitted(_));
            core.audit(client, Audited::Login { user, is_admitted });
            core.tally.user_connections_refused += u64::from(matches!(found, Found::Full));
            core.show_figures();
            match found {
                Found::Admitted(number) => (used, lines::STORED, Verdict::Admitted(number)),
                Found::Wrong => (used, lines::WRONG_PASSWORD, Verdict::Wrong),
                Found::Full => (used, lines::USER_CONNECTIONS, Verdict::Full),
            }
        }
    };
    Attempt::Answered {
        used,
        line,
        verdict,
    }
}
