//! The only place that names concrete combinations of access mode and eviction rule.

use crate::config::{AccessMode, Config, EvictionRule, HugepagePolicy};
use crate::memory_plan::MemoryPlan;
use glimmer_base::Seed;
use glimmer_engine::{Engine, Spread, StoreConfig, build};
use glimmer_store::access::{Crcw, Crew, Erew};
use glimmer_store::evict::{ApproxLru, Fifo, S3Fifo};
use glimmer_store::memory::PagePolicy;
use glimmer_store::partition::{ConfigError, PartitionConfig};

/// Builds the store as planned, and for each worker the engine that drives it.
pub fn engines(
    config: &Config,
    plan: &MemoryPlan,
    seed: Seed,
    numa_nodes: Vec<u32>,
) -> Result<Vec<Box<dyn Engine>>, ConfigError> {
    let store = StoreConfig {
        partitions: plan.partitions,
        workers: config.workers,
        partition: PartitionConfig {
            log_bytes: plan.log_bytes,
            main_buckets: plan.main_buckets,
            spare_buckets: plan.spare_buckets,
            item_bytes_max: plan.item_bytes_max,
            pages: pages(config.hugepages),
            seed,
            ..PartitionConfig::default()
        },
        numa_nodes,
    };
    match config.access {
        AccessMode::Erew => with_rule::<Erew>(config, &store),
        AccessMode::Crew => with_rule::<Crew>(config, &store),
        AccessMode::Crcw => with_rule::<Crcw>(config, &store),
    }
}

fn with_rule<A: Spread>(
    config: &Config,
    store: &StoreConfig,
) -> Result<Vec<Box<dyn Engine>>, ConfigError> {
    match config.evict {
        EvictionRule::Fifo => build::<A, _>(store, Fifo),
        EvictionRule::Lru => build::<A, _>(store, ApproxLru::new(config.lru_threshold)),
        EvictionRule::S3Fifo => build::<A, _>(store, S3Fifo),
    }
}

fn pages(policy: HugepagePolicy) -> PagePolicy {
    match policy {
        HugepagePolicy::Auto => PagePolicy::Auto,
        HugepagePolicy::Hugetlb => PagePolicy::Hugetlb,
        HugepagePolicy::Transparent => PagePolicy::Transparent,
        HugepagePolicy::Off => PagePolicy::Small,
    }
}
