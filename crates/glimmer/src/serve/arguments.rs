//! The flags of `glimmer serve`, with their help.

use super::values::{self, Port};
use clap::{ArgAction, Args};
use glimmer_base::limits;
use glimmer_dispatch::{Cost, LargeCores, POLICIES, Settings};
use glimmer_server::config::{
    BACKLOG_DEFAULT, CONNECTIONS_DEFAULT, ITEM_BYTES_HINT_DEFAULT, LRU_THRESHOLD_DEFAULT,
    MEMORY_MIB_DEFAULT, TCP_KEEPALIVE_S_DEFAULT, TCP_USER_TIMEOUT_S_DEFAULT,
};
use glimmer_server::evict::{self, RULES, Rule};
use glimmer_server::{
    Accelerate, AccessMode, Direction, HotPolicy, HugepagePolicy, Mode, Sources, TableKind,
};
use glimmer_transport::packet::PacketTransport;
use glimmer_transport::transports::TRANSPORTS;
use std::path::PathBuf;

/// Serve memcached clients until SIGTERM or SIGINT
#[derive(Args, Debug)]
#[command(
    version,
    args_override_self = true,
    after_help = "`glimmer serve --help` explains each option and shows examples.",
    after_long_help = EXAMPLES
)]
pub struct Arguments {
    /// TCP port to listen on; 0 for none, -1 for any free port
    ///
    /// With -U alone, the TCP port is the same as the UDP port.
    #[arg(
        short,
        long,
        value_name = "NUM",
        allow_negative_numbers = true,
        value_parser = values::port,
        help_heading = NETWORK,
    )]
    pub(super) port: Option<Port>,

    /// UDP port to listen on; 0 for none, -1 for any free port
    ///
    /// UDP is off by default, as in memcached: attackers can use an open UDP port to flood a third
    /// party.
    #[arg(
        short = 'U',
        long,
        value_name = "NUM",
        default_value = "0",
        allow_negative_numbers = true,
        value_parser = values::port,
        help_heading = NETWORK,
    )]
    pub(super) udp_port: Port,

    /// First UDP port for native clients, one port per worker; 0 for none, -1 for any free ports
    ///
    /// The native protocol sends each request straight to the worker that owns its key, without
    /// connections. `stats native` shows the ports. The server sends long replies only to clients
    /// that have proved that they own their address.
    #[arg(
        long,
        value_name = "NUM",
        default_value = "0",
        allow_negative_numbers = true,
        value_parser = values::port,
        help_heading = NETWORK,
    )]
    pub(super) native_port: Port,

    /// Share the port of --native-port among all workers instead of one port for each
    ///
    /// For networks where one port is to be had. The kernel gives each datagram to the worker that
    /// owns its first key. This needs --access crcw, which is the default.
    #[arg(long, hide_short_help = true, help_heading = NETWORK)]
    pub(super) native_single_port: bool,

    /// Compute the keyhash of native reads again instead of trusting the client
    ///
    /// The server always computes the keyhash of writes again. A read with a wrong keyhash finds
    /// nothing and does no harm.
    #[arg(long, hide_short_help = true, help_heading = NETWORK)]
    pub(super) native_check_keyhash: bool,

    /// Who sends native requests to the worker that owns their key: client or server
    ///
    /// client: each client sends to the owner's port, and a request at another port is refused.
    /// server: a request may arrive at any port, and the worker there hands it over to the owner,
    /// which costs both workers time. This is for comparisons, and for clients that know only one
    /// port.
    #[arg(
        long,
        value_name = "WHO",
        default_value_t = Direction::Client,
        hide_short_help = true,
        help_heading = NETWORK,
    )]
    pub(super) native_direction: Direction,

    /// Answer reads of hot keys over UDP before the server sees them: off, model, xdp:IF,
    /// xdp-native:IF, tcx:IF or rtl:SOCKET
    ///
    /// A small table of the hottest items answers datagrams with one text `get` or `gets` of one
    /// key, or one binary GET. It is always exact. All other requests go to the server. Needs -U.
    ///
    /// model: each worker looks in the table before it parses a datagram. This needs no rights.
    /// xdp:IF: a program in the kernel answers packets that arrive at the interface IF, before the
    /// kernel's network stack and its firewall see them; in the network driver if the driver can do
    /// that, and otherwise in the kernel's generic mode. xdp-native:IF: only in the driver. tcx:IF:
    /// at the kernel's tcx hook, beside another XDP program. Programs need CAP_BPF, CAP_PERFMON and
    /// CAP_NET_ADMIN at start; -u gives them up.
    ///
    /// rtl:SOCKET: a circuit that another process simulates before the server answers binary GETs.
    /// The server fills it by that Unix socket, and waits for it when hot keys change.
    ///
    /// `stats accelerator` shows what it does.
    #[arg(
        long,
        value_name = "BODY",
        default_value_t = Accelerate::Off,
        hide_short_help = true,
        help_heading = NETWORK,
    )]
    pub(super) accelerate: Accelerate,

    /// Whose requests --accelerate answers at an interface: networks such as 10.0.0.0/8,fd00::/8,
    /// or any [default: hosts on the interface's link]
    ///
    /// Requests from elsewhere go to the server, through the firewall. Replies go to the hardware
    /// address that sent the request.
    #[arg(
        long,
        value_name = "CIDR,...",
        hide_short_help = true,
        help_heading = NETWORK,
    )]
    pub(super) accelerate_from: Option<Sources>,

    /// Which keys --accelerate holds: counting or paper
    ///
    /// counting: the keys that are read most by a running count of sampled reads and of hits. A
    /// change of an item renews its copy, and keys that change too often stay out for a while.
    /// paper: keys by the last hundred distinct ones among sampled reads, as in "Hardware
    /// Acceleration of Key-Value Stores". A key whose item changes leaves.
    #[arg(
        long,
        value_name = "POLICY",
        default_value_t = HotPolicy::default(),
        hide_short_help = true,
        help_heading = NETWORK,
    )]
    pub(super) accelerate_policy: HotPolicy,

    /// How many items --accelerate has room for: 256 to 65536. Their memory counts within -m
    #[arg(
        long,
        value_name = "N",
        default_value_t = limits::HOT_SLOTS_DEFAULT,
        hide_short_help = true,
        help_heading = NETWORK,
    )]
    pub(super) accelerate_slots: usize,

    /// Unix socket to listen on, instead of TCP and UDP
    #[arg(short = 's', long, value_name = "FILE", help_heading = NETWORK)]
    pub(super) unix_socket: Option<PathBuf>,

    /// Permissions of the Unix socket, in octal
    #[arg(
        short = 'a',
        long,
        value_name = "MASK",
        default_value = "700",
        value_parser = values::octal,
        help_heading = NETWORK,
    )]
    pub(super) unix_mask: u32,

    /// Address to listen on: host, host:port, or a list [default: all interfaces]
    ///
    /// Separate several addresses by commas, or repeat the option. An address without a port uses
    /// the ports of -p (TCP) and -U (UDP). memcached's prefix tag[NAME]: is accepted. A cache has
    /// no password without -Y, so keep it behind a firewall or on 127.0.0.1.
    #[arg(short, long, value_name = "ADDR", help_heading = NETWORK)]
    pub(super) listen: Vec<String>,

    /// Maximum number of client connections
    ///
    /// Further clients get `ERROR Too many open connections` and are disconnected. With -o
    /// no_maxconns_fast they wait instead.
    #[arg(
        short,
        long,
        value_name = "NUM",
        default_value_t = CONNECTIONS_DEFAULT,
        allow_negative_numbers = true,
        value_parser = values::connections,
        help_heading = NETWORK,
    )]
    pub(super) conn_limit: usize,

    /// Seconds of silence after which the kernel probes a client; 0 for never
    ///
    /// The kernel probes three times, at intervals of a third of this time. If the client answers
    /// no probe, its connection is closed after --tcp-user-timeout, or after the third probe if
    /// that is 0. memcached uses the kernel's own setting, usually two hours.
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = TCP_KEEPALIVE_S_DEFAULT,
        value_parser = seconds(),
        hide_short_help = true,
        help_heading = NETWORK,
    )]
    pub(super) tcp_keepalive: u64,

    /// Seconds after which the kernel closes a connection whose client takes no reply; 0 for the
    /// kernel's default, about a quarter of an hour
    ///
    /// This closes connections of clients that vanished while replies were on the way, and of
    /// clients that stopped reading.
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = TCP_USER_TIMEOUT_S_DEFAULT,
        value_parser = seconds(),
        hide_short_help = true,
        help_heading = NETWORK,
    )]
    pub(super) tcp_user_timeout: u64,

    /// Connections that may wait to be accepted, for each worker
    #[arg(
        short = 'b',
        long,
        value_name = "NUM",
        default_value_t = BACKLOG_DEFAULT,
        value_parser = values::backlog,
        help_heading = NETWORK,
    )]
    pub(super) listen_backlog: i32,

    /// Requests of one connection to execute before other connections have their turn; at most 256
    ///
    /// memcached's default is 20. Requests that arrive together are executed as one batch here, and
    /// a smaller number splits the batch.
    #[arg(
        short = 'R',
        long,
        value_name = "NUM",
        default_value_t = limits::TURN_REQUESTS_MAX,
        value_parser = values::requests,
        help_heading = NETWORK,
    )]
    pub(super) max_reqs_per_event: u32,

    /// What carries datagrams: udp or udp-plain
    ///
    /// This is for -U and --native-port. udp: sockets with segmentation offload, so that the kernel
    /// passes several datagrams of one client at once. udp-plain: one system call for each
    /// datagram.
    #[arg(
        long,
        value_name = "TRANSPORT",
        default_value = TRANSPORTS[0].name(),
        value_parser = glimmer_transport::transports::named,
        hide_short_help = true,
        help_heading = NETWORK,
    )]
    pub(super) packet_transport: &'static dyn PacketTransport,

    /// Protocol that clients speak: ascii, binary, resp, or auto to detect it from the first byte
    #[arg(short = 'B', long, value_name = "NAME", help_heading = CLIENTS)]
    pub(super) protocol: Option<String>,

    /// File of users and passwords, one `user:password` per line
    ///
    /// Text clients have to authenticate first, by `set x 0 0 N` with `user password` as the value.
    /// SIGHUP reads the file again.
    #[arg(short = 'Y', long, value_name = "FILE", help_heading = CLIENTS)]
    pub(super) auth_file: Option<PathBuf>,

    /// Require SASL PLAIN from binary clients, with the users of -Y
    #[arg(short = 'S', long, hide_short_help = true, help_heading = CLIENTS)]
    pub(super) enable_sasl: bool,

    /// Enable the `shutdown` command
    #[arg(short = 'A', long, help_heading = CLIENTS)]
    pub(super) enable_shutdown: bool,

    /// Disable CAS uniques: `gets` shows 0, and `cas` fails with EXISTS
    #[arg(short = 'C', long, help_heading = CLIENTS)]
    pub(super) disable_cas: bool,

    /// Disable `flush_all`
    #[arg(short = 'F', long, help_heading = CLIENTS)]
    pub(super) disable_flush_all: bool,

    /// Disable `stats cachedump`, `stats detail` and `lru_crawler metadump`
    #[arg(short = 'X', long, help_heading = CLIENTS)]
    pub(super) disable_dumping: bool,

    /// Disable `watch`
    #[arg(short = 'W', long, help_heading = CLIENTS)]
    pub(super) disable_watch: bool,

    /// Delimiter of key prefixes for `stats detail`; also enables its counts at start [default: :]
    #[arg(
        short = 'D',
        value_name = "CHAR",
        value_parser = values::delimiter,
        help_heading = CLIENTS,
    )]
    pub(super) prefix_delimiter: Option<u8>,

    /// memcached's extended options, separated by commas
    ///
    /// idle_timeout=SECONDS, maxconns_fast and no_maxconns_fast mean what they mean in memcached.
    /// Options about features that this server does not have (slabs, LRU segments) are accepted
    /// with a warning.
    #[arg(short = 'o', long, value_name = "OPTIONS", help_heading = CLIENTS)]
    pub(super) extended: Vec<String>,

    /// Enable `debugtime`, with which clients advance the clock, as in a debug build of memcached
    #[arg(long, hide = true)]
    pub(super) debug_commands: bool,

    /// TLS, which this server does not support
    #[arg(short = 'Z', long, hide = true)]
    pub(super) enable_ssl: bool,

    /// File to map items from; this server keeps items in memory only
    #[arg(short = 'e', long, value_name = "FILE", hide = true)]
    pub(super) memory_file: Option<PathBuf>,

    /// Threads by network queue, which this server does not support
    #[arg(short = 'N', long, value_name = "NUM", hide = true)]
    pub(super) napi_ids: Option<String>,

    /// Memory for items, index and connections together, in MiB
    ///
    /// 64m and 64MB mean the same as 64; 1g means 1024. -m bounds everything together here. In
    /// memcached it bounds the items, and the hash table and connection buffers come on top. The
    /// process takes up to 32 MiB more.
    #[arg(
        short,
        long,
        value_name = "MIB",
        default_value_t = MEMORY_MIB_DEFAULT,
        value_parser = values::memory_limit,
        help_heading = MEMORY,
    )]
    pub(super) memory_limit: usize,

    /// Refuse new items when memory is full, instead of evicting; same as --mode store
    #[arg(short = 'M', long, help_heading = MEMORY)]
    pub(super) disable_evictions: bool,

    /// What to do when memory is full: cache or store [default: cache, with -M store]
    ///
    /// cache: evict items by the rule of --evict. store: evict nothing and refuse new items with an
    /// error. If an overwrite is refused, the old value of the key stays. Store mode excludes
    /// --evict and ignores --item-size-hint.
    #[arg(long, value_name = "MODE", help_heading = MEMORY)]
    pub(super) mode: Option<Mode>,

    /// Lock all memory, so that none of it is paged out
    #[arg(short = 'k', long, help_heading = MEMORY)]
    pub(super) lock_memory: bool,

    /// Use huge pages; same as --hugepages auto, the default
    #[arg(short = 'L', long, help_heading = MEMORY)]
    pub(super) enable_largepages: bool,

    /// memcached's growth factor of slab sizes; has no effect here
    #[arg(
        short = 'f',
        long,
        value_name = "FACTOR",
        value_parser = values::growth_factor,
        hide_short_help = true,
        help_heading = MEMORY,
    )]
    pub(super) slab_growth_factor: Option<f64>,

    /// memcached's smallest slab chunk; has no effect here
    #[arg(
        short = 'n',
        long,
        value_name = "BYTES",
        value_parser = values::chunk_size,
        hide_short_help = true,
        help_heading = MEMORY,
    )]
    pub(super) slab_min_size: Option<u32>,

    /// Largest item in bytes, such as 512k or 2m; 1k to 1024m, at most half of -m [default: 1m]
    ///
    /// Key, value and an 8-byte header count. If -m is too small for a handful of the largest
    /// items, the server lowers this limit and prints a warning at start.
    #[arg(
        short = 'I',
        long,
        value_name = "SIZE",
        value_parser = values::item_size,
        help_heading = MEMORY,
    )]
    pub(super) max_item_size: Option<usize>,

    /// Bytes of a typical key and value together
    ///
    /// This is a guess at how to divide memory between the log, which holds the items, and the
    /// index, which finds them. The index grows and shrinks with the items, so the guess may be
    /// wrong. A good guess uses the index best.
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = ITEM_BYTES_HINT_DEFAULT,
        value_parser = values::item_size,
        help_heading = MEMORY,
    )]
    pub(super) item_size_hint: usize,

    /// Data structure of a partition: mica or memc3
    ///
    /// mica: a circular log under an index of 15-entry buckets, with the eviction rule of --evict.
    /// memc3: slab classes under a cuckoo index, with CLOCK as its eviction rule. The cuckoo index
    /// grows with the number of items and ignores --item-size-hint.
    #[arg(long, value_name = "TABLE", default_value_t = TableKind::Mica, help_heading = MEMORY)]
    pub(super) table: TableKind,

    #[arg(
        long,
        value_name = "RULE",
        help_heading = MEMORY,
        help = evict_help(),
        long_help = evict_long_help(),
    )]
    pub(super) evict: Option<Rule>,

    /// With --evict lru: newest share of the log in which a read does not move its item, 0 to 1
    ///
    /// An item that is read moves to the tail of the log unless it lies in this share of the log.
    /// At 0 every read moves its item, which is exact and expensive; at 1 no read does.
    #[arg(
        long,
        value_name = "SHARE",
        default_value_t = LRU_THRESHOLD_DEFAULT,
        help_heading = MEMORY,
    )]
    pub(super) lru_threshold: f64,

    /// Pages to use: auto, hugetlb, transparent or off
    ///
    /// Huge pages save a page-table walk on nearly every access to a large store. auto (or
    /// transparent) uses transparent huge pages if possible, else 4 KiB pages, and leaves reserved
    /// huge pages to other programs. hugetlb uses reserved huge pages (/proc/sys/vm/nr_hugepages),
    /// takes all of them at start, and fails if there are too few. `stats memory` shows which pages
    /// the kernel provided.
    #[arg(
        long,
        value_name = "POLICY",
        default_value_t = HugepagePolicy::Auto,
        help_heading = MEMORY,
    )]
    pub(super) hugepages: HugepagePolicy,

    /// Worker threads [default: one per core]
    ///
    /// memcached's default is 4 on every machine. An idle worker sleeps. Each worker needs buffers
    /// for a few of the largest items, so with a small -m and without -t there may be fewer workers
    /// than cores: 4 with -m 64 and -I 1m.
    #[arg(
        short,
        long,
        value_name = "NUM",
        allow_negative_numbers = true,
        value_parser = values::threads,
        help_heading = WORKERS,
    )]
    pub(super) threads: Option<usize>,

    /// Which workers may read and write a partition: erew, crew or crcw
    ///
    /// erew: only its owner, without synchronisation; every other request crosses to the owner.
    /// crew: any worker reads, only the owner writes. crcw: any worker reads and writes, so nothing
    /// crosses. crcw is the default because one TCP connection carries requests for all partitions.
    #[arg(long, value_name = "MODE", default_value_t = AccessMode::Crcw, help_heading = WORKERS)]
    pub(super) access: AccessMode,

    #[arg(
        long,
        value_name = "POLICY",
        value_parser = values::policy,
        help_heading = WORKERS,
        help = dispatch_help(),
        long_help = dispatch_long_help(),
    )]
    pub(super) dispatch: Option<String>,

    /// Percentage of requests that --dispatch size-aware treats as small
    ///
    /// The server counts requests by the size of their values, in classes of powers of two. Those
    /// above the class with this percentile are large.
    #[arg(
        long,
        value_name = "PERCENT",
        default_value_t = Settings::DEFAULT.percentile,
        value_parser = values::percentile,
        help_heading = WORKERS,
    )]
    pub(super) dispatch_percentile: f64,

    /// Milliseconds after which --dispatch size-aware makes another plan
    ///
    /// An epoch with fewer than 1,000 requests keeps the plan. An idle server does not wake up for
    /// the end of an epoch.
    #[arg(
        long,
        value_name = "MS",
        default_value_t = Settings::DEFAULT.epoch_ms,
        value_parser = clap::value_parser!(u64).range(1..=limits::DISPATCH_EPOCH_MS_MAX),
        help_heading = WORKERS,
    )]
    pub(super) dispatch_epoch_ms: u64,

    /// Weight of the latest epoch in the moving average of requests by size, above 0 and up to 1
    #[arg(
        long,
        value_name = "WEIGHT",
        default_value_t = Settings::DEFAULT.alpha,
        value_parser = values::weight,
        help_heading = WORKERS,
    )]
    pub(super) dispatch_alpha: f64,

    /// Most requests that a worker takes from its own queue in one turn
    #[arg(
        long,
        value_name = "REQUESTS",
        default_value_t = Settings::DEFAULT.batch as u16,
        value_parser = clap::value_parser!(u16).range(1..=limits::BATCH_MAX as i64),
        help_heading = WORKERS,
    )]
    pub(super) dispatch_batch: u16,

    /// What a request costs, by the size of its value: packets, bytes or constant+bytes
    ///
    /// --dispatch size-aware divides the workers so that each has requests of about the same cost.
    /// packets: the packets of 1,400 bytes that the value takes. constant+bytes: 1,000 bytes more
    /// than the value has.
    #[arg(
        long,
        value_name = "COST",
        default_value = "packets",
        value_parser = values::parsed::<Cost>,
        help_heading = WORKERS,
    )]
    pub(super) dispatch_cost: Cost,

    /// Workers for large requests under --dispatch size-aware: auto, paper or a number
    ///
    /// paper: by the formula of the Minos paper; where that gives none, one worker is standby, and
    /// takes large requests besides its small ones. auto: by the same formula, and a worker for
    /// large requests takes small ones while it has no large one.
    #[arg(
        long,
        value_name = "WORKERS",
        default_value = "auto",
        value_parser = values::parsed::<LargeCores>,
        help_heading = WORKERS,
    )]
    pub(super) large_cores: LargeCores,

    /// Requests for values of fewer bytes are never large
    ///
    /// This keeps requests where they arrive if all values have about the same size.
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = Settings::DEFAULT.large_min,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(i32::MAX)),
        help_heading = WORKERS,
    )]
    pub(super) large_min: u32,

    /// Bind each worker to its own core
    ///
    /// Use this on machines that do nothing else. It is off because two pinned programs on one core
    /// slow each other down.
    #[arg(long, help_heading = WORKERS)]
    pub(super) pin: bool,

    /// Never sleep, and poll for requests instead
    ///
    /// Use this on machines whose cores have nothing else to do. It saves the time to wake up,
    /// which is most of the latency of a single request.
    #[arg(long, help_heading = WORKERS)]
    pub(super) busy_poll: bool,

    /// Run in the background
    ///
    /// The command returns when the server is ready, or with the reason why it is not.
    #[arg(short, long, help_heading = PROCESS)]
    pub(super) daemon: bool,

    /// Allow core files of any size
    #[arg(short = 'r', long, help_heading = PROCESS)]
    pub(super) enable_coredumps: bool,

    /// Print the licence and exit
    #[arg(short = 'i', long, help_heading = PROCESS)]
    pub(super) license: bool,

    /// File for the process id; removed at the end
    #[arg(short = 'P', long, value_name = "FILE", help_heading = PROCESS)]
    pub(super) pidfile: Option<PathBuf>,

    /// User to become after binding the addresses; only when started as root
    ///
    /// memcached refuses to run as root without this option. This server prints a warning and
    /// continues.
    #[arg(short, long, value_name = "USER", help_heading = PROCESS)]
    pub(super) user: Option<String>,

    /// Log more: -v shows the memory layout and the stop of the server, -vv also administrative
    /// commands
    ///
    /// Requests are never logged. A client can change the level with `verbosity`.
    #[arg(short, long, action = ArgAction::Count, help_heading = PROCESS)]
    pub(super) verbose: u8,
}

