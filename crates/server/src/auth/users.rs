//! The file of `--users`: for each user a table with its password, its rights and its limits.

use glimmer_base::limits::KEY_BYTES_MAX;
use glimmer_node::{Quotas, UserRules};
use glimmer_notation as notation;
use glimmer_proto::{Rights, Rules};
use toml_span::value::{Key, ValueInner};
use toml_span::{Span, Value};

/// A user of the file, with the password.
#[derive(Debug)]
pub(super) struct NamedUser {
    pub password: Vec<u8>,
    pub rules: UserRules,
}

/// A mistake in the file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mistake {
    /// The line, starting at 1.
    pub line: usize,
    /// What is wrong, and what would not be.
    pub reason: String,
}

/// What a setting of a user may be, for those who name another.
const SETTINGS: &str = "password, rights, prefix, connections, requests and bytes";

/// A reason, and where in the file it lies.
type Fault = (Span, String);

/// The users of the file, in its order.
///
/// # Errors
///
/// The first mistake.
pub(super) fn read(text: &str) -> Result<Vec<NamedUser>, Mistake> {
    let mistake = |(span, reason): Fault| Mistake {
        line: line_of(text, span),
        // It may name a character that a terminal should not get.
        reason: reason.chars().flat_map(shown).collect(),
    };
    let mut file =
        toml_span::parse(text).map_err(|error| mistake((error.span, error.to_string())))?;
    let ValueInner::Table(users) = file.take() else {
        unreachable!("a file is a table")
    };
    let mut users: Vec<_> = users.into_iter().collect();
    users.sort_by_key(|(name, _)| name.span.start);
    let users = users.into_iter().map(|(name, value)| user(&name, value));
    users.map(|user| user.map_err(mistake)).collect()
}

/// A character, or what stands for one that is a control character.
fn shown(char: char) -> Vec<char> {
    match char.is_control() {
        true => char.escape_debug().collect(),
        false => vec![char],
    }
}

/// The number of the line, from 1.
fn line_of(text: &str, span: Span) -> usize {
    let before = text.as_bytes().iter().take(span.start);
    1 + before.filter(|&&byte| byte == b'\n').count()
}

fn user(name: &Key<'_>, mut value: Value<'_>) -> Result<NamedUser, Fault> {
    let at = name.span;
    let ValueInner::Table(settings) = value.take() else {
        let reason = format!(
            "{0} is no user; write [{0}], and its settings below",
            name.name
        );
        return Err((at, reason));
    };
    if name.name.is_empty() || name.name.contains(|char: char| char.is_control()) {
        let reason = "a user's name has one letter or more, and no control characters";
        return Err((at, reason.to_owned()));
    }
    let mut password = None;
    let mut rules = Rules {
        rights: Rights::DEFAULT,
        prefix: Box::default(),
    };
    let mut quotas = Quotas::default();
    for (setting, mut value) in settings {
        let (span, setting) = (setting.span, &*setting.name);
        let value = value.take();
        let read = match setting {
            "password" => string(setting, value).map(|text| password = Some(text)),
            "rights" => rights(value).map(|found| rules.rights = found),
            "prefix" => prefix(value).map(|found| rules.prefix = found),
            "connections" => number(setting, value).map(|found| quotas.connections = found),
            "requests" => number(setting, value).map(|found| quotas.requests = found),
            "bytes" => size(value).map(|found| quotas.bytes = found),
            other => Err(format!("a user has no {other}, but {SETTINGS}")),
        };
        read.map_err(|reason| (span, reason))?;
    }
    let Some(password) = password else {
        return Err((at, format!("[{}] has no password", name.name)));
    };
    Ok(NamedUser {
        password: password.into_bytes(),
        rules: UserRules {
            name: name.name.as_bytes().into(),
            rules,
            quotas,
        },
    })
}

fn string(name: &str, value: ValueInner<'_>) -> Result<String, String> {
    match value {
        ValueInner::String(text) if !text.is_empty() => Ok(text.into_owned()),
        _ => Err(format!("{name} is a text in quotes, of one letter or more")),
    }
}

fn rights(value: ValueInner<'_>) -> Result<Rights, String> {
    const EXPECTED: &str = r#"rights is a list of "get", "set" and "admin""#;
    let ValueInner::Array(names) = value else {
        return Err(EXPECTED.to_owned());
    };
    let mut rights = Rights::NONE;
    for mut name in names {
        let ValueInner::String(name) = name.take() else {
            return Err(EXPECTED.to_owned());
        };
        let right = name.parse::<Rights>();
        rights = rights.and(right.map_err(|_| format!("there is no right {name:?}; {EXPECTED}"))?);
    }
    Ok(rights)
}

