//! An unfinished file that is there when a server starts. The server before may still be writing
//! it, as it gives its addresses up first. Then this one waits, so that it loads what is written.
//! Where the process that wrote the file was ended, the file takes room on the disk for nothing.

use super::{SnapshotError, Snapshots, UNFINISHED};
use crate::log::Log;
use crate::patience::Patience;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// How often it is looked whether the other process has ended.
const LOOK_EVERY: Duration = Duration::from_millis(50);

impl Snapshots {
    /// Waits until no process writes the file, and removes what was left unfinished. Says whether
    /// the server goes on: it may have been told to stop meanwhile.
    ///
    /// # Errors
    ///
    /// The folder cannot be used, or what was left cannot be removed.
    pub fn wait_for_others(&self, log: &Log, stop: &AtomicBool) -> Result<bool, SnapshotError> {
        let (mut patience, mut is_told) = (Patience::default(), false);
        let path = self.path.display();
        loop {
            let removed = self.place()?.remove_unfinished(UNFINISHED);
            if removed.map_err(|source| self.in_the_way(source))? {
                return Ok(true);
            }
            if stop.load(Ordering::Relaxed) {
                log.announce(&format!(
                    "snapshot {path}: stopped while another process was writing it"
                ));
                return Ok(false);
            }
            if !is_told {
                is_told = true;
                log.announce(&format!(
                    "snapshot {path}: another process is writing it; waiting until that has ended"
                ));
            }
            patience.ask();
            thread::sleep(LOOK_EVERY);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{self, LogFormat};
    use std::fs;

    #[test]
    fn a_server_that_starts_waits_for_the_one_that_writes() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("items");
        let unfinished = home.path().join("items.unfinished");
        let log = log::start(0, LogFormat::Text).unwrap();
        let (old, new) = (Snapshots::at(&path).unwrap(), Snapshots::at(&path).unwrap());
        let (go_on, stop) = (AtomicBool::new(false), AtomicBool::new(true));
        let writing = old.begin().unwrap();
        let refused = new.begin();
        assert!(matches!(refused, Err(SnapshotError::InUse(_))));
        assert!(!new.wait_for_others(&log, &stop).unwrap());
        assert!(unfinished.exists() && !path.exists());
        thread::scope(|scope| {
            let waits = scope.spawn(|| {
                let waited = new.wait_for_others(&log, &go_on);
                (waited.unwrap(), path.exists())
            });
            writing.finish().unwrap();
            assert_eq!(waits.join().unwrap(), (true, true));
        });
        // One that a killed process has left is locked by nobody.
        fs::write(&unfinished, "left").unwrap();
        assert!(new.wait_for_others(&log, &go_on).unwrap());
        assert!(!unfinished.exists() && path.exists());
        fs::create_dir(&unfinished).unwrap();
        let refused = new.wait_for_others(&log, &go_on);
        assert!(matches!(refused, Err(SnapshotError::Unfinished { .. })));
        let refused = Snapshots::at(&path);
        assert!(matches!(refused, Err(SnapshotError::Unfinished { .. })));
    }
}
