//! A port of DPDK's with its queues and its memory for frames.
//!
//! **Invariant.** A frame has one owner at a time: the driver, from when it is sent until it is
//! free, and while it waits to be filled; or a [`Held`], a number made of one by [`Held::into_id`],
//! or the list of free frames. Only the owner reads and writes its bytes. A [`Held`] borrows its
//! port, and whoever keeps a number keeps the port alive. So no frame outlives its pool, which is
//! freed after the port is closed. The bytes of a frame lie in memory that EAL has mapped for the
//! whole time, and are initialised: that memory was zero at first.
//!
//! One thread at a time may receive from a queue, and one may send by it: [`Nic`] has a lock for
//! either. That for sending is held for the call of the driver alone. One thread at a time asks the
//! driver for its counts and its link, and not more than once a second, as some drivers answer
//! slowly.
#![allow(
    unsafe_code,
    reason = "DPDK is called, and frames are known by pointers"
)]

use std::ffi::{CString, c_void};
use std::io;
use std::marker::PhantomData;
use std::ptr::{NonNull, null_mut};
use std::time::{Duration, Instant};

use arrayvec::ArrayVec;
use glimmer_base::limits::{DPDK_FRAMES_CACHED, DPDK_RING_ENTRIES, DPDK_SEND_TRIES};
use glimmer_base::limits::{PACKET_BATCH_MAX, dpdk_frames};
use glimmer_base::sync::{AtomicU32, AtomicU64, Mutex, MutexGuard, Ordering::Relaxed};

use super::shim::{self, Arrived, Description, Lost, RawFrame, RawPool};
use crate::bypass::wire::{ETHERNET_BYTES, SumSeen, Sums};

/// The longest packet in a frame of usual length, 2 KiB, with its header, checksum and two tags of
/// virtual networks, which drivers count. Longer ones have to be asked for.
const MTU_USUAL_MAX: u16 = (2 << 10) - ETHERNET_BYTES as u16 - (4 + 2 * 4);
/// The driver is asked what it has counted, and for its link, at most so often.
const ASKED_EVERY: Duration = Duration::from_secs(1);
/// How often our addresses are announced when the link comes up, as one frame may be lost.
const ANNOUNCEMENTS: u32 = 2;

/// Frames that are sent together.
pub type Outgoing<'p> = ArrayVec<Held<'p>, PACKET_BATCH_MAX>;
/// Frames that were received together.
pub type Incoming<'p> = ArrayVec<Received<'p>, PACKET_BATCH_MAX>;

/// A port that is open.
#[derive(Debug)]
pub struct Nic {
    number: u16,
    /// What its driver says.
    pub said: Description,
    /// Bytes of the longest frame that is sent or received.
    pub frame_bytes_max: usize,
    queues: Vec<Queue>,
    /// Those that all frames are from: some queues may keep many that are of use to others.
    pool: Pool,
    seen: Mutex<Seen>,
    /// What the driver has lost. Each is a count that nothing else depends on.
    missed: AtomicU64,
    no_frame: AtomicU64,
    /// How often our addresses are still to be announced.
    announcements: AtomicU32,
}

/// The two locks of a queue.
#[derive(Debug, Default)]
struct Queue {
    rx: Mutex<()>,
    tx: Mutex<()>,
}

/// What the driver was asked.
#[derive(Debug, Default)]
struct Seen {
    at: Option<Instant>,
    is_up: bool,
    lost: Lost,
}

/// Memory for frames, which is freed with this.
#[derive(Debug)]
struct Pool(NonNull<RawPool>);

// SAFETY: DPDK's functions on pools may be called from any thread.
unsafe impl Send for Pool {}
// SAFETY: as above.
unsafe impl Sync for Pool {}

