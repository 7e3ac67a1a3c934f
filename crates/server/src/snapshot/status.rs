//! What is told of snapshots. Anybody may read it at any time, and takes no lock for it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// What is told of snapshots, at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SnapshotFigures {
    /// One is being written.
    pub is_writing: bool,
    /// Items and bytes of the one that is being written.
    pub writing: (u64, u64),
    /// Snapshots that were written, and that were not because of an error.
    pub written: u64,
    pub failed: u64,
    /// Of the last one that was written: when that ended, in seconds since 1970, how long it took
    /// in milliseconds, its items and its bytes. All zero if there was none.
    pub last: Last,
    /// What was loaded at the start.
    pub loaded: Loaded,
}

/// A snapshot that was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Last {
    pub unix_s: u64,
    pub ms: u64,
    pub items: u64,
    pub bytes: u64,
}

/// What has become of the items of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Loaded {
    /// Items that are there.
    pub items: u64,
    pub bytes: u64,
    /// Items that had expired.
    pub expired: u64,
    /// Items that do not fit: larger than the limit, refused, or evicted by later ones.
    pub dropped: u64,
    /// Items whose key had one already.
    pub present: u64,
    /// Damaged blocks, and stretches that are no block.
    pub damaged: u64,
    pub ms: u64,
}

macro_rules! atomics {
    ($($field:ident),*) => {
        #[derive(Debug, Default)]
        struct Numbers { $($field: AtomicU64,)* }
    };
}

atomics!(
    items,
    bytes,
    written,
    failed,
    last_unix_s,
    last_ms,
    last_items,
    last_bytes,
    loaded_items,
    loaded_bytes,
    loaded_expired,
    loaded_dropped,
    loaded_present,
    loaded_damaged,
    loaded_ms
);

/// The state behind the figures.
#[derive(Debug, Default)]
pub(super) struct Status {
    is_writing: AtomicBool,
    numbers: Numbers,
    error: Mutex<String>,
}

impl Status {
    /// One begins to be written. False if one is being written already.
    pub fn begin(&self) -> bool {
        if self.is_writing.swap(true, Relaxed) {
            return false;
        }
        self.progress(0, 0);
        true
    }

    /// So much of it is written.
    pub fn progress(&self, items: u64, bytes: u64) {
        self.numbers.items.store(items, Relaxed);
        self.numbers.bytes.store(bytes, Relaxed);
    }

    /// It is written.
    pub fn end(&self, last: Last) {
        let it = &self.numbers;
        it.last_unix_s.store(last.unix_s, Relaxed);
        it.last_ms.store(last.ms, Relaxed);
        it.last_items.store(last.items, Relaxed);
        it.last_bytes.store(last.bytes, Relaxed);
        self.set_error(String::new());
        it.written.fetch_add(1, Relaxed);
        self.is_writing.store(false, Relaxed);
    }

    /// It is not written, for this reason.
    pub fn fail(&self, reason: String) {
        self.set_error(reason);
        self.numbers.failed.fetch_add(1, Relaxed);
        self.is_writing.store(false, Relaxed);
    }

    /// A file was loaded.
    pub fn note_loaded(&self, loaded: Loaded) {
        let it = &self.numbers;
        it.loaded_items.store(loaded.items, Relaxed);
        it.loaded_bytes.store(loaded.bytes, Relaxed);
        it.loaded_expired.store(loaded.expired, Relaxed);
        it.loaded_dropped.store(loaded.dropped, Relaxed);
        it.loaded_present.store(loaded.present, Relaxed);
        it.loaded_damaged.store(loaded.damaged, Relaxed);
        it.loaded_ms.store(loaded.ms, Relaxed);
    }

    pub fn last_error(&self) -> String {
        let error = self.error.lock();
        error.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_error(&self, reason: String) {
        *self.error.lock().unwrap_or_else(PoisonError::into_inner) = reason;
    }

    pub fn figures(&self) -> SnapshotFigures {
        let it = &self.numbers;
        let get = |number: &AtomicU64| number.load(Relaxed);
        SnapshotFigures {
            is_writing: self.is_writing.load(Relaxed),
            writing: (get(&it.items), get(&it.bytes)),
            written: get(&it.written),
            failed: get(&it.failed),
            last: Last {
                unix_s: get(&it.last_unix_s),
                ms: get(&it.last_ms),
                items: get(&it.last_items),
                bytes: get(&it.last_bytes),
            },
            loaded: Loaded {
                items: get(&it.loaded_items),
                bytes: get(&it.loaded_bytes),
                expired: get(&it.loaded_expired),
                dropped: get(&it.loaded_dropped),
                present: get(&it.loaded_present),
                damaged: get(&it.loaded_damaged),
                ms: get(&it.loaded_ms),
            },
        }
    }
}
