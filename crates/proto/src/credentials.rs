//! Names and passwords: the file of users that memcached's `-Y` names, and the message of the SASL mechanism PLAIN.

/// A line of a file of users that is not `user:password`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedLine {
    /// The line's number, from 1.
    pub line: usize,
}

/// Name and password of every user in a file, which has a line `user:password` for each. A password may have colons; empty lines are passed over.
///
/// # Errors
///
/// At the first line that has no colon.
pub fn users(file: &[u8]) -> impl Iterator<Item = Result<(&[u8], &[u8]), MalformedLine>> {
    let lines = file.split(|&byte| byte == b'\n');
    let lines = lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let lines = lines.enumerate().filter(|(_, line)| !line.is_empty());
    lines.map(|(index, line)| {
        let colon = memchr::memchr(b':', line).ok_or(MalformedLine { line: index + 1 })?;
        Ok((&line[..colon], &line[colon + 1..]))
    })
}

/// Name and password of a PLAIN message (RFC 4616): whom the client wants to act for, its name, and its password, with a zero byte between
/// them. Only for itself may it act.
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
