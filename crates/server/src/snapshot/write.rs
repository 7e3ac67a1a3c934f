//! Copied items become a file. It is written under another name, and takes the place of the older
//! one when all of it is on the disk.

use super::out::{Out, Pace};
use super::status::Last;
use super::{SnapshotError, Snapshots, UNFINISHED, unix_ms};
use crate::process::files::Unfinished;
use glimmer_engine::snapshot::{FileHead, Totals, seal};
use glimmer_node::SnapshotFeed;
use std::io::{self, ErrorKind};
use std::time::Instant;

impl Snapshots {
    /// Makes the file that is written to. Until it is finished, other servers leave it alone. Only
    /// after [`Status::begin`](super::Status::begin).
    ///
    /// # Errors
    ///
    /// It cannot be made, or another process writes it.
    pub(super) fn begin(&self) -> Result<Unfinished, SnapshotError> {
        let begun = self.place().and_then(|place| {
            let begun = place
                .begin(UNFINISHED)
                .map_err(|source| match source.kind() {
                    ErrorKind::IsADirectory => self.in_the_way(source),
                    _ => self.unwritable(source),
                })?;
            begun.ok_or_else(|| SnapshotError::InUse(self.path.clone()))
        });
        begun.inspect_err(|error| self.status.fail(error.to_string()))
    }

    fn unwritable(&self, source: io::Error) -> SnapshotError {
        SnapshotError::Write {
            path: self.path.clone(),
            source,
        }
    }

    /// Writes what comes by the feed to a file that was [begun](Snapshots::begin). Calls `report`
    /// after each block with the items and bytes so far.
    pub(super) fn write(
        &self,
        unfinished: Unfinished,
        feed: &SnapshotFeed,
        pace: Pace,
        mut report: impl FnMut(u64, u64),
    ) -> Result<Last, SnapshotError> {
        let began = Instant::now();
        let written = self.write_file(unfinished, feed, pace, &mut |items, bytes| {
            self.status.progress(items, bytes);
            report(items, bytes);
        });
        // Workers are not to wait for one who takes no more.
        feed.cancel();
        match written {
            Ok((totals, bytes)) => {
                let last = Last {
                    unix_s: totals.ended_unix_ms / 1000,
                    ms: began.elapsed().as_millis() as u64,
                    items: totals.items,
                    bytes,
                };
                self.status.end(last);
                Ok(last)
            }
            Err(error) => {
                self.status.fail(error.to_string());
                Err(error)
            }
        }
    }

    /// Returns the totals, and the bytes of the file.
    fn write_file(
        &self,
        unfinished: Unfinished,
        feed: &SnapshotFeed,
        pace: Pace,
        report: &mut dyn FnMut(u64, u64),
    ) -> Result<(Totals, u64), SnapshotError> {
        let fail = |source| self.unwritable(source);
        let mut out = Out::new(unfinished.file(), pace);
        let head = FileHead {
            begun_unix_ms: unix_ms(),
            seed: getrandom::u64().expect("the kernel has random numbers from its start on"),
        };
        let mut totals = Totals::default();
        out.write(&head.encode()).map_err(fail)?;
        while let Some(portion) = feed.next() {
            let block = seal(head.seed, &portion.bytes, portion.items);
            let written = out.write(&block).and_then(|()| out.write(&portion.bytes));
            written.map_err(fail)?;
            totals.blocks += 1;
            totals.items += u64::from(portion.items);
            totals.bytes += portion.bytes.len() as u64;
            feed.give_back(portion.bytes);
            report(totals.items, out.bytes());
        }
        if feed.is_cancelled() {
            return Err(SnapshotError::Cancelled(self.path.clone()));
        }
        let cas = feed.highest_cas();
        totals.cas = cas.ok_or_else(|| SnapshotError::Overrun(self.path.clone()))?;
        totals.ended_unix_ms = unix_ms();
        out.write(&totals.encode(head.seed)).map_err(fail)?;
        let bytes = out.bytes();
        out.finish().map_err(fail)?;
        unfinished.finish().map_err(fail)?;
        Ok((totals, bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A folder may be moved away while the server runs, and made again.
    #[test]
    fn a_file_is_written_to_the_folder_that_has_the_path_now() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("folder");
        fs::create_dir(&folder).unwrap();
        let snapshots = Snapshots::at(&folder.join("items")).unwrap();
        let write = || {
            assert!(snapshots.status.begin());
            let of_no_worker = SnapshotFeed::new(0, 0, Box::new(|| ()));
            snapshots.write(snapshots.begin()?, &of_no_worker, Pace::Fast, |_, _| ())
        };
        write().unwrap();
        fs::rename(&folder, home.path().join("moved")).unwrap();
        let refused = write();
        assert!(matches!(refused, Err(SnapshotError::Folder { .. })));
        fs::create_dir(&folder).unwrap();
        write().unwrap();
        assert!(folder.join("items").exists());
    }
}
