//! Limits and privileges of the process: descriptors, locked memory, core files, another user, and
//! the file with the process id.

pub mod daemon;
pub(crate) mod files;
pub mod inherited;
pub mod port_file;

use files::Place;
use nix::sys::mman::{MlockAllFlags, mlockall};
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit, setrlimit};
use nix::unistd::{User, geteuid, initgroups, setgid, setuid};
use std::ffi::CString;
use std::io;
use std::path::Path;

/// Why the system refused a request.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// The descriptor limit is too low for the requested number of connections.
    #[error(
        "-c {connections_max} needs {wanted} file descriptors, and the limit is {allowed}: raise \
         it (ulimit -n) or lower -c"
    )]
    Descriptors {
        /// Descriptors that the server may need.
        wanted: u64,
        /// The hard limit.
        allowed: u64,
        /// `-c`.
        connections_max: usize,
    },
    /// Core files are disabled.
    #[error("-r: this user is not allowed to write core files (ulimit -c)")]
    CoreFiles,
    /// The user does not exist.
    #[error("-u {0}: no such user; create it, or name another one")]
    NoSuchUser(String),
    /// Switching to the user failed.
    #[error("-u {user}: cannot become this user: {source}")]
    User {
        /// `-u`.
        user: String,
        /// The system's error.
        source: io::Error,
    },
}

/// Descriptors other than client connections: listeners, pollers, doorbells, logs.
const OWN_DESCRIPTORS: u64 = 64;
/// Descriptors of one worker.
const WORKER_DESCRIPTORS: u64 = 8;
/// Bytes of a file with a process id, at most.
const PID_FILE_BYTES_MAX: u64 = 32;

/// Descriptors other than client connections.
pub fn descriptors_reserved(workers: usize) -> u64 {
    OWN_DESCRIPTORS + WORKER_DESCRIPTORS * workers as u64
}

/// Descriptors for `-c` connections and the server's own.
pub fn descriptors_wanted(connections_max: usize, workers: usize) -> u64 {
    (connections_max as u64).saturating_add(descriptors_reserved(workers))
}

/// Raises the limit of open descriptors for `-c` connections and the server's own. Returns the
/// number of connections that fit: fewer than `-c` if the hard limit is too low for both.
///
/// # Errors
///
/// The limit is too low for the connections alone, which memcached refuses too, or leaves none.
pub fn raise_descriptor_limit(
    connections_max: usize,
    workers: usize,
) -> Result<usize, ProcessError> {
    let wanted = descriptors_wanted(connections_max, workers);
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap_or((0, 0));
    // Root may raise the hard limit as well.
    if soft >= wanted || setrlimit(Resource::RLIMIT_NOFILE, wanted, hard.max(wanted)).is_ok() {
        return Ok(connections_max);
    }
    let fitting = connections_within(hard, connections_max, workers);
    let raised = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    fitting
        .filter(|_| raised.is_ok())
        .ok_or(ProcessError::Descriptors {
            wanted,
            allowed: hard,
            connections_max,
        })
}

/// The connections beside the server's own descriptors, if `allowed` is enough for `-c` without
/// these.
fn connections_within(allowed: u64, connections_max: usize, workers: usize) -> Option<usize> {
    let left = allowed.checked_sub(descriptors_reserved(workers))?;
    let has_room = left > 0 && allowed >= connections_max as u64;
    has_room.then(|| connections_max.min(left as usize))
}

/// Allows core files as large as the hard limit permits (`-r`).
pub fn allow_core_files() -> Result<(), ProcessError> {
    let (_, hard) = getrlimit(Resource::RLIMIT_CORE).unwrap_or((0, 0));
    let unlimited = setrlimit(Resource::RLIMIT_CORE, RLIM_INFINITY, RLIM_INFINITY);
    let raised = unlimited.or_else(|_| setrlimit(Resource::RLIMIT_CORE, hard, hard));
    match (raised, getrlimit(Resource::RLIMIT_CORE)) {
        (Ok(()), Ok((1.., _))) => Ok(()),
        _ => Err(ProcessError::CoreFiles),
    }
}

