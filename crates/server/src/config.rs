//! The configuration of a server: plain values, checked before anything is allocated or bound.

use crate::accelerate::{Accelerate, HotPolicy, Sources};
use crate::auth::Format;
use crate::encryption::{ListenerTls, TlsConfig};
use crate::log::LogFormat;
use glimmer_base::{Moment, limits};
pub use glimmer_dispatch::AccessMode;
use glimmer_dispatch::{POLICIES, Policy, Settings};
pub use glimmer_node::BusyPoll;
use glimmer_node::{Permits, Quotas};
use glimmer_proto::Accepts;
use glimmer_store::evict::{CLOCK, LRU, Objective, Rule};
use glimmer_transport::packet::PacketTransport;
use glimmer_transport::tcp::Liveness;
use glimmer_transport::transports;
pub use slices::{SLICE_BYTES_MIN, SliceBytes};
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// The settings of one server. [`Config::check`] tests whether they are consistent.
#[derive(Clone, Debug)]
pub struct Config {
    /// TCP addresses with their ports; port 0 is replaced by a free one. May be empty.
    pub tcp: Vec<SocketAddr>,
    /// The protocol of the connections at each address in `tcp` (`-l proto[...]:`).
    pub tcp_protocols: Vec<Accepts>,
    /// For each address in `tcp`, the index of the name of `-l` that it belongs to. Among the
    /// addresses of one name, those already in use are skipped if at least one is free. Empty: each
    /// address is a name of its own.
    pub tcp_names: Vec<usize>,
    /// When the kernel closes a connection whose client has vanished (`--tcp-keepalive`,
    /// `--tcp-user-timeout`).
    pub liveness: Liveness,
    /// UDP addresses, like `tcp`.
    pub udp: Vec<SocketAddr>,
    /// Like `tcp_names`, for `udp`.
    pub udp_names: Vec<usize>,
    /// Addresses of the first worker's native port, like `tcp` (`--native-port`).
    pub native: Vec<SocketAddr>,
    /// Whether all workers share the native port (`--native-single-port`).
    pub native_single_port: bool,
    /// Whether the server recomputes the keyhash of native reads (`--native-check-keyhash`).
    pub native_checks_reads: bool,
    /// Who directs native requests to the workers that own their keys (`--native-direction`).
    pub native_direction: Direction,
    /// Whether workers look for something to do instead of sleeping (`--busy-poll`).
    pub busy_poll: BusyPoll,
    /// Where the pages for operators are served (`--http`), like `tcp`. Empty: nowhere.
    pub http: Vec<SocketAddr>,
    /// A Unix socket (`-s`). It replaces all other addresses.
    pub unix: Option<UnixSocket>,
    /// The value of `-l`, for `stats settings`.
    pub interfaces: Option<String>,
    /// Connections per worker that wait in the kernel to be accepted (`-b`).
    pub backlog: i32,
    /// The protocol of connections (`-B`).
    pub protocol: Accepts,
    /// Requests of one connection that are executed before others have their turn (`-R`).
    pub turn_requests: u32,
    /// Bytes of large values that a worker copies, sends or receives at a time beside small
    /// requests (`--slice-bytes`); [`SliceBytes::OFF`] for whole values. Tests take fewer than
    /// [`SLICE_BYTES_MIN`].
    pub slice_bytes: usize,
    /// Bytes of unsent lines of one watcher. Servers take [`limits::WATCH_BYTES_MAX`]; tests take
    /// less.
    pub watch_bytes: usize,
    /// Whether connections beyond `-c` are refused. Otherwise they wait (`-o no_maxconns_fast`).
    pub rejects_beyond_max: bool,
    /// Time after which an idle connection is closed (`-o idle_timeout`).
    pub idle_timeout: Option<Duration>,
    /// The administrative commands that clients may use.
    pub permits: Permits,
    /// Whether all items may be listed without `lru_crawler enable` (`-o no_lru_crawler`).
    pub crawler: bool,
    /// Whether items have CAS uniques (`-C` disables them).
    pub cas: bool,
    /// The file with users and passwords (`-Y`).
    pub auth_file: Option<PathBuf>,
    /// The file with users, their passwords, rights and limits (`--users`).
    pub users: Option<PathBuf>,
    /// What each address may have (`--address-connections` and others).
    pub address_quotas: Quotas,
    /// Whether clients authenticate with SASL (`-S`).
    pub sasl: bool,
    /// TLS (`-Z`, and `-o ssl_...`).
    pub tls: TlsConfig,
    /// How the connections at each address in `tcp` are encrypted with TLS (`-l notls:` and
    /// others); with `-Z` those that are not named here are, as `-o` says. Inherited Unix sockets
    /// come after them.
    pub tcp_encryption: Vec<ListenerTls>,
    /// The character after a key's prefix, for `stats detail` and for `flush_prefix`.
    pub prefix_delimiter: u8,
    /// Whether keys have groups, which can be invalidated (`--prefix-delimiter`, `-D`).
    pub has_groups: bool,
    /// Whether `stats detail` starts enabled.
    pub detail: bool,
    /// What answers reads of hot keys before the server sees them (`--accelerate`).
    pub accelerate: Accelerate,
    /// How many hot keys that is for (`--accelerate-slots`).
    pub accelerate_slots: usize,
    /// Whose requests it answers at an interface (`--accelerate-from`).
    pub accelerate_from: Sources,
    /// Which keys those are (`--accelerate-policy`).
    pub accelerate_policy: HotPolicy,
    /// Limit in bytes for everything that grows with data and connections (`-m`).
    pub memory_bytes: usize,
    /// Worker threads (`-t`).
    pub workers: usize,
    /// Maximum number of client connections (`-c`).
    pub connections_max: usize,
    /// Largest item in bytes, including key and header (`-I`).
    pub item_bytes_max: usize,
    /// Key and value bytes of the item for which memory is planned (`--item-size-hint`).
    pub item_bytes_hint: usize,
    /// Bytes of all connections' buffers, instead of the memory plan's choice.
    pub buffer_bytes: Option<usize>,
    /// Whether items are evicted when memory is full (`--mode`, `-M`).
    pub mode: Mode,
    /// Which workers may access a partition; see also [`Config::table_access`].
    pub access: AccessMode,
    /// What carries datagrams (`--packet-transport`).
    pub packets: Arc<dyn PacketTransport>,
    /// How requests are spread over the workers (`--dispatch`).
    pub dispatch: Arc<dyn Policy>,
    /// The settings of policies, also of one that the server is switched to later
    /// (`--dispatch-epoch-ms` and others).
    pub dispatch_settings: Settings,
    /// The table of each partition.
    pub table: TableKind,
    /// Which items are evicted when the log is full.
    pub evict: Rule,
    /// What `--evict adaptive` is to find the most of (`--evict-for`).
    pub evict_for: Objective,
    /// Share of the log, next to its tail, in which a read does not move an item (`--evict lru`).
    pub lru_threshold: f64,
    /// The page size of log and index.
    pub hugepages: HugepagePolicy,
    /// The file that the store lies in (`-e`).
    pub memory_file: Option<PathBuf>,
    /// Whether what that file holds is given up (`--memory-file-discard`).
    pub memory_file_discard: bool,
    /// Whether each worker is pinned to a core.
    pub pin: bool,
    /// When the process started, in milliseconds since the epoch of its clock; no setting.
    pub started_ms: u64,
    /// The log level: the number of `-v`.
    pub verbosity: u8,
    /// Requests that take as long as this, in milliseconds, are kept for `stats slow`; 0: none
    /// (`--slow-ms`).
    pub slow_ms: u64,
    /// How log lines are written (`--log-format`).
    pub log_format: LogFormat,
    /// The file for the process id (`-P`).
    pub pid_file: Option<PathBuf>,
    /// The user to switch to after the addresses are bound (`-u`).
    pub user: Option<String>,
    /// The file for all items, which is loaded at the start and written at the end (`--snapshot`).
    pub snapshot: Option<PathBuf>,
    /// Whether to continue in the background (`-d`).
    pub daemon: bool,
    /// Whether to lock all memory, so that it is not paged out (`-k`).
    pub lock_memory: bool,
    /// Whether a crash may write a core file of any size (`-r`).
    pub core_files: bool,
    /// One line for each requested feature of memcached that this server does not have. Printed at
    /// start.
    pub notices: Vec<String>,
}

