//! Frames that are vectors: what an in-process device lends.
#![allow(
    unsafe_code,
    reason = "a vector is lent as a pointer and made whole again"
)]

use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use glimmer_base::limits::SPARE_PACKET_BUFFERS_MAX;

use super::frames::{Frame, Frames, Lender};

/// A pool of vectors.
#[derive(Clone)]
pub struct Buffers {
    spare: Arc<Spare>,
    /// The same, as batches know it.
    lender: Arc<dyn Lender>,
}

/// Vectors that are not in use.
#[derive(Default)]
struct Spare(Mutex<Vec<Vec<u8>>>);

impl Spare {
    fn lock(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lender for Spare {
    fn take_back(&self, frames: &[Frame]) {
        let mut spare = self.lock();
        for frame in frames {
            // SAFETY: only `Buffers::lend` makes frames that this pool takes back, each of a
            // vector's memory with its capacity for an id, and each comes back once.
            let buffer = unsafe { whole(*frame, 0) };
            if spare.len() < SPARE_PACKET_BUFFERS_MAX {
                spare.push(buffer);
            }
        }
    }
}

/// The vector that a frame was.
///
/// # Safety
///
/// `Buffers::lend` made the frame of a vector of at least `bytes` bytes, nothing else refers to it
/// any more, and it is made whole only once.
unsafe fn whole(frame: Frame, bytes: usize) -> Vec<u8> {
    // SAFETY: as the caller promises; the id is the capacity.
    unsafe { Vec::from_raw_parts(frame.at.as_ptr(), bytes, frame.id as usize) }
}

impl Buffers {
    pub fn new() -> Buffers {
        let spare = Arc::new(Spare::default());
        Buffers {
            lender: spare.clone(),
            spare,
        }
    }

    /// An empty vector, with memory if one is spare.
    pub fn get(&self) -> Vec<u8> {
        let mut buffer = self.spare.lock().pop().unwrap_or_default();
        buffer.clear();
        buffer
    }

    /// Lends a vector to a batch, as its next packet.
    pub fn lend(&self, to: &mut Frames, buffer: Vec<u8>) {
        let mut buffer = ManuallyDrop::new(buffer);
        let frame = Frame {
            at: NonNull::new(buffer.as_mut_ptr()).expect("a vector's pointer is never null"),
            id: buffer.capacity() as u64,
        };
        // SAFETY: the vector's bytes are initialised, and its memory is freed only after the frame
        // has come back to this pool; nothing else has the pointer.
        unsafe { to.lend(&self.lender, frame, buffer.len()) };
    }

    /// Takes the vectors out of a batch that this pool has lent to it, in order, each as long as
    /// its packet; none if the batch has packets of others.
    pub fn take(&self, from: &mut Frames) -> Vec<Vec<u8>> {
        let frames = from.take_lent(&self.lender);
        let whole = |(frame, bytes)| {
            // SAFETY: the batch has given the frame up, which `lend` made; packets only get
            // shorter.
            unsafe { whole(frame, bytes) }
        };
        frames.into_iter().map(whole).collect()
    }

    #[cfg(test)]
    pub fn spare(&self) -> usize {
        self.spare.lock().len()
    }
}
