//! A reply with a large value, while it is copied slice by slice.

use glimmer_engine::SlicedRead;

/// A reply that is being copied.
pub(crate) struct Copying {
    pub read: SlicedRead,
    /// Bytes of the value, as a lookup found them before the first slice.
    pub bytes: u32,
    /// Its request belongs to a turn that is timed, and began then, in nanoseconds.
    pub timed_since_ns: Option<u64>,
}

impl Copying {
    /// A reply with a value of this many bytes.
    pub fn of(bytes: u32, timed_since_ns: Option<u64>) -> Box<Copying> {
        Box::new(Copying {
            read: SlicedRead::default(),
            bytes,
            timed_since_ns,
        })
    }

    /// Whether a slice has been copied.
    pub fn has_begun(&self) -> bool {
        self.read.value_bytes() > 0
    }

    /// Bytes of its buffer.
    pub fn capacity(&self) -> usize {
        self.read.reply.capacity()
    }
}