/// A Unix socket to listen on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnixSocket {
    /// Its path (`-s`).
    pub path: PathBuf,
    /// Its permissions as for `chmod` (`-a`).
    pub mode: u32,
}

/// Default of `-a`, as in memcached.
pub const UNIX_MODE_DEFAULT: u32 = 0o700;
/// Default of `-b`, as in memcached.
pub const BACKLOG_DEFAULT: i32 = 1024;
/// Default of `--tcp-keepalive` in seconds. A probe per minute costs almost nothing, and firewalls
/// and load balancers keep silent connections for longer than that.
pub const TCP_KEEPALIVE_S_DEFAULT: u64 = 60;
/// Default of `--tcp-user-timeout` in seconds.
pub const TCP_USER_TIMEOUT_S_DEFAULT: u64 = 300;
/// Default of `-D`, as in memcached.
pub const PREFIX_DELIMITER_DEFAULT: u8 = b':';

/// The port that memcached clients expect.
pub const PORT_DEFAULT: u16 = 11211;
/// The port of `--http` where none is given: that of memcached's exporter for Prometheus.
pub const HTTP_PORT_DEFAULT: u16 = 9150;
/// Default of `-m` in MiB, as in memcached.
pub const MEMORY_MIB_DEFAULT: usize = 64;
/// Default of `-c`, as in memcached.
pub const CONNECTIONS_DEFAULT: usize = 1024;
/// Default of `--item-size-hint`: a key of 16 bytes with a value of 32.
pub const ITEM_BYTES_HINT_DEFAULT: usize = 48;
/// Default of `--lru-threshold`.
pub const LRU_THRESHOLD_DEFAULT: f64 = match LRU.reinsertion_threshold {
    Some(threshold) => threshold,
    None => panic!("LRU reinserts on a read"),
};

