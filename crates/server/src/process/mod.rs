//! What the process asks of the machine around it: descriptors, memory that stays, core files, another user, a file with its number.

pub mod daemon;
pub mod port_file;

use nix::sys::mman::{MlockAllFlags, mlockall};
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit, setrlimit};
use nix::unistd::{User, chown, geteuid, initgroups, setgid, setuid};
use std::ffi::CString;
use std::io;
use std::path::{Path, PathBuf};

/// Why the machine did not give what was asked for.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// Too few descriptors for the connections asked for.
    #[error(
        "{wanted} descriptors are needed for -c {connections_max}, and this user may have {allowed}: raise the limit (ulimit -n) or lower -c"
    )]
    Descriptors {
        /// Descriptors that the server may come to need.
        wanted: u64,
        /// The hard limit.
        allowed: u64,
        /// `-c`.
        connections_max: usize,
    },
    /// No core file would be written.
    #[error("-r: this user may not write core files (ulimit -c)")]
    CoreFiles,
    /// There is no such user.
    #[error("-u {0}: there is no such user")]
    NoSuchUser(String),
    /// The user cannot be become.
    #[error("-u {user}: cannot become this user: {source}")]
    User {
        /// `-u`.
        user: String,
        /// The kernel's reason.
        source: io::Error,
    },
    /// The process id cannot be written.
    #[error("-P {path}: cannot write the process id: {source}")]
    PidFile {
        /// `-P`.
        path: PathBuf,
        /// The kernel's reason.
        source: io::Error,
    },
}

/// Descriptors for everything but client connections: listeners, pollers, bells, logs.
const OWN_DESCRIPTORS: u64 = 64;
/// Descriptors of one worker.
const WORKER_DESCRIPTORS: u64 = 8;

/// Descriptors for everything but client connections.
pub fn descriptors_reserved(workers: usize) -> u64 {
    OWN_DESCRIPTORS + WORKER_DESCRIPTORS * workers as u64
}

/// Raises the limit of open descriptors so that `-c` connections fit.
pub fn raise_descriptor_limit(connections_max: usize, workers: usize) -> Result<(), ProcessError> {
    let wanted = connections_max as u64 + descriptors_reserved(workers);
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap_or((0, 0));
    if soft >= wanted {
        return Ok(());
    }
    // Root may raise the hard limit as well.
    setrlimit(Resource::RLIMIT_NOFILE, wanted, hard.max(wanted)).map_err(|_| {
        ProcessError::Descriptors {
            wanted,
            allowed: hard,
            connections_max,
        }
    })
}

/// Allows core files as large as the machine does (`-r`).
pub fn allow_core_files() -> Result<(), ProcessError> {
    let (_, hard) = getrlimit(Resource::RLIMIT_CORE).unwrap_or((0, 0));
    let unlimited = setrlimit(Resource::RLIMIT_CORE, RLIM_INFINITY, RLIM_INFINITY);
    let raised = unlimited.or_else(|_| setrlimit(Resource::RLIMIT_CORE, hard, hard));
    match (raised, getrlimit(Resource::RLIMIT_CORE)) {
        (Ok(()), Ok((1.., _))) => Ok(()),
        _ => Err(ProcessError::CoreFiles),
    }
}

/// Keeps all memory, present and future, from being paged out (`-k`).
pub fn lock_memory() -> io::Result<()> {
    if is_root() {
        // The limit holds for the user that root becomes: without this, the memory that the process
        // asks for after that, such as the stacks of its threads, would be refused.
        setrlimit(Resource::RLIMIT_MEMLOCK, RLIM_INFINITY, RLIM_INFINITY)?;
    }
    Ok(mlockall(
        MlockAllFlags::MCL_CURRENT | MlockAllFlags::MCL_FUTURE,
    )?)
}

/// Whether the process runs as root.
pub fn is_root() -> bool {
    geteuid().is_root()
}

/// Becomes another user, for good, if the process is root; any other user already is who it is.
///
/// Whoever connects to the Unix socket at `socket` finds it to be that user's, as if the user had made it.
pub fn become_user(name: &str, socket: Option<&Path>) -> Result<(), ProcessError> {
    if !is_root() {
        return Ok(());
    }
    let fail = |source: nix::Error| ProcessError::User {
        user: name.into(),
        source: source.into(),
    };
    let user = User::from_name(name).map_err(fail)?;
    let user = user.ok_or_else(|| ProcessError::NoSuchUser(name.into()))?;
    let c_name = CString::new(name).map_err(|_| ProcessError::NoSuchUser(name.into()))?;
    socket
        .map_or(Ok(()), |path| chown(path, Some(user.uid), Some(user.gid)))
        .and_then(|()| initgroups(&c_name, user.gid))
        .and_then(|()| setgid(user.gid))
        .map_err(fail)?;
    setuid(user.uid).map_err(fail)
}

/// A file with the process id, there as long as this value is.
pub struct PidFile(PathBuf);

impl PidFile {
    /// Writes the file.
    pub fn write(path: &Path) -> Result<PidFile, ProcessError> {
        // Complete when it appears under its name, and found again at the end wherever the process is by then.
        let written = std::path::absolute(path).and_then(|path| {
            let mut unfinished = path.clone().into_os_string();
            unfinished.push(".tmp");
            std::fs::write(&unfinished, format!("{}\n", std::process::id()))?;
            std::fs::rename(&unfinished, &path)?;
            Ok(path)
        });
        written
            .map(PidFile)
            .map_err(|source| ProcessError::PidFile {
                path: path.into(),
                source,
            })
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        // Another user, or somebody else's file by now: then it stays.
        let _ = std::fs::remove_file(&self.0);
    }
}
