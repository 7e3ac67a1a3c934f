//! Starts a server from a configuration, and stops it.

use crate::accelerate::{self, AccelerateError, Attachment, Refusal, Sources};
use crate::auth::{AuthError, AuthFile};
use crate::config::{Config, ConfigError, Direction, HugepagePolicy, Mode};
use crate::encryption::{self, TlsError};
use crate::log::Log;
use crate::machine::{self, Allowed, BESIDE_LIMIT_BYTES};
use crate::memory_file::{self, MemoryFileError, StoreClock};
use crate::memory_plan::{MemoryPlan, Needs, PlanError};
use crate::process::inherited::{InheritedError, Sockets};
use crate::process::{self, PidFile, ProcessError};
use crate::reload::{self, Reader};
use crate::service::Service;
use crate::snapshot::{Background, Loading, SnapshotError, Snapshots};
use crate::stats::ServerAdmin;
use crate::web::Web;
use crate::{assembly, cores, log};
use glimmer_base::{KeyHasher, Seed, limits};
use glimmer_dispatch::{Layout, PartitionMap};
use glimmer_engine::Engine;
use glimmer_hotset::{Body, Readers};
use glimmer_node::native::{NativeConfig, Rules, TokenKey};
use glimmer_node::{
    Accelerator, Address, Bound, Clock, Node, NodeConfig, Observers, PassedOver, SystemClock,
};
use glimmer_proto::Limits;
use glimmer_proto::native::directory;
use glimmer_store::memory::{FileState, MemoryFile};
use glimmer_store::table::Counts as StoreCounts;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Why a server did not start. Each message is one line and says what to do.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The settings are invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// `-m` is too small or too large.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The memory cannot be allocated.
    #[error(transparent)]
    Store(#[from] glimmer_store::table::ConfigError),
    /// Reserved huge pages were required but cannot be allocated.
    #[error(
        "--hugepages hugetlb: {0}; reserve more of them (/proc/sys/vm/nr_hugepages), raise the \
         cgroup's limit (hugetlb.2MB.max), or use --hugepages auto"
    )]
    Hugetlb(glimmer_store::table::ConfigError),
    /// Another process has an address.
    #[error(
        "{0}: another process has it; end that one, or choose another port or address (-p, -U, -l, \
         -s)"
    )]
    InUse(glimmer_node::Error),
    /// An address cannot be bound, or a worker cannot be started.
    #[error(transparent)]
    Node(glimmer_node::Error),
    /// The address of `--http` cannot be bound.
    #[error(
        "--http {at}: {reason}; choose another address or port, or end the process that has it"
    )]
    Http {
        /// The address.
        at: SocketAddr,
        /// The kernel's reason.
        reason: io::Error,
    },
    /// A socket of the service manager cannot be served.
    #[error(transparent)]
    Inherited(#[from] InheritedError),
    /// The accelerator cannot be attached to its interface.
    #[error(transparent)]
    Accelerate(#[from] AccelerateError),
    /// The files of TLS cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The file of the store cannot be used.
    #[error(transparent)]
    MemoryFile(#[from] MemoryFileError),
    /// The user file cannot be used.
    #[error(transparent)]
    Auth(#[from] AuthError),
    /// The control group of the process would end it before `-m` is reached.
    #[error(
        "-m {wanted_mib}: the control group of this process may take {allowed_mib} MiB ({file}): \
         choose less, such as -m 75%, or raise that limit"
    )]
    Group {
        /// `-m` in MiB.
        wanted_mib: u64,
        /// What the group may take, in MiB.
        allowed_mib: u64,
        /// The file that says so.
        file: String,
    },
    /// The file of `--snapshot` cannot be used.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// The system refused a request of the process.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// Signal handlers cannot be installed, or the list of cores cannot be read.
    #[error("cannot set up the process: {0}")]
    Setup(#[from] io::Error),
}

impl ServeError {
    /// The exit code that memcached uses for the same reason (`sysexits.h`).
    pub fn exit_code(&self) -> u8 {
        const USAGE: u8 = 64;
        const NO_USER: u8 = 67;
        const OS: u8 = 71;
        match self {
            ServeError::Config(
                ConfigError::ItemBytes(_) | ConfigError::Together(_) | ConfigError::Dispatch { .. },
            )
            | ServeError::Tls(_) => USAGE,
            ServeError::Node(
                glimmer_node::Error::Listen { .. } | glimmer_node::Error::Udp { .. },
            ) => OS,
            ServeError::InUse(_) | ServeError::Http { .. } | ServeError::Inherited(_) => OS,
            ServeError::Process(ProcessError::NoSuchUser(_)) => NO_USER,
            ServeError::Process(_) => OS,
            _ => 1,
        }
    }
}

impl From<glimmer_node::Error> for ServeError {
    fn from(error: glimmer_node::Error) -> ServeError {
        use glimmer_node::Error::{Listen, Udp};
        match &error {
            Listen { source, .. } | Udp { source, .. } if source.kind() == ErrorKind::AddrInUse => {
                ServeError::InUse(error)
            }
            _ => ServeError::Node(error),
        }
    }
}

/// Serves until SIGTERM, SIGINT or SIGUSR1, then completes the requests that clients have sent, and
/// returns. SIGHUP reads the settings again by `reader`. Must be called while the process has one
/// thread.
pub fn serve(mut config: Config, mut reader: Option<Reader>) -> Result<(), ServeError> {
    // Before the process opens any descriptor of its own.
    let mut inherited = Sockets::take(config.tls.is_enabled)?;
    inherited.replace_in(&mut config);
    config.check()?;
    if let Some(path) = &mut config.snapshot {
        // In the background, the process has another folder.
        *path = std::path::absolute(&*path)?;
    }
    let plan = MemoryPlan::make(Needs::of(&config))?;
    bounded_by_memory(&mut config, machine::memory_allowed())?;
    let auth = config
        .auth_file
        .as_deref()
        .map(AuthFile::load)
        .transpose()?;
    let tls = encryption::load(&config.tls, plan.encryption_bytes)?;
    let birth = config
        .daemon
        .then(process::daemon::to_background)
        .transpose()?;
    // Before any thread starts, so that every thread leaves these signals to this one.
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP, SIGUSR1])?;
    // A fork does not copy other threads, so the log starts after `-d` has taken effect.
    let log = log::start(config.verbosity.into(), config.log_format)?;
    let _flushed = log.flushed_at_end();
    let connections_max = config.connections_max;
    config.connections_max = process::raise_descriptor_limit(connections_max, config.workers)?;
    if config.connections_max < connections_max {
        config.notices.push(format!(
            "-c {connections_max} is lowered to {}: the limit of open files (ulimit -n) has to \
             be enough for the server's own as well",
            config.connections_max
        ));
    }
    if config.core_files {
        process::allow_core_files()?;
    }
    if config.lock_memory
        && let Err(error) = process::lock_memory()
    {
        tracing::warn!("-k: memory cannot be locked: {error}");
    }

    // Slow steps, and steps that may fail for lack of memory, come first: clients start to connect
    // when the first address is bound. By then the process has given up root for good.
    let file = memory_file::open(&config, &plan)?;
    let clock: Arc<dyn Clock> = match &file {
        Some(file) => Arc::new(StoreClock::of(file)),
        None => Arc::new(SystemClock::start()),
    };
    config.started_ms = clock.now().ms;
    let mut of_hashing = random;
    let mut of_hashing = memory_file::numbers(file.as_deref(), &mut of_hashing);
    let mut surroundings = Surroundings {
        hashing: Hashing::new(&config, &mut of_hashing),
        clock,
        random: &mut random,
        file: file.clone(),
    };
    drop(of_hashing);
    let http = match inherited.take_http() {
        Some(listeners) => Some(glimmer_http::Server::over(listeners)?),
        None if config.http.is_empty() => None,
        None => Some(
            glimmer_http::Server::bind(&config.http)
                .map_err(|(at, reason)| ServeError::Http { at, reason })?,
        ),
    };
    // It needs rights that are given up below. Until workers give it keys, it answers nothing.
    let attachment = accelerate::attach(&config, random())?;
    let clock = &*surroundings.clock;
    let body = match &attachment {
        Some(it) => Some(accelerate::shared(
            &config,
            it.memory(),
            Readers::Elsewhere,
            clock,
        )),
        None => accelerate::make(&config, clock)?,
    };
    let mut store = build(&config, &plan, body, &mut surroundings)?;
    let (hasher, clock) = (
        surroundings.hashing.hasher.clone(),
        surroundings.clock.clone(),
    );
    let mut node = node_config(&config, &plan, &store, surroundings);
    // A Unix socket is not encrypted, as in memcached.
    let encrypted = tls.as_ref().filter(|_| config.unix.is_none());
    node.encryption = encrypted.map(|tls| tls.of_listeners(&config.tcp_encryption));
    let inherited = inherited.in_place_of(&mut node, config.liveness)?;
    let bound = Bound::bind_beside(node, config.workers, inherited)?;
    if attachment.is_some() && bound.udp_addresses().len() < config.udp.len() {
        let others = bound.passed_over().iter().map(|other| &*other.address);
        let others = others.collect::<Vec<_>>().join(" and ");
        return Err(accelerate::refused(&config, Refusal::InUse(others)).into());
    }
    let mode = attachment.as_ref().map(Attachment::mode);
    let not_in_driver = attachment.as_ref().and_then(Attachment::not_in_driver);
    if config.unix.is_none() {
        process::port_file::write_if_wanted(&bound.local_addrs(), bound.udp_addresses()).map_err(
            |error| io::Error::new(error.kind(), format!("MEMCACHED_PORT_FILENAME: {error}")),
        )?;
    }
    let notices = &mut config.notices;
    let pid_file = config.pid_file.as_deref();
    let pid_file = pid_file.and_then(|path| PidFile::write(path, notices));
    if let Some(user) = &config.user {
        let socket = config.unix.as_ref().map(|unix| &*unix.path);
        process::become_user(user, socket)?;
    }
    // By the user who writes it later, and before a client is answered, so that no item of the file
    // comes after a change of a client's. Clients that connect meanwhile wait.
    let snapshots = config.snapshot.as_deref().map(Snapshots::at).transpose()?;
    // Items of a memory file may be newer than those of a snapshot, which may have been deleted
    // since.
    let is_new = file
        .as_ref()
        .is_none_or(|file| file.state() == FileState::New);
    if let Some(snapshots) = snapshots.as_ref().filter(|_| is_new) {
        let stop = stop_flag()?;
        let is_loaded = snapshots.load(Loading {
            engines: &mut store.engines,
            hasher: &hasher,
            now: clock.now(),
            log: &log,
            stop: &stop,
        })?;
        if !is_loaded {
            return Ok(());
        }
    }
    if let Some(file) = &file {
        file.begin();
    }
    let snapshots = snapshots.map(Arc::new);
    let passed_over: Vec<String> = bound.passed_over().iter().map(pass_over).collect();
    let tables = store.engines.iter().map(|engine| engine.figures());
    let admin = Arc::new(
        ServerAdmin::new(
            config.clone(),
            plan,
            auth,
            tables.collect(),
            mode,
            log.clone(),
            tls,
        )?
        .with_snapshots(snapshots.clone()),
    );
    let node = bound.serve(store.engines, admin.clone())?;
    let pages = http
        .as_ref()
        .map_or_else(Vec::new, glimmer_http::Server::addresses);
    let web = http
        .map(|server| Web::start(server, admin.clone()))
        .transpose()?;
    config
        .notices
        .extend(file.as_deref().and_then(memory_file::warning));
    let counts = admin.figures().table().store;
    let ready = announce(&config, &plan, &node, &pages, &counts, &log);
    for line in passed_over {
        tracing::warn!("{line}");
    }
    if let Some(reason) = not_in_driver {
        tracing::warn!(
            "--accelerate {}: {reason}, so the kernel's generic mode is used, which is slower",
            config.accelerate
        );
    }
    if let Some(birth) = birth {
        log.flush();
        birth.announce(config.verbosity > 0)?;
    }
    let background = snapshots.clone();
    let background = background.map(|snapshots| Background::start(snapshots, node.figures()));
    let background = background.transpose()?;
    let service = Service::ready(&ready, &admin)?;
    wait_for_the_end(&mut signals, || {
        service.reload(|| reload::reload(&admin, reader.as_mut()));
    });
    service.stop();
    if let Some(web) = &web {
        web.drain();
    }
    drop(background);
    node.stop();
    let now = node.figures().now();
    let mut engines = node.join();
    if let Some(file) = &file {
        engines.iter_mut().for_each(|engine| engine.save(now));
        file.close();
    }
    if let Some(snapshots) = snapshots {
        snapshots.write_last(engines, &hasher, now, &log)?;
    }
    drop(web);
    drop(attachment);
    drop(pid_file);
    tracing::info!("stopped");
    Ok(())
}