/// Why a [`Config`] is invalid. Each message says what to do instead.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// `-t` out of range.
    #[error("-t {0} is out of range: 1 to {max} worker threads", max = limits::WORKERS_MAX)]
    Workers(usize),
    /// `-c` out of range.
    #[error("-c 0 would refuse every client: allow at least 1 connection")]
    NoConnections,
    /// `-I` out of range.
    #[error("-I {0} bytes is out of range: 1k to 1024m, as memcached's")]
    ItemBytes(usize),
    /// `--item-size-hint` out of range.
    #[error("--item-size-hint {hint} is out of range: 1 to {item_bytes_max}, the item limit (-I)")]
    ItemBytesHint {
        /// The requested value.
        hint: usize,
        /// The item limit.
        item_bytes_max: usize,
    },
    /// Settings that exclude each other.
    #[error("{0}")]
    Together(&'static str),
    /// Two kinds of listeners want one port.
    #[error("{flags} name the same port, {port}; choose another for one of them")]
    SamePort {
        /// The flags of both.
        flags: &'static str,
        /// The port.
        port: u16,
    },
    /// A dispatch policy that these workers or this access mode exclude.
    #[error("--dispatch {policy}, {workers} workers: {reason}")]
    Dispatch {
        /// The name of the policy.
        policy: &'static str,
        /// The number of workers.
        workers: usize,
        /// What excludes it, and what to change.
        reason: &'static str,
    },
    /// `-R` out of range.
    #[error("-R 0 would serve no client: allow at least 1 request per turn")]
    NoRequests,
    /// `--accelerate-slots` out of range.
    #[error(
        "--accelerate-slots {0} is out of range: {min} to {max}",
        min = limits::HOT_SLOTS_MIN,
        max = limits::HOT_SLOTS_MAX
    )]
    AccelerateSlots(usize),
    /// `--native-port` leaves fewer ports than there are workers.
    #[error(
        "--native-port {port} leaves too few ports for {workers} workers, which need one each: \
         choose a lower port, or share it with --native-single-port"
    )]
    NativePort {
        /// The requested port.
        port: u16,
        /// The number of workers.
        workers: usize,
    },
    /// `--lru-threshold` out of range.
    #[error("--lru-threshold {0} is out of range: a share of the log from 0 to 1")]
    LruThreshold(f64),
}