impl Pool {
    fn new(number: u16, frames: u32, bytes_max: u32, numa_node: i32) -> io::Result<Pool> {
        let name = CString::new(format!("glimmer_{number}")).expect("it has no zero byte");
        let cached = DPDK_FRAMES_CACHED;
        // SAFETY: the name ends with a zero byte and is copied.
        let pool =
            unsafe { shim::glimmer_dpdk_pool(name.as_ptr(), frames, cached, bytes_max, numa_node) };
        // SAFETY: it takes nothing.
        let code = || unsafe { shim::glimmer_dpdk_errno() };
        let pool = NonNull::new(pool).ok_or_else(|| io::Error::from_raw_os_error(code()))?;
        Ok(Pool(pool))
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // SAFETY: by the invariant nothing has a frame of it any more.
        unsafe { shim::glimmer_dpdk_pool_free(self.0.as_ptr()) };
    }
}

/// Whether DPDK has a port of this number.
pub fn exists(number: u16) -> bool {
    // SAFETY: it takes a number.
    unsafe { shim::glimmer_dpdk_is_port(number) != 0 }
}

/// What a driver says of a port.
pub fn describe(number: u16) -> io::Result<Description> {
    let mut said = Description::default();
    // SAFETY: the structure is as the function declares it.
    checked(unsafe { shim::glimmer_dpdk_describe(number, &raw mut said) })?;
    Ok(said)
}

fn frame_bytes_max(mtu: u16) -> usize {
    ETHERNET_BYTES + usize::from(mtu)
}

/// Bytes that the frames of a port take, for packets of up to `mtu` bytes if that is said.
pub fn frames_bytes(queues: usize, workers: usize, mtu: Option<u16>) -> usize {
    let bytes_max = frame_bytes_max(mtu.unwrap_or(MTU_USUAL_MAX)) as u32;
    // SAFETY: it takes a number.
    let each = unsafe { shim::glimmer_dpdk_frame_bytes(bytes_max) };
    // SAFETY: it takes nothing.
    let caches = unsafe { shim::glimmer_dpdk_caches_bytes() };
    dpdk_frames(queues, workers) as usize * each as usize + caches as usize
}

/// DPDK returns the negative of an error's number.
fn checked(code: i32) -> io::Result<()> {
    match code {
        0.. => Ok(()),
        code => Err(io::Error::from_raw_os_error(-code)),
    }
}

impl Description {
    /// The longest packet if none is asked for.
    pub fn mtu_unasked(&self) -> u16 {
        self.mtu.min(self.mtu_max).min(MTU_USUAL_MAX)
    }
}

impl Nic {
    /// Opens a port with this many queues for this many workers, for packets of up to `mtu` bytes
    /// if that is said.
    ///
    /// # Errors
    ///
    /// Those of the driver.
    pub fn open(number: u16, queues: u16, workers: usize, mtu: Option<u16>) -> io::Result<Nic> {
        let said = describe(number)?;
        let is_asked = i32::from(mtu.is_some());
        let mtu = mtu.unwrap_or(said.mtu_unasked());
        let frame_bytes_max = frame_bytes_max(mtu);
        let frames = dpdk_frames(queues.into(), workers);
        let pool = Pool::new(number, frames, frame_bytes_max as u32, said.numa_node)?;
        let raw = pool.0.as_ptr();
        let nic = Nic {
            number,
            said,
            frame_bytes_max,
            queues: (0..queues).map(|_| Queue::default()).collect(),
            pool,
            seen: Mutex::default(),
            missed: AtomicU64::new(0),
            no_frame: AtomicU64::new(0),
            announcements: AtomicU32::new(0),
        };
        // SAFETY: the pool exists as long as the port.
        let started = unsafe {
            shim::glimmer_dpdk_start(number, queues, mtu, is_asked, DPDK_RING_ENTRIES, raw)
        };
        // A port that has not started is closed, too: it may have frames of the pool.
        checked(started).map(|()| nic)
    }

    /// Has it receive what is sent to groups, of which these are the hardware addresses.
    pub fn join(&self, groups: &[[u8; 6]]) {
        let mut groups = groups.to_vec();
        // SAFETY: there are as many addresses, which are copied.
        unsafe { shim::glimmer_dpdk_join(self.number, groups.as_mut_ptr(), groups.len() as u32) };
    }

    /// How many queues it has.
    pub fn queues(&self) -> usize {
        self.queues.len()
    }

