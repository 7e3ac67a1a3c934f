//! Where a server spends its CPU time, sampled by `perf`.

use std::{
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result};

/// Samples per second. Not a multiple of any timer's rate.
const RATE: &str = "1999";
/// Functions whose work is copying bytes: those of the kernel between user memory and packets, and
/// those of the C library. A name counts that begins with one of these.
const COPIES: [&str; 6] = [
    "rep_movs_alternative",
    "copy_user",
    "copy_page_from_iter",
    "_copy_from_iter",
    "__memcpy",
    "__memmove",
];

/// A sampler of a process that ends by itself.
pub struct Sampler {
    perf: Child,
    file: tempfile::NamedTempFile,
}

/// Whether `perf` may sample here.
pub fn is_here() -> bool {
    let mut trial = Command::new("perf");
    let trial = trial.args(["stat", "-e", "cpu-clock", "true"]);
    let status = trial.stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

impl Sampler {
    /// Samples a process for this long.
    pub fn start(pid: u32, time: Duration) -> Result<Sampler> {
        let file = tempfile::NamedTempFile::new()?;
        let perf = Command::new("perf")
            .args(["record", "-q", "-e", "cpu-clock", "-F", RATE, "-p"])
            .arg(pid.to_string())
            .arg("-o")
            .arg(file.path())
            .args(["--", "sleep", &time.as_secs_f64().to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("perf cannot be run")?;
        Ok(Sampler { perf, file })
    }

    /// Waits for the end. Returns the share of the samples in functions that copy, from 0 to 1;
    /// `None` if the process did nothing in that time.
    pub fn copying(mut self) -> Result<Option<f64>> {
        self.perf.wait()?;
        let report = Command::new("perf")
            .args(["report", "--stdio", "-q", "-F", "overhead,symbol", "-i"])
            .arg(self.file.path())
            .output()?;
        let report = String::from_utf8_lossy(&report.stdout);
        let lines = report.lines().filter_map(line);
        let (mut all, mut copied) = (0.0, 0.0);
        for (percent, name) in lines {
            all += percent;
            if COPIES.iter().any(|copy| name.starts_with(copy)) {
                copied += percent;
            }
        }
        Ok((all > 0.0).then(|| copied / all))
    }
}

/// Reads `  12.34%  [k] name`.
fn line(text: &str) -> Option<(f64, &str)> {
    let (percent, rest) = text.trim().split_once('%')?;
    let (_, name) = rest.trim().split_once("] ")?;
    Some((percent.trim().parse().ok()?, name.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_report_are_read() {
        let kernel = "    61.05%  [k] rep_movs_alternative      ";
        assert_eq!(line(kernel), Some((61.05, "rep_movs_alternative")));
        let user = "     3.10%  [.] __memcpy_avx_unaligned_erms";
        assert_eq!(line(user), Some((3.10, "__memcpy_avx_unaligned_erms")));
        assert_eq!(line("# Samples: 12"), None);
        assert_eq!(line(""), None);
    }
}
