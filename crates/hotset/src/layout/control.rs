//! The control block: the epoch, the time of the next flush and the pauses, which every reader
//! loads before it answers.

use glimmer_base::sync::AtomicU64;
use glimmer_base::sync::Ordering::{Acquire, Relaxed, Release};

/// A time that never comes, in nanoseconds.
pub const NEVER_NS: u64 = u64::MAX;

/// The version of all types in this folder. A body built for another version refuses to start.
pub const LAYOUT_VERSION: u64 = 1;

/// The control block, which holds for all slots.
///
/// # Order
///
/// A reader loads [`flush_at_ns`](Control::flush_at_ns), with acquire, and then the epoch. A
/// flush raises the epoch first and replaces `flush_at_ns` afterwards, with release. So a reader
/// that sees the new time also sees the new epoch, and nothing that the flush removed is answered
/// between the two.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub struct Control {
    /// A slot is answered from only if it was filled under this epoch. Every flush raises it twice.
    epoch: AtomicU64,
    /// When a delayed flush is due, in nanoseconds of CLOCK_MONOTONIC. From then on nothing is
    /// answered, until the flush has been carried out.
    flush_at_ns: AtomicU64,
    /// Bits of the reasons for which nothing is answered; zero without a reason.
    paused: AtomicU64,
    /// The number of slots.
    slots: AtomicU64,
    /// Seed of the hash that places keys in slots.
    seed: AtomicU64,
    /// The number of readers: rows of counts, and of tallies.
    readers: AtomicU64,
    /// Longest datagram of a reply in bytes, with memcached's header.
    datagram_bytes_max: AtomicU64,
    /// [`LAYOUT_VERSION`].
    version: AtomicU64,
    /// For tests: nonzero makes every recheck fail.
    fail_rechecks: AtomicU64,
    /// Zero.
    reserved: [AtomicU64; 7],
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Control>() == 128);

impl Control {
    /// Writes what never changes, before anybody reads.
    pub fn initialise(&self, slots: usize, readers: usize, seed: u64, datagram_bytes_max: usize) {
        self.flush_at_ns.store(NEVER_NS, Relaxed);
        self.slots.store(slots as u64, Relaxed);
        self.readers.store(readers as u64, Relaxed);
        self.seed.store(seed, Relaxed);
        self.datagram_bytes_max
            .store(datagram_bytes_max as u64, Relaxed);
        self.version.store(LAYOUT_VERSION, Release);
    }

    /// The version that the block was initialised with; zero before.
    pub fn version(&self) -> u64 {
        self.version.load(Acquire)
    }

    /// The epoch. A fill loads it before the number of flushes that are due.
    #[inline(always)]
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Acquire)
    }

    /// Begins another epoch: nothing that was filled before is answered.
    pub fn next_epoch(&self) {
        self.epoch.fetch_add(1, Release);
    }

    /// When a delayed flush is due.
    #[inline(always)]
    pub fn flush_at_ns(&self) -> u64 {
        self.flush_at_ns.load(Acquire)
    }

    /// Replaces the time of the delayed flush.
    pub fn set_flush_at_ns(&self, at_ns: u64) {
        self.flush_at_ns.store(at_ns, Release);
    }

    /// The reasons for which nothing is answered.
    #[inline(always)]
    pub fn paused(&self) -> u64 {
        self.paused.load(Acquire)
    }

    /// Adds reasons, and returns those that were there.
    pub fn pause(&self, reasons: u64) -> u64 {
        self.paused.fetch_or(reasons, Release)
    }

    /// Takes reasons away, and returns those that were there.
    pub fn resume(&self, reasons: u64) -> u64 {
        self.paused.fetch_and(!reasons, Release)
    }

    /// Seed of the hash that places keys.
    #[inline(always)]
    pub fn seed(&self) -> u64 {
        self.seed.load(Relaxed)
    }

    /// Changes the longest datagram of a reply, in bytes.
    pub fn set_datagram_bytes_max(&self, bytes: usize) {
        self.datagram_bytes_max.store(bytes as u64, Relaxed);
    }

    /// Makes every recheck fail, or no longer. Then all requests go to the server, intact.
    pub fn fail_rechecks(&self, fail: bool) {
        self.fail_rechecks.store(fail.into(), Relaxed);
    }

    /// Whether every recheck fails.
    #[inline(always)]
    pub fn rechecks_fail(&self) -> bool {
        self.fail_rechecks.load(Relaxed) != 0
    }

    /// Longest datagram of a reply in bytes.
    #[inline(always)]
    pub fn datagram_bytes_max(&self) -> usize {
        self.datagram_bytes_max.load(Relaxed) as usize
    }
}