    /// Who computes the checksums of datagrams.
    #[inline]
    pub fn sums(&self) -> Sums {
        match self.said.computes_sums {
            0 => Sums::Computed,
            _ => Sums::LeftToHardware,
        }
    }

    /// A queue to receive from; `None` while another thread receives from it.
    #[inline]
    pub fn receiver(&self, queue: usize) -> Option<Receiver<'_>> {
        let alone = self.queues[queue].rx.try_lock()?;
        Some(Receiver {
            nic: self,
            queue: queue as u16,
            _alone: alone,
        })
    }

    /// Sends frames by a queue, in their order. Returns how many left; the others are given up.
    #[inline]
    pub fn send(&self, queue: usize, frames: &mut Outgoing<'_>) -> usize {
        let mut raw: ArrayVec<*mut RawFrame, PACKET_BATCH_MAX> =
            frames.drain(..).map(Held::into_raw).collect();
        let count = raw.len();
        let leaves_sums = i32::from(self.sums() == Sums::LeftToHardware);
        let mut sent = 0;
        let alone = self.queues[queue].tx.lock();
        let mut tries = DPDK_SEND_TRIES;
        while sent < count && tries > 0 {
            tries -= 1;
            let rest = &mut raw[sent..];
            // SAFETY: these frames are ours, and the driver's from here on if it says so. The port
            // has the queue, and nothing else sends by it while it is locked.
            let more = unsafe {
                let (port, queue, length) = (self.number, queue as u16, rest.len() as u16);
                shim::glimmer_dpdk_send(port, queue, rest.as_mut_ptr(), length, leaves_sums)
            };
            sent += usize::from(more);
        }
        drop(alone);
        free(&mut raw[sent..count]);
        sent
    }

    /// A free frame to be filled and sent, if there is one.
    #[inline]
    pub fn take(&self) -> Option<Held<'_>> {
        // SAFETY: the pool exists as long as the port.
        let frame = unsafe { shim::glimmer_dpdk_take(self.pool.0.as_ptr()) };
        let frame = NonNull::new(frame)?;
        // SAFETY: the frame is ours.
        let room = unsafe { shim::glimmer_dpdk_room(frame.as_ptr()) };
        Some(Held::of(frame, room as usize))
    }

    /// Takes frames back that are known by their numbers.
    ///
    /// # Safety
    ///
    /// [`Held::into_id`] has made the numbers of this port's frames, and they are not used again.
    pub unsafe fn give_back(&self, ids: impl Iterator<Item = u64>) {
        let frames = ids.map(|id| std::ptr::with_exposed_provenance_mut(id as usize));
        let mut frames: ArrayVec<*mut RawFrame, PACKET_BATCH_MAX> = frames.collect();
        free(&mut frames);
    }

    /// A frame that is known by its number, with the `bytes` first bytes of its data.
    ///
    /// # Safety
    ///
    /// [`Held::into_id`] has made the number of a frame of this port with at least as many bytes,
    /// and it is not used again.
    #[inline]
    pub unsafe fn of_id(&self, id: u64, bytes: usize) -> Held<'_> {
        let frame = std::ptr::with_exposed_provenance_mut(id as usize);
        let frame = NonNull::new(frame).expect("a number is a pointer");
        Held::of(frame, bytes)
    }

    /// Frames that are free.
    pub fn frames_free(&self) -> u64 {
        // SAFETY: the pool exists as long as the port.
        u64::from(unsafe { shim::glimmer_dpdk_pool_free_frames(self.pool.0.as_ptr()) })
    }

    /// Asks the driver what it has lost and whether its link is up, unless that was done within
    /// the last second or is being done. What it does not answer stays as it was.
    fn ask(&self) {
        let Some(mut seen) = self.seen.try_lock() else {
            return;
        };
        if seen.at.is_some_and(|at| at.elapsed() < ASKED_EVERY) {
            return;
        }
        seen.at = Some(Instant::now());
        // SAFETY: the structure is as the function declares it, and nothing else asks for the
        // counts of this port, as `seen` is locked.
        let counted = unsafe { shim::glimmer_dpdk_counts(self.number, &raw mut seen.lost) };
        if counted == 0 {
            self.missed.store(seen.lost.missed, Relaxed);
            self.no_frame.store(seen.lost.no_frame, Relaxed);
        }
        // SAFETY: as above, of the link.
        let is_up = unsafe { shim::glimmer_dpdk_is_up(self.number) } != 0;
        if is_up && !seen.is_up {
            self.announcements.store(ANNOUNCEMENTS, Relaxed);
        }
        seen.is_up = is_up;
    }

    /// What the driver has lost, as of the last second or so.
    pub fn lost(&self) -> Lost {
        self.ask();
        Lost {
            missed: self.missed.load(Relaxed),
            no_frame: self.no_frame.load(Relaxed),
        }
    }

    /// Whether our addresses are to be announced now, because the link has come up of late.
    pub fn is_to_be_announced(&self) -> bool {
        let one_less = |left: u32| left.checked_sub(1);
        let taken = self.announcements.fetch_update(Relaxed, Relaxed, one_less);
        taken.is_ok()
    }

    /// Has the port bring what arrives for a port of UDP to a queue. `None`: its driver cannot.
    pub fn steer(&self, is_v6: bool, udp_port: u16, queue: usize) -> Option<Rule> {
        let (number, queue) = (self.number, queue as u16);
        // SAFETY: it takes numbers.
        let rule = unsafe { shim::glimmer_dpdk_steer(number, is_v6.into(), udp_port, queue) };
        NonNull::new(rule).map(Rule)
    }

    /// Ends a rule of this port.
    pub fn unsteer(&self, rule: Rule) {
        // SAFETY: `steer` has made the rule, which is used up here.
        unsafe { shim::glimmer_dpdk_unsteer(self.number, rule.0.as_ptr()) };
    }
}

