//! What needs unsafe code, behind safe faces.

pub mod buffers;
pub mod cpu_time;
#[cfg(feature = "xdp")]
pub mod destinations;
pub mod ethtool;
pub mod events;
pub mod frames;
pub mod headers;
pub mod heap;
pub mod name;
pub mod options;
pub mod refusals;
pub mod slices;
pub mod steering;
pub mod stream;
pub mod udp;
