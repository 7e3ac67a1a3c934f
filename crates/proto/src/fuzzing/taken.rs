//! Values that the caller takes out of the input.

use super::{Trace, ends, without_used};
use crate::text::Step;
use crate::{Announced, Parser};
use glimmer_base::limits::MEDIUM_BYTES_MIN;
use std::ops::Range;

/// Bytes of values that [`filled`] adds to a stream at most.
const FILLED_BYTES_MAX: usize = 64 << 10;

/// What such a value consists of: line ends, and what a command could begin with.
const FILLING: &[u8] = b"\r\nset *3\r\n$1\r\n\x80";

/// The stream, with a value wherever one is announced. What followed the header follows the value.
/// Under the text protocol, a value of even length has its line end too.
pub(super) fn filled(mut parser: Parser, stream: &[u8]) -> Vec<u8> {
    let (mut stream, mut front, mut left) = (stream.to_vec(), 0, FILLED_BYTES_MAX);
    let mut filled = 0;
    loop {
        match parser.next(&stream[front..]) {
            Step::Need {
                announced: Some(announced),
                ..
            } if announced.value_bytes <= left && front >= filled => {
                let at = front + announced.value_at;
                let bytes = announced.value_bytes;
                let mut value = FILLING.repeat(bytes / FILLING.len() + 1);
                value.truncate(bytes);
                if matches!(parser, Parser::Text(_)) && bytes.is_multiple_of(2) {
                    value.extend(b"\r\n");
                }
                stream.splice(at..at, value);
                left -= bytes;
                filled = at + bytes;
            }
            step => match without_used(step) {
                Some((used, step)) if !ends(&step) => front += used,
                _ => return stream,
            },
        }
    }
}

/// Feeds a stream to a parser and takes announced values out of the input, those that `takes` says.
/// The steps are those of the `whole` stream, from which no value was taken. Returns how many
/// values were taken.
///
/// The bytes arrive in the given pieces (taken over and over).
pub fn taken_from(
    mut parser: Parser,
    stream: &[u8],
    pieces: &[usize],
    whole: &Trace<'_>,
    mut takes: impl FnMut(&Announced<'_>) -> bool,
) -> usize {
    let mut whole = whole.iter().peekable();
    let (mut front, mut arrived, mut count) = (0, 0, 0);
    let mut taken: Option<Range<usize>> = None;
    for piece in pieces.iter().cycle() {
        arrived = stream.len().min(arrived + piece.max(&1));
        loop {
            let shortened;
            let input = match &taken {
                None => &stream[front..arrived],
                Some(value) if arrived < value.end => break,
                Some(value) => {
                    shortened = [&stream[front..value.start], &stream[value.end..arrived]].concat();
                    &shortened
                }
            };
            let before = parser;
            let step = parser.next(input);
            check_again(before, input, step, parser);
            let Some((used, step)) = without_used(step) else {
                let Step::Need { need, announced } = step else {
                    unreachable!("only Need uses nothing")
                };
                assert!(need > input.len());
                match announced {
                    Some(announced) if taken.is_none() && takes(&announced) => {
                        check(&announced, input, need);
                        let begin = front + announced.value_at;
                        taken = Some(begin..begin + announced.value_bytes);
                        parser.take_value();
                        count += 1;
                        continue;
                    }
                    announced => assert!(announced.is_none() || taken.is_none()),
                }
                break;
            };
            let value = taken.take();
            front += used + value.as_ref().map_or(0, ExactSizeIterator::len);
            let step = match (step, value) {
                (Step::Request { used, request }, Some(value)) => Step::Request {
                    used,
                    request: request.with_value(&stream[value]),
                },
                (step, _) => step,
            };
            let (end, expected) = whole.peek().expect("as many steps");
            match (step, expected) {
                (Step::Queue { line: "", .. }, Step::Queue { .. }) if front < *end => continue,
                _ => assert_eq!(step, *expected, "the value was taken"),
            }
            match step {
                step if ends(&step) => return count,
                Step::Swallowed { .. } if front < *end => {}
                _ => {
                    assert_eq!(front, *end);
                    whole.next();
                }
            }
        }
        if arrived == stream.len() {
            break;
        }
    }
    assert_eq!(whole.next(), None, "as many steps");
    count
}

/// A step put back is taken again, and the short way to a request leads to the same.
fn check_again(before: Parser, input: &[u8], step: Step<'_>, after: Parser) {
    let mut again = before;
    assert_eq!((again.next(input), again), (step, after));
    let mut plain = before;
    match plain.next_plain(input) {
        Some((used, request)) => {
            assert_eq!((Step::Request { used, request }, plain), (step, after));
        }
        None => assert_eq!(plain, before),
    }
}

fn check(announced: &Announced<'_>, input: &[u8], need: usize) {
    assert!(announced.value_bytes >= MEDIUM_BYTES_MIN);
    assert!(announced.value_at <= input.len());
    assert!(announced.value_at + announced.value_bytes <= need);
    assert!(super::lies_in(announced.key, &input[..announced.value_at]));
    announced.with_key(|key| assert!(!key.is_empty()));
}
