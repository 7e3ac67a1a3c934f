//! The machine on which a figure was measured.

use std::{fmt, fs, process::Command, time::SystemTime};

use glimmer_comparisons::servers;
use glimmer_measure::machine;
use rustix::system::uname;
use serde::{Deserialize, Serialize};

/// The machine, and everything else on which a number depends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's name.
    pub processor: String,
    /// Cores that the process may use.
    pub cores: usize,
    /// The kernel's name, release and architecture.
    pub kernel: String,
    /// Memory of the machine in MiB.
    pub memory_mib: u64,
    /// The setting for transparent huge pages.
    pub huge_pages: String,
    /// Servers and their versions.
    pub versions: Vec<String>,
    /// The commit and how it was built; older records have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<String>,
    /// When the measurement began, in UTC.
    pub date: String,
    /// The command line.
    pub command: String,
}

impl Machine {
    /// The current machine, with the versions of those servers that are installed.
    pub fn here(peers: &[servers::Kind]) -> Machine {
        let name = uname();
        let words = [name.sysname(), name.release(), name.machine()];
        let words = words.map(|word| word.to_string_lossy().into_owned());
        let mut arguments = std::env::args();
        let program = arguments.next().unwrap_or_default();
        let program = program.rsplit('/').next().unwrap_or_default().to_owned();
        let command: Vec<String> = [program].into_iter().chain(arguments).collect();
        Machine {
            processor: processor(),
            cores: machine::cores(),
            kernel: words.join(" "),
            memory_mib: memory_kib("MemTotal:").unwrap_or(0) / 1024,
            huge_pages: huge_pages(),
            versions: versions(peers),
            build: Some(build()),
            date: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            command: command.join(" "),
        }
    }
}

/// As two lines, which stand below a table.
impl fmt::Display for Machine {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Machine {
            processor,
            cores,
            kernel,
            memory_mib,
            huge_pages,
            date,
            command,
            ..
        } = self;
        let build = self.build.as_deref().unwrap_or("unknown");
        writeln!(
            out,
            "Measured at {date} on {processor}, {cores} cores, {memory_mib} MiB, huge pages \
             {huge_pages}, {kernel}; commit {build}:"
        )?;
        write!(out, "{command}")
    }
}

/// Our own version, and the versions of installed servers.
fn versions(peers: &[servers::Kind]) -> Vec<String> {
    let ours = concat!("glimmer ", env!("CARGO_PKG_VERSION")).to_owned();
    let theirs = peers.iter().filter(|peer| **peer != servers::Kind::Glimmer);
    let theirs = theirs.filter_map(|peer| servers::Contender::from(*peer).version().ok());
    [ours].into_iter().chain(theirs).collect()
}

/// The commit of the working directory, whether it has changes, and the options of the build.
fn build() -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    let commit = git(&["rev-parse", "--short=8", "HEAD"]);
    let commit = commit.unwrap_or_else(|| "outside a checkout".to_owned());
    // What is not tracked is no change, and neither is a record of a measurement.
    let is_clean = git(&["status", "--porcelain", "--untracked-files=no"]).is_none_or(|changes| {
        let written = |line: &str| line.contains("docs/figures/") || line.contains("docs/results");
        changes.lines().all(written)
    });
    let changed = if is_clean { "" } else { " with changes" };
    let profile = if cfg!(debug_assertions) {
        "debug"
    } else {
        "release"
    };
    let flags = option_env!("RUSTFLAGS").filter(|flags| !flags.is_empty());
    let flags = flags.map_or(String::new(), |flags| format!(", RUSTFLAGS {flags}"));
    format!("{commit}{changed}, {profile}{flags}")
}

/// Memory in MiB that is available to processes.
pub fn memory_free_mib() -> Option<u64> {
    Some(memory_kib("MemAvailable:")? / 1024)
}

fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("model name"));
    let name = line.and_then(|line| Some(line.split_once(':')?.1.trim().to_owned()));
    // Some architectures do not report it.
    name.unwrap_or_else(|| format!("a processor of {}", std::env::consts::ARCH))
}

fn memory_kib(field: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

fn huge_pages() -> String {
    let text = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    let text = text.unwrap_or_default();
    let chosen = text
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    let transparent = chosen.map_or("unknown".to_owned(), |(word, _)| word.to_owned());
    // If huge pages are reserved, our tables use them.
    let reserved = fs::read_to_string("/proc/sys/vm/nr_hugepages").ok();
    match reserved.and_then(|pages| pages.trim().parse().ok()) {
        None | Some(0u64) => transparent,
        Some(pages) => format!("{transparent}, {pages} reserved"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_described() {
        let machine = Machine::here(&[]);
        assert!(
            !machine.processor.is_empty() && machine.cores > 0,
            "{machine:?}"
        );
        assert!(
            machine.memory_mib > 0 && machine.kernel.starts_with("Linux "),
            "{machine:?}"
        );
        assert!(machine.date.ends_with('Z'), "{machine:?}");
        let build = machine.build.clone().unwrap();
        assert!(
            build.contains("debug") || build.contains("release"),
            "{build}"
        );
        let shown = machine.to_string();
        assert!(
            shown.contains(&machine.processor) && shown.contains(&machine.command),
            "{shown}"
        );
        assert!(memory_free_mib().is_some_and(|free| free <= machine.memory_mib));
    }
}