/// Fails if the control group of the process allows less than `-m`. Warns if it allows so little
/// more that the rest of the process may not fit, and if the machine has less.
fn bounded_by_memory(config: &mut Config, allowed: Option<Allowed>) -> Result<(), ServeError> {
    let Some(Allowed { bytes, by }) = allowed else {
        return Ok(());
    };
    let wanted = config.memory_bytes as u64;
    let Some(file) = by else {
        if bytes < wanted {
            config.notices.push(format!(
                "-m {} is more than the {} MiB of this machine: the kernel ends the process when \
                 they are used up; choose less, such as -m 75%",
                wanted >> 20,
                bytes >> 20
            ));
        }
        return Ok(());
    };
    let file = file.display();
    if bytes < wanted {
        return Err(ServeError::Group {
            wanted_mib: wanted >> 20,
            allowed_mib: bytes >> 20,
            file: file.to_string(),
        });
    }
    if bytes < wanted + BESIDE_LIMIT_BYTES {
        config.notices.push(format!(
            "-m {} leaves {} MiB of what the control group may take ({file}): the process may need \
             {} MiB beside it",
            wanted >> 20,
            (bytes - wanted) >> 20,
            BESIDE_LIMIT_BYTES >> 20
        ));
    }
    Ok(())
}

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
    hasher: KeyHasher,
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
    let hasher = &surroundings.hashing.hasher;
    let file = surroundings.file.as_ref();
    let engines = assembly::engines(config, plan, hasher, numa_nodes, &observers, file);
    let engines = engines.map_err(|error| match config.hugepages {
        HugepagePolicy::Hugetlb => ServeError::Hugetlb(error),
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
        native: native(config, plan, &hashing, random),
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
        locked: config.auth_file.is_some(),
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

/// Explains why the server runs without an address that it was told to listen on.
fn pass_over(address: &PassedOver) -> String {
    let PassedOver { address, source } = address;
    format!("not listening on {address}: {source}")
}

/// An unpredictable number from the kernel.
fn random() -> u64 {
    getrandom::u64().expect("the kernel has random numbers from its start on")
}

/// How native clients are served, if they are.
fn native(
    config: &Config,
    plan: &MemoryPlan,
    hashing: &Hashing,
    random: &mut dyn FnMut() -> u64,
) -> Option<NativeConfig> {
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
            packet_bytes: config.packets.memory_bytes(),
        }
    }
}

