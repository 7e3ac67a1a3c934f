//! Access modes.

use glimmer_store::access::{Access, Crcw, Crew, Erew};

/// An access mode (MICA §4.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Only the owner accesses a partition.
    Erew,
    /// Any core reads; the owner writes.
    Crew,
    /// Any core reads and writes.
    Crcw,
}

impl Mode {
    /// All of them.
    pub const ALL: [Mode; 3] = [Mode::Erew, Mode::Crew, Mode::Crcw];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Erew => Erew::NAME,
            Mode::Crew => Crew::NAME,
            Mode::Crcw => Crcw::NAME,
        }
    }
}
