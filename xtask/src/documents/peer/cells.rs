//! The rows of the table, and how an answer is compared with a cell.

use anyhow::{Context as _, bail};
use std::fmt;

/// What a cell has for a column that is not asked.
const UNASKED: &str = "—";
/// What a cell of Glimmer's has if it answers as memcached does.
const SAME: &str = "the same";
/// What stands for any bytes in an answer.
const ANYTHING: &str = "...";
/// What a cell of flags has if the server is started as root without `-u`.
const ROOT: &str = "as root";

/// One claim.
#[derive(Debug)]
pub struct Row {
    /// Its line in the table's file, from 1.
    pub line: usize,
    /// The page that makes the claim.
    pub page: String,
    /// The words of the page.
    pub quote: String,
    pub flags: Vec<String>,
    /// It is about a server that root starts without `-u`.
    pub is_root_alone: bool,
    pub is_udp: bool,
    /// What is sent at a time: parts of a stream, or datagrams. Empty if the start is what counts.
    pub sent: Vec<Vec<u8>>,
    pub memcached: Expected,
    pub glimmer: Expected,
}

/// What a cell says of an answer.
#[derive(Clone, Debug)]
pub enum Expected {
    /// The server is not asked.
    Unasked,
    /// The server sends these bytes, with anything where the cell has dots.
    Reply(Vec<u8>),
    /// The server starts, and its log has these words.
    Ready(Vec<u8>),
    /// The server ends with this status, and its log has these words.
    Ended(i32, Vec<u8>),
}

/// What a server did.
pub enum Answer {
    Reply(Vec<u8>),
    Ready { log: Vec<u8> },
    Ended { status: i32, log: Vec<u8> },
}

/// The rows under the headings of pages.
pub fn read(text: &str) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    let mut page = None;
    for (place, line) in text.lines().enumerate() {
        if let Some(heading) = line.strip_prefix("## ") {
            page = heading.ends_with(".md").then(|| heading.to_owned());
        }
        let Some(page) = &page else { continue };
        let cells = split(line);
        if let [quote, flags, sent, memcached, glimmer] = &cells[..]
            && quote.starts_with('"')
        {
            let row = Row::of(place + 1, page, [quote, flags, sent, memcached, glimmer]);
            rows.push(row.with_context(|| format!("{}:{}", super::DOCUMENT, place + 1))?);
        }
    }
    Ok(rows)
}

/// The cells of a line of a table.
pub fn split(line: &str) -> Vec<String> {
    let inside = line.strip_prefix("| ").and_then(|it| it.strip_suffix(" |"));
    let cells = inside.map(|it| it.split(" | ").map(|cell| cell.trim().to_owned()));
    cells.map(Iterator::collect).unwrap_or_default()
}

impl Row {
    fn of(line: usize, page: &str, cells: [&str; 5]) -> anyhow::Result<Row> {
        let [quote, flags, sent, memcached, glimmer] = cells;
        let words = codes(flags).into_iter();
        let memcached = Expected::read(memcached)?;
        let glimmer = match glimmer {
            SAME => memcached.clone(),
            other => Expected::read(other)?,
        };
        let sent_as_text = codes(sent).into_iter().map(|it| unescaped(&it));
        Ok(Row {
            line,
            page: page.to_owned(),
            quote: quote.trim_matches('"').to_owned(),
            flags: words
                .flat_map(|it| it.split(' ').map(str::to_owned).collect::<Vec<_>>())
                .collect(),
            is_root_alone: flags == ROOT,
            is_udp: sent.starts_with("UDP "),
            sent: sent_as_text.collect::<anyhow::Result<_>>()?,
            memcached,
            glimmer,
        })
    }
}

impl Expected {
    fn read(cell: &str) -> anyhow::Result<Expected> {
        if cell == UNASKED {
            return Ok(Expected::Unasked);
        }
        let words = codes(cell).pop();
        let words = words.map(|it| unescaped(&it)).transpose()?;
        let log = words.clone().unwrap_or_default();
        let before = cell.split('`').next().unwrap_or_default().trim();
        match before.trim_end_matches(':').split_once(' ') {
            None if before.is_empty() => Ok(Expected::Reply(words.context("a reply")?)),
            None if before.starts_with("starts") => Ok(Expected::Ready(log)),
            Some(("status", status)) => Ok(Expected::Ended(status.parse()?, log)),
            _ => bail!("{cell:?} is no answer"),
        }
    }

    pub fn matches(&self, answer: &Answer) -> bool {
        let has = |log: &[u8], words: &[u8]| {
            words.is_empty() || log.windows(words.len()).any(|it| it == words)
        };
        match (self, answer) {
            (Expected::Reply(pattern), Answer::Reply(reply)) => is_like(pattern, reply),
            (Expected::Ready(words), Answer::Ready { log }) => has(log, words),
            (Expected::Ended(wanted, words), Answer::Ended { status, log }) => {
                wanted == status && has(log, words)
            }
            _ => false,
        }
    }
}

