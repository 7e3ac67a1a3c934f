//! One queue of an interface: its memory for frames, and the frames that are free.
//!
//! The memory belongs to a root socket, which neither receives nor sends anything. The sockets of
//! devices share it, so that any number of them may be at one queue. Fill and completion ring
//! belong to the memory and have one user at a time, who holds the lock of [`Pool`]. It is held for
//! the exchange of a burst's addresses and never during a system call that waits.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Duration;

use glimmer_base::limits::{
    XDP_FILL_FRAMES_LOW, XDP_FRAMES_PER_QUEUE, XDP_RING_ENTRIES, XDP_SEND_FRAMES_MIN,
};
use glimmer_base::sync::{Mutex, MutexGuard};

use super::ring::{Consumer, Producer};
use super::socket::{self, Descriptor, XskSocket};
use super::umem::Umem;

/// A queue that is in use is tried again this many times before that is an error: for five seconds.
/// The kernel gives one up under a lock that it also holds while network namespaces end.
const BUSY_TRIES: u32 = 250;
/// The time between two tries.
const BUSY_PAUSE: Duration = Duration::from_millis(20);

/// Binds a socket. The kernel gives up a queue only some time after the process that had it has
/// ended, and says until then that it is in use. Uses up `tries`.
fn patiently(tries: &mut u32, bind: impl Fn() -> io::Result<()>) -> io::Result<()> {
    loop {
        match bind() {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) && *tries > 0 => {
                *tries -= 1;
                std::thread::sleep(BUSY_PAUSE);
            }
            done => return done,
        }
    }
}

/// Bytes of memory that a queue takes with frames of this length, and with this many sockets: the
/// frames, the two rings of their addresses and the ring that stays unused, and two rings of each
/// socket.
pub fn queue_bytes(frame_bytes: u32, sockets: usize) -> usize {
    let (address, entry) = (size_of::<u64>(), size_of::<Descriptor>());
    let of_frame = frame_bytes as usize + 2 * address + entry;
    XDP_FRAMES_PER_QUEUE as usize * of_frame + sockets * 2 * XDP_RING_ENTRIES as usize * entry
}

/// A queue of an interface.
pub struct Queue {
    /// The interface's number and the queue's.
    place: (u32, u32),
    root: OwnedFd,
    pub umem: Umem,
    pool: Mutex<Pool>,
    is_zero_copy: bool,
}

/// Where the frames are that no socket and no batch has.
struct Pool {
    fill: Producer<u64>,
    completion: Consumer<u64>,
    free: Vec<u64>,
}

impl Pool {
    /// Takes the frames back that have been sent.
    fn collect(&mut self, umem: &Umem) {
        while let Some(address) = self.completion.next() {
            self.free.push(umem.frame_of(address));
        }
        self.completion.tell();
    }

    /// Gives the kernel frames to fill, but keeps some to send unless the kernel has hardly any.
    fn refill(&mut self) {
        while let Some(&address) = self.free.last() {
            let is_spare = self.free.len() > XDP_SEND_FRAMES_MIN;
            if !(is_spare || self.fill.waiting() < XDP_FILL_FRAMES_LOW) || !self.fill.push(address)
            {
                break;
            }
            self.free.pop();
        }
        self.fill.show();
    }
}

