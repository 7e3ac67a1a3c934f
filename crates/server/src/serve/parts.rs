//! The parts of a server that a configuration describes: the store, and what its node is told.

use super::ServeError;
use crate::config::{Config, Direction, HugepagePolicy, Mode};
use crate::memory_file::MemoryFileError;
use crate::memory_plan::{MemoryPlan, Needs};
use crate::{accelerate, assembly, cores, encryption};
use glimmer_base::{KeyHasher, Moment, Seed, limits};
use glimmer_dispatch::{Layout, PartitionMap};
use glimmer_engine::Engine;
use glimmer_hotset::Body;
use glimmer_node::native::{NativeConfig, Rules, TokenKey};
use glimmer_node::{Accelerator, Address, Clock, NodeConfig, Observers};
use glimmer_proto::Limits;
use glimmer_proto::native::directory;
use glimmer_store::memory::MemoryFile;
use std::sync::Arc;

/// The store, and what its workers need.
pub(crate) struct Store {
    pub engines: Vec<Box<dyn Engine>>,
    observers: Observers,
    /// The core of each worker; empty if workers are not pinned.
    cores: Vec<usize>,
}

/// What a server does not decide: a simulator passes its own.
pub(crate) struct Surroundings<'a> {
    pub hashing: Hashing,
    pub clock: Arc<dyn Clock>,
    /// The file that the store lies in.
    pub file: Option<Arc<MemoryFile>>,
    /// Unpredictable numbers.
    pub random: &'a mut dyn FnMut() -> u64,
}

/// How keys are hashed, by clients and by the server.
pub(crate) struct Hashing {
    seed: Seed,
    pub hasher: KeyHasher,
}

impl Hashing {
    /// Only native clients have to know anything of a keyhash.
    pub fn new(config: &Config, random: &mut dyn FnMut() -> u64) -> Hashing {
        let seed = Seed(random());
        let public = (!config.native.is_empty()).then_some(seed);
        let hasher = KeyHasher::secret([random(), random()], public);
        Hashing { seed, hasher }
    }
}

/// Builds the store, with an accelerator if `body` is one or the configuration wants the model.
pub(crate) fn build(
    config: &Config,
    plan: &MemoryPlan,
    body: Option<Box<dyn Body>>,
    surroundings: &mut Surroundings<'_>,
) -> Result<Store, ServeError> {
    let cores = if config.pin {
        cores::for_workers(config.workers)?
    } else {
        Vec::new()
    };
    let numa_nodes = cores::numa_nodes(&cores);
    let clock = surroundings.clock.clone();
    let body = body.or_else(|| accelerate::model(config, &mut *surroundings.random, &*clock));
    let accelerator =
        body.map(|body| Arc::new(Accelerator::new(body, config.workers, clock.clone())));
    let prefixes = (config.prefix_delimiter, config.detail);
    let observers = Observers::with_accelerator(clock, prefixes, config.watch_bytes, accelerator);
    if config.has_groups {
        observers.sample_prefixes(config.prefix_delimiter);
    }
    let hasher = &surroundings.hashing.hasher;
    let file = surroundings.file.as_ref();
    let engines = assembly::engines(config, plan, hasher, numa_nodes, &observers, file);
    let engines = engines.map_err(|error| match (error.damage(), file) {
        (Some(what), Some(file)) => MemoryFileError::damaged(file, what).into(),
        _ if config.hugepages == HugepagePolicy::Hugetlb => ServeError::Hugetlb(error),
        _ if error.is_of_memory() => ServeError::Memory {
            mib: config.memory_bytes >> 20,
            reason: error,
        },
        _ => error.into(),
    })?;
    Ok(Store {
        engines,
        observers,
        cores,
    })
}

pub(crate) fn node_config(
    config: &Config,
    plan: &MemoryPlan,
    store: &Store,
    surroundings: Surroundings<'_>,
) -> NodeConfig {
    let Surroundings {
        hashing,
        clock,
        random,
        file: _,
    } = surroundings;
    let unix = config.unix.iter().map(|unix| Address::Unix {
        path: unix.path.clone(),
        mode: unix.mode,
    });
    let tcp = config.tcp.iter().copied().map(Address::Tcp);
    NodeConfig {
        listen: unix.chain(tcp).collect(),
        listen_names: match config.unix {
            Some(_) => Vec::new(),
            None => config.tcp_names.clone(),
        },
        liveness: config.liveness,
        udp: config.udp.clone(),
        udp_names: config.udp_names.clone(),
        native: native(config, plan, &hashing, random, clock.now()),
        busy_poll: config.busy_poll,
        backlog: config.backlog,
        connections_max: config.connections_max,
        rejects_beyond_max: config.rejects_beyond_max,
        turn_requests: config.turn_requests,
        slice_bytes: config.slice_bytes,
        encryption: None,
        idle_timeout: config.idle_timeout,
        buffer_bytes: plan.buffer_bytes_per_worker,
        accepts: config.protocol,
        accepts_at: match config.unix {
            Some(_) => Vec::new(),
            None => config.tcp_protocols.clone(),
        },
        limits: Limits {
            item_bytes_max: plan.item_bytes_max,
        },
        permits: config.permits,
        observers: store.observers.clone(),
        crawler: config.crawler,
        locked: config.user_file().is_some(),
        tenants: Arc::default(),
        hasher: hashing.hasher,
        cores: store.cores.clone(),
        dispatch: config.dispatch.clone(),
        dispatch_settings: config.dispatch_settings,
        dispatch_pause_ms: limits::DISPATCH_PAUSE_MS,
        slow_ms: config.slow_ms,
        access_modes: Some(assembly::access_modes(config, &store.observers)),
        packets: config.packets.clone(),
        clock,
    }
}

/// How native clients are served, if they are.
fn native(
    config: &Config,
    plan: &MemoryPlan,
    hashing: &Hashing,
    random: &mut dyn FnMut() -> u64,
    now: Moment,
) -> Option<NativeConfig> {
    let keeps_items = config.memory_file.is_some() || config.snapshot.is_some();
    let layout = Layout {
        map: PartitionMap::new(plan.partitions, config.workers),
        access: config.table_access(),
    };
    (!config.native.is_empty()).then(|| NativeConfig {
        listen: config.native.clone(),
        single_port: config.native_single_port,
        rules: Rules {
            seed: hashing.seed,
            hasher: hashing.hasher.clone(),
            checks_reads: config.native_checks_reads,
            token_key: TokenKey([random(), random()]),
            directory_version: (random() as u32).max(1),
            layout: *config.dispatch.plan(layout).layout(),
            item_bytes_max: plan.item_bytes_max,
            begun_ms: keeps_items.then_some(now.ms),
            mode: match config.mode {
                Mode::Cache => directory::Mode::Cache,
                Mode::Store => directory::Mode::Store,
            },
            direction: match config.native_direction {
                Direction::Client => directory::Direction::Client,
                Direction::Server => directory::Direction::Server,
            },
        },
    })
}

impl Needs {
    /// The needs of this configuration.
    pub fn of(config: &Config) -> Needs {
        Needs {
            memory_bytes: config.memory_bytes,
            workers: config.workers,
            mode: config.mode,
            table: config.table,
            access: config.table_access(),
            item_bytes_max: config.item_bytes_max,
            item_bytes_hint: config.item_bytes_hint,
            buffer_bytes: config.buffer_bytes,
            accelerator_bytes: accelerate::bytes(config),
            encryption_bytes: encryption::bytes(
                &config.tls,
                config.connections_max,
                config.memory_bytes,
            ),
            packet_bytes: config.packets.memory_bytes(config.workers),
        }
    }
}
