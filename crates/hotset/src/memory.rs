//! Where the shared memory lies: on the heap, or in maps of a body outside this process.

use crate::layout::{Control, Slot, TALLIES};
use glimmer_base::limits::HOT_DATAGRAM_BYTES_MAX;
use glimmer_base::sync::AtomicU64;
use std::any::Any;
use std::fmt;
use std::ptr::NonNull;

/// The control block, the slots, and what readers count.
///
/// The pointers are valid, and nothing but these types is ever reached through them, for as long as
/// `_owner` exists.
pub struct Memory {
    control: NonNull<Control>,
    slots: NonNull<[Slot]>,
    counts: NonNull<[AtomicU64]>,
    tallies: NonNull<[AtomicU64]>,
    readers: usize,
    _owner: Box<dyn Any + Send + Sync>,
}

// SAFETY: everything behind the pointers is atomic, and the owner may be sent and shared.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

/// Memory as a body has mapped it.
#[derive(Clone, Copy, Debug)]
pub struct Mapped {
    /// The control block.
    pub control: NonNull<Control>,
    /// All slots.
    pub slots: NonNull<[Slot]>,
    /// One row of counts to a reader, and a count to a slot.
    pub counts: NonNull<[AtomicU64]>,
    /// One row of [`TALLIES`] to a reader.
    pub tallies: NonNull<[AtomicU64]>,
}

/// Memory on the heap.
struct Owned {
    control: Control,
    slots: Box<[Slot]>,
    counts: Box<[AtomicU64]>,
    tallies: Box<[AtomicU64]>,
}

impl Memory {
    /// Memory on the heap for this number of slots and readers, with the seed of the hash that
    /// places keys. All slots are empty.
    ///
    /// # Panics
    ///
    /// If there is no slot or no reader.
    pub fn new(slots: usize, readers: usize, seed: u64) -> Memory {
        let zeros = |count: usize| (0..count).map(|_| AtomicU64::new(0)).collect();
        let owned = Box::new(Owned {
            control: Control::default(),
            slots: (0..slots).map(|_| Slot::default()).collect(),
            counts: zeros(slots * readers),
            tallies: zeros(TALLIES * readers),
        });
        let mapped = Mapped {
            control: NonNull::from(&owned.control),
            slots: NonNull::from(&*owned.slots),
            counts: NonNull::from(&*owned.counts),
            tallies: NonNull::from(&*owned.tallies),
        };
        // SAFETY: the pointers are to parts of the box, which is the owner.
        unsafe { Memory::mapped(mapped, seed, owned) }
    }

    /// Memory that a body has mapped, all of it zero. The control block is initialised here.
    ///
    /// # Safety
    ///
    /// The pointers are valid until the owner is dropped. Nobody else accesses the memory but by
    /// atomic operations, and as the types in [`layout`](crate::layout) say.
    ///
    /// # Panics
    ///
    /// If there is no slot or no reader, or if the regions do not fit one another.
    pub unsafe fn mapped(mapped: Mapped, seed: u64, owner: Box<dyn Any + Send + Sync>) -> Memory {
        let slots = mapped.slots.len();
        let readers = mapped.tallies.len() / TALLIES;
        assert!(slots > 0 && readers > 0, "no slot or no reader");
        assert_eq!(mapped.tallies.len(), readers * TALLIES);
        assert_eq!(mapped.counts.len(), readers * slots);
        let memory = Memory {
            control: mapped.control,
            slots: mapped.slots,
            counts: mapped.counts,
            tallies: mapped.tallies,
            readers,
            _owner: owner,
        };
        let control = memory.control();
        control.initialise(slots, readers, seed, HOT_DATAGRAM_BYTES_MAX);
        memory
    }

    /// The control block.
    #[inline(always)]
    pub fn control(&self) -> &Control {
        // SAFETY: see the type.
        unsafe { self.control.as_ref() }
    }

    /// All slots.
    #[inline(always)]
    pub fn slots(&self) -> &[Slot] {
        // SAFETY: see the type.
        unsafe { self.slots.as_ref() }
    }

    /// The number of readers.
    pub fn readers(&self) -> usize {
        self.readers
    }

    /// The hits that a reader has counted for each slot.
    #[inline(always)]
    pub fn counts(&self, reader: usize) -> &[AtomicU64] {
        let slots = self.slots.len();
        // SAFETY: see the type.
        let counts = unsafe { self.counts.as_ref() };
        &counts[reader * slots..][..slots]
    }

    /// The events that a reader has counted.
    #[inline(always)]
    pub fn tallies(&self, reader: usize) -> &[AtomicU64] {
        // SAFETY: see the type.
        let tallies = unsafe { self.tallies.as_ref() };
        &tallies[reader * TALLIES..][..TALLIES]
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Memory")
            .field("slots", &self.slots.len())
            .field("readers", &self.readers)
            .finish_non_exhaustive()
    }
}
