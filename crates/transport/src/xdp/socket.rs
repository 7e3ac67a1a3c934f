//! Sockets of the family AF_XDP: the calls of linux/if_xdp.h.
#![allow(unsafe_code, reason = "the kernel is given pointers")]

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::ring::{Consumer, Producer};
use super::umem::Umem;

/// What a ring of received frames and one of frames to be sent have as entries.
pub type Descriptor = libc::xdp_desc;

/// A socket that is not bound yet.
pub fn open() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: it takes no pointer.
    let fd = unsafe { libc::socket(libc::AF_XDP, kind, 0) };
    match fd {
        0.. => {
            // SAFETY: the kernel has just returned it, and nothing else owns it.
            Ok(unsafe { OwnedFd::from_raw_fd(fd) })
        }
        _ => Err(io::Error::last_os_error()),
    }
}

/// Gives a socket the memory for frames.
pub fn register(socket: BorrowedFd<'_>, umem: &Umem) -> io::Result<()> {
    let memory = libc::xdp_umem_reg {
        addr: umem.start().addr().get() as u64,
        len: umem.bytes() as u64,
        chunk_size: umem.frame_bytes(),
        headroom: 0,
        flags: 0,
        tx_metadata_len: 0,
    };
    set(socket, libc::SOL_XDP, libc::XDP_UMEM_REG, &memory)
}

/// The two rings by which frames go to the kernel and come back.
pub fn pool_rings(
    socket: BorrowedFd<'_>,
    entries: u32,
) -> io::Result<(Producer<u64>, Consumer<u64>)> {
    set(socket, libc::SOL_XDP, libc::XDP_UMEM_FILL_RING, &entries)?;
    set(
        socket,
        libc::SOL_XDP,
        libc::XDP_UMEM_COMPLETION_RING,
        &entries,
    )?;
    let offsets = offsets(socket)?;
    let fill = Producer::new(socket, libc::XDP_UMEM_PGOFF_FILL_RING, &offsets.fr, entries)?;
    let at = libc::XDP_UMEM_PGOFF_COMPLETION_RING;
    Ok((fill, Consumer::new(socket, at, &offsets.cr, entries)?))
}

/// The ring of received frames.
pub fn rx_ring(socket: BorrowedFd<'_>, entries: u32) -> io::Result<Consumer<Descriptor>> {
    set(socket, libc::SOL_XDP, libc::XDP_RX_RING, &entries)?;
    let at = libc::XDP_PGOFF_RX_RING as u64;
    Consumer::new(socket, at, &offsets(socket)?.rx, entries)
}

/// The ring of frames to be sent.
pub fn tx_ring(socket: BorrowedFd<'_>, entries: u32) -> io::Result<Producer<Descriptor>> {
    set(socket, libc::SOL_XDP, libc::XDP_TX_RING, &entries)?;
    let at = libc::XDP_PGOFF_TX_RING as u64;
    Producer::new(socket, at, &offsets(socket)?.tx, entries)
}

/// Binds a socket to a queue of an interface. A socket that shares another one's memory names that
/// one, and goes by its flags.
pub fn bind(
    socket: BorrowedFd<'_>,
    (interface, queue): (u32, u32),
    flags: u16,
    shared: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let address = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: if shared.is_some() {
            libc::XDP_SHARED_UMEM
        } else {
            flags
        },
        sxdp_ifindex: interface,
        sxdp_queue_id: queue,
        sxdp_shared_umem_fd: shared.map_or(0, |shared| shared.as_raw_fd() as u32),
    };
    // SAFETY: the address is borrowed for the call and as long as stated.
    let bound = unsafe {
        libc::bind(
            socket.as_raw_fd(),
            (&raw const address).cast(),
            size_of::<libc::sockaddr_xdp>() as libc::socklen_t,
        )
    };
    succeeded(bound)
}

/// Whether the driver and this process share the frames, and nothing is copied.
pub fn is_zero_copy(socket: BorrowedFd<'_>) -> io::Result<bool> {
    let options: libc::xdp_options = get(socket, libc::XDP_OPTIONS)?;
    Ok(options.flags & libc::XDP_OPTIONS_ZEROCOPY != 0)
}

/// What the kernel has counted for a socket.
pub fn statistics(socket: BorrowedFd<'_>) -> io::Result<libc::xdp_statistics> {
    get(socket, libc::XDP_STATISTICS)
}

/// Has the kernel go on with a socket's frames to be sent. An error says that some of them stay.
#[inline]
pub fn kick_send(socket: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: there are no bytes, and no address.
    let sent = unsafe {
        libc::sendto(
            socket.as_raw_fd(),
            std::ptr::null(),
            0,
            libc::MSG_DONTWAIT,
            std::ptr::null(),
            0,
        )
    };
    succeeded(sent.min(0) as libc::c_int)
}

/// Has the kernel go on with the frames that it is to fill. An error says that it does not.
#[inline]
pub fn kick_fill(socket: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: there is no room for bytes, and none for an address.
    let received = unsafe {
        libc::recvfrom(
            socket.as_raw_fd(),
            std::ptr::null_mut(),
            0,
            libc::MSG_DONTWAIT,
            std::ptr::null_mut(),
            std::ptr::null_mut(),
        )
    };
    succeeded(received.min(0) as libc::c_int)
}

/// Whether a call failed because the interface is down, or has gone and left the socket behind.
pub fn is_away(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENETDOWN | libc::ENXIO))
}

fn offsets(socket: BorrowedFd<'_>) -> io::Result<libc::xdp_mmap_offsets> {
    get(socket, libc::XDP_MMAP_OFFSETS)
}

/// Sets an option to a value that has no pointers.
pub fn set<T: Copy>(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    option: libc::c_int,
    value: &T,
) -> io::Result<()> {
    // SAFETY: the value is borrowed for the call, and as long as stated.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    succeeded(done)
}

/// Structures of the kernel that consist of numbers.
trait Numbers: Copy {}
impl Numbers for libc::xdp_mmap_offsets {}
impl Numbers for libc::xdp_options {}
impl Numbers for libc::xdp_statistics {}

fn get<T: Numbers>(socket: BorrowedFd<'_>, option: libc::c_int) -> io::Result<T> {
    let mut value = MaybeUninit::<T>::zeroed();
    let mut bytes = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel writes at most as many bytes as the value has.
    let done = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_XDP,
            option,
            value.as_mut_ptr().cast(),
            &raw mut bytes,
        )
    };
    succeeded(done)?;
    if (bytes as usize) < size_of::<T>() {
        return Err(io::Error::other(
            "the kernel is too old for AF_XDP: Linux 5.10 is needed",
        ));
    }
    // SAFETY: zeros, and whatever the kernel writes, are valid numbers.
    Ok(unsafe { value.assume_init() })
}

fn succeeded(result: libc::c_int) -> io::Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A socket with rings for both directions, bound to the queue of another socket, whose memory it
/// shares.
pub struct XskSocket {
    fd: OwnedFd,
    pub rx: Consumer<Descriptor>,
    pub tx: Producer<Descriptor>,
}

impl XskSocket {
    /// Opens and binds it.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn beside(root: BorrowedFd<'_>, queue: (u32, u32), entries: u32) -> io::Result<XskSocket> {
        let fd = open()?;
        let rx = rx_ring(fd.as_fd(), entries)?;
        let tx = tx_ring(fd.as_fd(), entries)?;
        bind(fd.as_fd(), queue, 0, Some(root))?;
        Ok(XskSocket { fd, rx, tx })
    }
}

impl AsFd for XskSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
