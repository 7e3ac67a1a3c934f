//! The only place that names concrete combinations of mode, table, access mode and eviction rule.

use crate::attach;
use crate::config::{AccessMode, Config, HugepagePolicy, Mode, TableKind};
use crate::memory_plan::MemoryPlan;
use glimmer_base::KeyHasher;
use glimmer_base::limits::ASIDES_PART;
use glimmer_dispatch::PartitionMap;
use glimmer_engine::{
    ChangeObserver, Engine, FlushClock, Groups, Rebuild, Spread, Uniques, build_observed, rebuild,
};
use glimmer_node::Observers;
use glimmer_store::access::{Access, Crcw, Crew, Erew};
use glimmer_store::evict::Learner;
use glimmer_store::memc3;
use glimmer_store::memory::{InFile, MemoryFile, PagePolicy, PagesAhead};
use glimmer_store::mica_cache::{Owner, PartitionConfig};
use glimmer_store::mica_store::{self, StoreConfig};
use glimmer_store::removals::Tap;
use glimmer_store::table::{Asides, Attach, ConfigError, Table};
use glimmer_transport::run_behind_others;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// A server whose instructions are counted has one worker and the default table. It is compiled for
/// nothing else: there are nine pairs of a table and an access mode, and each is most of an engine.
const IS_COUNTED: bool = cfg!(counted);

/// The engine of each worker.
type Engines = Result<Vec<Box<dyn Engine>>, ConfigError>;

/// Builds the planned store and an engine for each worker, which report to `observers`.
pub fn engines(
    config: &Config,
    plan: &MemoryPlan,
    hasher: &KeyHasher,
    numa_nodes: Vec<u32>,
    observers: &Observers,
    file: Option<&Arc<MemoryFile>>,
) -> Engines {
    let spread = Spread {
        partitions: plan.partitions,
        workers: config.workers,
        numa_nodes,
    };
    let buffer_bytes = config.workers * plan.buffer_bytes_per_worker;
    let asides_max = (buffer_bytes / ASIDES_PART).max(plan.item_bytes_max);
    let store = Store {
        asides: Asides::of(asides_max),
        config,
        plan,
        hasher,
        spread,
        observers,
        file,
    };
    if IS_COUNTED {
        assert_eq!(config.table_access(), AccessMode::Erew, "see IS_COUNTED");
        return store.mica::<Erew>();
    }
    match config.table_access() {
        AccessMode::Erew => store.of_kind::<Erew>(),
        AccessMode::Crew => store.of_kind::<Crew>(),
        AccessMode::Crcw => store.of_kind::<Crcw>(),
    }
}

struct Store<'a> {
    asides: Asides,
    config: &'a Config,
    plan: &'a MemoryPlan,
    hasher: &'a KeyHasher,
    spread: Spread,
    observers: &'a Observers,
    file: Option<&'a Arc<MemoryFile>>,
}

