//! Writing a snapshot when the server has stopped: nothing changes any more.

use super::out::Pace;
use super::{SnapshotError, Snapshots, epoch_unix_ms, unix_ms};
use crate::log::Log;
use crate::patience;
use crate::process::files::Unfinished;
use glimmer_base::{KeyHasher, Moment};
use glimmer_engine::Engine;
use glimmer_node::{SnapshotFeed, copy_all};
use glimmer_notation::{counted, memory};
use std::sync::Arc;
use std::thread;

impl Snapshots {
    /// Makes the file for [`write_last`](Snapshots::write_last), before the addresses of the server
    /// are free: one that starts there finds the file, and waits for it.
    ///
    /// # Errors
    ///
    /// It cannot be made, or another process writes it.
    pub fn begin_last(&self) -> Result<Unfinished, SnapshotError> {
        // What was written in the background has been cancelled.
        self.status.begin();
        self.begin()
    }

    /// Writes all items of these engines, one thread for each.
    ///
    /// # Errors
    ///
    /// The file cannot be written. An older one is as it was.
    pub fn write_last(
        &self,
        unfinished: Unfinished,
        engines: Vec<Box<dyn Engine>>,
        hasher: &KeyHasher,
        now: Moment,
        log: &Log,
    ) -> Result<(), SnapshotError> {
        let epoch_unix_ms = epoch_unix_ms(now, unix_ms());
        let feed = SnapshotFeed::new(engines.len(), epoch_unix_ms, Box::new(|| ()));
        let feed = Arc::new(feed);
        let mut patience = patience::Patience::default();
        let last = thread::scope(|scope| {
            for mut engine in engines {
                let feed = feed.clone();
                scope.spawn(move || copy_all(&mut *engine, hasher, now, feed));
            }
            self.write(unfinished, &feed, Pace::Fast, |_, _| patience.ask())
        })?;
        log.announce(&format!(
            "snapshot {}: wrote {}, {} in {:.1} s",
            self.path.display(),
            counted(last.items, "item"),
            memory(last.bytes as f64),
            last.ms as f64 / 1e3
        ));
        Ok(())
    }
}
