//! An item on its way: what the one server says of it, and the command that gives it to the other.

use std::time::{SystemTime, UNIX_EPOCH};

use super::keys::Key;

/// Seconds up to which an expiry time counts from now; a longer one is a time of the calendar.
const RELATIVE_S_MAX: u64 = 30 * 24 * 60 * 60;

/// What a server answers to `mg`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// There is a value of this many bytes, which follows.
    Value(Head),
    /// There is no such item any more.
    Gone,
}

/// What belongs to a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    pub value_bytes: usize,
    pub flags: u32,
    /// Remaining lifetime in seconds; `None` if it does not expire.
    pub ttl_s: Option<u64>,
    /// A client has declared it out of date.
    pub is_stale: bool,
}

impl Found {
    /// Parses the first line of the answer to `mg KEY v f t`. `None` if it is another answer.
    pub fn parse(line: &[u8]) -> Option<Found> {
        let line = std::str::from_utf8(line).ok()?;
        let mut words = line.split(' ').filter(|word| !word.is_empty());
        match words.next()? {
            "EN" => return Some(Found::Gone),
            "VA" => {}
            _ => return None,
        }
        let mut head = Head {
            value_bytes: words.next()?.parse().ok()?,
            flags: 0,
            ttl_s: None,
            is_stale: false,
        };
        for word in words {
            match word.split_at_checked(1)? {
                ("f", flags) => head.flags = flags.parse().ok()?,
                ("t", "-1") => {}
                ("t", seconds) => head.ttl_s = Some(seconds.parse().ok()?),
                ("X", "") => head.is_stale = true,
                _ => {}
            }
        }
        Some(Found::Value(head))
    }
}

/// Appends the command that reads an item.
pub fn put_read(key: &Key, out: &mut Vec<u8>) {
    let parts = [b"mg ", &key.text[..], b" v f t", key.flag(), b"\r\n"];
    out.extend(parts.iter().copied().flatten());
}

/// Appends the command that asks whether an item is there.
pub fn put_question(key: &Key, out: &mut Vec<u8>) {
    let parts = [b"mg ", &key.text[..], key.flag(), b"\r\n"];
    out.extend(parts.iter().copied().flatten());
}

/// Appends the command that stores an item unless there is one, as far as its value.
pub fn put_add(key: &Key, head: &Head, out: &mut Vec<u8>) {
    let lifetime = match head.ttl_s {
        None => String::new(),
        Some(seconds) if seconds <= RELATIVE_S_MAX => format!(" T{seconds}"),
        Some(seconds) => format!(" T{}", unix_s() + seconds),
    };
    let (bytes, flags) = (head.value_bytes, head.flags);
    let middle = format!(" {bytes} ME F{flags}{lifetime}");
    let parts = [
        b"ms ",
        &key.text[..],
        middle.as_bytes(),
        key.flag(),
        b"\r\n",
    ];
    out.extend(parts.iter().copied().flatten());
}

fn unix_s() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(value_bytes: usize, flags: u32, ttl_s: Option<u64>, is_stale: bool) -> Head {
        Head {
            value_bytes,
            flags,
            ttl_s,
            is_stale,
        }
    }

    #[test]
    fn answers() {
        for (line, found) in [
            ("EN", Some(Found::Gone)),
            (
                "VA 2 f5 t99",
                Some(Found::Value(head(2, 5, Some(99), false))),
            ),
            ("VA 0 f0 t-1", Some(Found::Value(head(0, 0, None, false)))),
            (
                "VA 9 f4294967295 t0 W X ",
                Some(Found::Value(head(9, u32::MAX, Some(0), true))),
            ),
            ("ERROR", None),
            ("VA", None),
            ("VA x", None),
            ("VA 1 f-1", None),
            ("VA 1 tx", None),
            ("CLIENT_ERROR bad command line format", None),
            ("", None),
        ] {
            assert_eq!(Found::parse(line.as_bytes()), found, "{line}");
        }
    }

    #[test]
    fn commands() {
        let plain = Key {
            text: b"a".to_vec(),
            is_base64: false,
        };
        let coded = Key {
            text: b"/w==".to_vec(),
            is_base64: true,
        };
        let mut out = Vec::new();
        put_read(&coded, &mut out);
        put_question(&plain, &mut out);
        put_add(&plain, &head(1, 7, None, false), &mut out);
        put_add(&coded, &head(2, 0, Some(RELATIVE_S_MAX), false), &mut out);
        let lines = "mg /w== v f t b\r\nmg a\r\nms a 1 ME F7\r\nms /w== 2 ME F0 T2592000 b\r\n";
        assert_eq!(String::from_utf8(out).unwrap(), lines);
        let mut out = Vec::new();
        put_add(
            &plain,
            &head(1, 0, Some(RELATIVE_S_MAX + 1), false),
            &mut out,
        );
        let line = String::from_utf8(out).unwrap();
        let (_, time) = line.trim_end().split_once(" T").unwrap();
        let ahead_s = time.parse::<u64>().unwrap() - unix_s();
        assert!((RELATIVE_S_MAX - 60..=RELATIVE_S_MAX + 1).contains(&ahead_s));
    }
}
