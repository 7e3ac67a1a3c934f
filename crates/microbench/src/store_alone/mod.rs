//! Measures stores without sockets and protocol, in units of the machine's own speed: operations
//! per random read of a cache line (MICA's 2014 code reaches about 0.10). Tables by others are
//! driven by the same loop.

#[cfg(feature = "comparisons")]
mod candidate;
#[cfg(feature = "comparisons")]
mod drawn;
#[cfg(feature = "comparisons")]
mod heap_pages;
mod items;
#[cfg(feature = "comparisons")]
mod longest;
#[cfg(feature = "comparisons")]
mod measured;
#[cfg(feature = "comparisons")]
pub mod mirror;
mod mode;
mod operations;
#[cfg(feature = "comparisons")]
pub mod peers;
#[cfg(feature = "comparisons")]
mod report;
pub mod rig;
pub mod stream;
pub mod tables;

#[cfg(feature = "comparisons")]
pub use candidate::Candidate;
#[cfg(feature = "comparisons")]
pub use heap_pages::{HeapPages, Resident};
#[cfg(feature = "comparisons")]
pub use longest::{Longest, Times, longest};
#[cfg(feature = "comparisons")]
pub use measured::{Load, Options, run};
pub use mode::Mode;
#[cfg(feature = "comparisons")]
pub use report::Report;
pub use rig::Rig;
pub use tables::Ours;
