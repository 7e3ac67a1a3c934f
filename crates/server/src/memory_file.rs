//! The file that the store lies in (`-e`): which settings it depends on, and what the store keeps
//! there that is not in a partition.

use crate::config::{Config, HugepagePolicy};
use crate::memory_plan::MemoryPlan;
use crate::store_clock::STORE_TIME_MS_MAX;
use glimmer_store::memory::{FileError, FileState, Kept, LockedFile, MemoryFile};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Why the file of `-e` cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MemoryFileError {
    /// The file itself is the reason.
    #[error("-e {}: {error}; {advice}", path.display(), advice = advice(error))]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: FileError,
    },
    /// The file system may be full before the store is.
    #[error(
        "-e {}: its file system has {room_mib} MiB for the file, and -m {wanted_mib} may take \
         more; enlarge it, such as by mount -o remount,size=80%, or choose less",
        path.display()
    )]
    Room {
        /// The file.
        path: PathBuf,
        /// What there is, in MiB.
        room_mib: u64,
        /// `-m` in MiB.
        wanted_mib: u64,
    },
    /// Reserved huge pages are a matter of the file system, and of what is done with them.
    #[error(
        "-e {}: reserved huge pages are those of a hugetlbfs; give --hugepages hugetlb if the file \
         is on one, and not otherwise",
        path.display()
    )]
    Pages {
        /// The file.
        path: PathBuf,
    },
}

impl MemoryFileError {
    /// What the file has of the store's tables cannot be.
    pub fn damaged(file: &MemoryFile, what: &'static str) -> MemoryFileError {
        MemoryFileError::File {
            path: file.path().to_owned(),
            error: FileError::Damaged(what),
        }
    }
}

fn advice(error: &FileError) -> &'static str {
    match error {
        FileError::Io(error) if error.kind() == ErrorKind::IsADirectory => "name a file in it",
        FileError::Io(_) => "see that its folder exists, and that this user may write there",
        FileError::InUse => "end that process, or give another file",
        FileError::NoFile | FileError::Owner => "give another name",
        FileError::Settings { .. } => {
            "start with the same settings, or begin with an empty store by --memory-file-discard"
        }
        _ => "give another file, or replace this one by --memory-file-discard",
    }
}

/// Opens the file of a configuration, if it has one. A file that is refused is as it was, and one
/// that did not exist is not left behind.
pub fn open(
    config: &Config,
    plan: &MemoryPlan,
) -> Result<Option<Arc<MemoryFile>>, MemoryFileError> {
    let Some(path) = &config.memory_file else {
        return Ok(None);
    };
    let refused = |error| MemoryFileError::File {
        path: path.clone(),
        error,
    };
    let locked = LockedFile::open(path).map_err(refused)?;
    let is_hugetlb = locked.is_hugetlb().map_err(|error| refused(error.into()))?;
    if is_hugetlb != (config.hugepages == HugepagePolicy::Hugetlb) {
        return Err(MemoryFileError::Pages { path: path.clone() });
    }
    let room = locked.room().map_err(|error| refused(error.into()))?;
    let wanted = config.memory_bytes as u64;
    if room < wanted {
        return Err(MemoryFileError::Room {
            path: path.clone(),
            room_mib: room >> 20,
            wanted_mib: wanted >> 20,
        });
    }
    let settings = settings(config, plan);
    let discard = config.memory_file_discard;
    let file = MemoryFile::within(locked, plan.partitions, &settings, discard).map_err(refused)?;
    if file.state() != FileState::New {
        examine_time(&file).map_err(refused)?;
    }
    Ok(Some(file))
}

/// The time of a store is no sum's to check, since it goes on when the file is closed.
fn examine_time(file: &MemoryFile) -> Result<(), FileError> {
    match file.kept(Kept::NowMs).load(Relaxed) {
        0..STORE_TIME_MS_MAX => Ok(()),
        _ => Err(FileError::Damaged(
            "its time is decades ahead, where long lifetimes do not end",
        )),
    }
}