/// Locks all present and future memory (`-k`).
pub fn lock_memory() -> io::Result<()> {
    if is_root() {
        // The limit also applies to the user that root switches to. Without this, memory requested
        // later, such as thread stacks, would be refused.
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

/// Whether the process belongs to the user with this name.
pub fn is_user(name: &str) -> bool {
    find_user(name).is_ok_and(|user| user.uid == geteuid())
}

/// The number of the user of this name.
pub fn user_number(name: &str) -> Result<u32, ProcessError> {
    find_user(name).map(|user| user.uid.as_raw())
}

fn find_user(name: &str) -> Result<User, ProcessError> {
    let found = User::from_name(name).map_err(|error| ProcessError::User {
        user: name.into(),
        source: error.into(),
    })?;
    found.ok_or_else(|| ProcessError::NoSuchUser(name.into()))
}

/// Switches to another user for good, if the process runs as root; otherwise does nothing.
///
/// The Unix socket at `socket` changes its owner as well, as if that user had created it.
pub fn become_user(name: &str, socket: Option<&Path>) -> Result<(), ProcessError> {
    if !is_root() {
        return Ok(());
    }
    let fail = |source: io::Error| ProcessError::User {
        user: name.into(),
        source,
    };
    let user = find_user(name)?;
    let c_name = CString::new(name).map_err(|_| ProcessError::NoSuchUser(name.into()))?;
    if let Some(path) = socket {
        let owned = Place::of(path).and_then(|place| place.own_socket(user.uid, user.gid));
        owned.map_err(fail)?;
    }
    initgroups(&c_name, user.gid)
        .and_then(|()| setgid(user.gid))
        .and_then(|()| setuid(user.uid))
        .map_err(|error| fail(error.into()))
}

/// A file with the process id. It is removed when this value is dropped.
pub struct PidFile(Place);

impl PidFile {
    /// Writes the file. Pushes a notice if another process that runs has written it before, and if
    /// it cannot be written: as in memcached, neither prevents the start.
    pub fn write(path: &Path, notices: &mut Vec<String>) -> Option<PidFile> {
        let shown = path.display();
        let written = Place::of(path).and_then(|place| {
            if let Some(other) = running(&place) {
                notices.push(format!("-P {shown}: process {other}, which it names, runs"));
            }
            place.replace(".tmp", format!("{}\n", std::process::id()).as_bytes())?;
            Ok(place)
        });
        written
            .map(PidFile)
            .map_err(|error| notices.push(format!("-P {shown}: cannot be written: {error}")))
            .ok()
    }
}

/// The other process that a file names, if it runs.
fn running(pid_file: &Place) -> Option<u32> {
    let pid = pid_file.read_start(PID_FILE_BYTES_MAX).ok()?;
    let pid = std::str::from_utf8(&pid).ok()?.trim().parse().ok()?;
    let runs = Path::new("/proc").join(format!("{pid}")).exists();
    (runs && pid != std::process::id()).then_some(pid)
}

impl Drop for PidFile {
    fn drop(&mut self) {
        // If the process no longer has the right to remove the file, it stays.
        let _ = self.0.remove();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_one_user() {
        assert_eq!(is_user("root"), is_root());
        assert!(!is_user("no-such-user"));
    }

    #[test]
    fn as_many_connections_as_a_number_can_say_are_more_than_there_are_descriptors() {
        assert_eq!(descriptors_wanted(usize::MAX, 2), u64::MAX);
        assert_eq!(connections_within(1024, usize::MAX, 2), None);
    }

    #[test]
    fn connections_give_way_to_the_servers_own_descriptors() {
        for (allowed, connections_max, fitting) in [
            (1104, 1024, Some(1024)),
            (1103, 1024, Some(1023)),
            (1024, 1024, Some(944)),
            (1023, 1024, None),
            (81, 81, Some(1)),
            (80, 80, None),
            (10, 10, None),
        ] {
            let found = connections_within(allowed, connections_max, 2);
            assert_eq!(
                found, fitting,
                "{allowed} descriptors for -c {connections_max}"
            );
        }
    }
}
