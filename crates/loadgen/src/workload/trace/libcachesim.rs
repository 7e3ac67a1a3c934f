//! libCacheSim's formats: <https://github.com/1a1a11a/libCacheSim>. They record only reads, of
//! objects whose size includes the key.

use std::io::{ErrorKind, Read};

use anyhow::{Context, Result, anyhow};

use super::{Record, number};
use crate::workload::Verb;

/// Bytes of a binary record.
const RECORD_BYTES: usize = 24;
/// Length of the keys, which the formats do not specify.
const KEY_BYTES: u8 = 16;

fn read(at_s: u64, number: u64, object_bytes: u64) -> Record {
    let value_bytes = object_bytes
        .saturating_sub(u64::from(KEY_BYTES))
        .min(u64::from(u32::MAX));
    Record {
        at_s,
        fraction_ns: None,
        number,
        key_bytes: KEY_BYTES,
        value_bytes: value_bytes as u32,
        verb: Verb::Get,
        ttl_s: 0,
    }
}

/// The records of an `oracleGeneral` file. `name` identifies the file in errors.
pub fn binary(
    mut input: impl Read + Send,
    name: String,
) -> impl Iterator<Item = Result<Record>> + Send {
    let mut next = move || -> Result<Option<Record>> {
        let mut bytes = [0; RECORD_BYTES];
        let mut filled = 0;
        while filled < RECORD_BYTES {
            match input.read(&mut bytes[filled..]) {
                Ok(0) if filled == 0 => return Ok(None),
                Ok(0) => return Err(anyhow!("{name} ends within a record")),
                Ok(more) => filled += more,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error).with_context(|| name.clone()),
            }
        }
        let word =
            |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let object = u64::from_le_bytes(bytes[4..12].try_into().expect("eight bytes"));
        Ok(Some(read(u64::from(word(0)), object, u64::from(word(12)))))
    };
    std::iter::from_fn(move || next().transpose())
}

/// Positions of the columns.
#[derive(Clone, Copy)]
struct Columns {
    time: usize,
    object: usize,
    size: usize,
}

impl Columns {
    /// From the header line, or the default positions if the file has no header line.
    fn of(first: &csv::ByteRecord) -> Option<Columns> {
        let place = |names: &[&str]| {
            first.iter().position(|field| {
                let field = String::from_utf8_lossy(field)
                    .trim()
                    .trim_start_matches('#')
                    .trim()
                    .to_lowercase();
                names.contains(&field.as_str())
            })
        };
        let object = place(&["obj", "object", "obj_id", "id", "key", "obj-id"])?;
        Some(Columns {
            time: place(&["time", "timestamp", "clock_time", "ts"]).unwrap_or(0),
            object,
            size: place(&["size", "obj_size", "object_size", "obj-size"])?,
        })
    }
}

/// The records of a CSV file. `name` identifies the file in errors.
pub fn text(
    input: impl Read + Send + 'static,
    name: String,
) -> Result<impl Iterator<Item = Result<Record>> + Send> {
    let reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .from_reader(input);
    let mut lines = reader.into_byte_records();
    let first = lines.next().transpose().with_context(|| name.clone())?;
    let header = first.as_ref().and_then(Columns::of);
    let columns = header.unwrap_or(Columns {
        time: 0,
        object: 1,
        size: 2,
    });
    let first = first.filter(|_| header.is_none()).map(Ok);
    Ok(first
        .into_iter()
        .chain(lines)
        .enumerate()
        .map(move |(line, fields)| {
            let fields = fields.with_context(|| name.clone())?;
            record(&fields, columns).with_context(|| format!("{name}, record {}", line + 1))
        }))
}

fn record(fields: &csv::ByteRecord, columns: Columns) -> Result<Record> {
    let field = |place: usize, what: &str| {
        fields
            .get(place)
            .map(<[u8]>::trim_ascii)
            .ok_or_else(|| anyhow!("no {what}"))
    };
    let figure = |place, what: &str| -> Result<f64> {
        let text = std::str::from_utf8(field(place, what)?)?;
        let figure = text
            .parse::<f64>()
            .ok()
            .filter(|figure| *figure >= 0.0 && figure.is_finite());
        figure.ok_or_else(|| anyhow!("{what} {text:?}"))
    };
    let object = number(field(columns.object, "object")?);
    let at = figure(columns.time, "time")?;
    let is_exact = field(columns.time, "time")?.contains(&b'.');
    Ok(Record {
        fraction_ns: is_exact.then(|| (at.fract() * 1e9) as u32),
        ..read(at as u64, object, figure(columns.size, "size")? as u64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn encode(time: u32, object: u64, size: u32) -> Vec<u8> {
        [
            &time.to_le_bytes()[..],
            &object.to_le_bytes(),
            &size.to_le_bytes(),
            &(-1i64).to_le_bytes(),
        ]
        .concat()
    }

    #[test]
    fn binary_records_are_packed() {
        let bytes = [encode(5, 0x0102_0304_0506_0708, 116), encode(6, 7, 3)].concat();
        let records: Vec<Record> = binary(Cursor::new(bytes.clone()), "t".to_owned())
            .map(Result::unwrap)
            .collect();
        assert_eq!(
            records,
            [read(5, 0x0102_0304_0506_0708, 116), read(6, 7, 3)]
        );
        assert_eq!((records[0].value_bytes, records[1].value_bytes), (100, 0));
        let cut: Vec<Result<Record>> = binary(Cursor::new(bytes[..40].to_vec()), "t".to_owned())
            .take(2)
            .collect();
        assert!(
            cut[0].is_ok()
                && cut[1]
                    .as_ref()
                    .unwrap_err()
                    .to_string()
                    .contains("within a record")
        );
    }

    #[test]
    fn text_may_name_its_columns() {
        let expected = [read(5, 42, 116), read(6, number(b"abc"), 20)];
        for text in [
            "5,42,116\n6,abc,20\n",
            "size,time,obj_id\n116,5,42\n20,6,abc\n",
            "# time, object, size, next\n5, 42, 116, -1\n6, abc, 20, -1\n",
        ] {
            let records: Vec<Record> = super::text(Cursor::new(text), "t".to_owned())
                .unwrap()
                .map(Result::unwrap)
                .collect();
            assert_eq!(records, expected, "{text}");
        }
        let exact = super::text(Cursor::new("5.25,42,116\n"), "t".to_owned());
        let exact = exact.unwrap().next().unwrap().unwrap();
        assert_eq!((exact.at_s, exact.fraction_ns), (5, Some(250_000_000)));
        let mut wrong = super::text(Cursor::new("5,42,116\n6,abc\n"), "t".to_owned()).unwrap();
        assert_eq!(
            format!("{:#}", wrong.nth(1).unwrap().unwrap_err()),
            "t, record 2: no size"
        );
    }
}
