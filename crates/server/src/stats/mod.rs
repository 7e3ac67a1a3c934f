//! Answers `stats`. Statistics with memcached's names have memcached's meanings. Those that this
//! server does not have are omitted, never invented. This server's own statistics have their own
//! commands: `stats glimmer`, `stats memory`, `stats native`, `stats workers`, `stats dispatch`,
//! `stats latency`, `stats slow`, `stats packets`, `stats accelerator`, `stats hotkeys` and `stats
//! users`.

mod alarms;
mod audit;
mod conns;
mod dispatch;
mod general;
mod hot;
mod items;
mod latency;
mod lines;
mod memory;
mod native;
mod own;
mod packets;
mod pages;
mod redis;
mod settings;
mod slow;
mod snapshot;
mod told;
mod users;
mod workers;

use crate::accelerate;
use crate::auth::AuthFile;
use crate::config::{AccessMode, Config, Mode};
use crate::encryption::{Tls, TlsFigures};
use crate::log::Log;
use crate::memory_plan::MemoryPlan;
use crate::snapshot::{SnapshotFigures, Snapshots};
use glimmer_base::Moment;
use glimmer_engine::{Figures, TableStats};
use glimmer_hotset::HotKey;
use glimmer_node::native::Rules;
use glimmer_node::{
    Accelerator, Address, AdminHandler, Alarm, Audited, Login, NodeFigures, Part, SocketView,
    Tally, Tenants, WatchFigures,
};
use glimmer_proto::sections::Sections;
use glimmer_proto::text::{Shutdown, lines as replies};
use lines::Lines;
use pages::Pages;
use signal_hook::consts::{SIGINT, SIGUSR1};
pub(crate) use slow::fields as slow_fields;
pub(crate) use snapshot::Figures as ServerFigures;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
pub(crate) use told::Kind;
use told::Told;

/// Answers the commands that concern the whole server and not one worker.
pub struct ServerAdmin {
    pub(crate) config: Config,
    plan: MemoryPlan,
    auth: Option<AuthFile>,
    /// What workers know of users, and of addresses.
    tenants: Arc<Tenants>,
    tls: Option<Arc<Tls>>,
    tables: Vec<Arc<dyn Figures>>,
    pages: Pages,
    node: OnceLock<Opened>,
    native: OnceLock<NativeOpened>,
    /// The counters at the last `stats reset`.
    at_reset: Mutex<Counts>,
    verbosity: AtomicU32,
    /// How the accelerator's packet program is attached.
    mode: Option<accelerate::Mode>,
    /// The packet program, as long as it is attached.
    attachment: Weak<accelerate::Attachment>,
    /// Whether the interface of the packet transport was away when the log was last told of it.
    was_away: AtomicBool,
    log: Log,
    /// What a worker tells the thread of `--http`, if there is one.
    told: Option<Told>,
    /// The file of `--snapshot`, if there is one.
    snapshots: Option<Arc<Snapshots>>,
}

/// What is known once the node runs.
struct Opened {
    addresses: Vec<Address>,
    udp: Vec<SocketAddr>,
    figures: NodeFigures,
}

/// What is known of the native protocol once it is served.
struct NativeOpened {
    /// The workers' ports at each address.
    ports: Vec<(IpAddr, Arc<[u16]>)>,
    rules: Rules,
}

/// The counters of all workers, summed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub table: TableStats,
    pub node: Tally,
}

/// All current statistics, and the counters at the last reset.
struct Snapshot<'a> {
    admin: &'a ServerAdmin,
    moment: Moment,
    now: Counts,
    at_reset: Counts,
}

impl ServerAdmin {
    /// The access mode of the tables, which an operator can change while the server runs.
    fn access(&self) -> AccessMode {
        let node = self.node.get();
        let view = node.and_then(|node| node.figures.dispatch());
        view.map_or(self.config.table_access(), |view| view.access)
    }

    /// Creates the admin handler of a store. `log` receives the levels that clients set with
    /// `verbosity`.
    ///
    /// # Errors
    ///
    /// There is no thread to be had that reads what takes long.
    pub fn new(
        config: Config,
        plan: MemoryPlan,
        auth: Option<AuthFile>,
        tables: Vec<Arc<dyn Figures>>,
        mode: Option<accelerate::Mode>,
        log: Log,
        tls: Option<Arc<Tls>>,
    ) -> io::Result<ServerAdmin> {
        let told = (!config.http.is_empty()).then(Told::default);
        Ok(ServerAdmin {
            pages: Pages::of(tables.clone())?,
            verbosity: AtomicU32::new(config.verbosity.into()),
            config,
            plan,
            auth,
            tenants: Arc::default(),
            tls,
            tables,
            node: OnceLock::new(),
            native: OnceLock::new(),
            at_reset: Mutex::default(),
            mode,
            attachment: Weak::new(),
            was_away: AtomicBool::new(false),
            log,
            told,
            snapshots: None,
        })
    }