/// Whether the bytes are those of the pattern, with any bytes in place of dots.
fn is_like(pattern: &[u8], bytes: &[u8]) -> bool {
    let dots = ANYTHING.as_bytes();
    let Some(place) = pattern.windows(dots.len()).position(|it| it == dots) else {
        return pattern == bytes;
    };
    let (begin, rest) = (&pattern[..place], &pattern[place + dots.len()..]);
    let Some(bytes) = bytes.strip_prefix(begin) else {
        return false;
    };
    (0..=bytes.len()).any(|left_out| is_like(rest, &bytes[left_out..]))
}

/// The texts between backquotes. A bar is written as `\|`, as Markdown wants it in a table.
fn codes(cell: &str) -> Vec<String> {
    let texts = cell.split('`').skip(1).step_by(2);
    texts.map(|it| it.replace("\\|", "|")).collect()
}

/// The place of the brace that closes the one before this text.
fn closing_brace(text: &str) -> anyhow::Result<usize> {
    let mut open = 1;
    for (place, c) in text.char_indices() {
        match c {
            '{' => open += 1,
            '}' => open -= 1,
            _ => {}
        }
        if open == 0 {
            return Ok(place);
        }
    }
    bail!("a brace is not closed")
}

/// The bytes for which a text stands: `\r`, `\n`, `\t`, `\xHH`, and `{TEXT*N}` for N times a text,
/// in which `#` is the number of the time from 0.
fn unescaped(text: &str) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        rest = after;
        match c {
            '\\' => {
                let kind = after.chars().next().context("a backslash ends the text")?;
                rest = &after[kind.len_utf8()..];
                bytes.push(match kind {
                    'r' => b'\r',
                    'n' => b'\n',
                    't' => b'\t',
                    'x' => {
                        let digits = rest.get(..2).context("\\x has two digits")?;
                        rest = &rest[2..];
                        u8::from_str_radix(digits, 16)?
                    }
                    other => bail!("\\{other} is not known"),
                });
            }
            '{' => {
                let inside = &after[..closing_brace(after)?];
                let (what, times) = inside.rsplit_once('*').context("{TEXT*N}")?;
                let times: usize = times.parse()?;
                if what.contains('#') {
                    for number in 0..times {
                        bytes.extend(unescaped(&what.replace('#', &number.to_string()))?);
                    }
                } else {
                    bytes.extend(unescaped(what)?.repeat(times));
                }
                rest = &after[inside.len() + 1..];
            }
            other => bytes.extend(other.to_string().bytes()),
        }
    }
    Ok(bytes)
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expected::Unasked => f.write_str(UNASKED),
            Expected::Reply(bytes) => write!(f, "{}", bytes.escape_ascii()),
            Expected::Ready(words) => write!(f, "starts: {}", words.escape_ascii()),
            Expected::Ended(status, words) => {
                write!(f, "status {status}: {}", words.escape_ascii())
            }
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 600;
        let shown = |bytes: &[u8]| bytes[..bytes.len().min(SHOWN)].escape_ascii().to_string();
        match self {
            Answer::Reply(bytes) => f.write_str(&shown(bytes)),
            Answer::Ready { log } => write!(f, "starts: {}", shown(log)),
            Answer::Ended { status, log } => write!(f, "status {status}: {}", shown(log)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_read() {
        let text = "## docs/a.md\n\n| \"says x\" | `-t 1 -m 8` | UDP `a\\r\\n` \
                    `{a#{b*2}*2}\\x00` | `x...\\|` | status 64: `no` |\n\
                    | \"y\" | as root |  | starts | the same |\n";
        let rows = read(text).unwrap();
        let [first, second] = &rows[..] else {
            panic!("{rows:?}");
        };
        assert_eq!(first.flags, ["-t", "1", "-m", "8"]);
        assert!(first.is_udp && !first.is_root_alone && second.is_root_alone);
        assert_eq!(first.sent, [&b"a\r\n"[..], b"a0bba1bb\0"]);
        assert!(first.memcached.matches(&Answer::Reply(b"x and|".to_vec())));
        assert!(!first.memcached.matches(&Answer::Reply(b"x and".to_vec())));
        let ended = |status, log: &str| Answer::Ended {
            status,
            log: log.into(),
        };
        assert!(first.glimmer.matches(&ended(64, "oh no")));
        assert!(!first.glimmer.matches(&ended(1, "oh no")));
        assert!(!first.glimmer.matches(&ended(64, "yes")));
        assert!(second.glimmer.matches(&Answer::Ready { log: Vec::new() }));
        assert_eq!((first.line, &*second.page), (3, "docs/a.md"));
    }

    #[test]
    fn mistakes_in_a_row_are_errors() {
        for cell in ["`\\q`", "`{a}`", "`{a*x}`", "nonsense", "status x"] {
            assert!(Expected::read(cell).is_err(), "{cell}");
        }
    }
}
