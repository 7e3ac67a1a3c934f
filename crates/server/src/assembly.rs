//! The only place that names concrete combinations of mode, access mode and eviction rule.

use crate::config::{AccessMode, Config, EvictionRule, HugepagePolicy, Mode};
use crate::memory_plan::MemoryPlan;
use glimmer_base::Seed;
use glimmer_engine::{Departures, Engine, Spread, build};
use glimmer_store::access::{Access, Crcw, Crew, Erew};
use glimmer_store::evict::{ApproxLru, Evict, Fifo, S3Fifo};
use glimmer_store::memory::PagePolicy;
use glimmer_store::partition::{ConfigError, Owner, PartitionConfig};
use glimmer_store::store_mode::{self, StoreConfig};
use std::sync::Arc;

/// Builds the store as planned, and for each worker the engine that drives it. Items that leave to make room are noted in `departures`.
pub fn engines(
    config: &Config,
    plan: &MemoryPlan,
    seed: Seed,
    numa_nodes: Vec<u32>,
    departures: &Arc<Departures>,
) -> Result<Vec<Box<dyn Engine>>, ConfigError> {
    let spread = Spread {
        partitions: plan.partitions,
        workers: config.workers,
        numa_nodes,
    };
    if config.mode == Mode::Store {
        let partition = StoreConfig {
            bytes: plan.log_bytes,
            item_bytes_max: plan.item_bytes_max,
            pages: pages(config.hugepages),
            seed,
            ..StoreConfig::default()
        };
        return match config.access {
            AccessMode::Erew => store::<Erew>(&spread, &partition),
            AccessMode::Crew => store::<Crew>(&spread, &partition),
            AccessMode::Crcw => store::<Crcw>(&spread, &partition),
        };
    }
    let partition = PartitionConfig {
        log_bytes: plan.log_bytes,
        main_buckets: plan.main_buckets,
        spare_buckets: plan.spare_buckets,
        item_bytes_max: plan.item_bytes_max,
        pages: pages(config.hugepages),
        seed,
        ..PartitionConfig::default()
    };
    match config.access {
        AccessMode::Erew => with_rule::<Erew>(config, &spread, &partition, departures),
        AccessMode::Crew => with_rule::<Crew>(config, &spread, &partition, departures),
        AccessMode::Crcw => with_rule::<Crcw>(config, &spread, &partition, departures),
    }
}

fn with_rule<A: Access>(
    config: &Config,
    spread: &Spread,
    partition: &PartitionConfig,
    departures: &Arc<Departures>,
) -> Result<Vec<Box<dyn Engine>>, ConfigError> {
    match config.evict {
        EvictionRule::Fifo => cache::<A, _>(spread, partition, departures, Fifo),
        EvictionRule::Lru => cache::<A, _>(
            spread,
            partition,
            departures,
            ApproxLru::new(config.lru_threshold),
        ),
        EvictionRule::S3Fifo => cache::<A, _>(spread, partition, departures, S3Fifo),
    }
}

fn cache<A: Access, E: Evict>(
    spread: &Spread,
    partition: &PartitionConfig,
    departures: &Arc<Departures>,
    rule: E,
) -> Result<Vec<Box<dyn Engine>>, ConfigError> {
    build(spread, |numa_node| {
        let partition = PartitionConfig {
            numa_node,
            ..*partition
        };
        let mut owner = Owner::<A, E>::new(&partition, rule.clone())?;
        owner.note_departures(departures.clone());
        Ok(owner)
    })
}

fn store<A: Access>(
    spread: &Spread,
    partition: &StoreConfig,
) -> Result<Vec<Box<dyn Engine>>, ConfigError> {
    build(spread, |numa_node| {
        store_mode::Owner::<A>::new(&StoreConfig {
            numa_node,
            ..*partition
        })
    })
}

fn pages(policy: HugepagePolicy) -> PagePolicy {
    match policy {
        HugepagePolicy::Auto => PagePolicy::Auto,
        HugepagePolicy::Hugetlb => PagePolicy::Hugetlb,
        HugepagePolicy::Transparent => PagePolicy::Transparent,
        HugepagePolicy::Off => PagePolicy::Small,
    }
}