impl Queue {
    /// Opens a queue, with frames of this length. Nothing is received before
    /// [`Queue::socket`] is called.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn open(place: (u32, u32), frame_bytes: u32, may_zero_copy: bool) -> io::Result<Queue> {
        let umem = Umem::new(XDP_FRAMES_PER_QUEUE, frame_bytes)?;
        let root = socket::open()?;
        socket::register(root.as_fd(), &umem)?;
        let (fill, completion) = socket::pool_rings(root.as_fd(), XDP_FRAMES_PER_QUEUE)?;
        // This ring stays unused, but a driver that copies nothing collects the entries of all
        // sockets of the queue in an array as long as it, and does not check that length. There
        // cannot be more entries than frames.
        drop(socket::tx_ring(root.as_fd(), XDP_FRAMES_PER_QUEUE)?);
        // So does this one, but the kernel wakes the driver only for a socket that could receive.
        drop(socket::rx_ring(root.as_fd(), 1)?);
        let mut patience = BUSY_TRIES;
        let mut bind = |way| {
            let flags = way | libc::XDP_USE_NEED_WAKEUP;
            patiently(&mut patience, || {
                socket::bind(root.as_fd(), place, flags, None)
            })
        };
        let is_bound = may_zero_copy && bind(libc::XDP_ZEROCOPY).is_ok();
        if !is_bound {
            bind(libc::XDP_COPY)?;
        }
        let mut pool = Pool {
            fill,
            completion,
            free: umem.addresses().collect(),
        };
        pool.refill();
        Ok(Queue {
            place,
            is_zero_copy: socket::is_zero_copy(root.as_fd())?,
            root,
            umem,
            pool: Mutex::new(pool),
        })
    }

    /// A socket of a device at this queue.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn socket(&self) -> io::Result<XskSocket> {
        XskSocket::beside(self.root.as_fd(), self.place, XDP_RING_ENTRIES)
    }

    /// Whether frames are not copied.
    pub fn is_zero_copy(&self) -> bool {
        self.is_zero_copy
    }

    /// Takes the frames back that have been sent, and gives the kernel frames to fill. Replies that
    /// leave in the frames of their requests come back by no other way.
    #[inline]
    pub fn recycle(&self) {
        self.give_back(std::iter::empty());
    }

    /// Takes frames back that nobody reads or writes any more, and those that have been sent.
    #[inline]
    pub fn give_back(&self, addresses: impl Iterator<Item = u64>) {
        let needs_wakeup = {
            let mut pool = self.pool();
            pool.free
                .extend(addresses.map(|address| self.umem.frame_of(address)));
            pool.collect(&self.umem);
            pool.refill();
            pool.fill.needs_wakeup()
        };
        if needs_wakeup {
            // What the driver refuses now, it is asked again with the next frames.
            let _ = self.kick_fill();
        }
    }

    /// Has a driver that ran out of frames go on with those that it is to fill.
    fn kick_fill(&self) -> io::Result<()> {
        socket::kick_fill(self.root.as_fd())
    }

    /// Takes a free frame, if there is one.
    #[inline]
    pub fn take(&self) -> Option<u64> {
        let mut pool = self.pool();
        if pool.free.is_empty() {
            pool.collect(&self.umem);
        }
        pool.free.pop()
    }

    /// Frames that are free to be sent, and those that wait to be filled.
    pub fn spare(&self) -> (usize, u32) {
        let pool = self.pool();
        (pool.free.len(), pool.fill.waiting())
    }

    fn pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Interface;
    use crate::xdp::veth::{INTERFACE, Veth};

    /// Only zero-copy drivers need the wake-up, but the kernel says for all whether it is possible.
    #[test]
    fn a_driver_that_ran_out_of_frames_can_be_woken() {
        let Some(veth) = Veth::new(false) else { return };
        veth.ends()[0].run(|| {
            let interface = Interface::named(INTERFACE).unwrap().unwrap();
            let queue = Queue::open((interface.index, 0), 2048, true).unwrap();
            queue.kick_fill().unwrap();
        });
    }

    #[test]
    fn a_queue_that_is_given_up_late_is_waited_for() {
        let Some(veth) = Veth::new(false) else { return };
        veth.ends()[0].run(|| {
            let place = (Interface::named(INTERFACE).unwrap().unwrap().index, 0);
            let first = Queue::open(place, 2048, true).unwrap();
            let opened = std::thread::scope(|scope| {
                // A machine that is busy with other namespaces may take several times as long.
                let mut attempts = (0..6).map(|_| Queue::open(place, 2048, true));
                let second = scope.spawn(move || attempts.any(|opened| opened.is_ok()));
                std::thread::sleep(3 * BUSY_PAUSE);
                drop(first);
                second.join().unwrap()
            });
            assert!(opened);
        });
    }

    #[test]
    fn what_stays_in_use_is_an_error_after_some_tries() {
        let busy = || Err(io::Error::from_raw_os_error(libc::EBUSY));
        let mut tries = 2;
        assert!(patiently(&mut tries, busy).is_err());
        assert_eq!(tries, 0);
        let other = || Err(io::Error::from_raw_os_error(libc::EPERM));
        let mut tries = 2;
        assert!(patiently(&mut tries, other).is_err());
        assert_eq!(tries, 2, "other errors are told at once");
    }
}
