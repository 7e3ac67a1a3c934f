//! The directory: tells a client the port for each request (MICA §4.2.2).
//!
//! | byte | bytes | content |
//! | --- | --- | --- |
//! | 0 | 8 | token |
//! | 8 | 8 | seed of the keyhash |
//! | 16 | 4 | item limit in bytes |
//! | 20 | 2 | partitions |
//! | 22 | 2 | cores |
//! | 24 | 1 | mode: 1 cache, 2 store |
//! | 25 | 1 | access: 1 EREW, 2 CREW, 3 CRCW |
//! | 26 | 1 | who directs requests to the core that owns their key: 0 the client, 1 the server |
//! | 27 | 1 | 1 and the seconds since the server began, 255 at most; 0 if no item may be older |
//! | 28 | 4 | seconds for which the token is valid |
//! | 32 | 4 | mutations of one client that a core remembers |
//! | 36 | 2 each | UDP port of each core |
//!
//! Core `c` listens at the `c`-th port. The partition `p` of a key is the high 16 bits of its
//! keyhash, times `partitions`, shifted right by 16. Core `p mod cores` owns it.

use super::{u16_at, u32_at, u64_at};
use glimmer_base::Seed;
use glimmer_base::limits::{PARTITIONS_MAX, WORKERS_MAX};

/// Bytes before the ports.
const HEAD_BYTES: usize = 36;
/// Length in bytes of the longest directory reply, including the datagram's header. Every server
/// answers a request of this length.
pub const REPLY_BYTES_MAX: usize = super::ReplyHeader::BYTES + HEAD_BYTES + 2 * WORKERS_MAX;

/// A server that has been there for longer says this many seconds.
pub const BEGUN_S_MAX: u8 = u8::MAX - 1;

/// Who may touch a partition (MICA §4.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Access {
    /// Only the owner reads and writes.
    Erew = 1,
    /// The owner writes; any core reads.
    Crew = 2,
    /// Any core reads and writes.
    Crcw = 3,
}

/// Who directs requests to the core that owns their key (MICA §4.2.2, §5.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Direction {
    /// The client, by the destination port. Requests at a wrong port are refused.
    #[default]
    Client = 0,
    /// The server, in software. Requests at a wrong port are forwarded to their owner.
    Server = 1,
}

/// What happens when the memory is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Mode {
    /// Items are evicted.
    Cache = 1,
    /// Stores are refused.
    Store = 2,
}

/// A server's description of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directory {
    /// The address validation token for this client.
    pub token: u64,
    /// How long the token is valid, in seconds.
    pub token_s: u32,
    /// The seed of the keyhash.
    pub seed: Seed,
    /// Largest item in bytes, including key and header.
    pub item_bytes_max: u32,
    /// Number of partitions.
    pub partitions: u16,
    /// What happens when the memory is full.
    pub mode: Mode,
    /// Who may touch a partition.
    pub access: Access,
    /// Who directs requests.
    pub direction: Direction,
    /// Mutations of one client that a core remembers. At most this many may be in flight to a core,
    /// counted from the oldest unanswered one.
    pub mutation_window: u32,
    /// If items may be older than the server, the whole seconds for which it has been there, at
    /// most [`BEGUN_S_MAX`]. They are those of another server, which had ended by then, and may
    /// have executed what it never answered.
    pub begun_s: Option<u8>,
    /// The UDP port of each core. At least one.
    pub ports: Vec<u16>,
}

impl Directory {
    /// Parses the content of a datagram after its header. `None` if it is invalid.
    pub fn read(bytes: &[u8]) -> Option<Directory> {
        let (partitions, cores) = (u16_at(bytes, 20)?, usize::from(u16_at(bytes, 22)?));
        let mode = match bytes.get(24)? {
            1 => Mode::Cache,
            2 => Mode::Store,
            _ => return None,
        };
        let access = match bytes.get(25)? {
            1 => Access::Erew,
            2 => Access::Crew,
            3 => Access::Crcw,
            _ => return None,
        };
        let direction = match bytes.get(26)? {
            0 => Direction::Client,
            1 => Direction::Server,
            _ => return None,
        };
        if !(1..=PARTITIONS_MAX).contains(&usize::from(partitions))
            || !(1..=WORKERS_MAX).contains(&cores)
        {
            return None;
        }
        let ports = bytes.get(HEAD_BYTES..HEAD_BYTES + 2 * cores)?;
        if ports.as_chunks::<2>().0.contains(&[0, 0]) {
            // Nothing can be sent there.
            return None;
        }
        Some(Directory {
            token: u64_at(bytes, 0)?,
            seed: Seed(u64_at(bytes, 8)?),
            item_bytes_max: u32_at(bytes, 16)?,
            partitions,
            mode,
            access,
            direction,
            token_s: u32_at(bytes, 28)?,
            mutation_window: u32_at(bytes, 32)?,
            begun_s: bytes[27].checked_sub(1),
            ports: ports
                .as_chunks::<2>()
                .0
                .iter()
                .map(|port| u16::from_le_bytes(*port))
                .collect(),
        })
    }

    /// Appends the directory.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut head = [0; HEAD_BYTES];
        head[0..8].copy_from_slice(&self.token.to_le_bytes());
        head[8..16].copy_from_slice(&self.seed.0.to_le_bytes());
        head[16..20].copy_from_slice(&self.item_bytes_max.to_le_bytes());
        head[20..22].copy_from_slice(&self.partitions.to_le_bytes());
        head[22..24].copy_from_slice(&(self.ports.len() as u16).to_le_bytes());
        head[24] = self.mode as u8;
        head[25] = self.access as u8;
        head[26] = self.direction as u8;
        head[27] = self.begun_s.map_or(0, |begun_s| begun_s.saturating_add(1));
        head[28..32].copy_from_slice(&self.token_s.to_le_bytes());
        head[32..36].copy_from_slice(&self.mutation_window.to_le_bytes());
        out.extend_from_slice(&head);
        for port in &self.ports {
            out.extend_from_slice(&port.to_le_bytes());
        }
    }

    /// Whether any core may read any partition.
    #[inline]
    pub fn shares_reads(&self) -> bool {
        self.access != Access::Erew
    }
}
