//! Shows the progress of a measurement: a bar on a terminal, plain lines in a log.

use std::{
    io::{IsTerminal, stderr},
    time::Duration,
};

use glimmer_loadgen::load::Progress;
use glimmer_notation as notation;
use indicatif::{ProgressBar, ProgressStyle};

/// The progress display.
pub struct Watch {
    bar: Option<ProgressBar>,
}

fn bar(length: u64, template: &str) -> Option<ProgressBar> {
    let style = ProgressStyle::with_template(template).expect("a template that is written here");
    stderr()
        .is_terminal()
        .then(|| ProgressBar::new(length).with_style(style))
}

impl Watch {
    /// For keys to be stored.
    pub fn keys(keys: u64) -> Watch {
        let bar = bar(keys, "storing keys [{bar:40}] {pos}/{len} {per_sec} {eta}");
        if bar.is_none() {
            eprintln!("storing {keys} keys");
        }
        Watch { bar }
    }

    /// For a measurement of this many seconds, or of unknown length.
    pub fn seconds(measured: Option<Duration>) -> Watch {
        let seconds = measured.map_or(0, |measured| measured.as_secs_f64().ceil() as u64);
        Watch {
            bar: bar(seconds, "measuring [{bar:40}] {pos}/{len} s {msg}"),
        }
    }

    /// Reports the number of keys sent.
    pub fn at(&self, keys: u64) {
        if let Some(bar) = &self.bar {
            bar.set_position(keys);
        }
    }

    /// Reports progress.
    pub fn tell(&mut self, progress: &Progress<'_>) {
        let (position, line) = match progress {
            Progress::Warming {
                seconds,
                operations_per_s,
            } => (
                None,
                format!(
                    "warming up for {seconds:.1} s: {}",
                    notation::per_second(*operations_per_s)
                ),
            ),
            Progress::Measured { second: None, .. } => return,
            Progress::Measured {
                second: Some(second),
                ..
            } => {
                let rate = notation::per_second(second.operations_per_s());
                let (name, us) = second.latency.slow();
                let line = match second.latency.count {
                    0 => format!("{rate}, no latencies"),
                    _ => format!("{rate}, {name} {}", notation::microseconds(us)),
                };
                (Some(second.at_s + 1), line)
            }
        };
        match (&self.bar, position) {
            (Some(bar), position) => {
                if let Some(position) = position {
                    bar.set_position(position);
                }
                bar.set_message(line);
            }
            (None, Some(second)) => eprintln!("second {second}: {line}"),
            (None, None) => eprintln!("{line}"),
        }
    }

    /// Removes the display.
    pub fn end(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}
