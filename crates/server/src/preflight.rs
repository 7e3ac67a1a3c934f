//! The user and the files that a configuration names, looked at as a start looks at them, without a
//! start. Nothing is changed.

use crate::auth::{AuthFile, Format};
use crate::config::Config;
use crate::encryption;
use crate::memory_file::MemoryFileError;
use crate::memory_plan::{MemoryPlan, Needs};
use crate::process;
use crate::process::files::Place;
use crate::serve::ServeError;
use crate::snapshot::Snapshots;
use glimmer_store::memory::FileError;
use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Whether the user of `-u` exists.
///
/// # Errors
///
/// There is no such user, or the system does not tell.
pub fn user(name: &str) -> Result<(), ServeError> {
    process::user_number(name)?;
    Ok(())
}

/// Whether the file of `-Y` has users.
///
/// # Errors
///
/// It cannot be read, or its lines are not `user:password`.
pub fn passwords(path: &Path) -> Result<(), ServeError> {
    AuthFile::load(path, Format::Passwords)?;
    Ok(())
}

/// Whether the file of `--users` has users.
///
/// # Errors
///
/// It cannot be read, or has a mistake.
pub fn users(path: &Path) -> Result<(), ServeError> {
    AuthFile::load(path, Format::Rights)?;
    Ok(())
}

/// Whether the files of TLS can be used, if it is enabled.
///
/// # Errors
///
/// The first of them that cannot.
pub fn certificates(config: &Config) -> Result<(), ServeError> {
    let plan = MemoryPlan::make(Needs::of(config))?;
    encryption::load(&config.tls, plan.encryption_bytes)?;
    Ok(())
}

/// Whether the process may write to the folder of `--snapshot`, and the file that is there, if one
/// is, begins as a snapshot does. The file is that of the user of `-u`, if the process may become
/// that user.
///
/// # Errors
///
/// The folder does not exist or belongs to another user, or the server would refuse the file.
pub fn snapshot(path: &Path, user: Option<&str>) -> Result<(), ServeError> {
    let snapshots = Snapshots::at(path)?;
    // A user who does not exist is told of elsewhere.
    let user = user.filter(|_| process::is_root());
    match user.and_then(|name| process::user_number(name).ok()) {
        Some(user) => snapshots.find_as(user)?,
        None => snapshots.find()?,
    };
    Ok(())
}

/// Whether the process may make or open the file of `-e`, and its file system has room for
/// `memory_bytes`. What is in the file is not looked at: a server may be using it.
///
/// # Errors
///
/// The file or its folder cannot be used, or there is too little room.
pub fn memory_file(path: &Path, memory_bytes: u64) -> Result<(), ServeError> {
    let room = room_of(path).map_err(|error| MemoryFileError::File {
        path: path.to_owned(),
        error,
    })?;
    if room < memory_bytes {
        return Err(ServeError::MemoryFile(MemoryFileError::Room {
            path: path.to_owned(),
            room_mib: room >> 20,
            wanted_mib: memory_bytes >> 20,
        }));
    }
    Ok(())
}

/// Bytes that the file of `-e` has and that its file system has left.
fn room_of(path: &Path) -> Result<u64, FileError> {
    let me = rustix::process::geteuid();
    let taken = match fs::metadata(path) {
        Ok(found) if !found.is_file() => return Err(FileError::NoFile),
        // Root may look for a server that another user starts.
        Ok(found) if !me.is_root() && found.uid() != me.as_raw() => return Err(FileError::Owner),
        Ok(found) => {
            OpenOptions::new().read(true).write(true).open(path)?;
            512 * found.blocks()
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Place::of(path)?.check_writable()?;
            0
        }
        Err(error) => return Err(error.into()),
    };
    let folder = std::path::absolute(path)?;
    let folder = folder.parent().map_or_else(PathBuf::new, Path::to_owned);
    let left = rustix::fs::statvfs(&folder).map_err(std::io::Error::from)?;
    Ok(taken + left.f_bavail * left.f_frsize)
}
