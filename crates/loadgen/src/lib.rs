//! Floor 4: load for caches, ours and others. Popularity of keys, values that can be verified, clients, and the peers to compare with.

pub mod hit_ratio;
pub mod popularity;