const NETWORK: &str = "Network";
const CLIENTS: &str = "Clients";
const MEMORY: &str = "Memory";
const WORKERS: &str = "Workers";
const PROCESS: &str = "Process";

const EXAMPLES: &str = "\
Examples:
  glimmer serve                             64 MiB on port 11211, one worker per core
  glimmer serve -m 4096 -l 127.0.0.1        4 GiB, on this machine only
  glimmer serve -m 1024 -I 8m -t 2          items up to 8 MiB, two workers
  glimmer serve -m 65536 --pin --hugepages hugetlb --item-size-hint 500
                                            a dedicated machine, items of about 500 bytes
  ln -s glimmer memcached; ./memcached -m 64
                                            run under memcached's name";

/// A number of seconds that the kernel accepts as a TCP timeout.
fn seconds() -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(0..=limits::TCP_TIMEOUT_S_MAX)
}

/// The short help of `--dispatch`.
fn dispatch_help() -> String {
    let names = glimmer_dispatch::names();
    format!(
        "Which worker executes a request: {names} [default: size-aware with two threads or more \
         and --access crcw, otherwise keyhash]"
    )
}

/// The long help of `--dispatch`: a sentence per policy.
fn dispatch_long_help() -> String {
    let mut help = dispatch_help() + "\n\n";
    for policy in POLICIES {
        help.push_str(&format!("{}: {}. ", policy.name(), policy.summary()));
    }
    help
}

/// The short help of `--evict`.
fn evict_help() -> String {
    let names: Vec<_> = RULES.iter().map(|rule| rule.name).collect();
    format!(
        "Which item to evict when memory is full: {} [default: {}]",
        names.join(", "),
        evict::DEFAULT.name
    )
}

/// The long help of `--evict`: a sentence per rule.
fn evict_long_help() -> String {
    let mut help = evict_help();
    help.push_str("\n\n");
    for rule in RULES {
        help.push_str(&format!("{}: {}. ", rule.name, rule.summary));
    }
    help.push_str(
        "The default resists scans, costs almost nothing on a read, and has the best hit ratio. \
         Only with --mode cache and --table mica.",
    );
    help
}