fn prefix(value: ValueInner<'_>) -> Result<Box<[u8]>, String> {
    match value {
        ValueInner::String(text) if (1..=KEY_BYTES_MAX).contains(&text.len()) => {
            Ok(text.as_bytes().into())
        }
        _ => Err(format!(
            "prefix is a text in quotes, of 1 to {KEY_BYTES_MAX} bytes; leave it out for any key"
        )),
    }
}

fn number(name: &str, value: ValueInner<'_>) -> Result<u64, String> {
    let number = match value {
        ValueInner::Integer(number) => u64::try_from(number).ok(),
        ValueInner::String(text) => notation::count(&text).ok(),
        _ => None,
    };
    let expected = || format!(r#"{name} is a number from 1 on, such as 500 or "10k""#);
    number.filter(|&number| number > 0).ok_or_else(expected)
}

fn size(value: ValueInner<'_>) -> Result<u64, String> {
    let size = match value {
        ValueInner::Integer(number) => u64::try_from(number).ok(),
        ValueInner::String(text) => notation::bytes(&text).ok(),
        _ => None,
    };
    let expected = || r#"bytes is a size from 1 on, such as 65536 or "10m""#.to_owned();
    size.filter(|&size| size > 0).ok_or_else(expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_everything() {
        let text = r#"
# For people.
[ops]
password = "a:b c"
rights = ["get", "set", "admin"]

[shop]
password = "secret"
rights = ["get"]
prefix = "shop/"
connections = 50
requests = "1k"
bytes = "10m"

["a user"]
password = "x"
"#;
        let users = read(text).unwrap();
        let names = users.iter().map(|user| &*user.rules.name);
        assert_eq!(names.collect::<Vec<_>>(), [&b"ops"[..], b"shop", b"a user"]);
        assert_eq!(users[0].password, b"a:b c");
        assert_eq!(users[0].rules.rules.rights, Rights::ALL);
        assert!(users[0].rules.quotas.are_none());
        let shop = &users[1].rules;
        assert_eq!(
            (shop.rules.rights, &*shop.rules.prefix),
            (Rights::GET, &b"shop/"[..])
        );
        let quotas = Quotas {
            connections: 50,
            requests: 1_000,
            bytes: 10 << 20,
        };
        assert_eq!(shop.quotas, quotas);
        assert_eq!(users[2].rules.rules.rights, Rights::DEFAULT);
        assert!(read("").unwrap().is_empty());
    }

    #[test]
    fn mistakes() {
        let rows = [
            ("[a]\n", 1, "[a] has no password"),
            (
                "['']\npassword = 'x'\n",
                1,
                "a user's name has one letter or more, and no control characters",
            ),
            (
                "[a]\npassword = 'x'\nprefix = ''\n",
                3,
                "prefix is a text in quotes, of 1 to 250 bytes; leave it out for any key",
            ),
            (
                "[a]\n\"\\u001b[31m\" = 1\n",
                2,
                "a user has no \\u{1b}[31m, but password, rights, prefix, connections, requests \
                 and bytes",
            ),
            (
                "\na = 1\n",
                2,
                "a is no user; write [a], and its settings below",
            ),
            (
                "[a]\npasswort = 'x'\n",
                2,
                "a user has no passwort, but password, rights, prefix, connections, requests and \
                 bytes",
            ),
            (
                "[a]\npassword = ''\n",
                2,
                "password is a text in quotes, of one letter or more",
            ),
            (
                "[a]\npassword = 'x'\nrights = ['get', 'write']\n",
                3,
                r#"there is no right "write"; rights is a list of "get", "set" and "admin""#,
            ),
            (
                "[a]\npassword = 'x'\nrights = 'get'\n",
                3,
                r#"rights is a list of "get", "set" and "admin""#,
            ),
            (
                "[a]\npassword = 'x'\nrequests = -1\n",
                3,
                r#"requests is a number from 1 on, such as 500 or "10k""#,
            ),
            (
                "[a]\npassword = 'x'\nbytes = '1x'\n",
                3,
                r#"bytes is a size from 1 on, such as 65536 or "10m""#,
            ),
        ];
        for (text, line, reason) in rows {
            let reason = reason.to_owned();
            assert_eq!(read(text).unwrap_err(), Mistake { line, reason }, "{text}");
        }
        let twice = read("[a]\npassword = 'x'\n[a]\npassword = 'y'\n").unwrap_err();
        assert_eq!(twice.line, 3, "{}", twice.reason);
        let long = format!("[a]\nprefix = '{}'\n", "x".repeat(KEY_BYTES_MAX + 1));
        assert!(
            read(&long)
                .unwrap_err()
                .reason
                .contains("of 1 to 250 bytes")
        );
    }
}
