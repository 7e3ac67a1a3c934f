//! Recorded requests: files as they are published, read as a stream.

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

pub use replay::Replay;

use super::Verb;

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
    /// Twitter's cache traces (Yang et al., OSDI 2020): `timestamp,anonymized key,key size,value size,client id,operation,TTL` on each line.
    Twitter,
    /// libCacheSim's binary records of 24 bytes: time (u32), object (u64), size (u32), next access (i64), little-endian.
    OracleGeneral,
    /// libCacheSim's CSV: time, object, size and perhaps more; a header line may name and order the columns.
    Csv,
}

impl Format {
    /// What the file's name says: `.csv` may be either text form and is told apart by its number of fields.
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
        let commas = line.iter().filter(|&&byte| byte == b',').count();
        Ok(if commas >= 6 {
            Format::Twitter
        } else {
            Format::Csv
        })
    }

    /// Whether the trace holds reads alone, and misses are to be written by whoever replays it.
    pub fn reads_only(self) -> bool {
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
    /// A trace in a file. Formats that record reads alone are replayed with a write of what was missed.
    pub fn new(file: PathBuf, format: Option<Format>) -> Result<Trace> {
        let format = match format {
            Some(format) => format,
            None => Format::guess(&file)?,
        };
        Ok(Trace {
            file,
            format,
            set_on_miss: format.reads_only(),
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
