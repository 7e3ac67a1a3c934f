//! Floor 4: load for caches, ours and others. What is asked ([`workload`]), how it is said ([`driver`]), when it is sent and what is measured ([`load`]),
//! and the comparisons that are made of it.

pub mod abuse;
pub mod ceiling;
pub mod client;
pub mod driver;
pub mod echo;
#[cfg(test)]
#[path = "../tests/support/enough.rs"]
mod enough;
pub mod footprint;
pub mod hit_ratio;
pub mod itself;
pub mod load;
pub mod machine;
pub mod native;
pub mod noise;
pub mod notation;
pub mod progress;
pub mod report;
pub mod servers;
pub mod sizing;
pub mod stalling;
pub mod stats;
pub mod store_alone;
pub mod trivial;
pub mod versus;
pub mod workload;

pub use workload::popularity;
