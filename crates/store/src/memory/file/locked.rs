//! A file of this user that no other process uses.

use super::FileError;
use glimmer_base::sync::AtomicBool;
use glimmer_base::sync::Ordering::Relaxed;
use std::fs::{self, File, Metadata, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// How often the file is opened again because another process has removed it meanwhile.
const TRIES_MAX: u32 = 16;
/// Its owner reads and writes it.
const PRIVATE: u32 = 0o600;

const TMPFS: u64 = 0x0102_1994;
const HUGETLBFS: u64 = 0x9584_58f6;

/// A file that is locked until this is dropped. One that was made here is then removed, unless it
/// is to be kept.
pub struct LockedFile {
    file: File,
    path: PathBuf,
    is_removed: AtomicBool,
}

impl LockedFile {
    /// Opens a file, or makes an empty one. Nothing is changed in a file that exists.
    ///
    /// # Errors
    ///
    /// The file cannot be opened, is not regular, belongs to another user, or is in use.
    pub fn open(path: &Path) -> Result<LockedFile, FileError> {
        for _ in 0..TRIES_MAX {
            let (file, is_made) = open(path)?;
            let opened = LockedFile {
                file,
                path: path.to_owned(),
                is_removed: AtomicBool::new(is_made),
            };
            let found = opened.file.metadata()?;
            if !found.is_file() {
                return Err(FileError::NoFile);
            }
            if found.uid() != rustix::process::geteuid().as_raw() {
                return Err(FileError::Owner);
            }
            match opened.file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    // Another process has locked it, and needs it.
                    opened.keep();
                    break;
                }
                Err(TryLockError::Error(error)) => return Err(error.into()),
            }
            // The process that had locked it before may have removed it.
            if is_same(&found, fs::metadata(path)) {
                return Ok(opened);
            }
        }
        Err(FileError::InUse)
    }

    /// The file stays when this is dropped.
    pub(super) fn keep(&self) {
        self.is_removed.store(false, Relaxed);
    }

    /// Lets only the owner read the file.
    pub(super) fn make_private(&self) -> io::Result<()> {
        match self.file.metadata()?.permissions().mode() & 0o7777 {
            PRIVATE => Ok(()),
            _ => self.file.set_permissions(Permissions::from_mode(PRIVATE)),
        }
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes that the file may have, as things stand: those that it has, and those that its file
    /// system has left. A process that touches more is ended by SIGBUS.
    pub fn room(&self) -> io::Result<u64> {
        let left = rustix::fs::fstatvfs(&self.file)?;
        Ok(512 * self.file.metadata()?.blocks() + left.f_bavail * left.f_frsize)
    }

    /// Whether the file is on a file system of reserved huge pages.
    pub fn is_hugetlb(&self) -> io::Result<bool> {
        Ok(self.file_system()? == HUGETLBFS)
    }

    /// Whether the file's pages are memory alone, and no disk's.
    pub(super) fn is_in_memory(&self) -> bool {
        (self.file_system()).is_ok_and(|kind| kind == TMPFS || kind == HUGETLBFS)
    }

    fn file_system(&self) -> io::Result<u64> {
        Ok(rustix::fs::fstatfs(&self.file)?.f_type as u64)
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        // Somebody may have moved it, or put another one in its place.
        let is_there = || {
            let found = self.file.metadata();
            found.is_ok_and(|found| is_same(&found, fs::symlink_metadata(&self.path)))
        };
        if self.is_removed.load(Relaxed) && is_there() && fs::remove_file(&self.path).is_err() {
            // The process may have become another user since. The pages go at least.
            let _ = self.file.set_len(0);
        }
    }
}

/// Opens a file or makes it. Says whether it was made here.
fn open(path: &Path) -> io::Result<(File, bool)> {
    let mut options = File::options();
    options.read(true).write(true).mode(PRIVATE);
    match options.clone().create_new(true).open(path) {
        // A link to a file that does not exist is followed.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let file = options.create(true).truncate(false).open(path)?;
            Ok((file, false))
        }
        made => Ok((made?, true)),
    }
}

fn is_same(one: &Metadata, other: io::Result<Metadata>) -> bool {
    other.is_ok_and(|other| (one.dev(), one.ino()) == (other.dev(), other.ino()))
}
