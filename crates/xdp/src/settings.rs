//! What the packet program is told.

use std::net::IpAddr;

/// How the program is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// XDP in the network driver: the program sees a packet before the kernel has a buffer for it.
    Driver,
    /// XDP in the kernel's receive path, for drivers without XDP.
    Generic,
    /// The tcx hook of incoming packets, which stands beside an XDP program of somebody else.
    Tcx,
}

/// What the packet program is told when it is attached. It does not change afterwards.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The interface's index.
    pub ifindex: u32,
    /// How the program is attached.
    pub mode: Mode,
    /// Number of slots.
    pub slots: usize,
    /// Seed of the hash that places keys in slots.
    pub seed: u64,
    /// The server's UDP port for memcached's protocols.
    pub port: u16,
    /// The interface's hardware address.
    pub mac: [u8; 6],
    /// The addresses that are answered for, at most [`ADDRESSES_MAX`] of each family.
    ///
    /// [`ADDRESSES_MAX`]: glimmer_base::limits::HOT_ADDRESSES_MAX
    pub addresses: Vec<IpAddr>,
    /// Who is answered.
    pub sources: Sources,
}

/// Who is answered. A request from elsewhere goes to the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sources {
    /// Every host.
    Any,
    /// Hosts whose addresses begin with the same bits as one of these, at most [`SOURCES_MAX`] of
    /// each family. An entry is an address and the number of bits.
    ///
    /// [`SOURCES_MAX`]: glimmer_base::limits::HOT_SOURCES_MAX
    Networks(Vec<(IpAddr, u8)>),
}