    /// The same with users and limits.
    pub fn with_tenants(self, tenants: Arc<Tenants>) -> ServerAdmin {
        ServerAdmin { tenants, ..self }
    }

    /// The same with a packet program, which is detached when its owner drops it.
    pub fn with_attachment(self, attachment: Option<&Arc<accelerate::Attachment>>) -> ServerAdmin {
        ServerAdmin {
            attachment: attachment.map_or_else(Weak::new, Arc::downgrade),
            ..self
        }
    }

    /// Has somebody look soon whether the packet program still has its interface.
    fn look_at_interface(&self, now: Moment) {
        if let Some(attachment) = self.attachment.upgrade() {
            attachment.look_at_interface(now.ms);
        }
    }

    /// What workers know of users, and of addresses.
    pub(crate) fn tenants(&self) -> &Tenants {
        &self.tenants
    }

    /// The same with a file for snapshots.
    pub fn with_snapshots(self, snapshots: Option<Arc<Snapshots>>) -> ServerAdmin {
        ServerAdmin { snapshots, ..self }
    }

    /// What is told of snapshots, if there is a file for them.
    fn snapshots(&self) -> Option<SnapshotFigures> {
        self.snapshots.as_ref().map(|it| it.figures())
    }

    /// Why the last snapshot was not written.
    fn snapshot_error(&self) -> Option<String> {
        let error = self.snapshots.as_ref()?.last_error();
        (!error.is_empty()).then_some(error)
    }

    /// Reads users and passwords again, after a SIGHUP.
    pub fn reload_users(&self) {
        match self.auth.as_ref().map(AuthFile::reload) {
            None => {}
            Some(Ok(())) => tracing::info!("SIGHUP: read users and passwords again"),
            Some(Err(error)) => tracing::warn!("SIGHUP: {error}; the old users remain valid"),
        }
    }

    /// Reads certificates again, after a SIGHUP.
    pub fn reload_certificates(&self) {
        if let Some(tls) = &self.tls {
            // It logs what is wrong.
            let _ = audit::log_renewal("SIGHUP", tls.renew());
        }
    }

    /// What TLS has done, if there is TLS.
    pub(crate) fn tls(&self) -> Option<TlsFigures> {
        self.tls.as_ref().map(|tls| tls.figures())
    }

    /// The log shows lines up to this level.
    pub fn set_verbosity(&self, level: u32) {
        self.verbosity.store(level, Ordering::Relaxed);
        self.log.set_verbosity(level);
    }

    /// The most connections at a time.
    fn connections_max(&self) -> usize {
        let node = self.node.get();
        node.map_or(self.config.connections_max, |node| {
            node.figures.connections_max()
        })
    }

    fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for table in &self.tables {
            counts.table += table.table();
        }
        for tally in self
            .node
            .get()
            .into_iter()
            .flat_map(|node| node.figures.tallies())
        {
            counts.node += tally;
        }
        // No engine counts these, so no hit moves from one counter to another while they are read.
        let accelerator = self.accelerator();
        counts.table.requests.get_hits += accelerator.map_or(0, |it| it.hits());
        counts
    }

    fn snapshot(&self, moment: Moment) -> Snapshot<'_> {
        let at_reset = *self.at_reset.lock().unwrap_or_else(PoisonError::into_inner);
        Snapshot {
            admin: self,
            moment,
            now: self.counts(),
            at_reset,
        }
    }

    fn reset(&self) {
        let counts = self.counts();
        if let Some(node) = self.node.get() {
            node.figures.clear_detail();
        }
        *self.at_reset.lock().unwrap_or_else(PoisonError::into_inner) = counts;
    }

    fn tcp(&self) -> Vec<SocketAddr> {
        let address = |address: &Address| match *address {
            Address::Tcp(address) => Some(address),
            Address::Unix { .. } => None,
        };
        self.addresses().iter().filter_map(address).collect()
    }

    fn evicts(&self) -> bool {
        self.config.mode == Mode::Cache
    }

    /// When the most recent `flush_all` takes effect, in seconds since the start as memcached
    /// counts them; 0 if there was none.
    fn flush_s(&self) -> u64 {
        self.node
            .get()
            .map_or(0, |node| node.figures.flush_ms() / 1000)
    }

    fn has_crawler(&self) -> bool {
        self.node
            .get()
            .map_or(self.config.crawler, |node| node.figures.has_crawler())
    }

    fn watch(&self) -> WatchFigures {
        let node = self.node.get();
        node.map_or_else(WatchFigures::default, |node| node.figures.watch())
    }

    fn groups_unswept(&self) -> u64 {
        (self.node.get()).map_or(0, |node| node.figures.groups_unswept())
    }

    fn has_detail(&self) -> bool {
        self.node
            .get()
            .map_or(self.config.detail, |node| node.figures.has_detail())
    }

    /// The name of the dispatch policy in force.
    fn dispatch(&self) -> &'static str {
        let view = self.node.get().and_then(|node| node.figures.dispatch());
        view.map_or(self.config.dispatch.name(), |view| view.policy.name())
    }

    /// The accelerator, if there is one.
    fn accelerator(&self) -> Option<Arc<Accelerator>> {
        self.node.get()?.figures.accelerator()
    }

    /// The hottest keys.
    fn hot_keys(&self, now: Moment) -> Vec<HotKey> {
        let node = self.node.get();
        node.map_or_else(Vec::new, |node| node.figures.hot_keys(now))
    }

    /// Whether a listing is in progress and how many there were, if listings are allowed.
    fn dumps(&self) -> Option<(bool, u64)> {
        let node = self.node.get()?;
        self.has_crawler().then(|| node.figures.dumps())
    }

    /// At most `most` sockets, starting with descriptor `from`.
    fn sockets(&self, from: RawFd, most: usize) -> Vec<SocketView> {
        let node = self.node.get();
        node.map_or_else(Vec::new, |node| node.figures.sockets(from, most))
    }

    fn udp(&self) -> &[SocketAddr] {
        self.node.get().map_or(&[], |node| &node.udp)
    }

    fn addresses(&self) -> &[Address] {
        self.node.get().map_or(&[], |node| &node.addresses)
    }
}

/// A counter since the last reset.
macro_rules! count {
    ($snapshot:expr, $($part:ident).+) => {
        $snapshot
            .now
            .$($part).+
            .saturating_sub($snapshot.at_reset.$($part).+)
    };
}
use count;

impl AdminHandler for ServerAdmin {
    fn open(&self, addresses: &[Address], udp: &[SocketAddr], figures: NodeFigures) {
        self.pages.open(figures.clone());
        // Each admin handler belongs to one node, so this is the first call.
        let _ = self.node.set(Opened {
            addresses: addresses.to_vec(),
            udp: udp.to_vec(),
            figures,
        });
        if let Some((told, node)) = self.told.as_ref().zip(self.node()) {
            told.tell_all(|kind, text| self.tell(kind, node.now(), text));
        }
    }

    fn tick(&self, worker: usize, now: Moment) {
        // Whichever is awake.
        self.look_at_interface(now);
        packets::tell_of_interface(self);
        // One worker is enough.
        if worker != 0 {
            return;
        }
        if let Some(told) = &self.told {
            told.tell_next(|kind, text| self.tell(kind, now, text));
        }
    }

    fn open_native(&self, ports: &[(IpAddr, Arc<[u16]>)], rules: &Rules) {
        let ports = ports.to_vec();
        let _ = self.native.set(NativeOpened {
            ports,
            rules: rules.clone(),
        });
    }

