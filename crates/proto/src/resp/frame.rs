//! Where the arguments of a command are.

use super::lines;
use arrayvec::ArrayVec;
use glimmer_base::limits::RESP_ARGUMENTS_KEPT_MAX;

/// The first byte of a command that is an array. No command of memcached's begins with it.
pub(super) const ARRAY: u8 = b'*';

/// The first arguments of a command.
pub(super) type Arguments<'a> = ArrayVec<&'a [u8], RESP_ARGUMENTS_KEPT_MAX>;

/// How a command writes its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// As an array of bulk strings.
    Array,
    /// As words of a line.
    Inline,
}

/// Why nothing can be read where something should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// It is not complete; this many bytes, counted from where it begins, are needed at least.
    Short(usize),
    /// It is not a bulk string.
    NotBulk,
    /// It breaks the protocol.
    Broken(&'static str),
}

/// Digits of a length at most.
const DIGITS_MAX: usize = 20;

/// A line `<mark><number>\r\n`: the number, and the bytes of the line.
#[inline]
pub(super) fn length(
    input: &[u8],
    too_long: &'static str,
    bad: &'static str,
) -> Result<(i64, usize), Fault> {
    // The common case: one or two digits. As in Redis, no length but zero begins with a zero.
    match *input {
        [_, a @ b'0'..=b'9', b'\r', b'\n', ..] => return Ok((i64::from(a - b'0'), 4)),
        [_, a @ b'1'..=b'9', b @ b'0'..=b'9', b'\r', b'\n', ..] => {
            return Ok((i64::from(a - b'0') * 10 + i64::from(b - b'0'), 5));
        }
        _ => {}
    }
    let line = &input[..input.len().min(DIGITS_MAX + 3)];
    let Some(newline) = memchr::memchr(b'\n', line) else {
        return Err(match input.len() > DIGITS_MAX + 2 {
            true => Fault::Broken(too_long),
            false => Fault::Short(input.len() + 1),
        });
    };
    let digits = line[1..newline]
        .strip_suffix(b"\r")
        .ok_or(Fault::Broken(bad))?;
    let number = crate::integer::signed_64(digits).ok_or(Fault::Broken(bad))?;
    Ok((number, newline + 1))
}

/// The head of a bulk string: the bytes of the string, and those of the head.
#[inline]
pub(super) fn bulk_head(input: &[u8], bytes_max: usize) -> Result<(usize, usize), Fault> {
    match input.first() {
        None => return Err(Fault::Short(1)),
        Some(b'$') => {}
        Some(_) => return Err(Fault::NotBulk),
    }
    let (bytes, head) = length(input, lines::LONG_BULK, lines::BAD_BULK)?;
    match usize::try_from(bytes) {
        Ok(bytes) if bytes <= bytes_max => Ok((bytes, head)),
        _ => Err(Fault::Broken(lines::BAD_BULK)),
    }
}

/// How many of these bytes go on with an argument of which `left` bytes are left, the CR and LF at
/// its end among them. 0 if the first byte should be that CR or LF and is another one.
#[inline]
pub(super) fn bytes_of_argument(bytes: &[u8], left: usize) -> usize {
    let before_end = left.saturating_sub(2);
    let end = &b"\r\n"[2 - left.min(2)..];
    let found = bytes.iter().skip(before_end).zip(end);
    bytes.len().min(before_end) + found.take_while(|(byte, wanted)| byte == wanted).count()
}

/// The next argument of a command of which everything is there, and the bytes up to the one after
/// it. None at the end of an inline command.
#[inline]
pub(super) fn next_argument(input: &[u8], style: Style) -> Option<(&[u8], usize)> {
    match style {
        Style::Array => {
            let (bytes, head) = bulk_head(input, usize::MAX).ok()?;
            Some((input.get(head..head + bytes)?, head + bytes + 2))
        }
        Style::Inline => word(input).ok().flatten(),
    }
}

/// The next word of a line, in quotes or without; none at its end. Words in quotes are what stands
/// between them. Words with quotes in their midst are not together in the line, and are refused.
pub(super) fn word(line: &[u8]) -> Result<Option<(&[u8], usize)>, &'static str> {
    let Some(start) = line.iter().position(|byte| !byte.is_ascii_whitespace()) else {
        return Ok(None);
    };
    let text = &line[start..];
    let ends = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'');
    let end = text.iter().position(ends).unwrap_or(text.len());
    let (word, [quote @ (b'"' | b'\''), rest @ ..]) = text.split_at(end) else {
        return Ok(Some((&text[..end], start + end)));
    };
    let end = memchr::memchr(*quote, rest).ok_or(lines::UNBALANCED)?;
    if memchr::memchr(b'\\', &rest[..end]).is_some() {
        return Err(lines::INLINE_ESCAPE);
    }
    match rest.get(end + 1) {
        Some(byte) if !byte.is_ascii_whitespace() => Err(lines::UNBALANCED),
        _ if word.is_empty() => Ok(Some((&rest[..end], start + end + 2))),
        _ => Err(lines::INLINE_QUOTE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_zero_begins_with_a_zero() {
        let read = |input: &[u8]| length(input, "", "bad").ok();
        assert_eq!(read(b"*0\r\n"), Some((0, 4)));
        assert_eq!(read(b"*10\r\n"), Some((10, 5)));
        for input in [
            &b"*00\r\n"[..],
            b"*05\r\n",
            b"*012\r\n",
            b"*-0\r\n",
            b"*+5\r\n",
        ] {
            assert_eq!(read(input), None, "{}", input.escape_ascii());
        }
    }
}
