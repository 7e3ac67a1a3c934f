//! Shows the progress of a long measurement: a bar on a terminal, lines in a log.

use std::{
    io::{IsTerminal, stderr},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::Duration,
};

use glimmer_measure::progress::Progress;
use indicatif::{ProgressBar, ProgressStyle};

/// Reports progress on stderr, so that stdout contains only the result.
pub struct Watch {
    name: &'static str,
    bar: Option<ProgressBar>,
    expected: AtomicUsize,
    done: AtomicUsize,
}

impl Watch {
    /// For a measurement with this name.
    pub fn new(name: &'static str) -> Watch {
        let bar = stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(0);
            let style =
                ProgressStyle::with_template("{prefix} {wide_bar} {pos}/{len} {elapsed} {msg:40!}");
            bar.set_style(style.expect("a template without mistakes"));
            bar.set_prefix(name);
            bar.enable_steady_tick(Duration::from_millis(250));
            bar
        });
        Watch {
            name,
            bar,
            expected: AtomicUsize::new(0),
            done: AtomicUsize::new(0),
        }
    }
}

impl Progress for Watch {
    fn expect(&self, steps: usize) {
        self.expected.fetch_add(steps, Relaxed);
        if let Some(bar) = &self.bar {
            bar.inc_length(steps as u64);
        }
    }

    fn step(&self, what: &str) {
        let done = self.done.fetch_add(1, Relaxed) + 1;
        match &self.bar {
            Some(bar) => {
                bar.set_message(what.to_owned());
                bar.inc(1);
            }
            None => {
                let (name, expected) = (self.name, self.expected.load(Relaxed));
                eprintln!("{name} {done}/{expected}: {what}");
            }
        }
    }

    fn say(&self, what: &str) {
        match &self.bar {
            Some(bar) => bar.set_message(what.to_owned()),
            None => eprintln!("{}: {what}", self.name),
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