/// One TCP port on loopback and two workers. The rest is what `glimmer serve` does without flags.
impl Default for Config {
    fn default() -> Config {
        Config {
            tcp: vec![SocketAddr::from(([127, 0, 0, 1], PORT_DEFAULT))],
            tcp_protocols: vec![Accepts::Any],
            tcp_names: Vec::new(),
            liveness: Liveness::default(),
            udp: Vec::new(),
            udp_names: Vec::new(),
            native: Vec::new(),
            native_single_port: false,
            native_checks_reads: false,
            native_direction: Direction::Client,
            busy_poll: BusyPoll::Off,
            http: Vec::new(),
            unix: None,
            interfaces: None,
            backlog: BACKLOG_DEFAULT,
            protocol: Accepts::Any,
            turn_requests: limits::TURN_REQUESTS_MAX,
            slice_bytes: limits::SLICE_BYTES,
            watch_bytes: limits::WATCH_BYTES_MAX,
            rejects_beyond_max: true,
            idle_timeout: None,
            permits: Permits::DEFAULT,
            crawler: true,
            cas: true,
            auth_file: None,
            users: None,
            address_quotas: Quotas::default(),
            sasl: false,
            tls: TlsConfig::default(),
            tcp_encryption: Vec::new(),
            prefix_delimiter: PREFIX_DELIMITER_DEFAULT,
            has_groups: false,
            detail: false,
            accelerate: Accelerate::Off,
            accelerate_slots: limits::HOT_SLOTS_DEFAULT,
            accelerate_from: Sources::OnLink,
            accelerate_policy: HotPolicy::default(),
            memory_bytes: MEMORY_MIB_DEFAULT << 20,
            workers: 2,
            connections_max: CONNECTIONS_DEFAULT,
            item_bytes_max: limits::ITEM_BYTES_DEFAULT,
            item_bytes_hint: ITEM_BYTES_HINT_DEFAULT,
            buffer_bytes: None,
            mode: Mode::Cache,
            access: AccessMode::Crcw,
            dispatch: Arc::new(POLICIES[0]),
            dispatch_settings: Settings::DEFAULT,
            packets: transports::default(),
            table: TableKind::Mica,
            evict: glimmer_store::evict::DEFAULT,
            evict_for: Objective::Hits,
            lru_threshold: LRU_THRESHOLD_DEFAULT,
            hugepages: HugepagePolicy::Auto,
            memory_file: None,
            memory_file_discard: false,
            pin: false,
            started_ms: Moment::EPOCH_LEAD_MS,
            verbosity: 0,
            slow_ms: limits::SLOW_MS_DEFAULT,
            log_format: LogFormat::Text,
            pid_file: None,
            user: None,
            snapshot: None,
            daemon: false,
            lock_memory: false,
            core_files: false,
            notices: Vec::new(),
        }
    }
}

