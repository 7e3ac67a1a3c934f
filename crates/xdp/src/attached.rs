//! A program at an interface.

use crate::error::Error;
use crate::settings::{Mode, Settings};
use glimmer_hotset::Memory;
use std::sync::Arc;

/// A packet program that is attached. Dropping it detaches the program; so does the end of the
/// process, however it ends.
#[derive(Debug)]
pub struct Attached {
    memory: Arc<Memory>,
    mode: Mode,
}

impl Attached {
    /// The memory that the program answers from. It stays valid after the program is detached.
    pub fn memory(&self) -> Arc<Memory> {
        self.memory.clone()
    }

    /// How the program is attached.
    pub fn mode(&self) -> Mode {
        self.mode
    }
}

/// Loads the program and attaches it. All slots are empty.
///
/// # Errors
///
/// Why that is not possible. Nothing is left attached then.
pub fn attach(settings: &Settings) -> Result<Attached, Error> {
    let _ = settings;
    Err(Error::KernelTooOld("the loader does not exist yet"))
}

/// Bytes of memory that the program's maps take with this number of slots.
pub fn memory_bytes(slots: usize) -> usize {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    glimmer_hotset::bytes(slots, cpus)
}
