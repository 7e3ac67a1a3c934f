//! Who waits for whom.

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

/// Locks, or versions: a bucket has the one of its number modulo this (§3.2.1 has as many
/// versions).
const STRIPES: usize = 8192;

/// A discipline. Buckets come in pairs; the two may be one.
pub trait Locks: Send + Sync {
    /// Whether reading excludes everybody else.
    const SERIAL: bool;

    /// No thread waits yet.
    fn new() -> Self;

    /// Looks at buckets and what they name; `look` may run several times, and what its last run
    /// gave is consistent.
    fn read<T>(&self, buckets: [u32; 2], look: impl FnMut() -> T) -> T;

    /// Changes items that buckets name, but not which.
    fn overwrite<T>(&self, buckets: [u32; 2], change: impl FnOnce() -> T) -> T;

    /// Excludes other writers: those who change what buckets name.
    fn writer<T>(&self, work: impl FnOnce() -> T) -> T;

    /// A writer changes what buckets name.
    fn change<T>(&self, buckets: [u32; 2], change: impl FnOnce() -> T) -> T;

    /// Changes what the rule of replacement has noted; excludes others who do so if it is `serial`.
    fn touch<T>(&self, serial: bool, change: impl FnOnce() -> T) -> T;
}

/// There is one thread.
pub struct Nobody;

impl Locks for Nobody {
    // Everything is under the lock that is not there.
    const SERIAL: bool = true;

    fn new() -> Self {
        Nobody
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

/// A lock for each bucket, striped; one for writers; one for the list, where there is one. They are
/// taken in this order: writer, bucket, list.
pub struct Striped {
    buckets: Box<[Mutex<()>]>,
    writer: CachePadded<Mutex<()>>,
    list: CachePadded<Mutex<()>>,
}

/// The stripes of two buckets, the lower first.
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

/// Versions instead of locks for those who read, as in the paper; but of buckets, not of keys. All
/// that writes is one at a time.
///
/// A version is odd while what its buckets name is changed. The writer makes it odd, runs a release
/// fence, changes, and makes it even with a release store. A reader loads both versions with
/// acquire, looks, runs an acquire fence, and loads them again: if what it saw was changed, it sees
/// that the version was, too. The memory of an item is written again only after its bucket was
/// changed in this way.
pub struct Optimistic {
    versions: Box<[AtomicU32]>,
    writer: CachePadded<Mutex<()>>,
    list: CachePadded<Mutex<()>>,
}

impl Optimistic {
    #[inline(always)]
    fn versions(&self, buckets: [u32; 2]) -> [&AtomicU32; 2] {
        let (low, high) = stripes(buckets);
        [&self.versions[low], &self.versions[high]]
    }
}

impl Locks for Optimistic {
    const SERIAL: bool = false;

    fn new() -> Self {
        Optimistic {
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
            // Only writers change versions, and they are one at a time.
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
