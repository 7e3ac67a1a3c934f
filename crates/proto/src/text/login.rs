//! Authentication in the text protocol (memcached's `-Y`). A client's first command must be
//! `set <any key> <any> <any> <bytes>` with `user password` as the value.

use super::{lines, number, tokens};
use crate::foreign;
use glimmer_base::limits::{LOGIN_BYTES_MAX, LOGIN_LINE_BYTES_MAX};

/// A shorter line cannot be a `set` and is not answered.
const LINE_BYTES_MIN: usize = 6;

/// Input from a client that has not authenticated yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Login<'a> {
    /// More input is needed.
    Need {
        /// Bytes needed before another call makes sense; more than the input had.
        need: usize,
    },
    /// A user name and a password to check. Answer with [`lines::STORED`] or
    /// [`lines::WRONG_PASSWORD`].
    Try {
        /// Bytes at the front of the input that are consumed.
        used: usize,
        /// The user name.
        user: &'a [u8],
        /// The password.
        password: &'a [u8],
    },
    /// Any other input: answer with `line`.
    Refuse {
        /// Bytes at the front of the input that are consumed.
        used: usize,
        /// The full reply, line end included.
        line: &'static str,
    },
    /// The input deserves no answer: close the connection.
    Close,
}

/// Parses the front of `input`, as memcached does.
pub fn read(input: &[u8]) -> Login<'_> {
    let Some(end) = memchr::memchr(b'\n', input) else {
        return match input.len() {
            0..=LOGIN_LINE_BYTES_MAX => Login::Need {
                need: input.len() + 1,
            },
            _ => Login::Close,
        };
    };
    if !(LINE_BYTES_MIN..=LOGIN_LINE_BYTES_MAX).contains(&end) {
        return Login::Close;
    }
    let (line, used) = (&input[..end], end + 1);
    let refuse = |line| Login::Refuse { used, line };
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let words = tokens::Words::of(line);
    if foreign::is_foreign(words.at(0)) || foreign::is_http_version(words.last()) {
        return Login::Close;
    }
    let bytes = number::digits_32(words.at(4));
    let Some(bytes) = bytes.filter(|_| line.starts_with(b"set") && words.count() >= 5) else {
        return refuse(lines::UNAUTHENTICATED);
    };
    if bytes as usize > LOGIN_BYTES_MAX {
        return refuse(lines::LOGIN_TOO_LONG);
    }
    let used = used + bytes as usize + 2;
    let Some(value) = input.get(end + 1..used) else {
        return Login::Need { need: used };
    };
    let refuse = |line| Login::Refuse { used, line };
    let Some(value) = value.strip_suffix(b"\r\n") else {
        return refuse(lines::LOGIN_UNTERMINATED);
    };
    let Some(space) = memchr::memchr(b' ', value) else {
        return refuse(lines::LOGIN_WITHOUT_PASSWORD);
    };
    Login::Try {
        used,
        user: &value[..space],
        password: &value[space + 1..],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(input: &[u8]) -> &'static str {
        match read(input) {
            Login::Refuse { used, line } if used == input.len() => line,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_user_and_a_password() {
        let input = b"set any 0 0 8\r\nfoo b ar\r\nget a\r\n";
        let login = Login::Try {
            used: 25,
            user: b"foo",
            password: b"b ar",
        };
        assert_eq!(read(input), login);
        for length in 0..25 {
            match read(&input[..length]) {
                Login::Need { need } => assert!(need > length && need <= 25),
                other => panic!("{length}: {other:?}"),
            }
        }
    }

    #[test]
    fn what_is_no_login() {
        assert_eq!(refused(b"get foo\r\n"), lines::UNAUTHENTICATED);
        assert_eq!(refused(b"set foo 0 0\r\n"), lines::UNAUTHENTICATED);
        assert_eq!(refused(b"set foo 0 0 x\r\n"), lines::UNAUTHENTICATED);
        let line = refused(b"set foo 0 0 2147483646\r\n");
        assert_eq!(line, lines::LOGIN_TOO_LONG);
        let line = refused(b"set foo 0 0 3\r\nfoo\r\n");
        assert_eq!(line, lines::LOGIN_WITHOUT_PASSWORD);
        let line = refused(b"set foo 0 0 3\r\nfoob\n");
        assert_eq!(line, lines::LOGIN_UNTERMINATED);
        assert_eq!(read(b"mn\r\n"), Login::Close);
        let endless = [b'x'; LOGIN_LINE_BYTES_MAX + 1];
        assert_eq!(read(&endless), Login::Close);
        let ended = [&endless[..], b"\r\n"].concat();
        assert_eq!(read(&ended), Login::Close, "whether it has ended or not");
    }
}
