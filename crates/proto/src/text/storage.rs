//! `set`, `add`, `replace`, `append`, `prepend`, `cas`: a line, then a value and its line end.

use super::Reply;
use super::line::Line;
use super::parser::{Parser, State};
use super::step::{After, Step};
use super::tokens::Words;
use super::value::{Body, Source};
use super::{lines, number};
use crate::{Announced, Form, Refusal, Request, StoreMode, Verb};
use glimmer_base::limits::KEY_BYTES_MAX;

/// The contents of the line.
struct Header<'a> {
    key: &'a [u8],
    mode: StoreMode,
    flags: u32,
    exptime: i64,
    value_bytes: usize,
    quiet: bool,
}

/// Parses the line of a storage command and, if it has arrived, the value after it.
pub(super) fn read<'a>(
    parser: &mut Parser,
    line: &Line<'a>,
    mode: StoreMode,
    source: Source,
) -> Step<'a> {
    /// Memcached adds the two bytes of the line end to the length in 32 bits.
    const LENGTH_MAX: i32 = i32::MAX - 2;
    let words = Words::of(line.text);
    let length = number::signed_digits_32(words.at(4));
    let Some(length) = length.filter(|length| (0..=LENGTH_MAX).contains(length)) else {
        // The length of the value is unknown. As in memcached, a value that follows will be parsed
        // as commands.
        return line.refuse(lines::BAD_LINE);
    };
    let value_bytes = length as usize;
    let Some(header) = Header::of(&words, mode, value_bytes) else {
        parser.state = State::swallowing(value_bytes);
        return line.refuse(lines::unless(words.are_quiet(), lines::BAD_LINE));
    };
    if value_bytes
        > parser
            .limits
            .value_bytes_max(header.key.len(), header.flags)
    {
        return header.turn_away(parser, line, Refusal::TooLarge, value_bytes);
    }
    header.read_value(parser, line, source)
}

impl<'a> Header<'a> {
    /// Parses the words; `None` if one is invalid. Extra words are ignored.
    fn of(words: &Words<'a>, mode: StoreMode, value_bytes: usize) -> Option<Header<'a>> {
        let key = words.at(1);
        let flags = number::unsigned_32(words.at(2))?;
        let exptime = number::signed_32(words.at(3))?.into();
        let mode = match mode {
            StoreMode::Cas(_) => StoreMode::Cas(number::digits_64(words.at(5))?),
            other => other,
        };
        let quiet = words.are_quiet();
        (key.len() <= KEY_BYTES_MAX).then_some(Header {
            key,
            mode,
            flags,
            exptime,
            value_bytes,
            quiet,
        })
    }

    fn read_value(self, parser: &mut Parser, line: &Line<'a>, source: Source) -> Step<'a> {
        let (used, value) = match source.body(line, self.value_bytes) {
            Body::Whole { used, value } => (used, value),
            Body::Unterminated { used } => {
                let line = lines::unless(self.quiet, lines::BAD_CHUNK);
                return Step::Refuse {
                    used,
                    line,
                    then: After::Continue,
                };
            }
            Body::Refused { left } => {
                return self.turn_away(parser, line, Refusal::NoMemory, left);
            }
            Body::Short { need } => {
                let announced = source.announce(Announced {
                    key: self.key,
                    has_base64_key: false,
                    value_at: line.used,
                    value_bytes: self.value_bytes,
                });
                return Step::Need { need, announced };
            }
        };
        let Header {
            mode,
            flags,
            exptime,
            ..
        } = self;
        self.request(
            used,
            Verb::Store {
                mode,
                flags,
                exptime,
                value,
            },
        )
    }

    /// Refuses the value and swallows the `left` bytes of it that follow the line. Only `set`
    /// guarantees that the old value is gone, so only `set` deletes the item.
    fn turn_away(
        self,
        parser: &mut Parser,
        line: &Line<'a>,
        reason: Refusal,
        left: usize,
    ) -> Step<'a> {
        parser.state = State::swallowing(left);
        match self.mode {
            StoreMode::Set => self.request(line.used, Verb::Refused { reason }),
            _ => line.refuse(lines::unless(self.quiet, reason.line())),
        }
    }

    fn request(self, used: usize, verb: Verb<'a>) -> Step<'a> {
        let form = Form::Text(Reply::to_one(self.quiet));
        Step::Request {
            used,
            request: Request {
                key: self.key,
                verb,
                form,
            },
        }
    }
}
