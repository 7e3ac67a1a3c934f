//! How much memory the process may take, by its control groups and the machine.

use std::fs;
use std::path::{Path, PathBuf};

/// Memory that the process takes beside `-m`, in bytes: the program, its threads and their stacks.
pub const BESIDE_LIMIT_BYTES: u64 = 32 << 20;

/// The most memory that the process may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// In bytes.
    pub bytes: u64,
    /// The file of the control group that says so; none: all that the machine has.
    pub by: Option<PathBuf>,
}

/// What the process may take; `None` if the system does not tell.
pub fn memory_allowed() -> Option<Allowed> {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let machine = fs::read_to_string("/proc/meminfo").ok();
    let machine = machine.and_then(|text| total_of(&text));
    allowed(&groups, Path::new("/sys/fs/cgroup"), machine)
}

/// The least limit of the control groups of `/proc/self/cgroup`, whose hierarchies are in `root`,
/// and of the machine.
fn allowed(groups: &str, root: &Path, machine: Option<u64>) -> Option<Allowed> {
    let machine = machine.map(|bytes| Allowed { bytes, by: None });
    let limits = groups
        .lines()
        .filter_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = (parts.next()?, parts.next()?);
            // Version 2 has one hierarchy, without a list of controllers.
            if controllers.is_empty() {
                let unified = root.join("unified");
                let root = if unified.is_dir() {
                    unified
                } else {
                    root.into()
                };
                Some((root, "memory.max", path))
            } else {
                let is_memory = controllers.split(',').any(|it| it == "memory");
                is_memory.then(|| (root.join("memory"), "memory.limit_in_bytes", path))
            }
        })
        .flat_map(|(root, file, path)| {
            // The limits of the groups around it hold, too. In a container the uppermost folder
            // may be the group itself.
            let path = PathBuf::from(path.trim_start_matches('/'));
            let folders: Vec<PathBuf> = path.ancestors().map(|it| root.join(it)).collect();
            folders.into_iter().map(move |folder| folder.join(file))
        })
        .filter_map(|file| {
            let text = fs::read_to_string(&file).ok()?;
            // `max`, or a number near the largest one, is no limit.
            let bytes = text.trim().parse().ok()?;
            Some(Allowed {
                bytes,
                by: Some(file),
            })
        });
    // Of equal limits the machine's, which is no limit of a group.
    limits.fold(machine, |least, limit| match least {
        Some(least) if least.bytes <= limit.bytes => Some(least),
        _ => Some(limit),
    })
}

/// The memory of a machine, in `/proc/meminfo`.
fn total_of(text: &str) -> Option<u64> {
    let total = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = total.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hierarchy of control groups with these files.
    fn hierarchy(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    fn found(groups: &str, files: &[(&str, &str)]) -> (u64, Option<String>) {
        let root = hierarchy(files);
        let found = allowed(groups, root.path(), Some(1000)).unwrap();
        let by = found.by.map(|path| {
            let path = path.strip_prefix(root.path()).unwrap();
            path.display().to_string()
        });
        (found.bytes, by)
    }

    #[test]
    fn the_least_limit_counts() {
        let one = |bytes, by: &str| (bytes, Some(by.to_owned()));
        // Version 2: a unit, and the slice around it.
        let files = [
            ("a.slice/memory.max", "400\n"),
            ("a.slice/b.service/memory.max", "max\n"),
        ];
        let groups = "0::/a.slice/b.service\n";
        assert_eq!(found(groups, &files), one(400, "a.slice/memory.max"));
        // In a container, the group is the uppermost folder.
        assert_eq!(
            found("0::/\n", &[("memory.max", "7")]),
            one(7, "memory.max")
        );
        // Version 1, beside an empty version 2.
        let groups = "3:cpu,cpuacct:/x\n2:memory:/docker/1234\n0::/\n";
        let files = [("memory/memory.limit_in_bytes", "500\n")];
        assert_eq!(
            found(groups, &files),
            one(500, "memory/memory.limit_in_bytes")
        );
        // No limit, or one above what the machine has.
        for text in ["max\n", "9223372036854771712\n", "1000"] {
            assert_eq!(found("0::/\n", &[("memory.max", text)]), (1000, None));
        }
        assert_eq!(found("", &[]), (1000, None));
        assert_eq!(found("nonsense\n:\n0:\n", &[]), (1000, None));
    }

    #[test]
    fn the_machine_tells_its_memory() {
        let text = "MemFree: 5 kB\nMemTotal:       24689764 kB\n";
        assert_eq!(total_of(text), Some(24_689_764 << 10));
        assert_eq!(total_of("MemTotal: lots"), None);
        assert!(memory_allowed().is_some_and(|it| it.bytes > 64 << 20));
    }
}
