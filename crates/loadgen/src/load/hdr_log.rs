//! The standard HdrHistogram log: one line per interval, kind of request and size, compressed.
//! `HistogramLogProcessor` and similar tools read it.

use std::{
    fs::File,
    io::{LineWriter, Write},
    path::Path,
    sync::mpsc::{self, Receiver, Sender},
    thread::JoinHandle,
    time::{Duration, SystemTime},
};

use anyhow::{Context, Result};
use hdrhistogram::serialization::{
    V2DeflateSerializer,
    interval_log::{IntervalLogWriterBuilder, Tag},
};

use super::{Group, record::Interval};

/// The log's maxima are in milliseconds, its histograms in nanoseconds.
const NS_PER_MS: f64 = 1e6;

/// A log, written by its own thread.
pub struct Log {
    intervals: Option<Sender<Interval>>,
    writer: Option<JoinHandle<Result<()>>>,
}

impl Log {
    /// Creates a log of a measured time that begins at `start`.
    pub fn create(file: &Path, start: SystemTime) -> Result<Log> {
        let name = format!("writing {}", file.display());
        // A run that is interrupted leaves the seconds before.
        let out = LineWriter::new(File::create(file).with_context(|| name.clone())?);
        let (sender, intervals) = mpsc::channel();
        let writer = std::thread::spawn(move || write(out, start, &intervals).context(name));
        Ok(Log {
            intervals: Some(sender),
            writer: Some(writer),
        })
    }

    /// Appends an interval. Intervals must come in order.
    pub fn add(&self, interval: &Interval) {
        if let Some(intervals) = &self.intervals {
            // If the writer has failed, `finish` reports it.
            let _ = intervals.send(interval.clone());
        }
    }

    /// Ends the log and reports any error.
    pub fn finish(mut self) -> Result<()> {
        self.intervals = None;
        match self.writer.take() {
            Some(writer) => writer
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            None => Ok(()),
        }
    }
}

fn write(mut out: impl Write, start: SystemTime, intervals: &Receiver<Interval>) -> Result<()> {
    let mut serializer = V2DeflateSerializer::new();
    let mut builder = IntervalLogWriterBuilder::new();
    builder.add_comment(
        "[Logged by glimmer bench load: latencies in nanoseconds, tagged read and write, and \
         again tiny (values of 1-13 bytes), small (14-1400) and large]",
    );
    builder
        .with_start_time(start)
        .with_base_time(start)
        .with_max_value_divisor(NS_PER_MS);
    let mut log = builder.begin_log_with(&mut out, &mut serializer)?;
    for interval in intervals {
        let from = Duration::from_nanos(interval.from_ns);
        let length = Duration::from_nanos(interval.to_ns - interval.from_ns);
        let sizes = [Group::Tiny, Group::Small, Group::Large];
        let sizes = sizes.map(|group| (group.name(), interval.sizes.of(&[group])));
        let sizes = sizes.iter().map(|(name, histogram)| (*name, histogram));
        let verbs = [("read", &interval.reads), ("write", &interval.writes)];
        for (tag, histogram) in verbs.into_iter().chain(sizes) {
            if histogram.is_empty() {
                continue;
            }
            let tag = Tag::new(tag).expect("a word without commas");
            log.write_histogram(histogram, from, length, Some(tag))
                .map_err(|error| anyhow::anyhow!("{error:?}"))?;
        }
    }
    out.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::{
        Histogram,
        serialization::{
            Deserializer,
            interval_log::{IntervalLogIterator, LogEntry},
        },
    };

    #[test]
    fn a_log_is_read_back_as_it_was_written() {
        let mut intervals = [Interval::new(0), Interval::new(1)];
        intervals[0].reads.record_n(1_000_000, 99).unwrap();
        intervals[0].reads.record(5_000_000).unwrap();
        intervals[1].writes.record(2_000_000).unwrap();
        intervals[1].sizes.record(1_000_000, 2_000_000);
        intervals[1].to_ns = 1_500_000_000;
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("run.hlog");
        let log = Log::create(&file, SystemTime::now()).unwrap();
        intervals.iter().for_each(|interval| log.add(interval));
        log.finish().unwrap();
        let text = std::fs::read(&file).unwrap();
        let mut found = Vec::new();
        for entry in IntervalLogIterator::new(&text) {
            if let LogEntry::Interval(interval) = entry.unwrap() {
                let bytes = base64(interval.encoded_histogram());
                let histogram: Histogram<u64> =
                    Deserializer::new().deserialize(&mut &bytes[..]).unwrap();
                found.push((
                    interval.tag().unwrap().as_str().to_owned(),
                    interval.start_timestamp().as_secs(),
                    interval.duration().as_millis(),
                    interval.max().round(),
                    histogram.len(),
                ));
            }
        }
        assert_eq!(
            found,
            [
                ("read".to_owned(), 0, 1000, 5.0, 100),
                ("write".to_owned(), 1, 500, 2.0, 1),
                ("large".to_owned(), 1, 500, 2.0, 1)
            ]
        );
    }

    fn base64(text: &str) -> Vec<u8> {
        let digit = |byte: u8| match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            _ => 63,
        };
        let digits: Vec<u8> = text
            .bytes()
            .filter(|&byte| byte != b'=')
            .map(digit)
            .collect();
        let bytes = digits.chunks(4).flat_map(|chunk| {
            let word = chunk
                .iter()
                .fold(0u32, |word, &digit| word << 6 | u32::from(digit))
                << (6 * (4 - chunk.len()));
            word.to_be_bytes()[1..chunk.len()].to_vec()
        });
        bytes.collect()
    }
}
