//! How much memory there is, and what is kept in it.

use super::super::values;
use clap::Args;
use glimmer_server::config::{ITEM_BYTES_HINT_DEFAULT, LRU_THRESHOLD_DEFAULT, MEMORY_MIB_DEFAULT};
use glimmer_server::evict::{self, Objective, RULES, Rule};
use glimmer_server::{HugepagePolicy, Mode, TableKind};
use std::path::PathBuf;

/// How much memory there is, and what is kept in it.
#[derive(Args, Debug)]
#[command(next_help_heading = "Memory")]
pub struct Memory {
    /// Memory for items, index and connections together, in MiB
    ///
    /// 64m and 64MB mean the same as 64; 1g means 1024. 75% is that share of what the control group
    /// (of a container or a unit) allows, or of the machine's memory if that is less. -m bounds
    /// everything together here. In memcached it bounds the items, and the hash table and
    /// connection buffers come on top. The process takes up to 32 MiB more.
    #[arg(
        short,
        long,
        value_name = "MIB",
        default_value_t = MEMORY_MIB_DEFAULT,
        value_parser = values::memory_limit,
    )]
    pub(in crate::serve) memory_limit: usize,

    /// Refuse new items when memory is full, instead of evicting; same as --mode store
    #[arg(short = 'M', long)]
    pub(in crate::serve) disable_evictions: bool,

    /// What to do when memory is full: cache or store [default: cache, with -M store]
    ///
    /// cache: evict items by the rule of --evict. store: evict nothing and refuse new items with an
    /// error. If an overwrite is refused, the old value of the key stays. Store mode excludes
    /// --evict and ignores --item-size-hint.
    #[arg(long, value_name = "MODE")]
    pub(in crate::serve) mode: Option<Mode>,

    /// File for all items: loaded at the start, written when the server stops and by `snapshot`
    ///
    /// The server loads the file before it answers, and writes it on SIGTERM, SIGINT and SIGUSR1,
    /// and when a client asks for it (`glimmer snapshot`). An older file stays as it is until the
    /// new one is complete. A server with other settings (-m, --table, --access, -t) may load it.
    #[arg(long, value_name = "FILE")]
    pub(in crate::serve) snapshot: Option<PathBuf>,

    /// Lock all memory, so that none of it is paged out
    #[arg(short = 'k', long)]
    pub(in crate::serve) lock_memory: bool,

    /// File that the items lie in, so that the next server begins with them: on tmpfs, such as
    /// /dev/shm/glimmer
    ///
    /// The file is the server's memory, and not a copy of it. A server that is started with the
    /// same file and the same settings goes on with all items: after a stop (SIGTERM) at once, and
    /// after the process was killed when it has looked at them. The file is lost when the machine
    /// goes down. See docs/warm-restart.md.
    #[arg(short = 'e', long, value_name = "FILE")]
    pub(in crate::serve) memory_file: Option<PathBuf>,

    /// Give up what the file of -e holds, and begin with an empty store
    #[arg(long)]
    pub(in crate::serve) memory_file_discard: bool,

    /// Use huge pages; same as --hugepages auto, the default
    #[arg(short = 'L', long)]
    pub(in crate::serve) enable_largepages: bool,

    /// memcached's growth factor of slab sizes; has no effect here
    #[arg(
        short = 'f',
        long,
        value_name = "FACTOR",
        value_parser = values::growth_factor,
        hide_short_help = true,
    )]
    pub(in crate::serve) slab_growth_factor: Option<f64>,

    /// memcached's smallest slab chunk; has no effect here
    #[arg(
        short = 'n',
        long,
        value_name = "BYTES",
        value_parser = values::chunk_size,
        hide_short_help = true,
    )]
    pub(in crate::serve) slab_min_size: Option<u32>,

    /// Largest item in bytes, such as 512k or 2m; 1k to 1024m, at most half of -m [default: 1m]
    ///
    /// Key, value and 59 bytes more count, as in memcached. If -m is too small for a handful of the
    /// largest items, the server lowers this limit to about a sixth of -m, and prints a warning at
    /// start.
    #[arg(
        short = 'I',
        long,
        value_name = "SIZE",
        value_parser = values::item_size,
    )]
    pub(in crate::serve) max_item_size: Option<usize>,

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
    )]
    pub(in crate::serve) item_size_hint: usize,

    /// Data structure of a partition: mica or memc3
    ///
    /// mica: a circular log under an index of 15-entry buckets, with the eviction rule of --evict.
    /// memc3: slab classes under a cuckoo index, with CLOCK as its eviction rule. The cuckoo index
    /// grows with the number of items and ignores --item-size-hint.
    #[arg(long, value_name = "TABLE", default_value_t = TableKind::Mica)]
    pub(in crate::serve) table: TableKind,

    #[arg(
        long,
        value_name = "RULE",
        help = evict_help(),
        long_help = evict_long_help(),
    )]
    pub(in crate::serve) evict: Option<Rule>,

    /// With --evict adaptive: what to find the most of, hits or bytes
    ///
    /// For hits, an item's size counts: of items that are read equally often, small ones stay
    /// longer, as more of them fit. For bytes, it does not count, and the rule looks for what gives
    /// the most bytes.
    #[arg(long, value_name = "WHAT", default_value_t = Objective::Hits)]
    pub(in crate::serve) evict_for: Objective,

    /// With --evict lru: newest share of the log in which a read does not move its item, 0 to 1
    ///
    /// An item that is read moves to the tail of the log unless it lies in this share of the log.
    /// At 0 every read moves its item, which is exact and expensive; at 1 no read does.
    #[arg(
        long,
        value_name = "SHARE",
        default_value_t = LRU_THRESHOLD_DEFAULT,
        value_parser = values::decimal,
    )]
    pub(in crate::serve) lru_threshold: f64,

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
    )]
    pub(in crate::serve) hugepages: HugepagePolicy,
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
    help.push_str("Only with --mode cache and --table mica.");
    help
}
