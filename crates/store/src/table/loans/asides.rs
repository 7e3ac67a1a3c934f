//! Memory for lent values whose places writers need.

// A count orders nothing, so the model checker need not see it.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The memory that copies of lent values may take beside the tables, all of them together.
///
/// A writer that needs the place of a lent value does not wait for who reads it, so it cannot wait
/// for memory either. A value that finds too little is lost: its reader is told so
/// ([`LentValue::with`](crate::table::LentValue::with)). All who borrow a value share its copy,
/// which is freed with the last of them. So that there is memory for the next one, readers that
/// make no progress should be ended while copies take much of it.
#[derive(Clone, Debug)]
pub struct Asides(Arc<Bound>);

#[derive(Debug)]
struct Bound {
    bytes: AtomicUsize,
    bytes_max: usize,
}

impl Default for Asides {
    /// Without a bound.
    fn default() -> Asides {
        Asides::of(usize::MAX)
    }
}

/// Where a lent value is.
#[derive(Clone, Copy, Debug)]
pub enum Whereabouts<'a> {
    /// In its item.
    InTable,
    /// Beside the table: a writer has copied it aside.
    Aside {
        /// Bytes of the copy for each of those who borrow it.
        bytes: usize,
        /// The memory that the copy is in.
        memory: &'a Asides,
    },
    /// Nowhere: a writer has needed its place, and there was no memory for a copy.
    Lost,
}

impl Asides {
    /// As much memory as this.
    pub fn of(bytes_max: usize) -> Asides {
        let bytes = AtomicUsize::new(0);
        Asides(Arc::new(Bound { bytes, bytes_max }))
    }

    /// Bytes that copies take.
    pub fn bytes(&self) -> usize {
        self.0.bytes.load(Relaxed)
    }

    /// Bytes that they may take.
    pub fn bytes_max(&self) -> usize {
        self.0.bytes_max
    }

    /// An empty copy with this much memory, if there is as much.
    pub(super) fn take(&self, bytes: usize) -> Option<Aside> {
        let used = self.0.bytes.fetch_add(bytes, Relaxed);
        let mut aside = Aside {
            bytes: Vec::new(),
            counted: bytes,
            asides: self.clone(),
        };
        if used.saturating_add(bytes) > self.0.bytes_max {
            return None;
        }
        aside.bytes.reserve_exact(bytes);
        Some(aside)
    }
}

/// A copy of a lent value.
pub(super) struct Aside {
    pub bytes: Vec<u8>,
    counted: usize,
    asides: Asides,
}

impl Drop for Aside {
    fn drop(&mut self) {
        self.asides.0.bytes.fetch_sub(self.counted, Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn copies_take_no_more_than_they_may() {
        let asides = Asides::of(100);
        let first = asides.take(60);
        assert!(first.is_some() && asides.take(50).is_none());
        let second = asides.take(40);
        assert!(second.is_some() && asides.take(1).is_none());
        drop(first);
        assert_eq!((asides.bytes(), asides.bytes_max()), (40, 100));
        assert!(asides.take(60).is_some());
    }
}
