//! Recorded requests: published trace files, read as a stream.

mod altered;
mod block_storage;
mod keys;
mod libcachesim;
mod replay;
mod twitter;

use std::{
    fs::File,
    io::{BufReader, Read},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use serde::Serialize;

pub use altered::{Altered, Footprint};
pub use block_storage::BlockStorage;
pub use replay::Replay;

use super::Verb;
use block_storage::{ALIBABA, MSR};

/// How compressed files begin, and what unpacks them.
const COMPRESSED: [(&[u8], &str); 4] = [
    (b"\x1f\x8b", "gzip -d"),
    (b"\xfd7zXZ", "xz -d"),
    (b"\x28\xb5\x2f\xfd", "zstd -d"),
    (b"BZh", "bzip2 -d"),
];
/// Bytes read from a file at a time.
const BUFFER_BYTES: usize = 1 << 20;

/// One recorded request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Seconds on the trace's clock.
    pub at_s: u64,
    /// Nanoseconds since then; `None` if the clock counts whole seconds.
    pub fraction_ns: Option<u32>,
    /// The key's number: the number in the trace, or a hash of the key's text.
    pub number: u64,
    /// Length of the key in bytes.
    pub key_bytes: u8,
    /// Length of the value in bytes; zero for a read that missed, unless
    /// [`Altered::completes_lengths`] is set.
    pub value_bytes: u32,
    /// The verb. Every command that writes is a set, including increments.
    pub verb: Verb,
    /// Seconds after which the written value expires; zero for never.
    pub ttl_s: u32,
}

/// The format of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Twitter's cache traces (Yang et al., OSDI 2020):
    /// `timestamp,anonymized key,key size,value size,client id,operation,TTL` on each line.
    Twitter,
    /// libCacheSim's binary records of 24 bytes: time (u32), object (u64), size (u32), next access
    /// (i64), little-endian.
    OracleGeneral,
    /// libCacheSim's CSV: time, object, size and perhaps more; a header line may name and order the
    /// columns.
    Csv,
    /// One key on each line.
    Keys,
    /// Alibaba's block traces (Li et al., IISWC 2020): `device,R or W,offset,length,microseconds`
    /// on each line.
    Alibaba,
    /// MSR Cambridge's block traces (Narayanan et al., FAST 2008): `time,host,disk,Read or
    /// Write,offset,length,response` on each line.
    Msr,
}

impl Format {
    /// Guesses the format from the file's name and first line. The number of fields distinguishes
    /// the text formats; those of block storage are recognised by the field that says whether a
    /// block is read or written.
    pub fn guess(file: &Path) -> Result<Format> {
        let name = file
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .to_lowercase();
        if name.contains("oraclegeneral") || name.ends_with(".bin") {
            return Ok(Format::OracleGeneral);
        }
        let mut head = [0; 4096];
        let mut open = open(file)?;
        let mut filled = 0;
        while filled < head.len() {
            match open
                .read(&mut head[filled..])
                .with_context(|| file.display().to_string())?
            {
                0 => break,
                bytes => filled += bytes,
            }
        }
        let line = head[..filled]
            .split(|&byte| byte == b'\n')
            .next()
            .unwrap_or_default();
        let name = file.display();
        for (magic, program) in COMPRESSED {
            anyhow::ensure!(
                !head[..filled].starts_with(magic),
                "{name} is compressed; unpack it first ({program})"
            );
        }
        if keys::is_key(line.trim_ascii()) {
            return Ok(Format::Keys);
        }
        anyhow::ensure!(
            line.is_ascii() && line.contains(&b','),
            "{name}: the first line is neither one key nor has commas; say --trace-format"
        );
        let fields: Vec<&[u8]> = line.split(|&byte| byte == b',').collect();
        let is_access = |place: usize| {
            let field = fields.get(place).map(|field| field.trim_ascii());
            field.is_some_and(|field| matches!(field, b"R" | b"W" | b"Read" | b"Write"))
        };
        Ok(match fields.len() {
            5 if is_access(1) => Format::Alibaba,
            7 if is_access(3) => Format::Msr,
            7.. => Format::Twitter,
            _ => Format::Csv,
        })
    }

