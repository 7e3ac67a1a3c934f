//! Bodies in software: what takes the paper's operations and answers look-ups.
//!
//! | file | idea |
//! | --- | --- |
//! | `circuit` | the paper's circuit as a model: one memory for values, counts, a write mode |
//! | `model` | the coherent accelerator under the same operations |
//! | `loader` | the program that brings keys into a device with a memory for values |

mod circuit;
mod loader;
mod model;

pub use circuit::{Circuit, CircuitItem, Hash};
pub use loader::{Loaded, Loader};
pub use model::Model;

use crate::device::Device;

/// A device that can be asked for the value of a key.
pub trait LookUp: Device {
    /// The value of a key; `None` for a miss, and in write mode.
    fn look_up(&mut self, key: &[u8]) -> Option<Vec<u8>>;

    /// The primary and the secondary slot of a key.
    fn places(&self, key: &[u8]) -> [usize; 2];
}
