//! From a configuration to a running server, and to its end.

use crate::config::{Config, ConfigError, HugepagePolicy};
use crate::memory_plan::{MemoryPlan, Needs, PlanError};
use crate::process::{self, PidFile, ProcessError};
use crate::stats::Desk;
use crate::{BACKLOG, assembly, cores, log};
use glimmer_base::Seed;
use glimmer_node::{Clock, Node, NodeConfig};
use glimmer_proto::text::Limits;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Why a server did not start. Each message is one line and says what to do.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The settings make no sense.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The memory is too small.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The memory cannot be had.
    #[error(transparent)]
    Store(#[from] glimmer_store::partition::ConfigError),
    /// Reserved huge pages were insisted on and cannot be had.
    #[error(
        "--hugepages hugetlb: {0}; reserve more of them (/proc/sys/vm/nr_hugepages) or use --hugepages auto"
    )]
    Hugetlb(glimmer_store::partition::ConfigError),
    /// An address cannot be listened on, or a worker cannot be started.
    #[error(transparent)]
    Node(#[from] glimmer_node::Error),
    /// The machine did not give what was asked for.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// Signals cannot be received, or the cores cannot be asked for.
    #[error("cannot set up the process: {0}")]
    Setup(#[from] io::Error),
}

/// Serves until SIGTERM or SIGINT, then finishes what clients have sent and returns.
pub fn serve(config: Config) -> Result<(), ServeError> {
    config.check()?;
    let plan = MemoryPlan::make(Needs::of(&config))?;
    let set_verbosity = log::start(config.verbosity.into());
    // Before any thread is started, so that every thread leaves these signals to this one.
    let signals = Signals::new([SIGTERM, SIGINT, SIGHUP, SIGUSR1])?;
    process::raise_descriptor_limit(config.connections_max, config.workers)?;

    let cores = if config.pin {
        cores::for_workers(config.workers)?
    } else {
        Vec::new()
    };
    let seed = Seed(rand::random());
    let numa_nodes = cores::numa_nodes(&cores);
    let engines =
        assembly::engines(&config, &plan, seed, numa_nodes).map_err(|error| {
            match config.hugepages {
                HugepagePolicy::Hugetlb => ServeError::Hugetlb(error),
                _ => error.into(),
            }
        })?;
    let tables = engines.iter().map(|engine| engine.figures()).collect();
    let desk = Arc::new(Desk::new(config.clone(), plan, tables, set_verbosity));
    let node = NodeConfig {
        listen: config.listen.clone(),
        backlog: BACKLOG,
        connections_max: config.connections_max,
        idle_timeout: None,
        buffer_bytes: plan.buffer_bytes_per_worker,
        limits: Limits {
            item_bytes_max: plan.item_bytes_max,
        },
        seed,
        cores,
        clock: Clock::start(),
    };
    let node = Node::start(node, engines, desk.clone())?;
    desk.open(node.local_addrs().to_vec(), node.figures());

    let pid_file = config.pid_file.as_deref().map(PidFile::write).transpose()?;
    match &config.user {
        Some(user) => process::become_user(user)?,
        None if process::is_root() => tracing::warn!("running as root; -u USER gives that up"),
        None => {}
    }
    announce(&config, &plan, node.local_addrs());
    wait_for_the_end(signals);
    node.stop();
    node.join();
    drop(pid_file);
    tracing::info!("stopped");
    Ok(())
}

impl Needs {
    /// What this configuration needs.
    pub fn of(config: &Config) -> Needs {
        Needs {
            memory_bytes: config.memory_bytes,
            workers: config.workers,
            access: config.access,
            item_bytes_max: config.item_bytes_max,
            item_bytes_hint: config.item_bytes_hint,
        }
    }
}

/// Says what is running: one line, and with `-v` how the memory is laid out.
fn announce(config: &Config, plan: &MemoryPlan, addresses: &[SocketAddr]) {
    let addresses: Vec<String> = addresses.iter().map(SocketAddr::to_string).collect();
    let workers = if config.workers == 1 {
        "worker"
    } else {
        "workers"
    };
    eprintln!(
        "glimmer {} ready on {}: {} MiB, {} {workers}, {}, {}",
        env!("CARGO_PKG_VERSION"),
        addresses.join(" and "),
        config.memory_bytes >> 20,
        config.workers,
        config.access,
        config.evict,
    );
    if plan.item_bytes_max < config.item_bytes_max {
        tracing::warn!(
            "-m {} is too small for items of {} bytes with {} {workers}: the item limit is {} bytes",
            config.memory_bytes >> 20,
            config.item_bytes_max,
            config.workers,
            plan.item_bytes_max,
        );
    }
    tracing::info!(
        "memory: {} partitions, each a log of {} KiB and an index of {} + {} buckets; {} KiB of buffers per worker",
        plan.partitions,
        plan.log_bytes >> 10,
        plan.main_buckets,
        plan.spare_buckets,
        plan.buffer_bytes_per_worker >> 10,
    );
    tracing::info!(
        "items: to {} bytes; about {} of {} bytes fit; pages: {}",
        plan.item_bytes_max,
        plan.items_resident(config.item_bytes_hint),
        config.item_bytes_hint,
        config.hugepages,
    );
}

/// Returns at the first SIGTERM or SIGINT; a second one ends the process at once, whatever is unfinished.
fn wait_for_the_end(mut signals: Signals) {
    for signal in signals.forever() {
        match signal {
            SIGTERM | SIGINT => {
                let again = Arc::new(AtomicBool::new(true));
                for signal in [SIGTERM, SIGINT] {
                    // Fails only for signals that cannot be handled, which these are not.
                    let _ = flag::register_conditional_shutdown(signal, 1, again.clone());
                }
                tracing::info!("stopping: finishing what clients have sent");
                return;
            }
            other => tracing::info!(signal = other, "ignored"),
        }
    }
}