/// All that decides what lies where. What users set comes first, for it is what they are told of.
fn settings(config: &Config, plan: &MemoryPlan) -> Vec<(&'static str, String)> {
    let first = plan.first_sizes();
    let logs_bytes = plan.partitions * first.log_bytes;
    let has_own = config.lock_memory || config.hugepages == HugepagePolicy::Hugetlb;
    let mut settings = vec![
        ("-m", (config.memory_bytes >> 20).to_string()),
        ("-I", config.item_bytes_max.to_string()),
        ("--item-size-hint", config.item_bytes_hint.to_string()),
        ("--mode", config.mode.to_string()),
        ("--table", config.table.to_string()),
        ("--evict", config.eviction().to_owned()),
        ("partitions (-t, --access)", plan.partitions.to_string()),
        ("equal shares (-k, --hugepages)", has_own.to_string()),
        // Keys are hashed in another way if clients hash them as well.
        (
            "native clients (--native-port)",
            (!config.native.is_empty()).to_string(),
        ),
        (
            "KiB beside items (-t, -o read_buf_mem_limit, ...)",
            ((config.memory_bytes - logs_bytes) >> 10).to_string(),
        ),
        (
            "planned sizes",
            format!(
                "{}+{}+{} of {}",
                first.log_bytes, first.main_buckets, first.spare_buckets, plan.item_bytes_max
            ),
        ),
    ];
    // The file of a store whose keys have groups knows which were invalidated.
    if config.has_groups {
        let delimiter = char::from(config.prefix_delimiter).to_string();
        settings.push(("--prefix-delimiter", delimiter));
    }
    settings
}

/// Numbers from `random`, and in a file the first of them for all processes that use it: those by
/// which keys are hashed.
pub fn numbers<'a>(
    file: Option<&'a MemoryFile>,
    random: &'a mut dyn FnMut() -> u64,
) -> impl FnMut() -> u64 + 'a {
    let mut kept = [Kept::Seed, Kept::SecretFirst, Kept::SecretSecond].into_iter();
    move || match (file, kept.next()) {
        (Some(file), Some(number)) => {
            let kept = file.kept(number);
            if file.state() == FileState::New {
                kept.store(random(), Relaxed);
            }
            kept.load(Relaxed)
        }
        _ => random(),
    }
}

