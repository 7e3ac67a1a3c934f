//! `--snapshot`: all items in a file, and back. `docs/snapshot-format.md` describes the file.
//!
//! | file | idea |
//! | --- | --- |
//! | `error` | what is wrong with the file, in one line |
//! | `status` | what `stats` and `/metrics` tell of it |
//! | `earlier` | an unfinished file that is there at the start is waited for, or removed |
//! | `write` | copied items become a file, which takes the place of the older one |
//! | `load` | a file becomes items, before requests are served |
//! | `background` | writing while the server serves |
//! | `last` | writing when it has stopped |

mod background;
mod earlier;
mod error;
mod last;
mod load;
mod out;
mod status;
mod write;

use crate::process::files::Place;
pub(crate) use background::Background;
pub use error::SnapshotError;
use glimmer_base::Moment;
pub(crate) use load::Loading;
pub(crate) use status::SnapshotFigures;
use status::Status;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

/// What an unfinished file's name ends with.
const UNFINISHED: &str = ".unfinished";

/// The file of `--snapshot`.
pub(crate) struct Snapshots {
    path: PathBuf,
    status: Status,
    order: Mutex<Order>,
    ordered: Condvar,
}

/// What the thread that writes is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Nothing,
    Write,
    End,
}

impl Snapshots {
    /// The file at a path, in a folder to which the server may write. Nothing is changed there.
    ///
    /// # Errors
    ///
    /// The folder cannot be used, or the unfinished file cannot be made in it.
    pub fn at(path: &Path) -> Result<Snapshots, SnapshotError> {
        let snapshots = Snapshots {
            path: path.to_owned(),
            status: Status::default(),
            order: Mutex::new(Order::Nothing),
            ordered: Condvar::new(),
        };
        let place = snapshots.place()?;
        let is_usable = place.check_writable();
        is_usable.map_err(|source| snapshots.folder(source))?;
        let is_free = place.check_unfinished(UNFINISHED);
        is_free.map_err(|source| snapshots.in_the_way(source))?;
        Ok(snapshots)
    }

    /// Whether another path is that of the file, or of the one that a snapshot is written to first.
    pub fn writes_to(path: &Path, other: &Path) -> bool {
        let place_of = |path: &Path| {
            let path = std::path::absolute(path).ok()?;
            let folder = path.parent()?.canonicalize().ok()?;
            Some(folder.join(path.file_name()?))
        };
        let mut unfinished = path.as_os_str().to_owned();
        unfinished.push(UNFINISHED);
        let own = [path, Path::new(&unfinished)].map(place_of);
        // The other one may be a link.
        let others = [place_of(other), other.canonicalize().ok()];
        (others.iter().flatten()).any(|other| own.contains(&Some(other.clone())))
    }

    /// Where the file is now: while the server runs, a folder may be moved, or made again.
    fn place(&self) -> Result<Place, SnapshotError> {
        Place::of(&self.path).map_err(|source| self.folder(source))
    }

    fn folder(&self, source: std::io::Error) -> SnapshotError {
        SnapshotError::Folder {
            path: self.path.clone(),
            source,
        }
    }

    fn in_the_way(&self, source: std::io::Error) -> SnapshotError {
        SnapshotError::Unfinished {
            path: self.path.clone(),
            source,
        }
    }

    /// What `stats` and `/metrics` tell of it.
    pub fn figures(&self) -> SnapshotFigures {
        self.status.figures()
    }

    /// Why the last snapshot was not written; empty if it was.
    pub fn last_error(&self) -> String {
        self.status.last_error()
    }
}

/// Milliseconds since 1970 by the clock of the system.
fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

/// Steps of the system's clock below this are not told from the time that it takes to read two
/// clocks.
const CLOCK_STEP_MS: u64 = 100;

/// The time of the server's epoch in milliseconds since 1970, by a clock of the system that shows
/// this time now. Unless that clock was set since the server's start, it is exactly what the
/// server's own clock says, so that expiry times keep their milliseconds.
pub(crate) fn epoch_unix_ms(now: Moment, unix_ms: u64) -> u64 {
    let by_system = unix_ms.saturating_sub(now.ms);
    match by_system.abs_diff(now.epoch_unix_ms) < CLOCK_STEP_MS {
        true => now.epoch_unix_ms,
        false => by_system,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_epoch_is_the_servers_own_unless_the_clock_was_set() {
        let now = Moment {
            ms: 7_000,
            epoch_unix_ms: 1_700_000_000_123,
        };
        let shown = now.epoch_unix_ms + now.ms;
        assert_eq!(epoch_unix_ms(now, shown), now.epoch_unix_ms);
        assert_eq!(epoch_unix_ms(now, shown + 3), now.epoch_unix_ms);
        assert_eq!(epoch_unix_ms(now, shown - 3), now.epoch_unix_ms);
        assert_eq!(epoch_unix_ms(now, shown + 5_000), now.epoch_unix_ms + 5_000);
        assert_eq!(epoch_unix_ms(now, shown - 5_000), now.epoch_unix_ms - 5_000);
    }
}
