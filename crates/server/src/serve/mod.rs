//! Starts a server from a configuration, and stops it.
//!
//! | file | idea |
//! | --- | --- |
//! | `parts` | the store and the settings of the node, from a configuration |
//! | `announce` | the line that says that the server is ready, and warnings |
//! | `error` | why a server does not start |

mod announce;
mod error;
mod parts;

pub use error::ServeError;
pub(crate) use parts::{Hashing, Surroundings, build, node_config};

use crate::accelerate::{self, Attachment, Refusal};
use crate::auth::AuthFile;
use crate::config::Config;
use crate::encryption;
use crate::log;
use crate::machine::{self, Allowed, BESIDE_LIMIT_BYTES};
use crate::memory_file;
use crate::memory_plan::{MemoryPlan, Needs};
use crate::process::inherited::Sockets;
use crate::process::{self, PidFile};
use crate::reload::{self, Reader};
use crate::service::Service;
use crate::snapshot::{Background, Loading, Snapshots};
use crate::stats::ServerAdmin;
use crate::store_clock::StoreClock;
use crate::web::Web;
use announce::Ready;
use glimmer_hotset::Readers;
use glimmer_node::{Bound, Clock, SystemClock, Tenants};
use glimmer_store::memory::FileState;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGXFSZ};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Serves until SIGTERM, SIGINT or SIGUSR1, then completes the requests that clients have sent, and
/// returns. SIGHUP reads the settings again by `reader`. Must be called while the process has one
/// thread.
pub fn serve(mut config: Config, mut reader: Option<Reader>) -> Result<(), ServeError> {
    // Before the process opens any descriptor of its own.
    let mut inherited = Sockets::take(config.tls.is_enabled)?;
    inherited.replace_in(&mut config);
    config.check()?;
    config.check_ports()?;
    if let Some(path) = &mut config.snapshot {
        // In the background, the process has another folder.
        *path = std::path::absolute(&*path)?;
    }
    let plan = MemoryPlan::make(Needs::of(&config))?;
    bounded_by_memory(&mut config, machine::memory_allowed())?;
    let auth = (config.user_file())
        .map(|(path, format)| AuthFile::load(path, format))
        .transpose()?;
    let tenants: Arc<Tenants> =
        (auth.as_ref()).map_or_else(Arc::default, |it| it.tenants().clone());
    tenants.limit_addresses(config.address_quotas);
    let tls = encryption::load(&config.tls, plan.encryption_bytes)?;
    let birth = config
        .daemon
        .then(process::daemon::to_background)
        .transpose()?;
    // Before any thread starts, so that every thread leaves these signals to this one.
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP, SIGUSR1])?;
    // So a write to a file that is as long as a file may be (`ulimit -f`) fails, and does not end
    // the process.
    flag::register(SIGXFSZ, Arc::default())?;
    // A fork does not copy other threads, so the log starts after `-d` has taken effect.
    let log = log::start(config.verbosity.into(), config.log_format)?;
    let _flushed = log.flushed_at_end();
    set_limits(&mut config)?;

    // Slow steps, and steps that may fail for lack of memory, come first: clients start to connect
    // when the first address is bound. By then the process has given up root for good.
    let file = memory_file::open(&config, &plan)?;
    let store_clock = file.as_ref().map(|file| Arc::new(StoreClock::of(file)));
    // Even if the start fails.
    if let Some(warning) = store_clock.as_ref().and_then(|clock| clock.warning()) {
        tracing::warn!("{warning}");
    }
    let clock: Arc<dyn Clock> = match &store_clock {
        Some(clock) => clock.clone(),
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
    let http = http_server(&config, &mut inherited)?;
    // It needs rights that are given up below. Until workers give it keys, it answers nothing.
    let attachment = accelerate::attach(&config, random())?.map(Arc::new);
    let notices = attachment.as_deref().map(Attachment::warnings);
    config.notices.extend(notices.unwrap_or_default());
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
    let starting = ended_by_signals()?;
    let mut store = build(&config, &plan, body, &mut surroundings)?;
    let stop = stop_flag()?;
    starting.store(false, Ordering::Relaxed);
    let (hasher, clock) = (
        surroundings.hashing.hasher.clone(),
        surroundings.clock.clone(),
    );
    let mut node = node_config(&config, &plan, &store, surroundings);
    node.tenants = tenants.clone();
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
    let mode = attachment.as_deref().map(Attachment::mode);
    let not_in_driver = attachment.as_deref().and_then(Attachment::not_in_driver);
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
    if let Some(snapshots) = &snapshots
        && !snapshots.wait_for_others(&log, &stop)?
    {
        return Ok(());
    }
    // It is replaced later, so a file of somebody else's is refused whether it is loaded or not.
    let found = snapshots.as_ref().map(Snapshots::find).transpose()?;
    // Items of a memory file may be newer than those of a snapshot, which may have been deleted
    // since.
    let is_new = file
        .as_ref()
        .is_none_or(|file| file.state() == FileState::New);
    if let (Some(snapshots), Some(found), true) = (&snapshots, found.flatten(), is_new) {
        let loading = Loading {
            engines: &mut store.engines,
            hasher: &hasher,
            now: clock.now(),
            log: &log,
            stop: &stop,
        };
        if !snapshots.load(found, loading)? {
            return Ok(());
        }
    }
    if let Some(clock) = &store_clock {
        clock.begin();
    }
    let snapshots = snapshots.map(Arc::new);
    let passed_over = announce::passed_over(&bound);
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
        .with_tenants(tenants)
        .with_attachment(attachment.as_ref())
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
    let ready = Ready {
        config: &config,
        plan: &plan,
        node: &node,
        pages: &pages,
        counts: admin.figures().table().store,
        passed_over,
        not_in_driver,
    };
    let ready = ready.announce(&log);
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
    let last = snapshots.map(|snapshots| (snapshots.begin_last(), snapshots));
    node.stop();
    let now = node.figures().now();
    let mut engines = node.join();
    if let Some(file) = &file {
        engines.iter_mut().for_each(|engine| engine.save(now));
        file.close();
    }
    if let Some((unfinished, snapshots)) = last {
        snapshots.write_last(unfinished?, engines, &hasher, now, &log)?;
    }
    drop(web);
    drop(attachment);
    drop(pid_file);
    tracing::info!("stopped");
    Ok(())
}

/// Sets the limits of the process: open files, core files and locked memory.
fn set_limits(config: &mut Config) -> Result<(), ServeError> {
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
    Ok(())
}

/// The server of `--http`, on sockets of the service manager or on those that it binds.
fn http_server(
    config: &Config,
    inherited: &mut Sockets,
) -> Result<Option<glimmer_http::Server>, ServeError> {
    let server = match inherited.take_http() {
        Some(listeners) => glimmer_http::Server::over(listeners)?,
        None if config.http.is_empty() => return Ok(None),
        None => glimmer_http::Server::bind(&config.http)
            .map_err(|(at, reason)| ServeError::Http { at, reason })?,
    };
    Ok(Some(server))
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

/// An unpredictable number from the kernel.
fn random() -> u64 {
    getrandom::u64().expect("the kernel has random numbers from its start on")
}

/// Has SIGTERM and SIGINT end the process at once, for as long as the flag is set: a store that is
/// being built has no client, and a memory file is looked at again by the next process.
fn ended_by_signals() -> io::Result<Arc<AtomicBool>> {
    let starting = Arc::new(AtomicBool::new(true));
    for signal in [SIGTERM, SIGINT] {
        flag::register_conditional_shutdown(signal, 0, starting.clone())?;
    }
    Ok(starting)
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