/// A warning about where the file lies, if it is not in memory.
pub fn warning(file: &MemoryFile) -> Option<String> {
    let path: &Path = file.path();
    (!file.is_in_memory()).then(|| {
        format!(
            "-e {}: the file is on a disk, to which the kernel writes what changes; put it on \
             tmpfs, such as /dev/shm",
            path.display()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{AccessMode, Mode, TableKind};
    use crate::memory_plan::Needs;
    use crate::serve::{Hashing, Surroundings, build};
    use glimmer_node::SystemClock;
    use std::os::unix::fs::FileExt;

    #[test]
    fn a_file_belongs_to_servers_that_hash_keys_alike() {
        let without = Config::default();
        let with = Config {
            native: vec!["127.0.0.1:11300".parse().unwrap()],
            ..Config::default()
        };
        let plan = MemoryPlan::make(Needs::of(&without)).unwrap();
        let differ: Vec<_> = settings(&without, &plan)
            .into_iter()
            .zip(settings(&with, &plan))
            .filter(|(one, other)| one != other)
            .collect();
        assert_eq!(differ.len(), 1, "{differ:?}");
        assert!(differ[0].0.0.contains("--native-port"));
    }

    /// Both have six partitions.
    #[test]
    fn what_else_is_decided_by_the_number_of_workers_is_named() {
        let of = |workers| {
            let config = Config {
                workers,
                access: AccessMode::Crcw,
                ..Config::default()
            };
            let plan = MemoryPlan::make(Needs::of(&config)).unwrap();
            (plan.partitions, settings(&config, &plan))
        };
        let ((partitions, two), (same, four)) = (of(2), of(4));
        assert_eq!(partitions, same);
        let differs = two.iter().zip(&four).find(|(one, other)| one != other);
        let (name, _) = differs.expect("the buffers take another part of -m").0;
        assert!(name.contains("(-t, "), "{name}");
    }

    /// The items that were to be given up are still there.
    #[test]
    fn a_start_without_room_leaves_the_file_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("items");
        let mut config = Config {
            memory_file: Some(path.clone()),
            hugepages: HugepagePolicy::Off,
            ..Config::default()
        };
        let lacks_room = |config: &Config| {
            let plan = MemoryPlan::make(Needs::of(config)).unwrap();
            let config = Config {
                memory_bytes: 1 << 60,
                memory_file_discard: true,
                ..config.clone()
            };
            let refused = open(&config, &plan);
            assert!(matches!(refused, Err(MemoryFileError::Room { .. })));
        };
        lacks_room(&config);
        assert!(!path.exists(), "it was made");
        build_in(&path, &config).unwrap().begin();
        let found = |config: &Config| build_in(&path, config).map(|file| file.state());
        let len = path.metadata().unwrap().len();
        lacks_room(&config);
        assert_eq!(path.metadata().unwrap().len(), len);
        assert_eq!(found(&config), Ok(FileState::Open));
        config.hugepages = HugepagePolicy::Hugetlb;
        config.memory_file_discard = true;
        let refused = found(&config).unwrap_err();
        assert!(refused.contains("--hugepages hugetlb"), "{refused}");
        assert_eq!(path.metadata().unwrap().len(), len);
    }

    fn new_file(of: &str) -> Arc<MemoryFile> {
        let name = format!("glimmer-{of}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let file = MemoryFile::open(&path, 1, &[], true).unwrap();
        let _ = std::fs::remove_file(&path);
        file
    }

    #[test]
    fn a_time_that_no_store_comes_to_is_damage() {
        let file = new_file("examine-time");
        for (ms, is_possible) in [
            (0, true),
            (1 << 39, true),
            (1 << 40, false),
            (u64::MAX, false),
        ] {
            file.kept(Kept::NowMs).store(ms, Relaxed);
            assert_eq!(examine_time(&file).is_ok(), is_possible, "{ms}");
        }
    }

    /// Builds a store in a file, or says why it cannot be.
    fn build_in(path: &Path, config: &Config) -> Result<Arc<MemoryFile>, String> {
        let plan = MemoryPlan::make(Needs::of(config)).unwrap();
        let file = open(config, &plan).map_err(|error| error.to_string())?;
        let file = file.expect("the configuration names one");
        assert_eq!(file.path(), path);
        let random = &mut || 5;
        let mut surroundings = Surroundings {
            hashing: Hashing::new(config, random),
            clock: Arc::new(SystemClock::start()),
            random,
            file: Some(file.clone()),
        };
        let built = build(config, &plan, None, &mut surroundings);
        built.map_err(|error| error.to_string())?;
        Ok(file)
    }

    /// The message names the file and what to do, wherever the damage is found.
    #[test]
    fn a_store_that_its_file_does_not_hold_is_the_files_fault() {
        for (table, mode) in [
            (TableKind::Mica, Mode::Cache),
            (TableKind::Mica, Mode::Store),
            (TableKind::Memc3, Mode::Cache),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("items");
            let config = Config {
                memory_file: Some(path.clone()),
                workers: 1,
                table,
                mode,
                hugepages: HugepagePolicy::Off,
                ..Config::default()
            };
            build_in(&path, &config).unwrap().begin();
            let disk = std::fs::File::options().write(true).open(&path).unwrap();
            let len = disk.metadata().unwrap().len();
            let is_told = |refused: Result<Arc<MemoryFile>, String>, what: &str| {
                let text = refused.expect_err("it is damaged");
                let begin = format!("-e {}: it is damaged: {what}", path.display());
                let has_advice = text.ends_with("replace this one by --memory-file-discard");
                assert!(
                    text.starts_with(&begin) && has_advice,
                    "{table}, {mode}: {text}"
                );
            };
            for shorter in [len - 1, len - 4096, len / 2] {
                disk.set_len(shorter).unwrap();
                is_told(build_in(&path, &config), "it is shorter than it was");
            }
            disk.set_len(len).unwrap();
            // Records follow the header.
            disk.write_all_at(&[0x55; 512], 4096).unwrap();
            is_told(build_in(&path, &config), "");
        }
    }
}
