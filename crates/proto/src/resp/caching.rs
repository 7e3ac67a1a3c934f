//! Client-side caching (`CLIENT TRACKING`), as a server answers that tells of no changes.
//!
//! Clients that cache by this protocol keep what they have read until the server says that it has
//! changed. This server says so at once: after each command whose reply the client may keep, it has
//! the client forget all that it keeps. That is correct, and nothing is gained by it. It is there
//! for libraries that do not connect without (rueidis). Only the mode `OPTIN` is accepted, in which
//! a client announces each command whose reply it keeps, so that all others cost nothing.

use super::call::Call;
use super::form::Version;
use super::lines;
use super::names::upper;
use super::state::{Caching, Multi, Parser, State};
use crate::text::Step;

/// `CLIENT TRACKING ON OPTIN` and `CLIENT TRACKING OFF`.
pub(super) fn tracking<'a>(call: &Call<'_, 'a>, before: Caching) -> (Step<'a>, Caching) {
    let (mut on_or_off, mut mode) = ([0; 8], [0; 8]);
    let on_or_off = upper(call.arguments[2], &mut on_or_off);
    let options = call.arguments.get(3..).unwrap_or_default();
    match (on_or_off, options, call.version) {
        (b"OFF", [], _) => (call.refuse(lines::OK), Caching::Off),
        (b"ON", [option], Version::Three) if upper(option, &mut mode) == b"OPTIN" => {
            (call.refuse(lines::OK), Caching::OptIn)
        }
        (b"ON" | b"OFF", ..) => (call.refuse(lines::TRACKING), before),
        _ => (call.refuse(lines::SYNTAX), before),
    }
}

/// `CLIENT CACHING YES` and `CLIENT CACHING NO`.
pub(super) fn caching<'a>(call: &Call<'_, 'a>, before: Caching) -> (Step<'a>, Caching) {
    let mut answer = [0; 8];
    match (upper(call.arguments[2], &mut answer), before) {
        (_, Caching::Off) => (call.refuse(lines::NOT_TRACKING), before),
        (b"YES", _) => (call.refuse(lines::OK), Caching::Next),
        (b"NO", _) => (call.refuse(lines::OK), Caching::OptIn),
        _ => (call.refuse(lines::SYNTAX), before),
    }
}

impl Caching {
    /// What a `CLIENT` command leaves of this.
    pub(super) fn after_client(self) -> Caching {
        match self {
            Caching::Next => Caching::StillNext,
            other => other,
        }
    }
}