/// Logs one line about the running server and, with `-v`, its memory layout.
fn announce(
    config: &Config,
    plan: &MemoryPlan,
    node: &Node,
    pages: &[SocketAddr],
    counts: &StoreCounts,
    log: &Log,
) -> String {
    let addresses = node.addresses().iter().map(Address::to_string);
    let udp = node.udp_addresses().iter().map(|udp| format!("UDP {udp}"));
    let native = node.native_ports().iter().map(|(ip, ports)| {
        let first = SocketAddr::new(*ip, ports[0]);
        format!("native {first}")
    });
    let http = pages.iter().map(|address| format!("http://{address}"));
    let mut addresses: Vec<String> = addresses.chain(udp).chain(native).collect();
    if addresses.is_empty() {
        addresses.push("no port".to_owned());
        tracing::warn!("no client can connect: give -p, -U, -s or --native-port");
    }
    addresses.extend(http);
    let workers = if config.workers == 1 {
        "worker"
    } else {
        "workers"
    };
    let full = match config.mode {
        Mode::Cache => config.eviction(),
        Mode::Store => "store mode",
    };
    let restored = config
        .memory_file
        .as_ref()
        .map_or_else(String::new, |path| {
            format!(", {} items from {}", counts.restored, path.display())
        });
    let ready = format!(
        "glimmer {} ready on {}: {} MiB, {} {workers}, {}, {full}{restored}",
        env!("CARGO_PKG_VERSION"),
        addresses.join(" and "),
        config.memory_bytes >> 20,
        config.workers,
        config.access,
    );
    log.announce(&ready);
    for address in node
        .udp_addresses()
        .iter()
        .filter(|udp| !udp.ip().is_loopback())
    {
        tracing::warn!(
            "-U: anyone who can reach {address} can make this server flood a third party with \
             replies to requests from a forged address; protect UDP with a firewall, or \
             restrict it to this machine with -l 127.0.0.1"
        );
    }
    if let Some(address) = pages.iter().find(|it| !it.ip().is_loopback()) {
        tracing::warn!(
            "--http: anyone who can reach {address} can read statistics, settings and the names of \
             hot keys; protect it with a firewall"
        );
    }
    if config.accelerate_from == Sources::Any {
        tracing::warn!(
            "--accelerate-from any: the firewall does not see requests for hot keys, wherever \
             they come from"
        );
    }
    if let Some(bypass) = config.packets.figures() {
        tracing::info!(
            "datagrams: {} queues of {}, past the kernel's stack in the {} mode",
            bypass.queues,
            bypass.interface,
            bypass.mode
        );
    }
    if counts.lost > 0 {
        tracing::warn!(
            "-e: {} items were not whole, because the process before was ended by force while it \
             changed them, and are gone",
            counts.lost
        );
    }
    if config.user.is_none() && process::is_root() {
        tracing::warn!("running as root; use -u USER to become another user");
    }
    for notice in &config.notices {
        tracing::warn!("{notice}");
    }
    if plan.item_bytes_max < config.item_bytes_max {
        tracing::warn!(
            "-m {} is too small for items of {} bytes with {} {workers}: \
             the item limit is {} bytes",
            config.memory_bytes >> 20,
            config.item_bytes_max,
            config.workers,
            plan.item_bytes_max,
        );
    }
    tracing::info!(
        "memory: {} partitions, each planned for a log of {} KiB and an index of {} + {} buckets; \
         {} KiB of buffers per worker",
        plan.partitions,
        plan.log_bytes >> 10,
        plan.main_buckets,
        plan.spare_buckets,
        plan.buffer_bytes_per_worker >> 10,
    );
    tracing::info!(
        "items: up to {} bytes; about {} items of {} bytes fit; pages: {}",
        plan.item_bytes_max,
        plan.items_resident(config.item_bytes_hint),
        config.item_bytes_hint,
        config.hugepages,
    );
    ready
}

/// What SIGTERM and SIGINT set from now on.
fn stop_flag() -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT] {
        flag::register(signal, stop.clone())?;
    }
    Ok(stop)
}

/// Returns at the first SIGTERM, SIGINT or SIGUSR1. Another SIGTERM or SIGINT ends the process at
/// once.
fn wait_for_the_end(signals: &mut Signals, mut reload: impl FnMut()) {
    for signal in signals.forever() {
        if signal == SIGHUP {
            reload();
            continue;
        }
        let again = Arc::new(AtomicBool::new(true));
        for signal in [SIGTERM, SIGINT] {
            // This fails only for signals that cannot be handled; these can.
            let _ = flag::register_conditional_shutdown(signal, 1, again.clone());
        }
        tracing::info!("stopping: answering the requests that clients have sent");
        return;
    }
}
