//! One end of a ring that this process shares with the kernel. One end produces and the other one
//! consumes.
//!
//! The producer writes an entry and then moves `producer` on with a release store; the consumer
//! loads `producer` with acquire before it reads entries, so it sees them whole. The consumer has
//! read an entry before it moves `consumer` on with a release store, and the producer loads that
//! with acquire before it writes to a place again. The kernel does the same at its end
//! (net/xdp/xsk_queue.h). Both numbers wrap around. A producer that may have to wake the kernel
//! moves `producer` on before it loads the flag, with a full fence between them.
//!
//! **Invariant.** The pointers of a ring lead into its mapping, as long as the ring exists, to
//! words that the kernel accesses atomically, and to as many entries as the mask says.
#![allow(unsafe_code, reason = "the kernel shares this memory")]

use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU32, Ordering, fence};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Where the parts of a ring lie in its mapping.
pub type Offsets = libc::xdp_ring_offset;

/// The mapping of a ring whose entries are of this type.
struct Mapped<T> {
    start: NonNull<u8>,
    bytes: usize,
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    flags: NonNull<AtomicU32>,
    entries: NonNull<T>,
    mask: u32,
}

// SAFETY: the kernel is at the other end, not a thread of this process; unmapping works from every
// thread.
unsafe impl<T: Send> Send for Mapped<T> {}

impl<T: Copy> Mapped<T> {
    /// Maps a ring of a socket.
    fn new(socket: BorrowedFd<'_>, at: u64, offsets: &Offsets, entries: u32) -> io::Result<Self> {
        assert!(entries.is_power_of_two());
        let bytes = offsets.desc as usize + entries as usize * size_of::<T>();
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: the kernel chooses an address where nothing is mapped.
        let start = unsafe { mmap(null_mut(), bytes, access, flags, socket, at)? };
        let start: NonNull<u8> = NonNull::new(start.cast()).expect("mmap returns no null pointer");
        // SAFETY: the kernel says where in the mapping each part lies.
        let part = |offset: u64| unsafe { start.add(offset as usize) };
        Ok(Mapped {
            start,
            bytes,
            producer: part(offsets.producer).cast(),
            consumer: part(offsets.consumer).cast(),
            flags: part(offsets.flags).cast(),
            entries: part(offsets.desc).cast(),
            mask: entries - 1,
        })
    }

    fn producer(&self) -> &AtomicU32 {
        // SAFETY: the invariant.
        unsafe { self.producer.as_ref() }
    }

    fn consumer(&self) -> &AtomicU32 {
        // SAFETY: the invariant.
        unsafe { self.consumer.as_ref() }
    }

    /// Whether the kernel has said that it goes on only after a system call.
    fn needs_wakeup(&self) -> bool {
        // A driver says so before it looks at the ring for the last time. One of both stores is
        // seen by the other side only if neither load overtakes the store before it.
        fence(Ordering::SeqCst);
        // SAFETY: the invariant.
        let flags = unsafe { self.flags.as_ref() };
        flags.load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }

    fn entry(&self, number: u32) -> *mut T {
        // SAFETY: the mask keeps the number within the entries.
        unsafe { self.entries.add((number & self.mask) as usize).as_ptr() }
    }
}

impl<T> Drop for Mapped<T> {
    fn drop(&mut self) {
        // SAFETY: `new` mapped as many bytes, and nothing has a pointer into them any more.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// The end at which entries are put in.
pub struct Producer<T> {
    ring: Mapped<T>,
    /// Entries written so far, of which the kernel has been shown those before `shown`.
    written: u32,
    shown: u32,
    /// What the kernel has consumed, as of the last look.
    consumed: u32,
}

impl<T: Copy> Producer<T> {
    /// Maps the ring of this socket that lies at this place.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn new(
        socket: BorrowedFd<'_>,
        at: u64,
        offsets: &Offsets,
        entries: u32,
    ) -> io::Result<Producer<T>> {
        let ring = Mapped::new(socket, at, offsets, entries)?;
        let written = ring.producer().load(Ordering::Relaxed);
        let consumed = ring.consumer().load(Ordering::Relaxed);
        Ok(Producer {
            ring,
            written,
            shown: written,
            consumed,
        })
    }

    /// Writes an entry, which the kernel sees after [`Producer::show`]. False: the ring is full.
    #[inline]
    pub fn push(&mut self, entry: T) -> bool {
        if self.written.wrapping_sub(self.consumed) > self.ring.mask {
            self.consumed = self.ring.consumer().load(Ordering::Acquire);
            if self.written.wrapping_sub(self.consumed) > self.ring.mask {
                return false;
            }
        }
        // SAFETY: the kernel has consumed what was there, and does not read it before `show`.
        unsafe { self.ring.entry(self.written).write(entry) };
        self.written = self.written.wrapping_add(1);
        true
    }

    /// Shows the kernel what was written. Returns whether that was anything.
    #[inline]
    pub fn show(&mut self) -> bool {
        let is_more = self.shown != self.written;
        if is_more {
            self.ring.producer().store(self.written, Ordering::Release);
            self.shown = self.written;
        }
        is_more
    }

    /// Entries that the kernel has not consumed.
    #[inline]
    pub fn waiting(&self) -> u32 {
        let consumed = self.ring.consumer().load(Ordering::Relaxed);
        self.written.wrapping_sub(consumed)
    }

    /// Whether the kernel goes on with the ring only after a system call.
    #[inline]
    pub fn needs_wakeup(&self) -> bool {
        self.ring.needs_wakeup()
    }
}

/// The end at which entries are taken out.
pub struct Consumer<T> {
    ring: Mapped<T>,
    /// Entries taken so far, of which the kernel has been told those before `told`.
    taken: u32,
    told: u32,
    /// What the kernel has produced, as of the last look.
    produced: u32,
}

impl<T: Copy> Consumer<T> {
    /// Maps the ring of this socket that lies at this place.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn new(
        socket: BorrowedFd<'_>,
        at: u64,
        offsets: &Offsets,
        entries: u32,
    ) -> io::Result<Consumer<T>> {
        let ring = Mapped::new(socket, at, offsets, entries)?;
        let taken = ring.consumer().load(Ordering::Relaxed);
        Ok(Consumer {
            ring,
            taken,
            told: taken,
            produced: taken,
        })
    }

    /// Takes the next entry out, if there is one.
    #[inline]
    pub fn next(&mut self) -> Option<T> {
        if self.taken == self.produced {
            self.produced = self.ring.producer().load(Ordering::Acquire);
            if self.taken == self.produced {
                return None;
            }
        }
        // SAFETY: the kernel has written the entry, and does not write it again before `tell`.
        let entry = unsafe { self.ring.entry(self.taken).read() };
        self.taken = self.taken.wrapping_add(1);
        Some(entry)
    }

    /// Gives the places of what was taken back to the kernel.
    #[inline]
    pub fn tell(&mut self) {
        if self.told != self.taken {
            self.ring.consumer().store(self.taken, Ordering::Release);
            self.told = self.taken;
        }
    }

    /// Entries that wait.
    #[inline]
    pub fn waiting(&self) -> u32 {
        let produced = self.ring.producer().load(Ordering::Relaxed);
        produced.wrapping_sub(self.taken)
    }
}
