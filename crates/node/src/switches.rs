//! What clients can switch while the server runs.

use std::sync::Arc;

use glimmer_base::sync::{AtomicBool, AtomicU64, Ordering};

/// What clients can switch while the server runs, for all workers.
#[derive(Debug)]
pub struct Switches {
    crawler: AtomicBool,
    /// Whether all items are being listed for somebody.
    pub(crate) is_dumping: Arc<AtomicBool>,
    /// Times that this began.
    pub(crate) dumps: AtomicU64,
}

impl Switches {
    /// As they are at the start.
    pub(crate) fn new(crawler: bool) -> Switches {
        Switches {
            crawler: AtomicBool::new(crawler),
            is_dumping: Arc::new(AtomicBool::new(false)),
            dumps: AtomicU64::new(0),
        }
    }

    /// Whether all items may be listed (`lru_crawler enable`).
    pub fn has_crawler(&self) -> bool {
        self.crawler.load(Ordering::Relaxed)
    }

    /// See [`Switches::has_crawler`].
    pub(crate) fn set_crawler(&self, is_on: bool) {
        self.crawler.store(is_on, Ordering::Relaxed);
    }

    /// Whether all items are being listed for somebody.
    pub fn is_dumping(&self) -> bool {
        self.is_dumping.load(Ordering::Relaxed)
    }
}
