//! Floor 4: load for caches, ours and others. Popularity of keys, values that can be verified, clients, and the peers to compare with.

pub mod ceiling;
pub mod client;
pub mod driver;
pub mod footprint;
pub mod hit_ratio;
pub mod load;
pub mod machine;
pub mod report;
pub mod servers;
pub mod sizing;
pub mod stats;
pub mod store_alone;
pub mod trivial;
pub mod versus;
pub mod workload;

pub use workload::popularity;
