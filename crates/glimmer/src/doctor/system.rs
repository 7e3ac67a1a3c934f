//! The kernel's files.

use std::fs;
use std::path::{Path, PathBuf};

/// A machine, as the files below a folder describe it.
pub struct System {
    root: PathBuf,
}

impl System {
    /// The machine that the process runs on.
    pub fn this() -> System {
        System::below("/")
    }

    /// A machine whose files are in a folder.
    pub fn below(root: impl Into<PathBuf>) -> System {
        System { root: root.into() }
    }

    /// Where a file lies that is named from the uppermost folder.
    pub fn path(&self, file: &str) -> PathBuf {
        self.root.join(file)
    }

    /// What a file says, without the line end; none if it cannot be read.
    pub fn text(&self, file: &str) -> Option<String> {
        let text = fs::read_to_string(self.path(file)).ok()?;
        Some(text.trim_end().to_owned())
    }

    /// The number that a file says.
    pub fn number(&self, file: &str) -> Option<u64> {
        self.text(file)?.trim().parse().ok()
    }

    /// The number of a line such as `MemTotal:   5 kB`.
    pub fn line(&self, file: &str, name: &str) -> Option<u64> {
        let text = self.text(file)?;
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse().ok()
    }

    /// What is chosen in a file such as `always [madvise] never`.
    pub fn choice(&self, file: &str) -> Option<String> {
        let text = self.text(file)?;
        let chosen = text.split_once('[')?.1.split_once(']')?.0;
        Some(chosen.to_owned())
    }

    /// The soft and the hard limit in a line of `/proc/self/limits`. `u64::MAX` means unlimited.
    pub fn limits(&self, name: &str) -> Option<(u64, u64)> {
        let text = self.text("proc/self/limits")?;
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        let mut numbers = line.split_whitespace().map(|word| match word {
            "unlimited" => Some(u64::MAX),
            word => word.parse().ok(),
        });
        Some((numbers.next()??, numbers.next()??))
    }

    /// Whether the process may raise the limits that bound it (`CAP_SYS_RESOURCE`). Root may, but
    /// not in every container.
    pub fn may_raise_limits(&self) -> bool {
        const SYS_RESOURCE: u64 = 1 << 24;
        self.capabilities()
            .is_some_and(|set| set & SYS_RESOURCE != 0)
    }

    /// The capabilities that the process has, as bits.
    pub fn capabilities(&self) -> Option<u64> {
        let text = self.text("proc/self/status")?;
        let set = text.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
        u64::from_str_radix(set.trim(), 16).ok()
    }

    /// Whether the process is root's.
    pub fn is_root(&self) -> bool {
        self.line("proc/self/status", "Uid:") == Some(0)
    }

    /// The names in a folder.
    pub fn names(&self, folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(self.root.join(folder)).into_iter().flatten();
        let names = entries.flatten().map(|entry| entry.file_name());
        names.filter_map(|name| name.into_string().ok()).collect()
    }
}
