//! One key on each line, as in the traces of the LIRS authors and libCacheSim's plain text. They
//! record only reads, and no lengths.

use std::io::BufRead;

use anyhow::{Context, Result, ensure};

use super::{Record, number};
use crate::workload::{Verb, key::KEY_BYTES_MAX};

/// Length of the keys, which the format does not specify.
const KEY_BYTES: u8 = 16;
/// Length of the values, unless the replay says another.
const VALUE_BYTES: u32 = 1000;
/// A line that separates parts of a trace of the LIRS authors.
const SEPARATOR: &[u8] = b"*";

/// The records of a trace. `name` identifies the file in errors.
pub fn records(
    input: impl BufRead + Send,
    name: String,
) -> impl Iterator<Item = Result<Record>> + Send {
    let lines = input.split(b'\n').enumerate();
    lines.filter_map(move |(line, text)| {
        let text = match text.with_context(|| name.clone()) {
            Ok(text) => text,
            Err(error) => return Some(Err(error)),
        };
        let key = text.trim_ascii();
        let is_blank = key.is_empty() || key == SEPARATOR;
        let record = || record(key).with_context(|| format!("{name}, line {}", line + 1));
        (!is_blank).then(record)
    })
}

fn record(key: &[u8]) -> Result<Record> {
    ensure!(
        key.len() <= KEY_BYTES_MAX && is_key(key),
        "{:?} is not one key",
        key[..key.len().min(40)].escape_ascii().to_string()
    );
    Ok(Record {
        at_s: 0,
        fraction_ns: None,
        number: number(key),
        key_bytes: KEY_BYTES,
        value_bytes: VALUE_BYTES,
        verb: Verb::Get,
        ttl_s: 0,
    })
}

/// Whether a line is one key, and not several columns.
pub fn is_key(line: &[u8]) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_graphic() && !b",;".contains(byte);
    !line.is_empty() && line.iter().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_a_read() {
        let text = "42\n*\n7\r\n\nabc\n42";
        let records: Vec<Record> = records(text.as_bytes(), "t".to_owned())
            .map(Result::unwrap)
            .collect();
        let numbers: Vec<u64> = records.iter().map(|record| record.number).collect();
        assert_eq!(numbers, [42, 7, number(b"abc"), 42]);
        let is_read = |record: &Record| record.verb == Verb::Get && record.value_bytes == 1000;
        assert!(records.iter().all(is_read));
    }

    #[test]
    fn a_line_that_is_not_one_key_is_named() {
        for wrong in ["1 2", "1,2", "\u{1}", &"1".repeat(251)] {
            let text = format!("1\n*\n{wrong}\n");
            let mut records = records(std::io::Cursor::new(text), "t".to_owned());
            assert!(records.next().unwrap().is_ok());
            let error = format!("{:#}", records.next().unwrap().unwrap_err());
            assert!(error.starts_with("t, line 3: \""), "{error}");
            assert!(error.ends_with("is not one key"), "{error}");
        }
    }
}