impl Parser {
    /// The next step while a reply is kept. The last byte of its command is left for the message
    /// that has the client forget it.
    #[cold]
    pub(super) fn next_cached<'a>(&mut self, input: &'a [u8]) -> Step<'a> {
        if self.caching == Caching::Due {
            self.caching = Caching::OptIn;
            return match input.is_empty() {
                true => Step::need(1),
                false => Step::Refuse {
                    used: 1,
                    line: lines::INVALIDATE,
                    then: crate::text::After::Continue,
                },
            };
        }
        if self.caching == Caching::StillNext {
            self.caching = Caching::Next;
        }
        let was_executing = matches!(self.multi, Multi::Executing { .. });
        let may_end_unseen = was_executing || matches!(self.state, State::Pieces(_));
        let mut step = self.step(input);
        let used = match &mut step {
            Step::Need { .. } | Step::Queue { .. } => return step,
            // That is the end of a transaction, or of a key that no item can have.
            Step::Swallowed { used } if may_end_unseen => used,
            // That is the rest of a command that was refused, or no command.
            Step::Swallowed { .. } => return step,
            Step::Request { used, .. }
            | Step::Admin { used, .. }
            | Step::Refuse { used, .. }
            | Step::Answer { used, .. } => used,
        };
        if !self.is_between_commands() {
            return step;
        }
        // In a transaction, a `CLIENT` may be the last command. The reply to `EXEC` is kept.
        match (self.caching, self.version) {
            (Caching::StillNext, _) if !was_executing => {}
            (Caching::Next | Caching::StillNext, Version::Three) => {
                *used -= 1;
                self.caching = Caching::Due;
            }
            // Version 2 has no messages but replies.
            (Caching::Next | Caching::StillNext, Version::Two) => self.caching = Caching::OptIn,
            _ => {}
        }
        step
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{After, Limits};
    use glimmer_base::limits::{RESP_QUEUE_BYTES_KEPT, RESP_WHOLE_BYTES_MAX};

    const START: &str = "HELLO 3\r\nCLIENT TRACKING ON OPTIN\r\nCLIENT CACHING YES\r\n";

    /// The reads among these commands, and where the client is told to forget what it keeps. The
    /// commands arrive in pieces of this many bytes.
    fn told(commands: &str, piece: usize) -> Vec<&'static str> {
        let mut parser = Parser::new(Limits::default());
        let (mut input, mut arrived, mut kept) = (commands.as_bytes().to_vec(), 0, Vec::new());
        let mut told = Vec::new();
        while !input.is_empty() {
            let (mut replays, here) = (false, &input[..input.len().min(arrived)]);
            let used = match parser.next(here) {
                Step::Need { .. } => {
                    assert!(arrived < input.len(), "{} are left", here.escape_ascii());
                    arrived += piece;
                    continue;
                }
                Step::Request { used, .. } => {
                    told.push("read");
                    used
                }
                Step::Refuse { used, line, .. } => {
                    told.extend((line == lines::INVALIDATE).then_some("forget"));
                    used
                }
                Step::Queue { used, .. } => {
                    kept.extend_from_slice(&here[..used]);
                    used
                }
                Step::Answer { used, then, .. } => {
                    replays = then == After::Replay;
                    used
                }
                Step::Admin { used, .. } | Step::Swallowed { used } => used,
            };
            input.drain(..used);
            arrived -= used.min(arrived);
            if replays {
                arrived += kept.len();
                input.splice(..0, kept.drain(..));
            }
        }
        told
    }

    #[test]
    fn the_next_command_that_is_no_client_is_told_to_be_forgotten() {
        let long = format!("STRLEN {}k\r\n", " ".repeat(RESP_QUEUE_BYTES_KEPT));
        let long = format!("MULTI\r\n{long}CLIENT ID\r\nEXEC\r\n");
        for (between, expected) in [
            ("", &["read", "forget", "read"][..]),
            ("CLIENT CACHING YES\r\n", &["read", "forget", "read"]),
            (
                "CLIENT ID\r\n\r\nCLIENT ID\r\n",
                &["read", "forget", "read"],
            ),
            ("CLIENT GETNAME\r\n", &["read", "forget", "read"]),
            ("CLIENT SETNAME x\r\n", &["read", "forget", "read"]),
            ("CLIENT SETNAME\r\n", &["read", "forget", "read"]),
            ("CLIENT CACHING NO\r\n", &["read", "read"]),
            ("CLIENT TRACKING OFF\r\n", &["read", "read"]),
            ("PING\r\n", &["forget", "read", "read"]),
            (
                "MULTI\r\nSTRLEN k\r\nCLIENT ID\r\nEXEC\r\n",
                &["read", "forget", "read", "read"],
            ),
            (&long, &["read", "forget", "read", "read"]),
        ] {
            for piece in [1, 7, usize::MAX / 2] {
                let commands = format!("{START}{between}GET k\r\nGET k\r\n");
                assert_eq!(told(&commands, piece), expected, "{between:.30}");
            }
        }
    }

    /// The last key of a command that is executed in pieces may be one that no item can have.
    #[test]
    fn a_long_command_with_a_wrong_key_is_told_to_be_forgotten() {
        let key = "x".repeat(RESP_WHOLE_BYTES_MAX);
        let get = format!("*3\r\n$4\r\nMGET\r\n$1\r\nk\r\n${}\r\n{key}\r\n", key.len());
        let told = told(&format!("{START}{get}GET k\r\n"), 10_000);
        assert_eq!(told, ["read", "forget", "read"]);
    }

    #[test]
    fn version_2_has_no_messages() {
        for second in ["HELLO 2\r\n", "HELLO 2\r\nCLIENT CACHING YES\r\n"] {
            let commands = format!("{START}{second}GET k\r\nGET k\r\n");
            assert_eq!(told(&commands, 1), ["read", "read"]);
        }
    }
}
