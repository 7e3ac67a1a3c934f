//! Log lines on stderr: warnings always, more with `-v` and `verbosity`. No request ever writes a
//! log line.
//!
//! A thread writes the lines, so that no other thread waits for stderr. If stderr accepts no lines,
//! a bounded number of them waits; further ones are dropped and counted. Nothing ends because of
//! that, and nothing because stderr is closed or its disk is full.
//!
//! `repeats` keeps the same line from filling the log.
//!
//! The targets of lines for auditors begin with [`AUDIT`]. They are logged if the server was
//! started with `-v`, whatever level clients set later.

mod repeats;

use glimmer_base::limits::{LOG_LINES_MAX, LOG_WINDOW_S};
use repeats::Repeats;
use std::io::{self, Write};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};
use tracing_subscriber::filter::{LevelFilter, dynamic_filter_fn};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::prelude::*;
use tracing_subscriber::{fmt, registry};

/// The log level for this number of `-v`.
fn level(verbosity: u32) -> LevelFilter {
    match verbosity {
        0 => LevelFilter::WARN,
        1 => LevelFilter::INFO,
        _ => LevelFilter::DEBUG,
    }
}

/// The target of lines for auditors begins with this.
pub(crate) const AUDIT: &str = "audit";

/// How lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// An object on each line.
    Json,
}

impl LogFormat {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            LogFormat::Text => "text",
            LogFormat::Json => "json",
        }
    }
}

impl std::fmt::Display for LogFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for LogFormat {
    type Err = String;

    fn from_str(name: &str) -> Result<LogFormat, String> {
        let all = [LogFormat::Text, LogFormat::Json];
        let known = all.into_iter().find(|format| format.name() == name);
        known.ok_or_else(|| "a format is text or json".into())
    }
}

/// A handle of the log, for writers and for changing the log level. Clones refer to the same log.
#[derive(Clone)]
pub struct Log(Arc<Shared>);

struct Shared {
    lines: SyncSender<Vec<u8>>,
    lost: AtomicU64,
    /// Lines sent to the thread, and lines that the thread has finished.
    handed: AtomicU64,
    done: AtomicU64,
    verbosity: AtomicU32,
    format: LogFormat,
    repeats: Repeats,
}

/// Longest wait of [`Log::flush`].
const FLUSH_PATIENCE: Duration = Duration::from_secs(1);
/// Interval between two checks of [`Log::flush`].
const FLUSH_LOOK: Duration = Duration::from_millis(1);

impl Log {
    /// A log that writes to `to` on its own thread.
    fn to(
        mut to: impl Write + Send + 'static,
        verbosity: u32,
        format: LogFormat,
    ) -> io::Result<Log> {
        let (lines, waiting): (_, Receiver<Vec<u8>>) = sync_channel(LOG_LINES_MAX);
        let log = Log(Arc::new(Shared {
            lines,
            lost: AtomicU64::new(0),
            handed: AtomicU64::new(0),
            done: AtomicU64::new(0),
            verbosity: AtomicU32::new(verbosity),
            format,
            repeats: Repeats::default(),
        }));
        // The thread must not keep the log alive: it ends when the last writer is gone.
        let shared = Arc::downgrade(&log.0);
        let window = Duration::from_secs(LOG_WINDOW_S);
        thread::Builder::new().name("log".into()).spawn(move || {
            let mut told = Instant::now();
            // If stderr is closed, there is nowhere to report the error.
            let mut write = |line: &[u8]| to.write_all(line).and_then(|()| to.flush()).is_ok();
            loop {
                let line = match waiting.recv_timeout(window) {
                    Ok(line) => Some(line),
                    Err(RecvTimeoutError::Timeout) => None,
                    Err(RecvTimeoutError::Disconnected) => return,
                };
                let is_written = line.as_ref().is_none_or(|line| write(line));
                let Some(shared) = shared.upgrade() else {
                    continue;
                };
                if line.is_some() {
                    shared.done.fetch_add(1, Ordering::Release);
                    shared
                        .lost
                        .fetch_add((!is_written).into(), Ordering::Relaxed);
                }
                if told.elapsed() >= window {
                    told = Instant::now();
                    shared.repeats.tell(|place, lines| {
                        let message = format!("{lines} more lines of {place} were left out");
                        write(&shared.own_line(&message));
                    });
                }
            }
        })?;
        Ok(log)
    }

    /// Writes a line of the server itself, at every level.
    pub fn announce(&self, message: &str) {
        self.line(match self.0.format {
            LogFormat::Text => format!("{message}\n").into_bytes(),
            LogFormat::Json => self.0.own_line(message),
        });
    }

    /// Sends a whole line, including its line end, to the thread. Never blocks.
    pub fn line(&self, line: Vec<u8>) {
        match self.0.lines.try_send(line) {
            Ok(()) => self.0.handed.fetch_add(1, Ordering::Relaxed),
            Err(_) => self.0.lost.fetch_add(1, Ordering::Relaxed),
        };
    }

    /// Lines that were dropped because stderr accepted none.
    pub fn lost(&self) -> u64 {
        self.0.lost.load(Ordering::Relaxed)
    }

