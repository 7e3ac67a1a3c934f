//! A file becomes items, before requests are served: so no client's change is older than an item of
//! the file.

use super::status::Loaded;
use super::{SnapshotError, Snapshots, epoch_unix_ms, unix_ms};
use crate::log::Log;
use crate::patience;
use glimmer_base::limits::BATCH_MAX;
use glimmer_base::{Expiry, KeyHasher, Keyhash, Moment};
use glimmer_engine::snapshot::{NextBlock, Record, Records, SnapshotReader};
use glimmer_engine::{Arrival, Arrived, Engine, History, NewItem};
use glimmer_notation::{counted, memory};
use glimmer_store::heap::CAS_MAX;
use rustix::io::Errno;
use rustix::process::geteuid;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// Blocks that wait for a thread that stores their items.
const BLOCKS_AHEAD: usize = 4;
/// How often a line tells how far it is.
const LINE_EVERY: Duration = Duration::from_secs(2);

/// What loading needs of the server.
pub(crate) struct Loading<'a> {
    pub engines: &'a mut [Box<dyn Engine>],
    pub hasher: &'a KeyHasher,
    pub now: Moment,
    pub log: &'a Log,
    /// The server is told to stop.
    pub stop: &'a AtomicBool,
}

/// A block, and which of its items are for one of the threads.
struct Share {
    payload: Arc<Vec<u8>>,
    /// Where each item begins, and its key's hash.
    items: Vec<(usize, Keyhash)>,
}

/// What one thread has done.
#[derive(Clone, Copy, Debug, Default)]
struct Stored {
    stored: u64,
    expired: u64,
    refused: u64,
    present: u64,
    cas: u64,
}

/// What has been read.
#[derive(Clone, Copy, Debug, Default)]
struct Read {
    items: u64,
    bytes: u64,
    damaged: u64,
    /// Items that are not in whole blocks, if that is known.
    lost: Option<u64>,
    /// The highest CAS unique that the server had drawn which has written the file, if that is
    /// known.
    cas: Option<u64>,
}

/// A file that is a snapshot of this format, of which the head has been read.
pub(crate) struct Found {
    reader: SnapshotReader<File>,
    bytes: u64,
}

impl Snapshots {
    /// Opens the file, if there is one, and reads its head.
    ///
    /// # Errors
    ///
    /// The file is none of ours, or cannot be read. It stays as it is.
    pub fn find(&self) -> Result<Option<Found>, SnapshotError> {
        self.find_as(geteuid().as_raw())
    }

