//! Log lines on stderr: warnings always, more with `-v` and `verbosity`. No request ever writes a
//! log line.
//!
//! A thread writes the lines, so that no other thread waits for stderr. If stderr accepts no lines,
//! a bounded number of them waits; further ones are dropped and counted.

use glimmer_base::limits::LOG_LINES_MAX;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};
use tracing_subscriber::filter::{LevelFilter, dynamic_filter_fn};
use tracing_subscriber::fmt::MakeWriter;
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
}

/// Longest wait of [`Log::flush`].
const FLUSH_PATIENCE: Duration = Duration::from_secs(1);
/// Interval between two checks of [`Log::flush`].
const FLUSH_LOOK: Duration = Duration::from_millis(1);

impl Log {
    /// A log that writes to `to` on its own thread.
    fn to(mut to: impl Write + Send + 'static, verbosity: u32) -> io::Result<Log> {
        let (lines, waiting): (_, Receiver<Vec<u8>>) = sync_channel(LOG_LINES_MAX);
        let log = Log(Arc::new(Shared {
            lines,
            lost: AtomicU64::new(0),
            handed: AtomicU64::new(0),
            done: AtomicU64::new(0),
            verbosity: AtomicU32::new(verbosity),
        }));
        // The thread must not keep the log alive: it ends when the last writer is gone.
        let shared = Arc::downgrade(&log.0);
        thread::Builder::new().name("log".into()).spawn(move || {
            for line in waiting {
                // If stderr is closed, there is nowhere to report the error.
                let _ = to.write_all(&line).and_then(|()| to.flush());
                if let Some(shared) = shared.upgrade() {
                    shared.done.fetch_add(1, Ordering::Release);
                }
            }
        })?;
        Ok(log)
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

/// Starts logging to stderr. Lines begin with the time of day, in UTC.
pub fn start(verbosity: u32) -> io::Result<Log> {
    let log = Log::to(io::stderr(), verbosity)?;
    let shared = log.0.clone();
    // An atomic level, not a filter under a lock: every writer would have to take that lock.
    let filter = dynamic_filter_fn(move |metadata, _| {
        *metadata.level() <= level(shared.verbosity.load(Ordering::Relaxed))
    });
    let filter = filter.with_max_level_hint(LevelFilter::DEBUG);
    let lines = fmt::layer()
        .with_writer(log.clone())
        .with_ansi(false)
        .with_target(false);
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
        let log = Log::to(Gate { may, written }, 0).unwrap();
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
}
