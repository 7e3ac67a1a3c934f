//! Parses a line, and the value of `ms`, into a request.

use super::command::{Command, OPAQUE_BYTES_MAX};
use super::flags::{self, Flags, Options, Set};
use crate::text::line::Line;
use crate::text::parser::{Parser, State};
use crate::text::step::{Admin, After, Step};
use crate::text::tokens;
use crate::text::value::{Body, Source};
use crate::text::{lines, number};
use crate::{Announced, Form, Refusal, Request, Verb};
use glimmer_base::limits::KEY_BYTES_MAX;

/// The flag of `md` that deletes a group of keys, which memcached refuses as it does not know it.
const GROUP: Set = Set::of(b"G");
/// Flags of such an `md`.
const OF_GROUPS: Set = Set::of(b"GbkOq");

/// Flags of `mg` that report what any reader can see, or nothing.
const READ_ONLY: Set = Set::of(b"bcCEfFIJkLmMOPqstvxD");

/// Parses the line of a meta command; `rest` is the text after its name.
pub(crate) fn read<'a>(
    parser: &mut Parser,
    line: &Line<'a>,
    command: Command,
    rest: &'a [u8],
    source: Source,
) -> Step<'a> {
    let Some((key, rest)) = tokens::first(rest) else {
        return line.refuse(lines::BAD_LINE);
    };
    let words = if command == Command::Store {
        tokens::first(rest).map_or(rest, |(_, flags)| flags)
    } else {
        rest
    };
    if !flags::could_be_flags(words) {
        // The length of the value is unknown here. If a value follows, it will be parsed as
        // commands.
        return line.refuse(lines::BAD_LINE);
    }
    match command {
        Command::Store => store(parser, line, key, rest, source),
        Command::Debug => debug(line, key, rest),
        _ => match check(command, key, rest, 2) {
            Ok((flags, options)) => other(line, command, key, flags, &options),
            // Memcached has one error line for all errors of `ma`.
            Err(_) if command == Command::Arithmetic => line.refuse(lines::BAD_META_FLAGS),
            Err(reason) => line.refuse(reason),
        },
    }
}

/// Checks key and flags; `words` is the number of words before the flags.
fn check<'a>(
    command: Command,
    key: &[u8],
    rest: &'a [u8],
    words: usize,
) -> Result<(Flags<'a>, Options), &'static str> {
    if key.len() > KEY_BYTES_MAX {
        return Err(lines::BAD_LINE);
    }
    let also = match command {
        Command::Delete => GROUP,
        _ => Set::default(),
    };
    flags::read(tokens::without_leading_spaces(rest), (key, also), words)
}

/// `mg`, `md`, `ma`.
fn other<'a>(
    line: &Line<'a>,
    command: Command,
    key: &'a [u8],
    flags: Flags<'a>,
    options: &Options,
) -> Step<'a> {
    let mode_is_known = matches!(options.mode, None | Some(b'I' | b'+' | b'D' | b'-'));
    if command == Command::Arithmetic && !mode_is_known {
        return line.refuse(lines::BAD_ARITHMETIC_MODE);
    }
    if has_long_opaque(flags) {
        return line.refuse(lines::LONG_OPAQUE);
    }
    if command == Command::Delete && flags.has(b'G') {
        return delete_group(line, key, flags);
    }
    let is_read = command == Command::Get && flags.iter().all(|(flag, _)| READ_ONLY.has(flag));
    let verb = if is_read {
        Verb::Get
    } else {
        Verb::Meta {
            command,
            value: &[],
        }
    };
    request(line.used, key, verb, flags)
}

/// An `md` of a group of keys. A condition or a mode would mean nothing.
#[cold]
fn delete_group<'a>(line: &Line<'a>, key: &'a [u8], flags: Flags<'a>) -> Step<'a> {
    if !flags.iter().all(|(flag, _)| OF_GROUPS.has(flag)) {
        return line.refuse(lines::INVALID_FLAG);
    }
    let verb = Verb::Meta {
        command: Command::Delete,
        value: &[],
    };
    Step::Admin {
        used: line.used,
        admin: Admin::FlushGroup(Request {
            key,
            verb,
            form: Form::Meta(flags),
        }),
    }
}

/// `me`, whose only flag is a `b` after the key.
fn debug<'a>(line: &Line<'a>, key: &'a [u8], rest: &'a [u8]) -> Step<'a> {
    let base64_key = matches!(tokens::first(rest), Some((b"b", _)));
    if key.len() > KEY_BYTES_MAX || base64_key && !super::base64::is_valid(key) {
        return line.refuse(lines::BAD_LINE);
    }
    let verb = Verb::Meta {
        command: Command::Debug,
        value: &[],
    };
    let flags = Flags {
        text: &[],
        base64_key,
    };
    request(line.used, key, verb, flags)
}

fn store<'a>(
    parser: &mut Parser,
    line: &Line<'a>,
    key: &'a [u8],
    rest: &'a [u8],
    source: Source,
) -> Step<'a> {
    /// Memcached adds the two bytes of the line end to the length in 32 bits.
    const LENGTH_MAX: i32 = i32::MAX - 2;
    let length = tokens::first(rest)
        .and_then(|(word, rest)| Some((number::signed_digits_32(word)?, rest)))
        .filter(|(length, _)| (0..=LENGTH_MAX).contains(length));
    let Some((length, rest)) = length else {
        // The length of the value is unknown. If a value follows, it will be parsed as commands.
        return line.refuse(lines::BAD_LINE);
    };
    let value_bytes = length as usize;
    let checked =
        check(Command::Store, key, rest, 3).and_then(|(flags, options)| match options.mode {
            None | Some(b'E' | b'A' | b'P' | b'R' | b'S') => Ok((flags, options)),
            Some(_) => Err(lines::BAD_STORE_MODE),
        });
    let (flags, options) = match checked {
        Ok(good) => good,
        Err(reason) => {
            parser.state = State::swallowing(value_bytes);
            return line.refuse(reason);
        }
    };
    if has_long_opaque(flags) {
        parser.state = State::swallowing(value_bytes);
        return line.refuse(lines::LONG_OPAQUE);
    }
    let refuse = |reason| request(line.used, key, Verb::Refused { reason }, flags);
    let value_bytes_max = parser
        .limits
        .value_bytes_max(key.len(), options.client_flags);
    if value_bytes > value_bytes_max {
        parser.state = State::swallowing(value_bytes);
        return refuse(Refusal::TooLarge);
    }
    let (used, value) = match source.body(line, value_bytes) {
        Body::Whole { used, value } => (used, value),
        Body::Unterminated { used } => {
            return Step::Refuse {
                used,
                line: lines::BAD_CHUNK,
                then: After::Continue,
            };
        }
        Body::Refused { left } => {
            parser.state = State::swallowing(left);
            return refuse(Refusal::NoMemory);
        }
        Body::Short { need } => {
            let announced = source.announce(Announced {
                key,
                has_base64_key: flags.base64_key,
                value_at: line.used,
                value_bytes,
            });
            return Step::Need { need, announced };
        }
    };
    let verb = Verb::Meta {
        command: Command::Store,
        value,
    };
    request(used, key, verb, flags)
}

fn has_long_opaque(flags: Flags<'_>) -> bool {
    flags
        .iter()
        .any(|(flag, token)| flag == b'O' && token.len() >= OPAQUE_BYTES_MAX)
}

fn request<'a>(used: usize, key: &'a [u8], verb: Verb<'a>, flags: Flags<'a>) -> Step<'a> {
    Step::Request {
        used,
        request: Request {
            key,
            verb,
            form: Form::Meta(flags),
        },
    }
}
