//! Traces of block storage: recorded ones, and a synthetic one generated from a seed.
//!
//! Two published formats are supported. A block becomes a key, whose number is derived from volume
//! and offset, with a value as long as the access. A read of a missing block is followed by a write
//! of it.

use std::{
    fs::File,
    io::{BufWriter, Read, Write},
    path::Path,
};

use anyhow::{Context, Result, anyhow};
use glimmer_base::Seed;
use rand::{Rng, SeedableRng, rngs::SmallRng};

use super::Record;
use crate::workload::{Popularity, Verb};

/// Length of the keys, which the formats do not specify.
const KEY_BYTES: u8 = 16;

/// The columns of a published format.
#[derive(Clone, Copy)]
pub struct Columns {
    volume: &'static [usize],
    offset: usize,
    length: usize,
    operation: usize,
    time: usize,
    /// Clock ticks per second.
    ticks_per_s: u64,
}

/// Alibaba's block traces (Li et al., IISWC 2020): `device,opcode,offset,length,microseconds`.
pub const ALIBABA: Columns = Columns {
    volume: &[0],
    offset: 2,
    length: 3,
    operation: 1,
    time: 4,
    ticks_per_s: 1_000_000,
};

/// MSR Cambridge's (Narayanan et al., FAST 2008):
/// `time,host,disk,Read or Write,offset,length,response`, with times in units of 100 ns.
pub const MSR: Columns = Columns {
    volume: &[1, 2],
    offset: 4,
    length: 5,
    operation: 3,
    time: 0,
    ticks_per_s: 10_000_000,
};

/// The records of a file in one of these formats. `name` identifies the file in errors.
pub fn records(
    input: impl Read + Send,
    name: String,
    columns: Columns,
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
            record(&fields, columns).with_context(|| format!("{name}, record {}", line + 1))
        })
}

fn record(fields: &csv::ByteRecord, columns: Columns) -> Result<Record> {
    let field = |place: usize, what: &str| {
        let field = fields.get(place).map(<[u8]>::trim_ascii);
        field.ok_or_else(|| anyhow!("no {what}"))
    };
    let figure = |place, what: &str| -> Result<u64> {
        let text = std::str::from_utf8(field(place, what)?)?;
        text.parse().with_context(|| format!("{what} {text:?}"))
    };
    let verb = match field(columns.operation, "operation")? {
        b"R" | b"r" | b"Read" => Verb::Get,
        b"W" | b"w" | b"Write" => Verb::Set,
        other => return Err(anyhow!("operation {:?}", other.escape_ascii().to_string())),
    };
    let mut block = figure(columns.offset, "offset")?.to_le_bytes().to_vec();
    for &place in columns.volume {
        block.extend_from_slice(field(place, "volume")?);
        block.push(0);
    }
    let ticks = figure(columns.time, "time")?;
    let fraction_ns = ticks % columns.ticks_per_s * (1_000_000_000 / columns.ticks_per_s);
    Ok(Record {
        at_s: ticks / columns.ticks_per_s,
        fraction_ns: Some(fraction_ns as u32),
        number: Seed(0).keyhash(&block).0,
        key_bytes: KEY_BYTES,
        value_bytes: u32::try_from(figure(columns.length, "length")?)?,
        verb,
        ttl_s: 0,
    })
}

/// Values are multiples of a sector, up to 64 KiB.
const SECTOR_BYTES: u32 = 512;
const SECTORS_MAX: u32 = 128;
/// Shares of values with one of the usual lengths in bytes. The others have a random number of
/// sectors.
const USUAL_BYTES: [(f64, u32); 5] = [
    (0.35, 4 << 10),
    (0.15, 64 << 10),
    (0.10, 8 << 10),
    (0.10, 16 << 10),
    (0.10, 32 << 10),
];
/// Number of blocks with skewed popularity, and the exponent of the skew.
const POPULAR_BLOCKS: u64 = 30_000;
const POPULAR_EXPONENT: f64 = 0.8;
/// Share of requests that belong to scans.
const SCAN_SHARE: f64 = 0.45;
/// Scans are 10^2 to 10^3.7 blocks long, and this share of scans repeats a recent one.
const SCAN_LENGTH_EXPONENT: std::ops::Range<f64> = 2.0..3.7;
const SCAN_REPEATS: f64 = 0.2;
const SCANS_REMEMBERED: usize = 20;
/// Share of requests that repeat one of the last 100 blocks, more recent ones more often.
const AGAIN_SHARE: f64 = 0.12;
const AGAIN_DISTANCE_EXPONENT: f64 = 2.0;
/// Requests per second of the trace's clock.
const REQUESTS_PER_S: u64 = 1000;

