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

/// The calls by which a process sends and receives over TCP. Neither calls the other.
const TCP: [&str; 2] = ["tcp_sendmsg", "tcp_recvmsg"];

/// Whether each sample says which functions had called the one it was taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calls {
    /// It does.
    Recorded,
    /// It does not, and costs less.
    Unknown,
}

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
    pub fn start(pid: u32, time: Duration, calls: Calls) -> Result<Sampler> {
        let file = tempfile::NamedTempFile::new()?;
        let mut perf = Command::new("perf");
        perf.args(["record", "-q", "-e", "cpu-clock", "-F", RATE]);
        if calls == Calls::Recorded {
            perf.arg("-g");
        }
        let perf = perf
            .arg("-p")
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
    pub fn copying(self) -> Result<Option<f64>> {
        let report = self.report(&["-F", "overhead,symbol"])?;
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

    /// Waits for the end. Returns the share of the samples within calls that send and receive over
    /// TCP, from 0 to 1; `None` if the process did nothing in that time. The sampler has to know
    /// the calls.
    pub fn in_tcp(self) -> Result<Option<f64>> {
        let report =
            self.report(&["--children", "-g", "none", "-F", "overhead_children,symbol"])?;
        let mut lines = report.lines().filter_map(line).peekable();
        let is_empty = lines.peek().is_none();
        let calls = lines.filter(|(_, name)| TCP.contains(name));
        let percent: f64 = calls.map(|(percent, _)| percent).sum();
        Ok((!is_empty).then(|| percent / 100.0))
    }

    fn report(mut self, arguments: &[&str]) -> Result<String> {
        self.perf.wait()?;
        let report = Command::new("perf")
            .args(["report", "--stdio", "-q"])
            .args(arguments)
            .arg("-i")
            .arg(self.file.path())
            .output()?;
        Ok(String::from_utf8_lossy(&report.stdout).into_owned())
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
        let called = "    64.28%  [k] tcp_sendmsg                ";
        assert_eq!(line(called), Some((64.28, "tcp_sendmsg")));
        assert_eq!(line("# Samples: 12"), None);
        assert_eq!(line(""), None);
    }
}
