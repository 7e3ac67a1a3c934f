//! Floor 0: definitions shared by every other floor. It has the keyhash and the server's own hash
//! of keys, the checksum of stored bytes, the limits, time as the store sees it, and the switch
//! between the standard library's atomics and loom's. This crate does no I/O.

pub mod checksum;
pub mod counter;
pub mod hasher;
pub mod keyhash;
pub mod limits;
pub mod region;
pub mod short;
pub mod shown;
pub mod sync;
pub mod time;

pub use checksum::checksum;
pub use hasher::KeyHasher;
pub use keyhash::{Keyhash, Seed};
pub use region::Region;
pub use time::{Expiry, Moment};