    fn stats(&self, argument: &[u8], from: u64, now: Moment, out: &mut Vec<u8>) -> Part {
        tracing::debug!(argument = %argument.escape_ascii(), "stats");
        let first_word = argument
            .split(|&byte| byte == b' ')
            .next()
            .unwrap_or_default();
        let mut lines = Lines(out);
        match first_word {
            b"" => general::write(&self.snapshot(now), &mut lines),
            b"settings" => settings::write(self, &mut lines),
            b"conns" => {
                if let Some(from) = conns::write(self, from, now, &mut lines) {
                    return Part::More(from);
                }
            }
            b"items" => items::write_items(&self.snapshot(now), &mut lines),
            b"slabs" => items::write_slabs(&self.snapshot(now), &mut lines),
            b"glimmer" => own::write(&self.snapshot(now), &mut lines),
            b"native" => native::write(&self.snapshot(now), &mut lines),
            b"memory" => match self.pages.look(now.ms) {
                Some(pages) => memory::write(self, &pages, &mut lines),
                None => return Part::Later,
            },
            b"packets" => packets::write(self, &mut lines),
            b"accelerator" => hot::write_accelerator(self, now, &mut lines),
            b"slow" => {
                let Some(threshold_ms) = slow::threshold_ms(argument) else {
                    out.extend_from_slice(replies::STATS_SLOW_USAGE.as_bytes());
                    return Part::Last;
                };
                match slow::write(self, threshold_ms, from, &mut lines) {
                    Part::Last => {}
                    part => return part,
                }
            }
            b"latency" => match latency::write(self, from, &mut lines) {
                Part::Last => {}
                part => return part,
            },
            b"hotkeys" => hot::write_keys(self, now, &mut lines),
            b"users" => match users::write(self, from, &mut lines) {
                Part::Last => {}
                part => return part,
            },
            b"workers" => match workers::write(self, from, &mut lines) {
                Part::Last => {}
                part => return part,
            },
            b"dispatch" => match dispatch::write(self, from, &mut lines) {
                Part::Last => {}
                part => return part,
            },
            // memcached's answer unless this feature, which costs memory, is enabled. Here it never
            // is.
            b"sizes" => lines.put("sizes_status", "disabled"),
            b"extstore" => {}
            b"reset" => {
                self.reset();
                out.extend_from_slice(replies::RESET.as_bytes());
                return Part::Last;
            }
            _ => {
                out.extend_from_slice(replies::ERROR.as_bytes());
                return Part::Last;
            }
        }
        lines.end();
        Part::Last
    }

    fn info(&self, sections: Sections, now: Moment, out: &mut Vec<u8>) {
        redis::write_info(&self.snapshot(now), sections, out);
    }

    fn clients(&self, from: u64, now: Moment, out: &mut Vec<u8>) -> Option<u64> {
        redis::write_clients(self, from, now, out)
    }

    fn items(&self) -> u64 {
        let tables = self.tables.iter();
        tables.map(|table| table.table().store.items).sum()
    }

    fn admits(&self, user: &[u8], password: &[u8]) -> bool {
        let auth = self.auth.as_ref();
        auth.is_some_and(|auth| auth.admits(user, password))
    }

    fn log_in(&self, user: &[u8], password: &[u8]) -> Login {
        let auth = self.auth.as_ref();
        auth.map_or(Login::Wrong, |auth| auth.log_in(user, password))
    }

    /// Memory is laid out at start, so only the original limit is accepted.
    fn set_memory_limit(&self, mebibytes: u32) -> bool {
        (mebibytes as usize) << 20 == self.config.memory_bytes
    }

    fn verbosity(&self, level: u32) {
        self.set_verbosity(level);
    }

    fn alarm(&self, alarm: Alarm) {
        alarms::log(alarm);
    }

    fn audits(&self) -> bool {
        audit::is_on()
    }

    fn audit(&self, client: &str, what: Audited<'_>) {
        audit::log(client, what);
    }

    fn refresh_certificates(&self, out: &mut Vec<u8>) {
        let Some(tls) = &self.tls else {
            return out.extend_from_slice(replies::TLS_NOT_ENABLED.as_bytes());
        };
        match audit::log_renewal("refresh_certs", tls.renew()) {
            Ok(()) => out.extend_from_slice(replies::OK.as_bytes()),
            Err(error) => out.extend_from_slice(format!("SERVER_ERROR {error}\r\n").as_bytes()),
        }
    }

    fn snapshot(&self, out: &mut Vec<u8>) {
        let line = match &self.snapshots {
            None => replies::NO_SNAPSHOT_FILE,
            Some(snapshots) if snapshots.order() => replies::OK,
            Some(_) => replies::SNAPSHOT_BUSY,
        };
        out.extend_from_slice(line.as_bytes());
    }

    fn shutdown(&self, how: Shutdown, out: &mut Vec<u8>) -> bool {
        let signal = match how {
            Shutdown::Unknown => {
                out.extend_from_slice(replies::INVALID_SHUTDOWN_MODE.as_bytes());
                return false;
            }
            Shutdown::Now => SIGINT,
            Shutdown::Graceful => SIGUSR1,
        };
        tracing::info!("a client asked the server to stop");
        // This fails only for signals that do not exist.
        let _ = signal_hook::low_level::raise(signal);
        true
    }
}
