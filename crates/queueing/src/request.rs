//! One request on its way.

use glimmer_base::Keyhash;
use glimmer_dispatch::Ask;

/// A request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Request {
    /// When it arrived, in nanoseconds.
    pub arrived_ns: f64,
    /// Bytes of its value.
    pub bytes: u32,
    /// Whether the workload counts it among the large ones.
    pub is_large: bool,
    /// Whether it changes nothing.
    pub is_read: bool,
    /// Its key.
    pub keyhash: Keyhash,
}

impl Request {
    /// What is known of the request when it arrives.
    pub fn ask(&self) -> Ask {
        match self.is_read {
            true => Ask::Read,
            false => Ask::Write { bytes: self.bytes },
        }
    }
}
