//! The flags of `glimmer serve`, with their help.

use super::values::{self, Port};
use clap::{ArgAction, Args};
use glimmer_base::limits;
use glimmer_dispatch::{POLICIES, Policy};
use glimmer_server::config::{
    BACKLOG_DEFAULT, CONNECTIONS_DEFAULT, ITEM_BYTES_HINT_DEFAULT, LRU_THRESHOLD_DEFAULT,
    MEMORY_MIB_DEFAULT, TCP_KEEPALIVE_S_DEFAULT, TCP_USER_TIMEOUT_S_DEFAULT,
};
use glimmer_server::evict::{self, RULES, Rule};
use glimmer_server::{AccessMode, Direction, HugepagePolicy, Mode, TableKind};
use std::path::PathBuf;

/// Serve memcached clients until SIGTERM or SIGINT
#[derive(Args, Debug)]
#[command(
    version,
    args_override_self = true,
    after_help = "`glimmer serve --help` explains the defaults and shows examples.",
    after_long_help = EXAMPLES
)]
pub struct Arguments {
    /// TCP port to listen on; 0: none, -1: any that is free
    ///
    /// With -U alone, the same as the UDP port.
    #[arg(
        short,
        long,
        value_name = "NUM",
        allow_negative_numbers = true,
        value_parser = values::port,
        help_heading = NETWORK,
    )]
    pub(super) port: Option<Port>,

    /// UDP port to listen on; 0: none, -1: any that is free
    ///
    /// Off unless asked for, as in memcached: an open UDP port lets others use the server to flood
    /// a third party.
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

    /// UDP port for native clients, and with it one for every worker after the first; 0: none, -1:
    /// any that are free
    ///
    /// The native protocol sends each request straight to the worker that owns its key, without
    /// connections; `stats native` shows the ports. Off unless asked for, as UDP is. It answers at
    /// length only clients that have shown that they own their address.
    #[arg(
        long,
        value_name = "NUM",
        default_value = "0",
        allow_negative_numbers = true,
        value_parser = values::port,
        help_heading = NETWORK,
    )]
    pub(super) native_port: Port,

    /// Compute the keyhash of native reads again instead of trusting the client's
    ///
    /// That of writes is always computed again. A read with a wrong hash finds nothing and does no
    /// harm.
    #[arg(long, hide_short_help = true, help_heading = NETWORK)]
    pub(super) native_check_keyhash: bool,

    /// Who directs native requests to the worker that owns their key: client or server
    ///
    /// client: each client sends to the owner's port, and what comes to another is refused. server:
    /// a request may come to any port, and the worker there hands it over to the owner, which costs
    /// both of them time. It is there to be measured against, and for clients that know one port
    /// only.
    #[arg(
        long,
        value_name = "WHO",
        default_value_t = Direction::Client,
        hide_short_help = true,
        help_heading = NETWORK,
    )]
    pub(super) native_direction: Direction,

    /// Unix socket to listen on, instead of any network
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

    /// Address to listen on, all if not given; host, host:port, or several of them
    ///
    /// May be given several times, or as a list with commas. An address without a port takes the
    /// one given with -p (TCP) and -U (UDP). memcached's tag[NAME]: in front is accepted. Without
    /// -l the server listens on every interface, as memcached does; a cache has no password unless
    /// -Y gives it one, so keep it behind a firewall or on 127.0.0.1.
    #[arg(short, long, value_name = "ADDR", help_heading = NETWORK)]
    pub(super) listen: Vec<String>,

    /// Client connections at most
    ///
    /// A client beyond that is told `ERROR Too many open connections` and disconnected; with -o
    /// no_maxconns_fast it waits.
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

    /// Seconds of silence after which the kernel probes whether a client is still there; 0: never
    ///
    /// It probes three times, at intervals of a third of this time. A client that answers no probe
    /// has vanished, and its connection is closed after --tcp-user-timeout, or after the third
    /// probe if that is 0. memcached probes after what the kernel is set to, two hours as a rule.
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = TCP_KEEPALIVE_S_DEFAULT,
        value_parser = seconds(),
        hide_short_help = true,
        help_heading = NETWORK,
    )]
    pub(super) tcp_keepalive: u64,

    /// Seconds after which the kernel closes a connection whose client takes no reply; 0: the
    /// kernel's own, about a quarter of an hour
    ///
    /// This is for clients that vanished while replies to them were under way, and for clients that
    /// stay but stop reading.
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = TCP_USER_TIMEOUT_S_DEFAULT,
        value_parser = seconds(),
        hide_short_help = true,
        help_heading = NETWORK,
    )]
    pub(super) tcp_user_timeout: u64,

    /// Connections that the kernel holds until they are accepted, for each worker
    #[arg(
        short = 'b',
        long,
        value_name = "NUM",
        default_value_t = BACKLOG_DEFAULT,
        value_parser = values::backlog,
        help_heading = NETWORK,
    )]
    pub(super) listen_backlog: i32,

    /// Requests of one connection that are executed before other connections have their turn; 256
    /// at most
    ///
    /// memcached's default is 20. Requests that arrive together are executed together here, and a
    /// turn that ends amid them loses by that.
    #[arg(
        short = 'R',
        long,
        value_name = "NUM",
        default_value_t = limits::TURN_REQUESTS_MAX,
        value_parser = values::requests,
        help_heading = NETWORK,
    )]
    pub(super) max_reqs_per_event: u32,

    /// Protocol that clients speak: ascii, binary, or auto, which tells by a connection's first
    /// byte
    #[arg(short = 'B', long, value_name = "NAME", help_heading = CLIENTS)]
    pub(super) protocol: Option<String>,

    /// File of users and passwords, one `user:password` a line: clients have to send `set x 0 0 N`
    /// with `user password` first
    ///
    /// Read again on SIGHUP.
    #[arg(short = 'Y', long, value_name = "FILE", help_heading = CLIENTS)]
    pub(super) auth_file: Option<PathBuf>,

    /// Have binary clients authenticate by SASL PLAIN against the file given with -Y
    #[arg(short = 'S', long, hide_short_help = true, help_heading = CLIENTS)]
    pub(super) enable_sasl: bool,

    /// Enable the `shutdown` command
    #[arg(short = 'A', long, help_heading = CLIENTS)]
    pub(super) enable_shutdown: bool,

    /// Keep no CAS uniques: `gets` shows 0, and `cas` is answered EXISTS
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

    /// Character between a key's prefix and the rest, for `stats detail`; counts from the start
    /// [default: :]
    #[arg(
        short = 'D',
        value_name = "CHAR",
        value_parser = values::delimiter,
        help_heading = CLIENTS,
    )]
    pub(super) prefix_delimiter: Option<u8>,

    /// memcached's extended options, a list with commas
    ///
    /// idle_timeout=SECONDS, maxconns_fast and no_maxconns_fast mean what they mean there. Those
    /// about what this server has not (slabs, LRU segments) are accepted, each with a warning.
    #[arg(short = 'o', long, value_name = "OPTIONS", help_heading = CLIENTS)]
    pub(super) extended: Vec<String>,

    /// Let clients put the clock forward with `debugtime`, as a debug build of memcached does for
    /// its tests
    #[arg(long, hide = true)]
    pub(super) debug_commands: bool,

    /// TLS, which this server does not have
    #[arg(short = 'Z', long, hide = true)]
    pub(super) enable_ssl: bool,

    /// A file that items are mapped from: they are kept in memory only
    #[arg(short = 'e', long, value_name = "FILE", hide = true)]
    pub(super) memory_file: Option<PathBuf>,

    /// Threads by network queue: they are not chosen so
    #[arg(short = 'N', long, value_name = "NUM", hide = true)]
    pub(super) napi_ids: Option<String>,

    /// Memory for items, index and connections together, in MiB
    ///
    /// 64m and 64MB mean the same as 64, and 1g is 1024. memcached bounds its items with -m, and
    /// its hash table and connection buffers come on top; here -m bounds all of them together. The
    /// process itself takes a few MiB more.
    #[arg(
        short,
        long,
        value_name = "MIB",
        default_value_t = MEMORY_MIB_DEFAULT,
        value_parser = values::memory_limit,
        help_heading = MEMORY,
    )]
    pub(super) memory_limit: usize,

    /// Refuse to store when memory is full, instead of evicting: the same as --mode store
    #[arg(short = 'M', long, help_heading = MEMORY)]
    pub(super) disable_evictions: bool,

    /// What happens when the memory is full: cache or store [default: cache, with -M store]
    ///
    /// cache: items leave, by the rule of --evict. store: a store that finds no room is refused
    /// with an error, and nothing leaves unless a client says so or it expires; the old value of a
    /// key whose overwriting is refused stays. --item-size-hint means nothing then, and there is no
    /// --evict.
    #[arg(long, value_name = "MODE", help_heading = MEMORY)]
    pub(super) mode: Option<Mode>,

    /// Keep all memory from being paged out
    #[arg(short = 'k', long, help_heading = MEMORY)]
    pub(super) lock_memory: bool,

    /// Use large memory pages, as --hugepages auto does anyway
    #[arg(short = 'L', long, help_heading = MEMORY)]
    pub(super) enable_largepages: bool,

    /// memcached's growth of slab sizes: accepted, with a warning
    #[arg(
        short = 'f',
        long,
        value_name = "FACTOR",
        value_parser = values::growth_factor,
        hide_short_help = true,
        help_heading = MEMORY,
    )]
    pub(super) slab_growth_factor: Option<f64>,

    /// memcached's smallest slab: accepted, with a warning
    #[arg(
        short = 'n',
        long,
        value_name = "BYTES",
        value_parser = values::chunk_size,
        hide_short_help = true,
        help_heading = MEMORY,
    )]
    pub(super) slab_min_size: Option<u32>,

    /// Largest item, in bytes or with a k or m behind the number: 1k to 1024m, and at most half of
    /// -m [default: 1m]
    ///
    /// Key, value and a header of 8 bytes count. Where -m is too small for a handful of the largest
    /// items, the limit is lowered, and the line printed at start says so.
    #[arg(
        short = 'I',
        long,
        value_name = "SIZE",
        value_parser = values::item_size,
        help_heading = MEMORY,
    )]
    pub(super) max_item_size: Option<usize>,

    /// Key and value bytes of a typical item
    ///
    /// A guess at how memory splits between the log, which holds the items, and the index, which
    /// finds them. The index follows the items, so this need not be right: where it is, the index
    /// is best used.
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = ITEM_BYTES_HINT_DEFAULT,
        value_parser = values::item_size,
        help_heading = MEMORY,
    )]
    pub(super) item_size_hint: usize,

    /// What a partition is made of: mica or memc3
    ///
    /// mica: a circular log under an index of 15-entry buckets; what leaves is up to --evict.
    /// memc3: slab classes under a cuckoo index, with CLOCK for what leaves. Its index grows with
    /// the number of items, so that --item-size-hint does not matter to it.
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

    /// With --evict lru: the newer share of the log in which a read moves nothing, 0 to 1
    ///
    /// An item that is read is put back at the tail of the log unless it lies in this share next to
    /// it. At 0 every read moves its item, which is exact and costly; at 1 none does.
    #[arg(
        long,
        value_name = "SHARE",
        default_value_t = LRU_THRESHOLD_DEFAULT,
        help_heading = MEMORY,
    )]
    pub(super) lru_threshold: f64,

    /// Pages to use: auto, hugetlb, transparent or off
    ///
    /// Huge pages save a page-table walk on nearly every access to a large store. auto (and
    /// transparent, its other name) takes transparent ones, else 4 KiB pages, and leaves reserved
    /// pages to the programs that they were reserved for. hugetlb takes reserved ones
    /// (/proc/sys/vm/nr_hugepages), all of them at the start, and refuses to start without. `stats
    /// memory` shows what the kernel really gave.
    #[arg(
        long,
        value_name = "POLICY",
        default_value_t = HugepagePolicy::Auto,
        help_heading = MEMORY,
    )]
    pub(super) hugepages: HugepagePolicy,

    /// Worker threads; one per core if not given
    ///
    /// memcached's default is 4 whatever the machine has. A worker sleeps when it has nothing to
    /// do. Each needs buffers for a few of the largest items, so that a small -m is served by fewer
    /// workers than there are cores unless -t insists: 4 at -m 64 and -I 1m.
    #[arg(
        short,
        long,
        value_name = "NUM",
        allow_negative_numbers = true,
        value_parser = values::threads,
        help_heading = WORKERS,
    )]
    pub(super) threads: Option<usize>,

    /// Who may touch a partition: erew, crew or crcw
    ///
    /// erew: its owner alone reads and writes it, without any synchronisation; every other request
    /// crosses over to the owner. crew: any worker reads, the owner writes. crcw: any worker reads
    /// and writes, so that nothing crosses. A TCP connection carries requests for every partition,
    /// hence the default.
    #[arg(long, value_name = "MODE", default_value_t = AccessMode::Crcw, help_heading = WORKERS)]
    pub(super) access: AccessMode,

    /// Which worker executes a request: keyhash
    ///
    /// keyhash: the worker that received it, unless --access leaves the key to its owner.
    #[arg(
        long,
        value_name = "POLICY",
        default_value = POLICIES[0].name(),
        value_parser = glimmer_dispatch::named,
        help_heading = WORKERS,
    )]
    pub(super) dispatch: &'static dyn Policy,

    /// Bind each worker to a core of its own
    ///
    /// For machines that do nothing else; off because two pinned programs on one core do badly.
    #[arg(long, help_heading = WORKERS)]
    pub(super) pin: bool,

    /// Never sleep: look for requests again and again
    ///
    /// For machines whose cores have nothing else to do. Saves the time that it takes to wake up,
    /// which is most of what a single request takes.
    #[arg(long, help_heading = WORKERS)]
    pub(super) busy_poll: bool,

    /// Go on in the background
    ///
    /// The command returns once the server serves, or with the reason why it does not.
    #[arg(short, long, help_heading = PROCESS)]
    pub(super) daemon: bool,

    /// Allow core files of any size
    #[arg(short = 'r', long, help_heading = PROCESS)]
    pub(super) enable_coredumps: bool,

    /// Print the licence and exit
    #[arg(short = 'i', long, help_heading = PROCESS)]
    pub(super) license: bool,

    /// File to write the process id to; removed at the end
    #[arg(short = 'P', long, value_name = "FILE", help_heading = PROCESS)]
    pub(super) pidfile: Option<PathBuf>,

    /// User to become once the addresses are bound; only when started as root
    ///
    /// memcached refuses to run as root without it. This server goes on, and says so.
    #[arg(short, long, value_name = "USER", help_heading = PROCESS)]
    pub(super) user: Option<String>,

    /// Say more: -v shows how memory is laid out and when the server stops, -vv also administrative
    /// commands
    ///
    /// Nothing is logged per request. A client can change this with `verbosity`.
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
  glimmer serve -m 4096 -l 127.0.0.1        4 GiB, for this machine only
  glimmer serve -m 1024 -I 8m -t 2          values to 8 MiB, two workers
  glimmer serve -m 65536 --pin --hugepages hugetlb --item-size-hint 500
                                            a machine of its own, items of about 500 bytes
  ln -s glimmer memcached; ./memcached -m 64
                                            under memcached's name it takes memcached's command line";

/// A number of seconds that the kernel takes for a timeout of TCP.
fn seconds() -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(0..=limits::TCP_TIMEOUT_S_MAX)
}

/// What `-h` says of `--evict`.
fn evict_help() -> String {
    let names: Vec<_> = RULES.iter().map(|rule| rule.name).collect();
    format!(
        "What leaves when the memory is full: {} [default: {}]",
        names.join(", "),
        evict::DEFAULT.name
    )
}

/// What `--help` says of `--evict`: a sentence for each rule.
fn evict_long_help() -> String {
    let mut help = evict_help();
    help.push_str("\n\n");
    for rule in RULES {
        help.push_str(&format!("{}: {}. ", rule.name, rule.summary));
    }
    help.push_str(
        "The default resists scans, costs next to nothing on a read, and has the best hit ratio. \
         Only with --mode cache and --table mica.",
    );
    help
}