impl Drop for Nic {
    fn drop(&mut self) {
        // SAFETY: nothing receives or sends any more. The pools are freed afterwards.
        unsafe { shim::glimmer_dpdk_close(self.number) };
    }
}

/// A queue of a port from which nothing else receives.
pub struct Receiver<'p> {
    nic: &'p Nic,
    queue: u16,
    _alone: MutexGuard<'p, ()>,
}

impl<'p> Receiver<'p> {
    /// What waits at the queue, a burst of [`PACKET_BATCH_MAX`] frames at most. Some drivers give
    /// nothing to those who ask for fewer than four or eight, so that is no argument.
    #[inline]
    pub fn receive(&mut self) -> Incoming<'p> {
        let nothing = Arrived {
            frame: null_mut(),
            data: null_mut(),
            bytes: 0,
            flags: 0,
        };
        let mut arrived = [nothing; PACKET_BATCH_MAX];
        let most = PACKET_BATCH_MAX as u16;
        // SAFETY: there is room for as many, the port has the queue, and nothing else receives from
        // it while it is locked.
        let count = unsafe {
            let frames = arrived.as_mut_ptr();
            shim::glimmer_dpdk_receive(self.nic.number, self.queue, frames, most)
        };
        let received = arrived[..usize::from(count.min(most))]
            .iter()
            .map(|arrived| Received {
                frame: Held {
                    frame: NonNull::new(arrived.frame).expect("a frame that was received exists"),
                    data: NonNull::new(arrived.data).expect("it has memory"),
                    bytes: arrived.bytes as usize,
                    of: PhantomData,
                },
                sum: match arrived.flags & (shim::IS_CHECKED | shim::IS_PARTIAL) {
                    shim::IS_CHECKED => SumSeen::Right,
                    shim::IS_PARTIAL => SumSeen::Partial,
                    _ => SumSeen::Unknown,
                },
                is_usable: arrived.flags & shim::IS_UNUSABLE == 0,
                was_tagged: arrived.flags & shim::WAS_TAGGED != 0,
            });
        received.collect()
    }
}

/// A rule by which a port brings datagrams to a queue. It ends with [`Nic::unsteer`] or the port.
#[derive(Debug)]
pub struct Rule(NonNull<c_void>);

// SAFETY: DPDK's functions on rules may be called from any thread.
unsafe impl Send for Rule {}
// SAFETY: a shared reference to a rule does nothing.
unsafe impl Sync for Rule {}

