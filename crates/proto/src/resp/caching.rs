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
use super::state::{Caching, Multi, Parser};
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
        let was_executing = matches!(self.multi, Multi::Executing { .. });
        let mut step = self.step(input);
        let used = match &mut step {
            Step::Need { .. } | Step::Queue { .. } => return step,
            // That is the end of a transaction, or of a command that was refused before.
            Step::Swallowed { used } if was_executing => used,
            Step::Swallowed { .. } => return step,
            Step::Request { used, .. }
            | Step::Admin { used, .. }
            | Step::Refuse { used, .. }
            | Step::Answer { used, .. } => used,
        };
        if self.is_between_commands() && self.caching == Caching::Next {
            *used -= 1;
            self.caching = Caching::Due;
        }
        step
    }
}