impl Config {
    /// The name of the effective eviction rule. Some tables have a fixed rule, and in store mode it
    /// is `none`.
    pub fn eviction(&self) -> &'static str {
        match (self.mode, self.table) {
            (Mode::Store, _) => "none",
            (Mode::Cache, TableKind::Mica) => self.evict.name,
            (Mode::Cache, TableKind::Memc3) => CLOCK.name,
        }
    }

    /// Checks everything that can be checked without allocating or binding.
    pub fn check(&self) -> Result<(), ConfigError> {
        if !(1..=limits::WORKERS_MAX).contains(&self.workers) {
            return Err(ConfigError::Workers(self.workers));
        }
        if self.connections_max == 0 {
            return Err(ConfigError::NoConnections);
        }
        if self.turn_requests == 0 {
            return Err(ConfigError::NoRequests);
        }
        if let Some(reason) = self.contradiction() {
            return Err(ConfigError::Together(reason));
        }
        let fits = self.dispatch.check(self.access);
        if let Err(reason) = fits.and(self.dispatch.check_workers(self.workers)) {
            return Err(ConfigError::Dispatch {
                policy: self.dispatch.name(),
                workers: self.workers,
                reason,
            });
        }
        if !(limits::ITEM_BYTES_MIN..=limits::ITEM_BYTES_MAX).contains(&self.item_bytes_max) {
            return Err(ConfigError::ItemBytes(self.item_bytes_max));
        }
        if !(1..=self.item_bytes_max).contains(&self.item_bytes_hint) {
            return Err(ConfigError::ItemBytesHint {
                hint: self.item_bytes_hint,
                item_bytes_max: self.item_bytes_max,
            });
        }
        let ports = self.native.iter().map(SocketAddr::port);
        if let Some(port) = ports.max()
            && !self.native_single_port
            && usize::from(port) + self.workers > usize::from(u16::MAX) + 1
        {
            return Err(ConfigError::NativePort {
                port,
                workers: self.workers,
            });
        }
        if !(limits::HOT_SLOTS_MIN..=limits::HOT_SLOTS_MAX).contains(&self.accelerate_slots) {
            return Err(ConfigError::AccelerateSlots(self.accelerate_slots));
        }
        if !(0.0..=1.0).contains(&self.lru_threshold) {
            return Err(ConfigError::LruThreshold(self.lru_threshold));
        }
        Ok(())
    }

    /// The access mode of the tables. One worker shares its tables with no other worker, so they go
    /// without the cost of sharing, whatever [`Config::access`] says.
    pub fn table_access(&self) -> AccessMode {
        match self.workers {
            1 => AccessMode::Erew,
            _ => self.access,
        }
    }

    /// The file with users, and its format, if clients have to authenticate.
    pub(crate) fn user_file(&self) -> Option<(&Path, Format)> {
        let passwords = self.auth_file.as_deref();
        let passwords = passwords.map(|path| (path, Format::Passwords));
        passwords.or_else(|| Some((self.users.as_deref()?, Format::Rights)))
    }
}

/// What happens when memory is full (MICA §4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Items are evicted.
    Cache,
    /// Stores are refused. Items disappear only when they are deleted or expire.
    Store,
}

/// Who directs native requests to the workers that own their keys (MICA §4.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The client, by the port; what comes to another is refused.
    Client,
    /// The server: a worker hands over what another owns.
    Server,
}

/// The table of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableKind {
    /// Circular logs under a lossy index (MICA §4.3).
    Mica,
    /// Slab classes under a cuckoo index, with CLOCK (MemC3).
    Memc3,
}

/// The page size of log and index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HugepagePolicy {
    /// Transparent huge pages, or 4 KiB pages if there are none. Reserved pages are left to others.
    Auto,
    /// Reserved huge pages, all allocated at start. Without them the server does not start.
    Hugetlb,
    /// The same as `Auto`.
    Transparent,
    /// 4 KiB pages.
    Off,
}

/// Gives the variants of a settings enum their names on the command line and in `stats settings`.
macro_rules! named {
    ($type:ident { $($variant:ident = $name:literal),+ }) => {
        impl $type {
            /// Every value.
            pub const ALL: &'static [$type] = &[$($type::$variant),+];

            /// The value's name on the command line.
            pub fn name(self) -> &'static str {
                match self { $($type::$variant => $name),+ }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }

        impl FromStr for $type {
            type Err = String;

            fn from_str(name: &str) -> Result<Self, String> {
                let known = Self::ALL.iter().find(|value| value.name() == name);
                known.copied().ok_or_else(|| format!("one of {}", [$($name),+].join(", ")))
            }
        }
    };
}

named!(Mode { Cache = "cache", Store = "store" });
named!(Direction { Client = "client", Server = "server" });
named!(TableKind { Mica = "mica", Memc3 = "memc3" });
named!(HugepagePolicy {
    Auto = "auto",
    Hugetlb = "hugetlb",
    Transparent = "transparent",
    Off = "off"
});

mod contradictions;
mod ports;
mod slices;
#[cfg(test)]
mod tests;