    /// The same for a server that this user will be.
    ///
    /// # Errors
    ///
    /// As above.
    pub fn find_as(&self, user: u32) -> Result<Option<Found>, SnapshotError> {
        let fail = |source| self.unreadable(source);
        let file = match self.place()?.open() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
                return Err(SnapshotError::Link(self.path.clone()));
            }
            opened => opened.map_err(fail)?,
        };
        let about = file.metadata().map_err(fail)?;
        if !about.is_file() {
            return Err(SnapshotError::NotAFile(self.path.clone()));
        }
        if ![0, user].contains(&about.uid()) {
            return Err(SnapshotError::Owner {
                path: self.path.clone(),
                owner: about.uid(),
            });
        }
        let reader = SnapshotReader::open(file).map_err(fail)?;
        let reader = reader.map_err(|reason| SnapshotError::Foreign {
            path: self.path.clone(),
            reason,
        })?;
        Ok(Some(Found {
            reader,
            bytes: about.len(),
        }))
    }

    fn unreadable(&self, source: io::Error) -> SnapshotError {
        SnapshotError::Read {
            path: self.path.clone(),
            source,
        }
    }

    /// Loads the file. Says whether the server goes on: it may have been told to stop meanwhile.
    ///
    /// # Errors
    ///
    /// The disk does not give what is in the file. It stays as it is; a server that went on with a
    /// part of the items would replace it by these when it stops.
    pub fn load(&self, found: Found, loading: Loading<'_>) -> Result<bool, SnapshotError> {
        let Found { reader, bytes } = found;
        let began = Instant::now();
        let Loading {
            engines,
            hasher,
            now,
            log,
            stop,
        } = loading;
        let (begun_unix_ms, before) = (reader.head().begun_unix_ms, items_in(engines));
        // If the clock has gone back since then, no time has passed.
        let epoch_unix_ms = epoch_unix_ms(now, unix_ms().max(begun_unix_ms));
        let progress = Progress {
            name: self.path.display().to_string(),
            log,
            total: bytes,
            began,
            shown: began,
        };
        let (read, stored) = spread(
            reader,
            engines,
            (hasher, now, epoch_unix_ms),
            progress,
            stop,
        );
        if stop.load(Ordering::Relaxed) {
            log.announce(&format!(
                "snapshot {}: stopped while it was loaded; the file stays as it is",
                self.path.display()
            ));
            return Ok(false);
        }
        let read = read.map_err(|source| self.unreadable(source))?;
        for engine in &mut *engines {
            // A client may have chosen the highest one of the items.
            engine.draw_cas_above(read.cas.unwrap_or(stored.cas));
        }
        let there = items_in(engines).saturating_sub(before);
        let loaded = Loaded {
            items: there,
            bytes: read.bytes,
            expired: stored.expired,
            dropped: stored.refused + stored.stored.saturating_sub(there),
            present: stored.present,
            damaged: read.damaged,
            ms: began.elapsed().as_millis() as u64,
        };
        self.status.note_loaded(loaded);
        self.tell(log, &loaded, &read, begun_unix_ms);
        Ok(true)
    }

    fn tell(&self, log: &Log, loaded: &Loaded, read: &Read, begun_unix_ms: u64) {
        let path = self.path.display();
        let age_s = unix_ms().saturating_sub(begun_unix_ms) / 1000;
        log.announce(&format!(
            "snapshot {path}: loaded {}, {} in {:.1} s; {} had expired, {} did not fit; \
             written {age_s} s ago",
            counted(loaded.items, "item"),
            memory(loaded.bytes as f64),
            loaded.ms as f64 / 1e3,
            loaded.expired,
            loaded.dropped,
        ));
        match read.lost {
            None => tracing::warn!(
                "--snapshot {path}: the file is not complete: what it has is loaded, and the rest \
                 is lost; {} damaged stretches",
                read.damaged
            ),
            Some(lost) if lost > 0 || read.damaged > 0 => tracing::warn!(
                "--snapshot {path}: {} damaged stretches: {lost} items are lost, and the others \
                 are loaded",
                read.damaged
            ),
            Some(_) => {}
        }
    }
}

fn items_in(engines: &[Box<dyn Engine>]) -> u64 {
    let tables = engines.iter().map(|engine| engine.figures().table());
    tables.map(|table| table.store.items).sum()
}

