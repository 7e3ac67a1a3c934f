//! Items that leave to make room, for whoever watches.

use crate::heap::Item;
use glimmer_base::limits::{DEPARTURES_MAX, KEY_BYTES_MAX};
use glimmer_base::sync::Ordering::Relaxed;
use glimmer_base::sync::{AtomicBool, Mutex, lock};
use glimmer_base::{Expiry, Moment};

/// Notes items that leave to make room, while somebody watches. Of what nobody takes, the first so many are kept.
#[derive(Debug, Default)]
pub struct Departures {
    is_watched: AtomicBool,
    items: Mutex<Vec<Departed>>,
}

/// An item that left.
#[derive(Clone, Debug)]
pub struct Departed {
    /// Its key.
    pub key: Box<[u8]>,
    /// Bytes of its value.
    pub value_bytes: usize,
    /// When it would have expired.
    pub expiry: Expiry,
    /// Whether it is known to have been read.
    pub was_read: bool,
    /// When it was last accessed, in seconds since the server's epoch; 0 if that was not noted.
    pub accessed_s: u32,
    /// When it left.
    pub now: Moment,
}

impl Departures {
    /// Begins to note items, or no more.
    pub fn watch(&self, is_watched: bool) {
        self.is_watched.store(is_watched, Relaxed);
        if !is_watched {
            lock(&self.items).clear();
        }
    }

    /// Notes that an item leaves.
    #[inline]
    pub(crate) fn note(&self, item: &Item<'_>, was_read: bool, now: Moment) {
        if self.is_watched.load(Relaxed) {
            self.keep(item, was_read, now);
        }
    }

    #[cold]
    fn keep(&self, item: &Item<'_>, was_read: bool, now: Moment) {
        let mut items = lock(&self.items);
        if items.len() < DEPARTURES_MAX {
            items.push(Departed {
                key: item.key(&mut [0; KEY_BYTES_MAX + 6]).into(),
                value_bytes: item.layout().value_len,
                expiry: item.expiry(),
                was_read,
                accessed_s: item.accessed_s(),
                now,
            });
        }
    }

    /// Takes what was noted.
    pub fn take(&self) -> Vec<Departed> {
        std::mem::take(&mut *lock(&self.items))
    }
}
