//! Limits of transports past the kernel's stack, and of busy polling.

use super::PACKET_BATCH_MAX;

/// Frames of each queue of an interface whose datagrams go past the kernel's stack, a power of two.
/// A frame is 2 KiB or 4 KiB long. When all of them wait to be read or sent, what arrives is lost
/// and counted.
pub const XDP_FRAMES_PER_QUEUE: u32 = 4 << 10;

/// Of these, frames that are kept to send. Further ones are given to the kernel to be filled.
pub const XDP_SEND_FRAMES_MIN: usize = 1 << 10;

/// When the kernel has fewer frames than this to fill, it gets those, too, that are otherwise kept
/// to send: with none it would receive nothing, and nothing would wake the worker.
pub const XDP_FILL_FRAMES_LOW: u32 = 64;

/// Microseconds for which a worker looks for datagrams before it sleeps, at most.
pub const BUSY_POLL_US_MAX: u32 = 1_000_000;

/// Packets that the kernel takes from a NIC's queue with one look, for a socket that polls busily.
pub const BUSY_POLL_BUDGET: u16 = 64;

/// Frames that may wait at one socket in either direction, a power of two. What arrives beyond them
/// is lost and counted; what is to be sent beyond them goes through the kernel's stack.
pub const XDP_RING_ENTRIES: u32 = 1 << 10;

/// Sockets at one interface: each worker has one for every queue and address. A server that would
/// have more does not start.
pub const XDP_SOCKETS_MAX: u32 = 4 << 10;

/// Addresses with their ports at one interface. A server that would have more does not start.
pub const XDP_ROUTES_MAX: u32 = 4 << 10;

/// Peers whose hardware addresses a device remembers. Long replies to others go through the
/// kernel's stack.
pub const XDP_PEERS: usize = 1 << 10;

/// Bytes of the longest packet that every path takes whole: the least MTU of IPv6 (RFC 8200, §5).
/// What goes past the kernel's stack to hosts that are not on the link is no longer, or may be
/// fragmented.
pub const PATH_BYTES_MAX: usize = 1280;

/// Free frames of a NIC that DPDK drives that a thread keeps for itself.
pub const DPDK_FRAMES_CACHED: u32 = 256;

/// Frames that may wait at a queue of such a NIC in either direction, if its driver has as many
/// places. What comes beyond them is lost and counted.
pub const DPDK_RING_ENTRIES: u16 = 1 << 10;

/// Devices of a worker that frames may wait for: two protocols over two families of addresses.
const DPDK_DEVICES_PER_WORKER: u32 = 4;

/// Frames of a NIC that DPDK drives, with this many queues for this many workers. A frame has room
/// for 2 KiB, or for the longest packet if that is longer. Wherever frames are, some are left to be
/// received and sent. Drivers may keep those in both directions of all queues, and each worker's
/// devices may be given as many as they keep. Each worker works on two bursts. Each thread,
/// including the one that opened the port, keeps some that are free, and gives some up when it has
/// half as many more.
pub const fn dpdk_frames(queues: usize, workers: usize) -> u32 {
    let of_queue = 2 * DPDK_RING_ENTRIES as u32;
    let free = DPDK_FRAMES_CACHED + DPDK_FRAMES_CACHED / 2;
    let waiting = DPDK_DEVICES_PER_WORKER * DPDK_ELSEWHERE_MAX as u32;
    let of_worker = free + waiting + 2 * PACKET_BATCH_MAX as u32;
    let others = free + 2 * PACKET_BATCH_MAX as u32;
    queues as u32 * of_queue + workers as u32 * of_worker + others
}

const _: () = assert!(
    dpdk_frames(1, 1) < 4 << 10,
    "a port with one worker takes little memory"
);

/// How often a burst is offered to a queue that is full before the rest of it is lost.
pub const DPDK_SEND_TRIES: u32 = 16;

/// Frames that are kept for a device because they arrived at another one's queue. What comes beyond
/// them is lost and counted.
pub const DPDK_ELSEWHERE_MAX: usize = 256;

/// A device past the kernel's stack looks at the time once in so many datagrams to a peer of which
/// it hears nothing. From the second time on it may doubt that the peer still has its hardware
/// address.
pub const PEER_UNHEARD_MAX: u32 = 8;

/// Milliseconds since the first look at the time after which such a peer is doubted.
pub const PEER_UNHEARD_MS: u64 = 100;

/// Neighbours whose hardware addresses are known for being asked, of a NIC that DPDK drives. One
/// more takes the place of any.
pub const DPDK_NEIGHBOURS_MAX: usize = 4 << 10;
