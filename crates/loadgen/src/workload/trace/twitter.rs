//! Twitter's cache traces: <https://github.com/twitter/cache-trace>.

use std::io::Read;

use anyhow::{Context, Result, anyhow};

use super::{Record, number};
use crate::workload::{Verb, key::KEY_BYTES_MAX};

/// The records of a trace. `name` identifies the file in errors.
pub fn records(
    input: impl Read + Send,
    name: String,
) -> impl Iterator<Item = Result<Record>> + Send {
    let reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .from_reader(input);
    reader
        .into_byte_records()
        .enumerate()
        .map(move |(line, fields)| {
            let fields = fields.with_context(|| name.clone())?;
            record(&fields).with_context(|| format!("{name}, record {}", line + 1))
        })
}

fn record(fields: &csv::ByteRecord) -> Result<Record> {
    let field = |place: usize, what: &str| {
        fields
            .get(place)
            .map(<[u8]>::trim_ascii)
            .ok_or_else(|| anyhow!("no {what}"))
    };
    let figure = |place, what: &str| -> Result<u64> {
        let text = std::str::from_utf8(field(place, what)?)?;
        text.parse().with_context(|| format!("{what} {text:?}"))
    };
    let key_bytes = figure(2, "key size")?.clamp(1, KEY_BYTES_MAX as u64) as u8;
    let verb = match field(5, "operation")? {
        b"get" | b"gets" => Verb::Get,
        b"set" | b"add" | b"replace" | b"cas" | b"append" | b"prepend" | b"incr" | b"decr" => {
            Verb::Set
        }
        b"delete" => Verb::Delete,
        other => return Err(anyhow!("operation {:?}", other.escape_ascii().to_string())),
    };
    Ok(Record {
        at_s: figure(0, "timestamp")?,
        fraction_ns: None,
        number: number(field(1, "key")?),
        key_bytes,
        value_bytes: u32::try_from(figure(3, "value size")?)?,
        verb,
        ttl_s: u32::try_from(figure(6, "TTL")?)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_as_published() {
        let text = "0,q:q:1:8WTfjZU14ee,17,213,4,get,0\n\
                    1,yDqF:3q:1AJrrJ1nnCJKKrnGx1A,27,27,5,add,14400\n\
                    1,q:q:1:8WTfjZU14ee,17,0,4,delete,0\n";
        let records: Vec<Record> = records(text.as_bytes(), "trace".to_owned())
            .map(Result::unwrap)
            .collect();
        let [get, add, delete] = records[..] else {
            panic!("{records:?}")
        };
        assert_eq!(
            (
                get.at_s,
                get.key_bytes,
                get.value_bytes,
                get.verb,
                get.ttl_s
            ),
            (0, 17, 213, Verb::Get, 0)
        );
        assert_eq!(
            (
                add.at_s,
                add.key_bytes,
                add.value_bytes,
                add.verb,
                add.ttl_s
            ),
            (1, 27, 27, Verb::Set, 14400)
        );
        assert_eq!((delete.verb, delete.number), (Verb::Delete, get.number));
        assert_ne!(add.number, get.number);
    }

    #[test]
    fn what_is_no_record_is_named() {
        for (line, what) in [
            ("0,k,1,1,1,get\n", "TTL"),
            ("0,k,1,1,1,fetch,0\n", "fetch"),
            ("x,k,1,1,1,get,0\n", "timestamp"),
            ("0\n", "key size"),
        ] {
            let text = format!("0,k,1,1,1,get,0\n{line}");
            let error = records(std::io::Cursor::new(text), "trace".to_owned())
                .nth(1)
                .unwrap()
                .unwrap_err();
            let message = format!("{error:#}");
            assert!(
                message.starts_with("trace, record 2") && message.contains(what),
                "{message}"
            );
        }
    }
}