    /// Whether it says when the requests were made.
    pub fn has_times(self) -> bool {
        self != Format::Keys
    }

    /// Whether the replay writes keys that a read did not find. Twitter's traces contain the writes
    /// that followed; a disk has every block.
    pub fn sets_on_miss(self) -> bool {
        self != Format::Twitter
    }

    /// Whether reads that missed are recorded without the length of the value.
    pub fn omits_lengths(self) -> bool {
        self == Format::Twitter
    }
}

/// A recorded workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Trace {
    /// The file.
    pub file: PathBuf,
    /// Its format.
    pub format: Format,
    /// Whether keys that were not found are written.
    pub set_on_miss: bool,
    /// How the replay differs from it.
    pub altered: Altered,
}

/// A sequence of records.
pub type Records = Box<dyn Iterator<Item = Result<Record>> + Send>;

fn open(file: &Path) -> Result<File> {
    File::open(file).with_context(|| format!("cannot open the trace {}", file.display()))
}

impl Trace {
    /// A trace in a file. Formats without the writes that follow misses are replayed with such
    /// writes.
    pub fn new(file: PathBuf, format: Option<Format>) -> Result<Trace> {
        let format = match format {
            Some(format) => format,
            None => Format::guess(&file)?,
        };
        Ok(Trace {
            file,
            format,
            set_on_miss: format.sets_on_miss(),
            altered: Altered::default(),
        })
    }

    /// Reads the trace from the beginning.
    pub fn records(&self) -> Result<Records> {
        self.altered.apply(|| self.as_recorded())
    }

    fn as_recorded(&self) -> Result<Records> {
        let input = BufReader::with_capacity(BUFFER_BYTES, open(&self.file)?);
        let name = self.file.display().to_string();
        Ok(match self.format {
            Format::Twitter => Box::new(twitter::records(input, name)),
            Format::OracleGeneral => Box::new(libcachesim::binary(input, name)),
            Format::Csv => Box::new(libcachesim::text(input, name)?),
            Format::Keys => Box::new(keys::records(input, name)),
            Format::Alibaba => Box::new(block_storage::records(input, name, ALIBABA)),
            Format::Msr => Box::new(block_storage::records(input, name, MSR)),
        })
    }

    /// What the requests ask for in all. Reads the trace once.
    pub fn footprint(&self) -> Result<Footprint> {
        Footprint::of(self.records()?)
    }
}

/// The number of a key given as text: digits as they are, anything else hashed.
fn number(key: &[u8]) -> u64 {
    let digits = std::str::from_utf8(key)
        .ok()
        .and_then(|key| key.parse().ok());
    digits.unwrap_or_else(|| glimmer_base::Seed(0).keyhash(key).0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_is_known_by_its_first_line() {
        let directory = tempfile::tempdir().unwrap();
        for (line, format) in [
            ("0,q:q:1,17,213,4,get,0", Format::Twitter),
            ("1,42,4096", Format::Csv),
            ("time,object,size", Format::Csv),
            ("1,42,4096,-1,7", Format::Csv),
            ("419,W,8792731648,16384,1577808144360767", Format::Alibaba),
            (
                "128166372003061629,hm,0,Read,383496192,32768,413",
                Format::Msr,
            ),
            ("16421", Format::Keys),
            ("q:q:1:8WTfjZU14ee\r", Format::Keys),
        ] {
            let file = directory.path().join("trace.csv");
            std::fs::write(&file, format!("{line}\n")).unwrap();
            assert_eq!(Format::guess(&file).unwrap(), format, "{line}");
            let trace = Trace::new(file, None).unwrap();
            assert_eq!(trace.set_on_miss, format != Format::Twitter);
        }
    }

    #[test]
    fn a_file_that_is_no_trace_is_refused_with_advice() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("trace.gz");
        for (bytes, advice) in [
            (&b"\x1f\x8b\x08\0\0"[..], "gzip -d"),
            (b"\x28\xb5\x2f\xfd\0", "zstd -d"),
            (b"1 2 3\n", "--trace-format"),
            (b"", "--trace-format"),
        ] {
            std::fs::write(&file, bytes).unwrap();
            let error = Format::guess(&file).unwrap_err().to_string();
            assert!(error.contains(advice), "{error}");
        }
    }
}