/// Gives frames up.
fn free(frames: &mut [*mut RawFrame]) {
    if !frames.is_empty() {
        // SAFETY: the callers own these frames, and do not use them any more.
        unsafe { shim::glimmer_dpdk_give_back(frames.as_mut_ptr(), frames.len() as u32) };
    }
}

/// A frame that was received.
pub struct Received<'p> {
    pub frame: Held<'p>,
    /// What hardware has found out about the checksum of the datagram.
    pub sum: SumSeen,
    /// It lies in one piece, and nothing else reads it.
    pub is_usable: bool,
    /// It is of a virtual network, and its tag has been taken off.
    pub was_tagged: bool,
}

/// A frame of a port that nothing else reads or writes. It is given up with this.
pub struct Held<'p> {
    frame: NonNull<RawFrame>,
    data: NonNull<u8>,
    bytes: usize,
    of: PhantomData<&'p Nic>,
}

impl<'p> Held<'p> {
    /// A frame that the caller owns, with this many bytes.
    fn of(frame: NonNull<RawFrame>, bytes: usize) -> Held<'p> {
        // SAFETY: the caller owns the frame.
        let data = unsafe { shim::glimmer_dpdk_data(frame.as_ptr()) };
        Held {
            frame,
            data: NonNull::new(data).expect("it has memory"),
            bytes,
            of: PhantomData,
        }
    }

    fn into_raw(self) -> *mut RawFrame {
        let frame = self.frame.as_ptr();
        std::mem::forget(self);
        frame
    }

    /// Makes it known by a number, by which it is to be given back.
    #[inline]
    pub fn into_id(self) -> u64 {
        self.into_raw().expose_provenance() as u64
    }

    /// Its bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: by the invariant they are initialised, and the borrow excludes writers.
        unsafe { std::slice::from_raw_parts(self.data.as_ptr(), self.bytes) }
    }

    /// Its bytes, to be written.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: by the invariant they are initialised, and the borrow excludes everything else.
        unsafe { std::slice::from_raw_parts_mut(self.data.as_ptr(), self.bytes) }
    }

    /// Makes it a frame of this length that can be sent. `sums`: who computes its checksum.
    ///
    /// # Panics
    ///
    /// If it has fewer bytes.
    #[inline]
    pub fn finish(&mut self, bytes: usize, sums: Sums, is_v6: bool) {
        assert!(bytes <= self.bytes && bytes <= usize::from(u16::MAX));
        self.bytes = bytes;
        let leaves = i32::from(sums == Sums::LeftToHardware);
        // SAFETY: the frame is ours, in one piece, and has at least as many bytes.
        unsafe {
            shim::glimmer_dpdk_finish(self.frame.as_ptr(), bytes as u16, leaves, is_v6.into());
        }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        free(&mut [self.frame.as_ptr()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_have_room_for_the_longest_frame_in_whole_kib() {
        for mtu in (1448..=16_000).chain([MTU_USUAL_MAX]) {
            // SAFETY: it takes a number.
            let bytes = unsafe { shim::glimmer_dpdk_data_bytes(frame_bytes_max(mtu) as u32) };
            assert_eq!(bytes % 1024, 0, "{mtu}");
            assert!(bytes >= u32::from(mtu) + 26, "{mtu}: {bytes}");
            assert_eq!(bytes == 2048, mtu <= MTU_USUAL_MAX, "{mtu}: {bytes}");
        }
    }

    /// The values are `RTE_MBUF_F_RX_L4_CKSUM_UNKNOWN`, `BAD`, `GOOD` and `NONE`.
    #[test]
    fn a_driver_says_one_of_four_things_of_a_checksum() {
        let (bad, good) = (1 << 3, 1 << 8);
        let expected = [
            (0, 0),
            (bad, 0),
            (good, shim::IS_CHECKED),
            (bad | good, shim::IS_PARTIAL),
        ];
        for (said, flags) in expected {
            // SAFETY: it takes a number.
            let found = unsafe { shim::glimmer_dpdk_sum_flags(said) };
            assert_eq!(found, flags, "{said}");
        }
    }
}
