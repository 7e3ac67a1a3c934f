//! What else the machine did during a measurement.

use std::{fmt, fs, io, time::Duration};

use rustix::param::clock_ticks_per_second;
use serde::Serialize;

use crate::{machine, stats::Spread};

/// A machine counts as noisy if repetitions of its own figure spread more widely than this.
pub const SPREAD_MAX: f64 = 0.10;
/// The share of CPU time that the hypervisor may give to others before a measurement is suspect.
pub const STOLEN_MAX: f64 = 0.01;
/// Runnable threads per core, averaged over the minute before the measurement. A higher load means
/// that other work is running.
pub const LOAD_MAX: f64 = 0.5;

/// CPU time of the whole machine since boot, in the kernel's ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cpu {
    total: u64,
    idle: u64,
    stolen: u64,
}

impl Cpu {
    /// Parses the first line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq,
    /// steal. The guest times that follow are part of user.
    fn of(stat: &str) -> Option<Cpu> {
        let ticks = stat.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Vec<u64> = ticks
            .split_whitespace()
            .take(8)
            .map(|field| field.parse().ok())
            .collect::<Option<_>>()?;
        let total = ticks.iter().sum();
        Some(Cpu {
            total,
            idle: *ticks.get(3)? + *ticks.get(4)?,
            stolen: *ticks.get(7)?,
        })
    }

    fn now() -> io::Result<Cpu> {
        let stat = fs::read_to_string("/proc/stat")?;
        Cpu::of(&stat).ok_or_else(|| io::Error::other("an odd /proc/stat"))
    }
}

/// CPU time that all processes and the kernel have used since boot, on all cores. It counts in the
/// kernel's ticks, hundredths of a second.
///
/// # Errors
///
/// If `/proc/stat` cannot be read.
pub fn machine_cpu() -> io::Result<Duration> {
    let now = Cpu::now()?;
    let ticks = now.total - now.idle - now.stolen;
    Ok(Duration::from_nanos(
        ticks * (1_000_000_000 / clock_ticks_per_second()),
    ))
}

/// Runnable threads, averaged over the last minute.
fn load_average() -> io::Result<f64> {
    let text = fs::read_to_string("/proc/loadavg")?;
    let first = text.split_whitespace().next();
    first
        .and_then(|word| word.parse().ok())
        .ok_or_else(|| io::Error::other("an odd /proc/loadavg"))
}

/// A measurement in progress.
#[derive(Debug)]
pub struct Monitor {
    before: Cpu,
    load_per_core: f64,
}

impl Monitor {
    /// Records the state of the machine before the measurement starts.
    ///
    /// # Errors
    ///
    /// If `/proc` cannot be read.
    pub fn begin() -> io::Result<Monitor> {
        Ok(Monitor {
            before: Cpu::now()?,
            load_per_core: load_average()? / machine::cores() as f64,
        })
    }

    /// Reports what disturbed the measurement. `machine_figure` has the repetitions of the
    /// machine's own figure.
    ///
    /// # Errors
    ///
    /// If `/proc` cannot be read.
    pub fn end(&self, machine_figure: &[f64]) -> io::Result<Noise> {
        let now = Cpu::now()?;
        let total = now.total.saturating_sub(self.before.total).max(1);
        let stolen = now.stolen.saturating_sub(self.before.stolen);
        Ok(Noise {
            load_per_core_before: self.load_per_core,
            stolen: stolen as f64 / total as f64,
            spread: (!machine_figure.is_empty()).then(|| Spread::of(machine_figure).width()),
        })
    }
}

/// How quiet the machine was. `Display` prints one line per disturbance, or nothing if there was
/// none.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Noise {
    /// Runnable threads per core in the minute before.
    pub load_per_core_before: f64,
    /// The share of CPU time that the hypervisor gave to others.
    pub stolen: f64,
    /// The width of the spread of the machine's own figure, relative to its median.
    pub spread: Option<f64>,
}

impl fmt::Display for Noise {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(spread) = self.spread.filter(|&spread| spread > SPREAD_MAX) {
            let percent = spread * 100.0;
            writeln!(
                out,
                "NOISY: the machine's random reads spread by {percent:.0}%; trust ratios only."
            )?;
        }
        if self.stolen > STOLEN_MAX {
            let percent = self.stolen * 100.0;
            writeln!(
                out,
                "NOISY: the hypervisor gave {percent:.1}% of the CPU time to others; repeat \
                 the measurement."
            )?;
        }
        if self.load_per_core_before > LOAD_MAX {
            let load = self.load_per_core_before;
            writeln!(
                out,
                "NOISY: {load:.1} threads per core were running before the start; end other \
                 programs, and repeat the measurement."
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_time_is_the_eighth_column() {
        let stat = "cpu  10 20 30 400 50 6 7 80 9 1\ncpu0 1 2 3 4 5 6 7 8 0 0\n";
        let expected = Cpu {
            total: 603,
            idle: 450,
            stolen: 80,
        };
        assert_eq!(Cpu::of(stat), Some(expected));
        assert_eq!(Cpu::of("cpu  1 2 3\n"), None);
        assert_eq!(Cpu::of("intr 1"), None);
    }

    #[test]
    fn a_quiet_machine_is_not_mentioned_and_each_disturbance_is() {
        let quiet = Noise {
            load_per_core_before: 0.1,
            stolen: 0.001,
            spread: Some(0.05),
        };
        assert_eq!(quiet.to_string(), "");
        let loud = Noise {
            load_per_core_before: 2.0,
            stolen: 0.2,
            spread: Some(0.5),
        };
        let text = loud.to_string();
        for words in ["spread by 50%", "20.0% of the CPU", "2.0 threads"] {
            assert!(text.contains(words), "{text}");
        }
    }

    #[test]
    fn the_machine_counts_the_work_of_this_process() {
        let (machine, own) = (machine_cpu().unwrap(), machine::thread_cpu());
        let mut sum = 0u64;
        while machine::thread_cpu() - own < Duration::from_millis(100) {
            (0..10_000u64).for_each(|i| sum = std::hint::black_box(sum + i));
        }
        assert!(machine_cpu().unwrap() > machine);
    }

    #[test]
    fn this_machine_can_be_watched() {
        let noise = Monitor::begin().unwrap().end(&[1.0, 1.0]).unwrap();
        assert!((0.0..=1.0).contains(&noise.stolen), "{noise:?}");
        assert_eq!(noise.spread, Some(0.0));
    }
}
