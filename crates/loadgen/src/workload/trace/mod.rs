//! Recorded requests: files as they are published, read as a stream.

mod block_storage;
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

pub use block_storage::BlockStorage;
pub use replay::Replay;

use super::Verb;
use block_storage::{ALIBABA, MSR};

/// Bytes read from a file at a time.
const BUFFER_BYTES: usize = 1 << 20;

/// One recorded request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Seconds on the trace's clock.
    pub at_s: u64,
    /// The key's number: what the trace calls it, or a hash of that.
    pub number: u64,
    /// Length of the key in bytes.
    pub key_bytes: u8,
    /// Length of the value in bytes; zero in a read of what was not there.
    pub value_bytes: u32,
    /// What was asked. Every command that writes is a set, increments included.
    pub verb: Verb,
    /// Seconds after which what is written expires; zero if it does not.
    pub ttl_s: u32,
}

/// How a trace is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Twitter's cache traces (Yang et al., OSDI 2020): `timestamp,anonymized key,key size,value
    /// size,client id,operation,TTL` on each line.
    Twitter,
    /// libCacheSim's binary records of 24 bytes: time (u32), object (u64), size (u32), next access
    /// (i64), little-endian.
    OracleGeneral,
    /// libCacheSim's CSV: time, object, size and perhaps more; a header line may name and order the
    /// columns.
    Csv,
    /// Alibaba's block traces (Li et al., IISWC 2020): `device,R or W,offset,length,microseconds`
    /// on each line.
    Alibaba,
    /// MSR Cambridge's block traces (Narayanan et al., FAST 2008): `time,host,disk,Read or
    /// Write,offset,length,response` on each line.
    Msr,
}

impl Format {
    /// What the file's name and its first line say. The text forms are told apart by their number
    /// of fields, and those of block storage by the field that says whether a block is read or
    /// written.
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
        anyhow::ensure!(
            line.is_ascii() && line.contains(&b','),
            "{}: no line with commas; say --trace-format",
            file.display()
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

    /// Whether what a read misses is to be written by the replay. Twitter's traces have the writes
    /// that followed; a disk has every block.
    pub fn sets_on_miss(self) -> bool {
        self != Format::Twitter
    }
}

/// A recorded workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Trace {
    /// Where it is.
    pub file: PathBuf,
    /// How it is written.
    pub format: Format,
    /// Whether a key that was not found is written.
    pub set_on_miss: bool,
}

/// Records one after another.
pub type Records = Box<dyn Iterator<Item = Result<Record>> + Send>;

fn open(file: &Path) -> Result<File> {
    File::open(file).with_context(|| format!("opening {}", file.display()))
}

impl Trace {
    /// A trace in a file. Formats without the writes that follow misses are replayed with them.
    pub fn new(file: PathBuf, format: Option<Format>) -> Result<Trace> {
        let format = match format {
            Some(format) => format,
            None => Format::guess(&file)?,
        };
        Ok(Trace {
            file,
            format,
            set_on_miss: format.sets_on_miss(),
        })
    }

    /// Reads it from the beginning.
    pub fn records(&self) -> Result<Records> {
        let input = BufReader::with_capacity(BUFFER_BYTES, open(&self.file)?);
        let name = self.file.display().to_string();
        Ok(match self.format {
            Format::Twitter => Box::new(twitter::records(input, name)),
            Format::OracleGeneral => Box::new(libcachesim::binary(input, name)),
            Format::Csv => Box::new(libcachesim::text(input, name)?),
            Format::Alibaba => Box::new(block_storage::records(input, name, ALIBABA)),
            Format::Msr => Box::new(block_storage::records(input, name, MSR)),
        })
    }
}

/// The number of a key that is text: digits as they are, anything else hashed.
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
        ] {
            let file = directory.path().join("trace.csv");
            std::fs::write(&file, format!("{line}\n")).unwrap();
            assert_eq!(Format::guess(&file).unwrap(), format, "{line}");
            let trace = Trace::new(file, None).unwrap();
            assert_eq!(trace.set_on_miss, format != Format::Twitter);
        }
    }
}
