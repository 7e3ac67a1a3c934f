//! Copied items on their way from workers to the thread that writes a snapshot. Bounded: a worker
//! that has no room for more goes on when the writer has taken some.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use glimmer_base::limits::{SNAPSHOT_BLOCK_BYTES, SNAPSHOT_BLOCKS_PER_WORKER};
use glimmer_base::sync::{AtomicBool, Ordering};

/// Items as a block of a snapshot has them.
#[derive(Debug, Default)]
pub struct Portion {
    /// The items, one after the other.
    pub bytes: Vec<u8>,
    /// How many there are.
    pub items: u32,
}

/// The way of a snapshot's items. Workers fill portions, and one thread takes them.
pub struct SnapshotFeed {
    /// The server's epoch by the clock of now, in milliseconds since 1970.
    epoch_unix_ms: u64,
    belt: Mutex<Belt>,
    filled: Condvar,
    emptied: Condvar,
    is_cancelled: AtomicBool,
    /// Has workers that wait look again.
    call: Box<dyn Fn() + Send + Sync>,
}

#[derive(Default)]
struct Belt {
    filled: VecDeque<Portion>,
    filled_bytes: usize,
    /// Buffers that may be used again.
    spare: Vec<Vec<u8>>,
    bytes_max: usize,
    /// Workers that have not copied all of theirs.
    copying: usize,
    /// A worker waits for room.
    is_awaited: bool,
    /// The highest CAS unique that a worker has told.
    cas: u64,
    has_failed: bool,
}

impl SnapshotFeed {
    /// A feed from this number of workers, with the epoch of the server's clock. `call` has
    /// workers look whether there is room, if they do not wait.
    pub fn new(
        workers: usize,
        epoch_unix_ms: u64,
        call: Box<dyn Fn() + Send + Sync>,
    ) -> SnapshotFeed {
        SnapshotFeed {
            epoch_unix_ms,
            belt: Mutex::new(Belt {
                bytes_max: workers * SNAPSHOT_BLOCKS_PER_WORKER * SNAPSHOT_BLOCK_BYTES,
                copying: workers,
                ..Belt::default()
            }),
            filled: Condvar::new(),
            emptied: Condvar::new(),
            is_cancelled: AtomicBool::new(false),
            call,
        }
    }

    /// The server's epoch by the clock of now, in milliseconds since 1970.
    pub fn epoch_unix_ms(&self) -> u64 {
        self.epoch_unix_ms
    }

    /// Takes the next portion, and waits for it. None when all workers are done, and when the
    /// snapshot was cancelled.
    pub fn next(&self) -> Option<Portion> {
        let mut belt = self.belt();
        loop {
            if self.is_cancelled() {
                return None;
            }
            if let Some(portion) = belt.filled.pop_front() {
                belt.filled_bytes -= portion.bytes.len();
                let is_awaited = std::mem::take(&mut belt.is_awaited);
                drop(belt);
                if is_awaited {
                    self.emptied.notify_all();
                    (self.call)();
                }
                return Some(portion);
            }
            if belt.copying == 0 {
                return None;
            }
            let waited = self.filled.wait(belt);
            belt = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// A portion has been written: its buffer is used again.
    pub fn give_back(&self, mut buffer: Vec<u8>) {
        // One for a large value would take memory for long.
        if buffer.capacity() <= 2 * SNAPSHOT_BLOCK_BYTES {
            buffer.clear();
            self.belt().spare.push(buffer);
        }
    }

    /// Nobody writes the snapshot any more: workers stop to copy.
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
        let belt = self.belt();
        self.filled.notify_all();
        self.emptied.notify_all();
        drop(belt);
        (self.call)();
    }

    /// Whether nobody writes the snapshot any more.
    pub fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Relaxed)
    }

    /// No CAS unique above this one was drawn when the items were copied. None unless all workers
    /// have copied all that they own.
    pub fn highest_cas(&self) -> Option<u64> {
        let belt = self.belt();
        (belt.copying == 0 && !belt.has_failed).then_some(belt.cas)
    }

    /// Hands over a portion, if there is room, in exchange for an empty buffer. Otherwise the
    /// worker is called when there is.
    pub(super) fn offer(&self, portion: &mut Portion) -> bool {
        let mut belt = self.belt();
        if !belt.has_room(portion) {
            belt.is_awaited = true;
            return false;
        }
        self.exchange(&mut belt, portion);
        true
    }

    /// Hands over a portion in exchange for an empty buffer, and waits for room.
    pub(super) fn hand_over(&self, portion: &mut Portion) {
        let mut belt = self.belt();
        while !belt.has_room(portion) && !self.is_cancelled() {
            belt.is_awaited = true;
            let waited = self.emptied.wait(belt);
            belt = waited.unwrap_or_else(PoisonError::into_inner);
        }
        self.exchange(&mut belt, portion);
    }

    fn exchange(&self, belt: &mut Belt, portion: &mut Portion) {
        let empty = Portion {
            bytes: belt.spare.pop().unwrap_or_default(),
            items: 0,
        };
        let portion = std::mem::replace(portion, empty);
        belt.filled_bytes += portion.bytes.len();
        belt.filled.push_back(portion);
        self.filled.notify_one();
    }

    /// A worker has copied all that it owns, and has handed it over; `cas` is the highest unique
    /// that it knows. None if it could not copy all.
    pub(super) fn finish(&self, cas: Option<u64>) {
        let mut belt = self.belt();
        belt.copying -= 1;
        belt.cas = belt.cas.max(cas.unwrap_or(0));
        belt.has_failed |= cas.is_none();
        self.filled.notify_one();
    }

    fn belt(&self) -> MutexGuard<'_, Belt> {
        locked(&self.belt)
    }
}

impl Belt {
    fn has_room(&self, portion: &Portion) -> bool {
        self.filled.is_empty() || self.filled_bytes + portion.bytes.len() <= self.bytes_max
    }
}

/// The snapshot that is being written, for all workers.
#[derive(Default)]
pub(crate) struct SnapshotSlot {
    latest: Mutex<(u64, Option<Arc<SnapshotFeed>>)>,
}

impl SnapshotSlot {
    /// A snapshot begins.
    pub fn begin(&self, feed: Arc<SnapshotFeed>) {
        let mut latest = locked(&self.latest);
        *latest = (latest.0 + 1, Some(feed));
    }

    /// The latest snapshot, and its number. None if it is over.
    pub(super) fn latest(&self) -> (u64, Option<Arc<SnapshotFeed>>) {
        let latest = locked(&self.latest);
        latest.clone()
    }

    /// The latest snapshot is over.
    pub fn end(&self) {
        locked(&self.latest).1 = None;
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
