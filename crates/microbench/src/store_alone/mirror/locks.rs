//! Locking disciplines.

use std::{
    array,
    hint::spin_loop,
    sync::atomic::{
        AtomicU32,
        Ordering::{Acquire, Relaxed, Release},
        fence,
    },
};

use crossbeam_utils::CachePadded;
use parking_lot::Mutex;

/// Locks or versions. A bucket uses the one at its number modulo this (§3.2.1 has the same number
/// of versions).
const STRIPES: usize = 8192;

/// A locking discipline. Buckets come in pairs; both may be the same.
pub trait Locks: Send + Sync {
    /// Whether readers exclude each other and writers.
    const SERIAL: bool;

    /// An unlocked instance.
    fn new() -> Self;

    /// Reads buckets and the items in them. `look` may run several times; the result of its last
    /// run is consistent.
    fn read<T>(&self, buckets: [u32; 2], look: impl FnMut() -> T) -> T;

    /// Changes items in place, without changing the buckets.
    fn overwrite<T>(&self, buckets: [u32; 2], change: impl FnOnce() -> T) -> T;

    /// Excludes other writers that change buckets.
    fn writer<T>(&self, work: impl FnOnce() -> T) -> T;

    /// A writer changes buckets.
    fn change<T>(&self, buckets: [u32; 2], change: impl FnOnce() -> T) -> T;

    /// Changes the state of the replacement rule, excluding other such changes if `serial` is set.
    fn touch<T>(&self, serial: bool, change: impl FnOnce() -> T) -> T;
}

/// No locks: a single thread.
pub struct Unlocked;

impl Locks for Unlocked {
    // A missing lock covers everything.
    const SERIAL: bool = true;

    fn new() -> Self {
        Unlocked
    }

    #[inline(always)]
    fn read<T>(&self, _: [u32; 2], mut look: impl FnMut() -> T) -> T {
        look()
    }

    #[inline(always)]
    fn overwrite<T>(&self, _: [u32; 2], change: impl FnOnce() -> T) -> T {
        change()
    }

    #[inline(always)]
    fn writer<T>(&self, work: impl FnOnce() -> T) -> T {
        work()
    }

    #[inline(always)]
    fn change<T>(&self, _: [u32; 2], change: impl FnOnce() -> T) -> T {
        change()
    }

    #[inline(always)]
    fn touch<T>(&self, _: bool, change: impl FnOnce() -> T) -> T {
        change()
    }
}

/// One lock for everything.
pub struct Global(Mutex<()>);

impl Locks for Global {
    const SERIAL: bool = true;

    fn new() -> Self {
        Global(Mutex::new(()))
    }

    #[inline(always)]
    fn read<T>(&self, _: [u32; 2], mut look: impl FnMut() -> T) -> T {
        let _held = self.0.lock();
        look()
    }

    #[inline(always)]
    fn overwrite<T>(&self, _: [u32; 2], change: impl FnOnce() -> T) -> T {
        let _held = self.0.lock();
        change()
    }

    #[inline(always)]
    fn writer<T>(&self, work: impl FnOnce() -> T) -> T {
        let _held = self.0.lock();
        work()
    }

    #[inline(always)]
    fn change<T>(&self, _: [u32; 2], change: impl FnOnce() -> T) -> T {
        change()
    }

    #[inline(always)]
    fn touch<T>(&self, _: bool, change: impl FnOnce() -> T) -> T {
        change()
    }
}

/// A lock per bucket, striped; one for writers; one for the list, if there is one. The order of
/// locking is: writer, bucket, list.
pub struct Striped {
    buckets: Box<[Mutex<()>]>,
    writer: CachePadded<Mutex<()>>,
    list: CachePadded<Mutex<()>>,
}

/// The stripes of two buckets, in ascending order.
#[inline(always)]
fn stripes([first, second]: [u32; 2]) -> (usize, usize) {
    let (first, second) = (first as usize % STRIPES, second as usize % STRIPES);
    (first.min(second), first.max(second))
}

impl Striped {
    #[inline(always)]
    fn hold<T>(&self, buckets: [u32; 2], work: impl FnOnce() -> T) -> T {
        let (low, high) = stripes(buckets);
        let _low = self.buckets[low].lock();
        let _high = (high != low).then(|| self.buckets[high].lock());
        work()
    }
}

impl Locks for Striped {
    const SERIAL: bool = false;

    fn new() -> Self {
        Striped {
            buckets: (0..STRIPES).map(|_| Mutex::new(())).collect(),
            writer: CachePadded::new(Mutex::new(())),
            list: CachePadded::new(Mutex::new(())),
        }
    }

