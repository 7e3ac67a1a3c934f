//! Which cores may execute a request.

use crate::PartitionMap;
use glimmer_base::Keyhash;
use std::fmt;
use std::str::FromStr;

/// Who may touch a partition (MICA §4.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessMode {
    /// Exclusive read, exclusive write: the owner alone, without any synchronisation.
    Erew,
    /// Concurrent read, exclusive write: any core reads optimistically, the owner writes.
    Crew,
    /// Concurrent read, concurrent write: any core reads and writes.
    Crcw,
}

impl AccessMode {
    /// Every access mode.
    pub const ALL: &'static [AccessMode] = &[AccessMode::Erew, AccessMode::Crew, AccessMode::Crcw];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            AccessMode::Erew => "erew",
            AccessMode::Crew => "crew",
            AccessMode::Crcw => "crcw",
        }
    }
}

impl fmt::Display for AccessMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for AccessMode {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = Self::ALL.iter().find(|mode| mode.name() == name);
        known.copied().ok_or_else(|| {
            format!(
                "one of {}",
                Self::ALL
                    .iter()
                    .map(|mode| mode.name())
                    .collect::<Vec<_>>()
                    .join(", ")
            )
        })
    }
}

/// How a store is spread over cores, and who may touch what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Which core owns each partition.
    pub map: PartitionMap,
    /// Who may touch a partition.
    pub access: AccessMode,
}

impl Layout {
    /// Whether a core may execute a request for the key.
    #[inline(always)]
    pub fn may_run(&self, core: usize, keyhash: Keyhash, is_read: bool) -> bool {
        match self.access {
            AccessMode::Crcw => true,
            AccessMode::Crew if is_read => true,
            AccessMode::Erew | AccessMode::Crew => self.map.owner(keyhash) == core,
        }
    }

    /// The core that a request at `core` belongs to: the owner of the key's partition, or `core`
    /// itself where every core may write.
    #[inline(always)]
    pub fn home(&self, core: usize, keyhash: Keyhash) -> usize {
        match self.access {
            AccessMode::Crcw => core,
            AccessMode::Erew | AccessMode::Crew => self.map.owner(keyhash),
        }
    }
}
