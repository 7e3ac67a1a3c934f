//! `stats slow`, an addition to memcached's statistics: the latest slow requests, and what their
//! time went to.

use std::fmt::Write;

use glimmer_base::limits::REPORT_BYTES_HIGH;
use glimmer_base::shown;
use glimmer_node::{Part, SlowRequest};

use super::ServerAdmin;
use super::lines::Lines;

/// What is shown of each, with its meaning for operators. Of a turn, `bytes` is left out and
/// `requests` shown.
#[cfg(test)]
#[rustfmt::skip]
const FIELDS: &[(&str, &str)] = &[
    ("time", "when its reply was sent, in seconds since 1970"),
    ("worker", "the worker that executed it"),
    ("command", "`get`, `set`, `delete`, `other`, or `turn`: a whole turn of a worker"),
    ("bytes", "bytes of its value"),
    ("requests", "of a turn: the requests that the worker executed in it"),
    ("total_us", "all of its time, in microseconds"),
    ("waiting_us", "of that: waiting for requests that the worker served first in its turn"),
    ("elsewhere_us", "waiting at another worker, which had received it, and on its way from there"),
    ("executing_us", "being received and executed, with the others of its batch"),
    ("sending_us", "being sent, with the others of its burst or slice by slice"),
    ("key", "the beginning of its key, at most 64 bytes; `...` follows if it is longer"),
];

/// The fields of an entry, with their values.
pub(crate) fn fields(slow: &SlowRequest) -> Vec<(&'static str, String)> {
    let seconds = slow.unix_ms as f64 / 1e3;
    let command = slow.command.map_or("turn", |command| command.name());
    let mut fields = vec![
        ("time", format!("{seconds:.3}")),
        ("worker", slow.worker.to_string()),
        ("command", command.to_owned()),
    ];
    let mut put = |name, number: u64| fields.push((name, number.to_string()));
    if slow.command.is_none() {
        put("requests", slow.size);
        put("total_us", slow.total_us);
        return fields;
    }
    put("bytes", slow.size);
    put("total_us", slow.total_us);
    put("waiting_us", slow.waiting_us);
    put("elsewhere_us", slow.elsewhere_us);
    put("executing_us", slow.executing_us);
    put("sending_us", slow.sending_us);
    let mut key = shown::visible(&slow.key);
    if slow.is_shortened {
        key.push_str("...");
    }
    fields.push(("key", key));
    fields
}

/// The threshold that `slow` with this argument sets, `Some(None)` if it has none. `None` if what
/// follows is not one whole number.
pub(super) fn threshold_ms(argument: &[u8]) -> Option<Option<u64>> {
    let argument = std::str::from_utf8(argument).ok()?;
    match argument.strip_prefix("slow")?.trim_ascii() {
        "" => Some(None),
        number => number.parse().ok().map(Some),
    }
}

/// Writes one part of the reply, starting with the entry of this number, after it has set the
/// threshold, if one is given.
pub(super) fn write(
    admin: &ServerAdmin,
    threshold_ms: Option<u64>,
    from: u64,
    lines: &mut Lines<'_>,
) -> Part {
    let Some(log) = admin.node().and_then(|node| node.slow()) else {
        return Part::Last;
    };
    if let Some(threshold_ms) = threshold_ms {
        log.set_threshold_ms(threshold_ms);
        tracing::info!("stats slow: requests of {threshold_ms} ms and more are slow (0: none)");
    }
    let Some(latest) = log.latest_at_once() else {
        return Part::Later;
    };
    if from == 0 {
        let (entered, left_out) = log.counts();
        lines.put("threshold_ms", log.threshold_ms().unwrap_or(0));
        lines.put("entered", entered);
        lines.put("left_out", left_out);
    }
    let begin = lines.0.len();
    for (number, slow) in latest.iter().enumerate().skip(from as usize) {
        if lines.0.len() - begin >= REPORT_BYTES_HIGH {
            return Part::More(number as u64);
        }
        let mut line = String::new();
        for (name, value) in fields(slow) {
            write!(line, " {name}={value}").expect("memory takes every byte");
        }
        lines.put(&number.to_string(), line.trim_start());
    }
    Part::Last
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::own::documented;
    use glimmer_node::Command;

    #[test]
    fn a_threshold_is_a_whole_number() {
        let cases: [(&[u8], _); 6] = [
            (b"slow", Some(None)),
            (b"slow 25", Some(Some(25))),
            (b"slow 0", Some(Some(0))),
            (b"slow x", None),
            (b"slow 2.5", None),
            (b"slow 1 2", None),
        ];
        for (argument, wanted) in cases {
            assert_eq!(
                threshold_ms(argument),
                wanted,
                "{}",
                argument.escape_ascii()
            );
        }
    }

    #[test]
    fn the_documentation_has_a_row_for_each_field_and_no_others() {
        let rows = FIELDS
            .iter()
            .map(|(name, about)| format!("| `{name}` | {about} |"));
        documented("## Slow requests", rows.collect());
        let request = SlowRequest {
            command: Some(Command::Set),
            is_shortened: true,
            key: b"a\n\x1b[2J".iter().copied().collect(),
            ..SlowRequest::default()
        };
        for slow in [&request, &SlowRequest::default()] {
            for (name, _) in fields(slow) {
                assert!(FIELDS.iter().any(|(known, _)| *known == name), "{name}");
            }
        }
        let key = ("key", "a%0A%1B[2J...".to_owned());
        assert!(fields(&request).contains(&key), "{:?}", fields(&request));
    }
}
