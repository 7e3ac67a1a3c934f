//! User names and passwords: the user file of memcached's `-Y`, and the message of the SASL
//! mechanism PLAIN.

/// A line of a user file that is not `user:password`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedLine {
    /// The line number, starting at 1.
    pub line: usize,
}

/// Iterates over the user names and passwords in a file with one `user:password` per line.
/// Passwords may contain colons; empty lines are skipped.
///
/// # Errors
///
/// At the first line without a colon.
pub fn users(file: &[u8]) -> impl Iterator<Item = Result<(&[u8], &[u8]), MalformedLine>> {
    let lines = file.split(|&byte| byte == b'\n');
    let lines = lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let lines = lines.enumerate().filter(|(_, line)| !line.is_empty());
    lines.map(|(index, line)| {
        let colon = memchr::memchr(b':', line).ok_or(MalformedLine { line: index + 1 })?;
        Ok((&line[..colon], &line[colon + 1..]))
    })
}

/// The user name and password in a PLAIN message (RFC 4616). The message has an authorization
/// identity, a user name and a password, separated by zero bytes. A client may act only for itself,
/// so the first part must be empty or equal the user name.
pub fn plain(message: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut parts = message.splitn(3, |&byte| byte == 0);
    let (acts_for, name, password) = (parts.next()?, parts.next()?, parts.next()?);
    (acts_for.is_empty() || acts_for == name).then_some((name, password))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Users<'a> = Result<Vec<(&'a [u8], &'a [u8])>, MalformedLine>;

    #[test]
    fn files() {
        let rows: &[(&[u8], Users<'_>)] = &[
            (b"", Ok(vec![])),
            (b"foo:bar", Ok(vec![(b"foo", b"bar")])),
            (
                b"foo:bar\r\n\nbaaaz:qu:ux\n",
                Ok(vec![(b"foo", b"bar"), (b"baaaz", b"qu:ux")]),
            ),
            (b":\n", Ok(vec![(b"", b"")])),
            (b"foo:bar\n\nnonsense\n", Err(MalformedLine { line: 3 })),
        ];
        for (file, expected) in rows {
            let found: Users<'_> = users(file).collect();
            assert_eq!(found, *expected, "{:?}", file.escape_ascii().to_string());
        }
    }

    #[test]
    fn plain_messages() {
        type Row<'a> = (&'a [u8], Option<(&'a [u8], &'a [u8])>);
        let rows: &[Row<'_>] = &[
            (b"\0me\0secret", Some((b"me", b"secret"))),
            (b"me\0me\0secret", Some((b"me", b"secret"))),
            (b"you\0me\0secret", None),
            (b"\0me\0", Some((b"me", b""))),
            (b"me\0secret", None),
            (b"", None),
        ];
        for (data, expected) in rows {
            assert_eq!(plain(data), *expected, "{data:?}");
        }
    }
}
