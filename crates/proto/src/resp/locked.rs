//! Clients that have yet to authenticate: what they may send, and what is answered.
//!
//! As in Redis, a command of a stranger has few and short arguments. A command that stores a value
//! is refused at its name, before the value is received: otherwise strangers could keep all of the
//! memory that there is for values under way.

use super::command;
use super::frame;
use super::frame::ARRAY;
use super::lines;
use super::parser::close;
use super::state::{Multi, Parser, State};
use crate::text::{After, Step};
use crate::{Admin, Form};
use glimmer_base::limits::{
    LOCKED_ARGUMENTS_MAX, LOCKED_BYTES_MAX, RESP_ARGUMENTS_MAX, RESP_BULK_BYTES_MAX,
};

/// Bytes of the longest head of an argument that the parser waits for.
const HEAD_BYTES_MAX: usize = 32;

impl Parser {
    /// The next step of a client that has yet to authenticate. Only `AUTH`, `HELLO` and `QUIT` are
    /// carried out.
    pub(super) fn next_locked<'a>(&mut self, input: &'a [u8]) -> Step<'a> {
        let refused = match (self.state, input.first()) {
            (State::Start | State::Array { .. }, Some(&ARRAY)) => self.refuse_array(input),
            (State::Start, Some(_)) => refuse_line(input),
            _ => None,
        };
        if let Some(step) = refused {
            return step;
        }
        let before = *self;
        let step = self.next(input);
        let allowed = locked_out(step);
        if allowed != step {
            (self.version, self.caching) = (before.version, before.caching);
            self.multi = match step {
                // What has been kept of a transaction lacks these bytes.
                Step::Queue { .. } => Multi::Spoilt,
                _ => before.multi,
            };
        }
        allowed
    }

    /// Refuses an array that is too long, and one that stores a value, as soon as that shows.
    fn refuse_array(&mut self, input: &[u8]) -> Option<Step<'static>> {
        let (count, mut at) = frame::length(input, "", "").ok()?;
        let count = u32::try_from(count).ok()?;
        if count as usize > RESP_ARGUMENTS_MAX {
            return None;
        }
        if count as usize > LOCKED_ARGUMENTS_MAX {
            return Some(close(input, lines::LOCKED_ARRAY));
        }
        for seen in 0..count {
            if at + HEAD_BYTES_MAX > LOCKED_BYTES_MAX {
                return Some(close(input, lines::LOCKED_BULK));
            }
            let (bytes, head) = frame::bulk_head(&input[at..], RESP_BULK_BYTES_MAX).ok()?;
            let end = at + head + bytes + 2;
            if end > LOCKED_BYTES_MAX {
                return Some(close(input, lines::LOCKED_BULK));
            }
            let argument = input.get(at + head..end)?;
            at = end;
            let is_first = seen == 0;
            if is_first && count > 1 && command::stores(argument.strip_suffix(b"\r\n")?, count) {
                self.no_memory = false;
                self.state = State::Pass {
                    bytes: 0,
                    arguments: count - 1,
                };
                return Some(Step::Refuse {
                    used: at,
                    line: lines::NO_AUTH,
                    then: After::Continue,
                });
            }
        }
        None
    }
}

/// Refuses an inline command that is too long.
fn refuse_line(input: &[u8]) -> Option<Step<'static>> {
    let line = &input[..input.len().min(LOCKED_BYTES_MAX)];
    let Some(end) = memchr::memchr(b'\n', line) else {
        return (line.len() == LOCKED_BYTES_MAX).then(|| close(input, lines::LONG_INLINE));
    };
    let words = line[..end].split(u8::is_ascii_whitespace);
    let words = words.filter(|word| !word.is_empty()).count();
    (words > LOCKED_ARGUMENTS_MAX).then(|| close(input, lines::LOCKED_ARRAY))
}

/// What becomes of a step: only `AUTH`, `HELLO` and `QUIT` are answered, and commands of which
/// Redis sees that they are wrong before it looks who sends them.
fn locked_out(step: Step<'_>) -> Step<'_> {
    let (used, line) = match step {
        Step::Request { used, request } => match request.form {
            Form::Resp(form) if form.follows_another() => (used, ""),
            _ => (used, lines::NO_AUTH),
        },
        Step::Admin {
            used,
            admin: Admin::Control(control, crate::Words::Resp(words)),
        } if !words.is_open_to_all(&control) => (used, lines::NO_AUTH),
        Step::Queue { used, line: "" } => (used, ""),
        Step::Queue { used, .. } => (used, lines::NO_AUTH),
        Step::Answer {
            used,
            words: crate::Words::Resp(words),
            then: After::Continue | After::Replay,
            ..
        } if !words.is_open_error() => (used, lines::NO_AUTH),
        // These are answers to `HELLO`, or tell what is wrong with a line.
        Step::Refuse {
            line: lines::NO_PROTO | lines::BAD_PROTO | lines::INLINE_ESCAPE | lines::INLINE_QUOTE,
            ..
        } => return step,
        Step::Refuse {
            used,
            then: After::Continue,
            ..
        } => (used, lines::NO_AUTH),
        _ => return step,
    };
    Step::Refuse {
        used,
        line,
        then: After::Continue,
    }
}