/// Reads the file, and has a thread for each engine store what is for it.
fn spread<S: io::Read>(
    mut reader: SnapshotReader<S>,
    engines: &mut [Box<dyn Engine>],
    (hasher, now, epoch_unix_ms): (&KeyHasher, Moment, u64),
    mut progress: Progress<'_>,
    stop: &AtomicBool,
) -> (io::Result<Read>, Stored) {
    let layout = engines[0].layout();
    thread::scope(|scope| {
        let (mut threads, mut ways): (Vec<_>, Vec<SyncSender<Share>>) = (Vec::new(), Vec::new());
        for engine in engines {
            let (way, shares) = sync_channel(BLOCKS_AHEAD);
            threads.push(scope.spawn(move || store(&mut **engine, now, epoch_unix_ms, &shares)));
            ways.push(way);
        }
        let (mut read, mut failure) = (Read::default(), None);
        while !stop.load(Ordering::Relaxed) {
            let totals = match reader.next_block() {
                Ok(NextBlock::Items(payload, items)) => {
                    let (payload, items) = (Arc::new(payload.to_vec()), u64::from(items));
                    let (shares, found, is_sound) = share(
                        &payload,
                        ways.len(),
                        |keyhash| {
                            layout
                                .map
                                .owner_of(keyhash.partition(layout.map.partitions()))
                        },
                        hasher,
                    );
                    if !is_sound || found != items {
                        reader.note_nonsense();
                    }
                    (read.items, read.bytes) =
                        (read.items + found, read.bytes + payload.len() as u64);
                    for (way, share) in ways.iter().zip(shares) {
                        // A thread that has ended has panicked, which shows when it is joined.
                        let _ = way.send(share);
                    }
                    progress.show(reader.bytes(), read.items);
                    continue;
                }
                Ok(NextBlock::End(totals)) => totals,
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            };
            read.lost = totals.map(|totals| totals.items.saturating_sub(read.items));
            read.cas = totals.map(|totals| totals.cas);
            break;
        }
        let damage = reader.damage();
        read.damaged = damage.blocks + damage.gaps;
        if read.lost != Some(0) {
            // Blocks that are gone as a whole, or the end, leave no other trace.
            read.damaged = read.damaged.max(1);
        }
        drop(ways);
        let mut sum = Stored::default();
        for thread in threads {
            let one = match thread.join() {
                Ok(one) => one,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            sum.stored += one.stored;
            sum.expired += one.expired;
            sum.refused += one.refused;
            sum.present += one.present;
            sum.cas = sum.cas.max(one.cas);
        }
        (failure.map_or(Ok(read), Err), sum)
    })
}

/// Divides the items of a block by their owners. Returns how many there are, too, and whether the
/// block has nothing else.
fn share(
    payload: &Arc<Vec<u8>>,
    threads: usize,
    owner: impl Fn(Keyhash) -> usize,
    hasher: &KeyHasher,
) -> (Vec<Share>, u64, bool) {
    let share = || Share {
        payload: payload.clone(),
        items: Vec::new(),
    };
    let mut shares: Vec<Share> = (0..threads).map(|_| share()).collect();
    let (mut records, mut count) = (Records::of(payload), 0);
    loop {
        let at = payload.len() - records.bytes_left();
        let Some(record) = records.next() else {
            return (shares, count, records.is_at_end());
        };
        let keyhash = hasher.keyhash(record.key);
        shares[owner(keyhash)].items.push((at, keyhash));
        count += 1;
    }
}

/// Stores what comes.
fn store(
    engine: &mut dyn Engine,
    now: Moment,
    epoch_unix_ms: u64,
    shares: &Receiver<Share>,
) -> Stored {
    let mut done = Stored::default();
    for Share { payload, items } in shares {
        let mut batch = Vec::with_capacity(BATCH_MAX);
        for items in items.chunks(BATCH_MAX) {
            batch.clear();
            for &(at, keyhash) in items {
                let record = Records::of(&payload[at..]).next();
                let Some(item) = record.and_then(|record| revive(&record, now, epoch_unix_ms))
                else {
                    done.expired += 1;
                    continue;
                };
                let cas = item.history.cas.unwrap_or(0);
                if cas <= CAS_MAX {
                    done.cas = done.cas.max(cas);
                }
                batch.push(Arrival { keyhash, item });
            }
            engine.restore(now, &batch, &mut |_, arrived| match arrived {
                Arrived::Stored => done.stored += 1,
                Arrived::Present => done.present += 1,
                Arrived::TooLarge | Arrived::NoRoom | Arrived::Elsewhere => done.refused += 1,
            });
        }
    }
    done
}

/// The item of a record, unless it has expired, for a server with this epoch by the clock of now.
fn revive<'a>(record: &Record<'a>, now: Moment, epoch_unix_ms: u64) -> Option<NewItem<'a>> {
    let expiry = match record.expiry_unix_ms {
        None => Expiry::NEVER,
        Some(unix_ms) => Expiry::at_ms(unix_ms.saturating_sub(epoch_unix_ms)),
    };
    (!expiry.is_due(now)).then_some(NewItem {
        key: record.key,
        value: [record.value, &[]],
        flags: record.flags,
        expiry,
        history: History {
            cas: (record.cas != 0).then_some(record.cas),
            marks: record.marks,
            accessed_s: 0,
        },
    })
}