/// A synthetic trace with the character of block storage: values up to 64 KiB in steps of 512
/// bytes, skewed popularity, scans, some of them repeated, and blocks that are soon requested
/// again.
#[derive(Clone, Copy, Debug)]
pub struct BlockStorage {
    /// Number of requests, all of them reads.
    pub requests: u64,
    /// The seed that determines the trace.
    pub seed: u64,
}

impl BlockStorage {
    /// Writes the trace as libCacheSim's CSV.
    pub fn write_to(self, file: &Path) -> Result<()> {
        let open = File::create(file).with_context(|| format!("creating {}", file.display()))?;
        let mut out = BufWriter::new(open);
        let mut write = || -> std::io::Result<()> {
            writeln!(out, "time,object,size")?;
            for (number, block) in self.blocks().enumerate() {
                let bytes = u32::from(KEY_BYTES) + self.value_bytes(block);
                writeln!(out, "{},{block},{bytes}", number as u64 / REQUESTS_PER_S)?;
            }
            out.flush()
        };
        write().with_context(|| format!("writing {}", file.display()))
    }

    /// Length in bytes of a block's value, the same each time.
    fn value_bytes(self, block: u64) -> u32 {
        let mut rng =
            SmallRng::seed_from_u64(self.seed ^ block.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mut left = rng.random::<f64>();
        for (share, bytes) in USUAL_BYTES {
            if left < share {
                return bytes;
            }
            left -= share;
        }
        rng.random_range(1..=SECTORS_MAX) * SECTOR_BYTES
    }

    /// The sequence of requested blocks.
    fn blocks(self) -> impl Iterator<Item = u64> {
        let mut rng = SmallRng::seed_from_u64(self.seed);
        let mut popular = Popularity::zipf(POPULAR_BLOCKS, POPULAR_EXPONENT).sampler();
        let last_blocks = 10f64.powf(AGAIN_DISTANCE_EXPONENT) as usize;
        let mut history: Vec<u64> = Vec::new();
        let mut scans: Vec<(u64, u64)> = Vec::new();
        let (mut scan, mut next_new) = (0..0, POPULAR_BLOCKS);
        (0..self.requests).map(move |_| {
            let kind = rng.random::<f64>();
            let block = if kind < SCAN_SHARE {
                if scan.is_empty() {
                    let recent = scans.len().min(SCANS_REMEMBERED);
                    scan = if recent > 0 && rng.random::<f64>() < SCAN_REPEATS {
                        let (start, end) = scans[scans.len() - 1 - rng.random_range(0..recent)];
                        start..end
                    } else {
                        let blocks = 10f64.powf(rng.random_range(SCAN_LENGTH_EXPONENT)) as u64;
                        scans.push((next_new, next_new + blocks));
                        next_new += blocks;
                        next_new - blocks..next_new
                    };
                }
                scan.next().unwrap_or(0)
            } else if kind < SCAN_SHARE + AGAIN_SHARE && !history.is_empty() {
                let exponent = rng.random_range(0.0..AGAIN_DISTANCE_EXPONENT);
                let distance = (10f64.powf(exponent) as usize).min(history.len());
                history[history.len() - distance]
            } else {
                popular.draw(&mut rng)
            };
            if history.len() == 2 * last_blocks {
                history.drain(..last_blocks);
            }
            history.push(block);
            block
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{HashMap, HashSet};

    fn read(text: &'static str, columns: Columns) -> Vec<Result<Record>> {
        records(text.as_bytes(), "t".to_owned(), columns).collect()
    }

    #[test]
    fn published_block_traces_are_read() {
        let alibaba = "419,W,8792731648,16384,1577808144360767\n\
                       725,R,59110326272,360448,1577808144360813\n\
                       419,R,8792731648,4096,1577808145360767\n";
        let records: Vec<Record> = read(alibaba, ALIBABA)
            .into_iter()
            .map(Result::unwrap)
            .collect();
        assert_eq!(
            (records[0].verb, records[0].value_bytes),
            (Verb::Set, 16_384)
        );
        assert_eq!(
            (records[1].verb, records[1].value_bytes),
            (Verb::Get, 360_448)
        );
        assert_eq!(
            (records[0].at_s, records[2].at_s),
            (1_577_808_144, 1_577_808_145)
        );
        assert_eq!(records[1].fraction_ns, Some(360_813_000));
        assert!(records[0].number == records[2].number && records[0].number != records[1].number);

        let msr = "128166372003061629,hm,0,Read,383496192,32768,413\n\
                   128166372016382155,hm,1,Write,383496192,4096,8\n";
        let records: Vec<Record> = read(msr, MSR).into_iter().map(Result::unwrap).collect();
        assert_eq!(
            (records[0].verb, records[0].value_bytes),
            (Verb::Get, 32_768)
        );
        assert_eq!((records[1].verb, records[1].value_bytes), (Verb::Set, 4096));
        assert_eq!(records[1].at_s - records[0].at_s, 1);
        assert_eq!(records[1].fraction_ns, Some(638_215_500));
        assert_ne!(records[0].number, records[1].number, "another disk");
    }

    #[test]
    fn what_is_no_block_access_is_named() {
        for (text, what) in [
            ("1,R,0,4096,1\n1,X,0,4096,1\n", "operation \"X\""),
            ("1,R,0,4096,1\n1,R\n", "no offset"),
            ("1,R,0,4096,1\n1,R,-1,4096,1\n", "offset \"-1\""),
        ] {
            let error = read(text, ALIBABA).pop().unwrap().unwrap_err();
            let story = format!("{error:#}");
            assert!(
                story.starts_with("t, record 2") && story.contains(what),
                "{story}"
            );
        }
    }

    #[test]
    fn a_generated_trace_is_its_seed_and_has_the_character_of_block_storage() {
        let trace = |seed| BlockStorage {
            requests: 100_000,
            seed,
        };
        let blocks: Vec<u64> = trace(3).blocks().collect();
        assert!(trace(3).blocks().eq(blocks.iter().copied()));
        assert!(!trace(4).blocks().eq(blocks.iter().copied()));
        let sizes: Vec<u32> = blocks
            .iter()
            .map(|&block| trace(3).value_bytes(block))
            .collect();
        assert!(
            sizes
                .iter()
                .all(|bytes| bytes % 512 == 0 && (512..=65_536).contains(bytes))
        );
        let distinct: HashSet<u32> = sizes.iter().copied().collect();
        assert_eq!(distinct.len(), 128);
        let mut counts: HashMap<u64, u32> = HashMap::new();
        blocks
            .iter()
            .for_each(|&block| *counts.entry(block).or_default() += 1);
        // Half of the blocks are requested once, and a few very often.
        let once = counts.values().filter(|&&count| count == 1).count();
        assert!(once * 2 > counts.len() && counts.values().any(|&count| count > 300));
        let next = |pair: &&[u64]| pair[1] == pair[0] + 1;
        assert!(blocks.windows(2).filter(next).count() > 10_000, "scans");
    }

    #[test]
    fn a_generated_trace_is_written_as_it_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("blocks.csv");
        let trace = BlockStorage {
            requests: 2500,
            seed: 1,
        };
        trace.write_to(&file).unwrap();
        let read = super::super::Trace::new(file, None).unwrap();
        assert!(read.set_on_miss);
        let records: Vec<Record> = read.records().unwrap().map(Result::unwrap).collect();
        assert!(
            trace
                .blocks()
                .eq(records.iter().map(|record| record.number))
        );
        let is_sized = |record: &Record| record.value_bytes == trace.value_bytes(record.number);
        assert!(records.iter().all(is_sized));
        assert_eq!((records[0].at_s, records[2499].at_s), (0, 2));
    }
}