    /// Sets the log level for this number of `-v`.
    pub fn set_verbosity(&self, verbosity: u32) {
        self.0.verbosity.store(verbosity, Ordering::Relaxed);
    }

    /// Waits until all lines so far are written, with a time limit, because stderr may accept none
    /// at all. Workers never call this.
    pub fn flush(&self) {
        let until = Instant::now() + FLUSH_PATIENCE;
        let handed = self.0.handed.load(Ordering::Relaxed);
        while self.0.done.load(Ordering::Acquire) < handed && Instant::now() < until {
            thread::sleep(FLUSH_LOOK);
        }
    }

    /// A guard that flushes the log when it is dropped, however the server ends.
    pub fn flushed_at_end(&self) -> Flushed {
        Flushed(self.clone())
    }
}

impl Shared {
    /// A line that no event of the code is behind.
    fn own_line(&self, message: &str) -> Vec<u8> {
        let mut time = String::new();
        let mut writer = format::Writer::new(&mut time);
        // A time that cannot be formatted is left out.
        let _ = SystemTime.format_time(&mut writer);
        match self.format {
            LogFormat::Text => format!("{time}  INFO {message}\n"),
            LogFormat::Json => {
                let line = serde_json::json!({
                    "timestamp": time,
                    "level": "INFO",
                    "message": message,
                    "target": "glimmer",
                });
                format!("{line}\n")
            }
        }
        .into_bytes()
    }
}

/// Flushes the log when it is dropped.
pub struct Flushed(Log);

impl Drop for Flushed {
    fn drop(&mut self) {
        self.0.flush();
    }
}

/// A line under construction.
pub struct Line<'a> {
    log: &'a Log,
    bytes: Vec<u8>,
}

impl Write for Line<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        self.log.line(std::mem::take(&mut self.bytes));
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Line<'a> {
        Line {
            log: self,
            bytes: Vec::new(),
        }
    }
}

/// Starts logging to stderr. Lines begin with the date and the time of day, in UTC.
pub fn start(verbosity: u32, format: LogFormat) -> io::Result<Log> {
    let log = Log::to(io::stderr(), verbosity, format)?;
    let shared = log.0.clone();
    let began = Instant::now();
    // An atomic level, not a filter under a lock: every writer would have to take that lock.
    let filter = dynamic_filter_fn(move |metadata, _| {
        let verbosity = match metadata.target().starts_with(AUDIT) {
            true => verbosity,
            false => shared.verbosity.load(Ordering::Relaxed),
        };
        *metadata.level() <= level(verbosity)
            && shared.repeats.admits(metadata, began.elapsed().as_secs())
    });
    let filter = filter.with_max_level_hint(LevelFilter::DEBUG);
    let lines = fmt::layer().with_writer(log.clone()).with_ansi(false);
    let lines = match format {
        LogFormat::Text => lines.with_target(false).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    // A program that has set up its own logging keeps it.
    let _ = registry().with(lines.with_filter(filter)).try_init();
    Ok(log)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Sender, channel};

    /// Sends everything written to it into a channel, once it is opened.
    struct Gate {
        may: Receiver<()>,
        written: Sender<Vec<u8>>,
    }

    impl Write for Gate {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.may.recv().map_err(io::Error::other)?;
            self.written
                .send(bytes.to_vec())
                .map_err(io::Error::other)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_are_lost_and_counted_rather_than_waited_for() {
        let (let_write, may) = channel();
        let (written, is_written) = channel();
        let log = Log::to(Gate { may, written }, 0, LogFormat::Text).unwrap();
        // All of these calls return although nothing is written.
        let lines = LOG_LINES_MAX + 100;
        for number in 0..lines {
            log.line(format!("{number}\n").into_bytes());
        }
        let lost = log.lost();
        // The thread may hold one more line.
        assert!((99..=100).contains(&lost), "{lost}");
        for _ in 0..lines {
            let_write.send(()).unwrap();
        }
        for number in 0..lines as u64 - lost {
            assert_eq!(
                is_written.recv().unwrap(),
                format!("{number}\n").into_bytes()
            );
        }
        log.line(b"more\n".to_vec());
        assert_eq!(is_written.recv().unwrap(), b"more\n");
    }

    /// Takes nothing, as a full disk.
    struct Full;

    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_that_cannot_be_written_are_lost_and_counted() {
        let log = Log::to(Full, 0, LogFormat::Text).unwrap();
        (0..3).for_each(|_| log.announce("line"));
        log.flush();
        // The last line is counted right after it is done.
        while log.lost() < 3 {
            thread::yield_now();
        }
        assert_eq!(log.lost(), 3);
    }

    #[test]
    fn a_line_of_the_servers_own_is_an_object_in_json() {
        let log = Log::to(io::sink(), 0, LogFormat::Json).unwrap();
        let line = log.0.own_line("ready on \"x\"");
        let line: serde_json::Value = serde_json::from_slice(&line).unwrap();
        assert_eq!(line["message"], "ready on \"x\"");
        let time = line["timestamp"].as_str().unwrap();
        assert!(time.ends_with('Z') && time.contains('T'), "{time}");
    }
}