/// Tells now and then how far it is.
struct Progress<'a> {
    name: String,
    log: &'a Log,
    total: u64,
    began: Instant,
    shown: Instant,
}

impl Progress<'_> {
    fn show(&mut self, bytes: u64, items: u64) {
        if self.shown.elapsed() < LINE_EVERY {
            return;
        }
        self.shown = Instant::now();
        patience::extend();
        let percent = 100 * bytes / self.total.max(1);
        self.log.announce(&format!(
            "snapshot {}: {}, {} of {}, {percent}%, {} s",
            self.name,
            counted(items, "item"),
            memory(bytes as f64),
            memory(self.total as f64),
            self.began.elapsed().as_secs()
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::log::{self, LogFormat};
    use crate::memory_plan::{MemoryPlan, Needs};
    use crate::serve::{Hashing, Surroundings, build};
    use glimmer_engine::snapshot::{FileHead, seal};
    use glimmer_node::SystemClock;
    use glimmer_store::heap::Marks;

    /// A source that ends, or fails, after these bytes.
    struct Source<'a> {
        bytes: &'a [u8],
        fails: bool,
    }

    impl io::Read for Source<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            match self.bytes.is_empty() && self.fails {
                true => Err(Errno::IO.into()),
                false => self.bytes.read(into),
            }
        }
    }

    fn a_file_without_its_end() -> Vec<u8> {
        let head = FileHead {
            begun_unix_ms: 1,
            seed: 7,
        };
        let mut payload = Vec::new();
        let record = Record {
            key: b"key",
            value: b"value",
            flags: 0,
            expiry_unix_ms: None,
            cas: 1,
            marks: Marks::default(),
        };
        record.encode(&mut payload);
        [&head.encode()[..], &seal(7, &payload, 1), &payload].concat()
    }

    /// A server that went on after an error of the disk would replace the file, when it stops, by
    /// the items that it has got.
    #[test]
    fn an_error_of_the_disk_is_no_end_of_the_file() {
        let config = Config {
            workers: 1,
            ..Config::default()
        };
        let plan = MemoryPlan::make(Needs::of(&config)).unwrap();
        let random = &mut || 5;
        let mut surroundings = Surroundings {
            hashing: Hashing::new(&config, random),
            clock: Arc::new(SystemClock::start()),
            random,
            file: None,
        };
        let mut store = build(&config, &plan, None, &mut surroundings).unwrap();
        let log = log::start(0, LogFormat::Text).unwrap();
        let file = a_file_without_its_end();
        for fails in [false, true] {
            let source = Source {
                bytes: &file,
                fails,
            };
            let reader = SnapshotReader::open(source).unwrap().unwrap();
            let progress = Progress {
                name: String::new(),
                log: &log,
                total: file.len() as u64,
                began: Instant::now(),
                shown: Instant::now(),
            };
            let times = (&surroundings.hashing.hasher, Moment::default(), 1);
            let stop = &AtomicBool::new(false);
            let (read, _) = spread(reader, &mut store.engines, times, progress, stop);
            match read {
                Ok(read) => {
                    assert!(!fails && (read.items, read.lost) == (1, None));
                    assert_eq!(read.damaged, 1, "the missing end counts");
                }
                Err(error) => assert!(fails && error.kind() != io::ErrorKind::UnexpectedEof),
            }
        }
    }
}
