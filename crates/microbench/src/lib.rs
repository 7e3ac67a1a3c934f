//! Floor 4: tables in one process, without a server or a client. It measures their throughput next
//! to other tables ([`store_alone`]), the hit ratios of eviction rules ([`hit_ratio`]), and what
//! segcache keeps ([`segcache_kept`]).
//!
//! Without the feature `comparisons` it has our own tables alone, and the loop that drives them.

#[cfg(feature = "comparisons")]
pub mod hit_ratio;
#[cfg(feature = "comparisons")]
pub mod segcache_kept;
pub mod sizing;
pub mod store_alone;

pub use glimmer_store::evict;
