//! Memory that the kernel writes frames into and sends frames from.
//!
//! **Invariant.** A frame has one owner at a time: the kernel, from when its address was put into
//! the fill or the TX ring until the address is taken from the RX or the completion ring; a batch
//! to which it is lent; or this process, which keeps its address in a list of free frames or is
//! writing to it. Only the owner reads and writes its bytes. The memory stays mapped for as long as
//! the [`Umem`] exists, and all of it is initialised: it was zero when it was mapped.
#![allow(unsafe_code, reason = "the kernel shares this memory")]

use std::io;
use std::ptr::{NonNull, null_mut};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// Frames of one length, one after the other.
#[derive(Debug)]
pub struct Umem {
    start: NonNull<u8>,
    frames: u32,
    frame_bytes: u32,
}

// SAFETY: the invariant says who reads and writes a frame; unmapping works from every thread.
unsafe impl Send for Umem {}
// SAFETY: as above.
unsafe impl Sync for Umem {}

impl Umem {
    /// Maps this many frames of this length, a power of two.
    ///
    /// # Errors
    ///
    /// If there is no memory.
    pub fn new(frames: u32, frame_bytes: u32) -> io::Result<Umem> {
        assert!(frame_bytes.is_power_of_two() && frames > 0);
        let bytes = frames as usize * frame_bytes as usize;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses an address where nothing is mapped.
        let start = unsafe { mmap_anonymous(null_mut(), bytes, access, MapFlags::PRIVATE)? };
        Ok(Umem {
            start: NonNull::new(start.cast()).expect("mmap returns no null pointer"),
            frames,
            frame_bytes,
        })
    }

    /// Bytes of all frames.
    pub fn bytes(&self) -> usize {
        self.frames as usize * self.frame_bytes as usize
    }

    /// Bytes of each frame.
    pub fn frame_bytes(&self) -> u32 {
        self.frame_bytes
    }

    /// The addresses of all frames.
    pub fn addresses(&self) -> impl Iterator<Item = u64> + use<> {
        let frame_bytes = u64::from(self.frame_bytes);
        (0..u64::from(self.frames)).map(move |frame| frame * frame_bytes)
    }

    /// The address of the frame that has the byte at this address.
    #[inline]
    pub fn frame_of(&self, address: u64) -> u64 {
        address & !u64::from(self.frame_bytes - 1)
    }

    /// Where its memory begins.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// A pointer to the `bytes` bytes at an address; `None` if they are not within one frame.
    #[inline]
    pub fn at(&self, address: u64, bytes: usize) -> Option<NonNull<u8>> {
        let end = address.checked_add(bytes as u64)?;
        let is_within =
            end <= self.bytes() as u64 && end - self.frame_of(address) <= self.frame_bytes.into();
        // SAFETY: the address lies within the mapping.
        is_within.then(|| unsafe { self.start.add(address as usize) })
    }

    /// The address of a byte in it.
    #[inline]
    pub fn address_of(&self, at: NonNull<u8>) -> u64 {
        (at.addr().get() - self.start.addr().get()) as u64
    }

    /// The bytes at an address, to be written; `None` if they are not within one frame.
    ///
    /// # Safety
    ///
    /// The caller owns the frame for as long as it has the slice, and there is no other slice of
    /// its bytes.
    #[inline]
    #[allow(clippy::mut_from_ref, reason = "frames have owners of their own")]
    pub unsafe fn bytes_mut(&self, address: u64, bytes: usize) -> Option<&mut [u8]> {
        let at = self.at(address, bytes)?;
        // SAFETY: they are mapped and initialised, and the caller has them alone.
        Some(unsafe { std::slice::from_raw_parts_mut(at.as_ptr(), bytes) })
    }
}

impl Drop for Umem {
    fn drop(&mut self) {
        // SAFETY: `new` mapped as many bytes, and by the invariant nobody has a frame any more.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bytes_within_one_frame_are_reached() {
        let umem = Umem::new(4, 2048).unwrap();
        assert_eq!(umem.bytes(), 8192);
        assert_eq!(umem.addresses().collect::<Vec<_>>(), [0, 2048, 4096, 6144]);
        assert!(umem.at(2048, 2048).is_some());
        assert!(umem.at(2049, 2048).is_none(), "beyond the frame");
        assert!(umem.at(8192, 1).is_none(), "beyond the memory");
        assert!(umem.at(u64::MAX, 2).is_none());
        assert_eq!(umem.frame_of(2049), 2048);
        let at = umem.at(4099, 1).unwrap();
        assert_eq!(umem.address_of(at), 4099);
    }
}
