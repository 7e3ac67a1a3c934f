//! An item on its way: what the one server says of it, and the command that gives it to the other.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::keys::Key;

/// Seconds up to which an expiry time counts from now; a longer one is a time of the calendar.
const RELATIVE_S_MAX: u64 = 30 * 24 * 60 * 60;
/// The last expiry time that memcached takes, in January 2038.
const UNIX_S_MAX: u64 = i32::MAX as u64;

/// What lifetimes are counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Seconds,
    /// Both servers have the flag `m`.
    Milliseconds,
}

impl Unit {
    /// The flag that has a command use it.
    fn flag(self) -> &'static [u8] {
        match self {
            Unit::Seconds => b"",
            Unit::Milliseconds => b" m",
        }
    }

    /// How many of them a second has.
    fn per_second(self) -> u64 {
        match self {
            Unit::Seconds => 1,
            Unit::Milliseconds => 1000,
        }
    }

    /// The flag that gives an item this remaining lifetime.
    fn lifetime(self, ttl: u64) -> String {
        if ttl <= RELATIVE_S_MAX * self.per_second() {
            return format!(" T{ttl}");
        }
        let end = match self {
            Unit::Seconds => (since_1970().as_secs() + ttl).min(UNIX_S_MAX),
            Unit::Milliseconds => since_1970().as_millis() as u64 + ttl,
        };
        format!(" T{end}")
    }
}

/// A command that fails whether or not a server has the flag `m`, and counts as nothing.
pub const QUESTION_OF_UNIT: &[u8] = b"mg k m T\r\n";

/// Whether a server has the flag, by its answer.
pub fn has_milliseconds(answer: &[u8]) -> bool {
    answer == b"CLIENT_ERROR bad token in command line format"
}

/// Asks whether a server takes values as `ms` of today sends them. It fails as there is no such
/// mode, and changes nothing. Two lines answer it, the second of which is the version. From 1.6.0
/// to 1.6.9, memcached wants the length as a flag: it takes the value for a command, and a line
/// `MN` comes before the version.
pub const QUESTION_OF_VALUES: &[u8] = b"ms glimmer-copy 2 M-\r\nmn\r\nversion\r\n";

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
    /// memcached can be built for flags of more than 32 bits. Other servers refuse these.
    pub flags: u64,
    /// Remaining lifetime, in the unit of the command; `None` if it does not expire.
    pub ttl: Option<u64>,
    /// A client has declared it out of date.
    pub is_stale: bool,
}

impl Found {
    /// Parses the first line of the answer to [`put_read`]. `None` if it is another answer, or one
    /// that cannot be read.
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
            ttl: None,
            is_stale: false,
        };
        for word in words {
            match word.split_at_checked(1)? {
                ("f", flags) => head.flags = flags.parse().ok()?,
                ("t", "-1") => {}
                ("t", ttl) => head.ttl = Some(ttl.parse().ok()?),
                ("X", "") => head.is_stale = true,
                _ => {}
            }
        }
        Some(Found::Value(head))
    }
}

/// Appends the command that reads an item.
pub fn put_read(key: &Key, unit: Unit, out: &mut Vec<u8>) {
    let flags = [unit.flag(), key.flag()];
    let parts = [
        b"mg ",
        &key.text[..],
        b" v f t",
        flags[0],
        flags[1],
        b"\r\n",
    ];
    out.extend(parts.iter().copied().flatten());
}

/// Appends the command that asks whether an item is there, by a key that
/// [can be asked for](Key::can_be_asked). `mg` would take the right to renew a stale item.
pub fn put_question(key: &Key, out: &mut Vec<u8>) {
    let parts = [b"me ", &key.text[..], b"\r\n"];
    out.extend(parts.iter().copied().flatten());
}

/// Appends the command that stores an item unless there is one, as far as its value.
pub fn put_add(key: &Key, head: &Head, unit: Unit, out: &mut Vec<u8>) {
    let lifetime = head.ttl.map(|ttl| unit.lifetime(ttl)).unwrap_or_default();
    let (bytes, flags) = (head.value_bytes, head.flags);
    let middle = format!(" {bytes} ME F{flags}{lifetime}");
    let parts = [
        b"ms ",
        &key.text[..],
        middle.as_bytes(),
        unit.flag(),
        key.flag(),
        b"\r\n",
    ];
    out.extend(parts.iter().copied().flatten());
}

fn since_1970() -> Duration {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(value_bytes: usize, flags: u64, ttl: Option<u64>, is_stale: bool) -> Head {
        Head {
            value_bytes,
            flags,
            ttl,
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
                Some(Found::Value(head(9, u32::MAX.into(), Some(0), true))),
            ),
            (
                "VA 3 f4294967296 t-1",
                Some(Found::Value(head(3, 1 << 32, None, false))),
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
            ..Key::default()
        };
        let coded = Key {
            text: b"/w==".to_vec(),
            is_base64: true,
            ..Key::default()
        };
        let mut out = Vec::new();
        let (seconds, ms) = (Unit::Seconds, Unit::Milliseconds);
        put_read(&coded, seconds, &mut out);
        put_question(&plain, &mut out);
        put_add(&plain, &head(1, 7, None, false), seconds, &mut out);
        let month = head(2, 0, Some(RELATIVE_S_MAX), false);
        put_add(&coded, &month, seconds, &mut out);
        put_read(&coded, ms, &mut out);
        put_add(&plain, &head(1, 7, Some(1500), false), ms, &mut out);
        let lines = "mg /w== v f t b\r\nme a\r\nms a 1 ME F7\r\nms /w== 2 ME F0 T2592000 b\r\n\
            mg /w== v f t m b\r\nms a 1 ME F7 T1500 m\r\n";
        assert_eq!(String::from_utf8(out).unwrap(), lines);
        for unit in [seconds, ms] {
            let (most, mut out) = (RELATIVE_S_MAX * unit.per_second(), Vec::new());
            put_add(&plain, &head(1, 0, Some(most + 1), false), unit, &mut out);
            let line = String::from_utf8(out).unwrap();
            let (_, time) = line.trim_end().split_once(" T").unwrap();
            let time: u64 = time.trim_end_matches(" m").parse().unwrap();
            let ahead_s = time / unit.per_second() - since_1970().as_secs();
            assert!((RELATIVE_S_MAX - 60..=RELATIVE_S_MAX + 1).contains(&ahead_s));
        }
        assert_eq!(seconds.lifetime(UNIX_S_MAX), " T2147483647");
    }
}