impl Store<'_> {
    fn of_kind<A: Access>(&self) -> Engines {
        if self.config.mode == Mode::Store {
            return self.store_mode::<A>();
        }
        match self.config.table {
            TableKind::Memc3 => self.memc3::<A>(),
            TableKind::Mica => self.mica::<A>(),
        }
    }

    fn mica<A: Access>(&self) -> Engines {
        let rule = (self.config.evict).with_threshold(self.config.lru_threshold);
        let first = self.plan.first_sizes();
        let mut partition = PartitionConfig {
            log_bytes: first.log_bytes,
            main_buckets: first.main_buckets,
            spare_buckets: first.spare_buckets,
            index_follows: true,
            item_bytes_max: self.plan.item_bytes_max,
            pages: self.pages(),
            hasher: self.hasher.clone(),
            asides: self.asides.clone(),
            learner: Some(Arc::new(Learner::new(self.config.evict_for))),
            ..PartitionConfig::default()
        };
        if self.has_memory_in_common() {
            partition.commons = partition.commons(self.plan.partitions);
            // In a file they may lie on a disk, whose blocks are taken with them.
            if self.file.is_none() && partition.pages == PagePolicy::Transparent {
                // Where this is refused, it competes with workers as others do. It has no lower
                // priority: while the kernel clears a page for it, it may hold a lock that workers
                // want, and they would wait until other programs leave it the time for that.
                let yields = || {
                    run_behind_others(0);
                };
                partition.pages_ahead = PagesAhead::start(yields).ok();
            }
        }
        self.build(|numa_node, file| {
            partition.numa_node = numa_node;
            partition.file = file;
            Owner::<A>::mapped(&partition, rule)
        })
    }

    /// Whether partitions claim their memory as they fill. What is locked or reserved is taken at
    /// once, in equal shares.
    fn has_memory_in_common(&self) -> bool {
        !self.config.lock_memory && self.config.hugepages != HugepagePolicy::Hugetlb
    }

    /// The number of flushes and the groups that were invalidated, which the file knows if there is
    /// one. Made before the partitions, so that it has the first place in the file.
    fn flushes(&self) -> Result<FlushClock, ConfigError> {
        let flushes = self.file.cloned().map(FlushClock::kept_in);
        let flushes = flushes.unwrap_or_default();
        if !self.config.has_groups {
            return Ok(flushes);
        }
        let (delimiter, hasher) = (self.config.prefix_delimiter, self.hasher.clone());
        let groups = Groups::new(delimiter, hasher, self.file.map(|file| &**file));
        let groups = groups.map_err(ConfigError::Memory)?;
        Ok(flushes.with_groups(Arc::new(groups)))
    }

    fn store_mode<A: Access>(&self) -> Engines {
        self.build(|numa_node, file| {
            let partition = StoreConfig {
                bytes: self.plan.log_bytes,
                item_bytes_max: self.plan.item_bytes_max,
                pages: self.pages(),
                hasher: self.hasher.clone(),
                asides: self.asides.clone(),
                numa_node,
                file,
                ..StoreConfig::default()
            };
            mica_store::Owner::<A>::mapped(&partition)
        })
    }

    fn memc3<A: Access>(&self) -> Engines {
        self.build(|numa_node, file| {
            let memory_bytes = self.plan.partition_bytes();
            let table = memc3::Memc3Config {
                memory_bytes,
                page_bytes: memc3::Memc3Config::page_bytes_for(memory_bytes),
                item_bytes_max: self.plan.item_bytes_max,
                pages: self.pages(),
                hasher: self.hasher.clone(),
                asides: self.asides.clone(),
                numa_node,
                file,
            };
            memc3::Owner::<A>::mapped(&table)
        })
    }

    /// Builds the partitions, whose memory `map` gets, and the engines.
    fn build<T: Table>(
        &self,
        mut map: impl FnMut(Option<u32>, InFile) -> Result<Attach<T>, ConfigError>,
    ) -> Engines {
        let flushes = self.flushes()?;
        let Spread {
            partitions,
            workers,
            numa_nodes,
        } = &self.spread;
        let owners = PartitionMap::new(*partitions, *workers);
        let mapped = (0..*partitions).map(|partition| {
            let numa_node = numa_nodes.get(owners.owner_of(partition)).copied();
            map(numa_node, self.file.cloned().zip(Some(partition)))
        });
        let mapped: Vec<Attach<T>> = mapped.collect::<Result<_, _>>()?;
        let tables: Vec<T> = match self.file {
            Some(_) => attach::by_several(mapped, *workers)?,
            None => (mapped.into_iter().map(|attach| attach())).collect::<Result<_, _>>()?,
        };
        let mut tables = tables.into_iter();
        build_observed(
            &self.spread,
            self.uniques(),
            self.observers.tap(),
            flushes,
            |_| Ok(tables.next().expect("there is one for each partition")),
        )
    }

    fn uniques(&self) -> Uniques {
        match self.config.cas {
            true => Uniques::Kept,
            false => Uniques::Zero,
        }
    }

    fn pages(&self) -> PagePolicy {
        match self.config.hugepages {
            HugepagePolicy::Auto | HugepagePolicy::Transparent => PagePolicy::Transparent,
            HugepagePolicy::Hugetlb => PagePolicy::Hugetlb,
            HugepagePolicy::Off => PagePolicy::Small,
        }
    }
}