    #[inline(always)]
    fn read<T>(&self, buckets: [u32; 2], mut look: impl FnMut() -> T) -> T {
        self.hold(buckets, &mut look)
    }

    #[inline(always)]
    fn overwrite<T>(&self, buckets: [u32; 2], change: impl FnOnce() -> T) -> T {
        self.hold(buckets, change)
    }

    #[inline(always)]
    fn writer<T>(&self, work: impl FnOnce() -> T) -> T {
        let _held = self.writer.lock();
        work()
    }

    #[inline(always)]
    fn change<T>(&self, buckets: [u32; 2], change: impl FnOnce() -> T) -> T {
        self.hold(buckets, change)
    }

    #[inline(always)]
    fn touch<T>(&self, serial: bool, change: impl FnOnce() -> T) -> T {
        let _held = serial.then(|| self.list.lock());
        change()
    }
}

/// Versions instead of locks for readers. Writers exclude each other. `BY_KEY`: a key has one
/// version, which the smaller of its buckets' numbers chooses, as in MemC3 (§3.2.1). Otherwise
/// each of its buckets has one.
///
/// A version is odd while its buckets change. The writer makes it odd, executes a release fence,
/// changes the buckets, and makes the version even with a release store. A reader loads both
/// versions with acquire, reads, executes an acquire fence, and loads the versions again. If it saw
/// a change, it also sees the new version. The memory of an item is reused only after its bucket
/// was changed in this way. All of this holds with one version for each key, because whatever
/// changes buckets names both buckets of the key that it moves, inserts or removes. A reader of a
/// different key may compare its key with one that is half overwritten; keys here have equal words,
/// so such a mixture is no key.
pub struct Versions<const BY_KEY: bool> {
    versions: Box<[AtomicU32]>,
    writer: CachePadded<Mutex<()>>,
    list: CachePadded<Mutex<()>>,
}

/// A version for each bucket.
pub type Optimistic = Versions<false>;
/// A version for each key: the paper's.
pub type Keyed = Versions<true>;

impl<const BY_KEY: bool> Versions<BY_KEY> {
    #[inline(always)]
    fn versions(&self, buckets: [u32; 2]) -> [&AtomicU32; 2] {
        let (low, high) = match BY_KEY {
            true => {
                let one = buckets[0].min(buckets[1]) as usize % STRIPES;
                (one, one)
            }
            false => stripes(buckets),
        };
        [&self.versions[low], &self.versions[high]]
    }

    /// How often versions were changed. Only while nobody writes.
    pub fn changes(&self) -> u64 {
        let each = self.versions.iter();
        each.map(|version| u64::from(version.load(Relaxed) / 2))
            .sum()
    }
}

impl<const BY_KEY: bool> Locks for Versions<BY_KEY> {
    const SERIAL: bool = false;

    fn new() -> Self {
        Versions {
            versions: (0..STRIPES).map(|_| AtomicU32::new(0)).collect(),
            writer: CachePadded::new(Mutex::new(())),
            list: CachePadded::new(Mutex::new(())),
        }
    }

    #[inline(always)]
    fn read<T>(&self, buckets: [u32; 2], mut look: impl FnMut() -> T) -> T {
        let versions = self.versions(buckets);
        loop {
            let before = versions.map(|version| version.load(Acquire));
            if before.iter().all(|version| version % 2 == 0) {
                let seen = look();
                fence(Acquire);
                let after: [u32; 2] = array::from_fn(|i| versions[i].load(Relaxed));
                if after == before {
                    return seen;
                }
            }
            spin_loop();
        }
    }

    #[inline(always)]
    fn overwrite<T>(&self, buckets: [u32; 2], change: impl FnOnce() -> T) -> T {
        self.writer(|| self.change(buckets, change))
    }

    #[inline(always)]
    fn writer<T>(&self, work: impl FnOnce() -> T) -> T {
        let _held = self.writer.lock();
        work()
    }

    #[inline(always)]
    fn change<T>(&self, buckets: [u32; 2], change: impl FnOnce() -> T) -> T {
        let [low, high] = self.versions(buckets);
        let one = std::ptr::eq(low, high);
        let step = |version: &AtomicU32, order| {
            // Only writers change versions, one at a time.
            version.store(version.load(Relaxed).wrapping_add(1), order);
        };
        step(low, Relaxed);
        if !one {
            step(high, Relaxed);
        }
        fence(Release);
        let changed = change();
        step(low, Release);
        if !one {
            step(high, Release);
        }
        changed
    }

    #[inline(always)]
    fn touch<T>(&self, serial: bool, change: impl FnOnce() -> T) -> T {
        let _held = serial.then(|| self.list.lock());
        change()
    }
}
