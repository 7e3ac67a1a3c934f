//! What is wrong with a file of `--snapshot`. Each message is one line that names the file and says
//! what to do.

use super::UNFINISHED;
use glimmer_engine::snapshot::{Foreign, VERSION};
use std::io;
use std::path::PathBuf;

/// Why a snapshot cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The folder is not there, or not to be written to.
    #[error(
        "--snapshot {}: its folder cannot be used: {source}; make the folder, and let the user of \
         the server write to it", path.display()
    )]
    Folder {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// What has the name of the unfinished file cannot be removed.
    #[error(
        "--snapshot {}: what is at {}{UNFINISHED}, where it is written, cannot be removed: \
         {source}; remove it, or choose another file", path.display(), path.display()
    )]
    Unfinished {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The file cannot be read.
    #[error(
        "--snapshot {}: cannot be read: {source}; let the user of the server read it, or choose \
         another file", path.display()
    )]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// It is a symbolic link.
    #[error(
        "--snapshot {}: it is a symbolic link, and a snapshot would take the link's place; name \
         the file itself, or choose another one", .0.display()
    )]
    Link(PathBuf),
    /// It is a folder, a device or the like.
    #[error("--snapshot {}: it is not a regular file; choose another one", .0.display())]
    NotAFile(PathBuf),
    /// Somebody else may have made it.
    #[error(
        "--snapshot {}: it belongs to user {owner}, and not to the user of the server, so its \
         items may be forged; give it to that user (chown), or choose another file", path.display()
    )]
    Owner {
        /// The file.
        path: PathBuf,
        /// Its owner's number.
        owner: u32,
    },
    /// It is no snapshot, or none of this version.
    #[error("--snapshot {}: {}", path.display(), foreign(*reason))]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it is.
        reason: Foreign,
    },
    /// It cannot be written.
    #[error(
        "--snapshot {}: cannot be written: {source}; an older file is as it was; make room on its \
         disk, or choose another file", path.display()
    )]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Another process writes it.
    #[error(
        "--snapshot {}: not written: another process is writing it; an older file is as it was; \
         try again when that has ended, and give each server a file of its own", .0.display()
    )]
    InUse(PathBuf),
    /// Items were moved faster than they were copied.
    #[error(
        "--snapshot {}: not written: items changed faster than the disk takes them; an older file \
         is as it was; try again when the server is less busy", .0.display()
    )]
    Overrun(PathBuf),
    /// The server was told to stop.
    #[error("--snapshot {}: not written, because the server stops", .0.display())]
    Cancelled(PathBuf),
}

fn foreign(reason: Foreign) -> String {
    match reason {
        Foreign::NotOurs => {
            "it is not a snapshot of Glimmer, and stays as it is; move it away, or \
                             choose another file"
                .to_owned()
        }
        Foreign::Version(version) => format!(
            "its format has version {version}, and this server reads version {VERSION}; load it \
             with the version of Glimmer that wrote it, or move it away"
        ),
        Foreign::Head => {
            "its head is damaged; copy it again from where it comes from, or move it away"
                .to_owned()
        }
    }
}