/// What changes the access mode of the store that [`engines`] builds for the same configuration and
/// observers.
pub fn access_modes(config: &Config, observers: &Observers) -> Arc<dyn Rebuild> {
    if IS_COUNTED {
        return modes_of::<CacheTables, _>(observers.tap());
    }
    match (config.mode, config.table) {
        (Mode::Store, _) => modes_of::<StoreTables, _>(observers.tap()),
        (Mode::Cache, TableKind::Memc3) => modes_of::<Memc3Tables, _>(observers.tap()),
        (Mode::Cache, TableKind::Mica) => modes_of::<CacheTables, _>(observers.tap()),
    }
}

fn modes_of<F: Family, O: ChangeObserver>(_: &Arc<Tap<O>>) -> Arc<dyn Rebuild> {
    Arc::new(Modes::<F, O>(PhantomData))
}

/// A table under each access mode.
trait Family: 'static {
    type Parts: Send;
    type Under<A: Access>: Table<Parts = Self::Parts>;
}

struct CacheTables;
struct StoreTables;
struct Memc3Tables;

impl Family for CacheTables {
    type Parts = <Owner<Erew> as Table>::Parts;
    type Under<A: Access> = Owner<A>;
}

impl Family for StoreTables {
    type Parts = <mica_store::Owner<Erew> as Table>::Parts;
    type Under<A: Access> = mica_store::Owner<A>;
}

impl Family for Memc3Tables {
    type Parts = <memc3::Owner<Erew> as Table>::Parts;
    type Under<A: Access> = memc3::Owner<A>;
}

/// Changes the access mode of a store of these tables, whose engines report to this observer.
struct Modes<F, O>(PhantomData<fn() -> (F, O)>);

impl<F, O> fmt::Debug for Modes<F, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Modes")
    }
}

impl<F: Family, O: ChangeObserver> Rebuild for Modes<F, O> {
    fn rebuild(&self, engines: Vec<Box<dyn Engine>>, access: AccessMode) -> Vec<Box<dyn Engine>> {
        if IS_COUNTED {
            return engines;
        }
        match engines[0].layout().access {
            AccessMode::Erew => Self::change::<Erew>(engines, access),
            AccessMode::Crew => Self::change::<Crew>(engines, access),
            AccessMode::Crcw => Self::change::<Crcw>(engines, access),
        }
    }
}

impl<F: Family, O: ChangeObserver> Modes<F, O> {
    fn change<A: Access>(engines: Vec<Box<dyn Engine>>, to: AccessMode) -> Vec<Box<dyn Engine>> {
        match to {
            AccessMode::Erew => rebuild::<F::Under<A>, F::Under<Erew>, O>(engines),
            AccessMode::Crew => rebuild::<F::Under<A>, F::Under<Crew>, O>(engines),
            AccessMode::Crcw => rebuild::<F::Under<A>, F::Under<Crcw>, O>(engines),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory_plan::Needs;
    use glimmer_base::Seed;
    use glimmer_node::SystemClock;
    use std::sync::Arc;

    fn access_of(workers: usize, access: AccessMode) -> AccessMode {
        let config = Config {
            workers,
            access,
            ..Config::default()
        };
        let plan = MemoryPlan::make(Needs::of(&config)).unwrap();
        let observers = Observers::new(Arc::new(SystemClock::start()), b':', false);
        let hasher = Seed(1).into();
        let engines = engines(&config, &plan, &hasher, Vec::new(), &observers, None).unwrap();
        engines[0].layout().access
    }

    #[test]
    fn one_worker_pays_nothing_for_sharing() {
        for &access in AccessMode::ALL {
            assert_eq!(access_of(1, access), AccessMode::Erew, "{access}");
            assert_eq!(access_of(2, access), access);
        }
    }
}
