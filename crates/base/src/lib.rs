//! Floor 0: what every other floor agrees on. The keyhash, the limits, time as the store sees it,
//! and the switch between the standard library's atomics and loom's. No I/O happens here.

pub mod counter;
pub mod keyhash;
pub mod limits;
pub mod short;
pub mod sync;
pub mod time;

pub use keyhash::{Keyhash, Seed};
pub use time::{Expiry, Moment};
