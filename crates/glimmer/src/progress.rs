//! How far a command is, for those who watch it.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

/// How often a line tells it where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Progress on stderr: a line that changes on a terminal, and lines now and then elsewhere.
pub struct Progress {
    is_terminal: bool,
    at: Instant,
    is_open: bool,
}

impl Progress {
    /// Nothing is shown yet.
    pub fn new() -> Progress {
        Progress {
            is_terminal: stderr().is_terminal(),
            at: Instant::now(),
            is_open: false,
        }
    }

    /// Shows a line in place of the one before.
    pub fn show(&mut self, line: &str) {
        if self.is_terminal {
            eprint!("\r{line}\x1b[K");
            let _ = stderr().flush();
            self.is_open = true;
        } else if self.at.elapsed() >= LINE_EVERY {
            self.at = Instant::now();
            eprintln!("{line}");
        }
    }

    /// Leaves the last line as it is.
    pub fn end(&mut self) {
        if self.is_open {
            eprintln!();
            self.is_open = false;
        }
    }
}
