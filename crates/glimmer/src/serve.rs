//! `glimmer serve`: memcached's flags with memcached's meanings, and our own beside them.

mod values;

use clap::{ArgAction, Args};
use glimmer_base::limits;
use glimmer_server::config::{
    CONNECTIONS_DEFAULT, ITEM_BYTES_HINT_DEFAULT, LRU_THRESHOLD_DEFAULT, MEMORY_MIB_DEFAULT,
    PORT_DEFAULT,
};
use glimmer_server::memory_plan::Needs;
use glimmer_server::{AccessMode, Config, EvictionRule, HugepagePolicy, MemoryPlan};
use std::path::PathBuf;

/// Serve memcached clients until SIGTERM or SIGINT
#[derive(Args, Debug)]
#[command(
    version,
    after_help = "`glimmer serve --help` explains the defaults and shows examples.",
    after_long_help = EXAMPLES
)]
pub struct Arguments {
    /// TCP port to listen on
    #[arg(short, long, value_name = "NUM", default_value_t = PORT_DEFAULT, value_parser = clap::value_parser!(u16).range(1..), help_heading = NETWORK)]
    port: u16,

    /// Address to listen on, all if not given; host, host:port, or several of them
    ///
    /// May be given several times, or as a list with commas. An address without a port takes the one given with -p.
    /// Without -l the server listens on every interface, as memcached does; a cache has no password, so keep
    /// it behind a firewall or on 127.0.0.1.
    #[arg(short, long, value_name = "ADDR", value_delimiter = ',', help_heading = NETWORK)]
    listen: Vec<String>,

    /// Client connections at most
    ///
    /// A client beyond that is told `ERROR Too many open connections` and disconnected.
    #[arg(short, long, value_name = "NUM", default_value_t = CONNECTIONS_DEFAULT, help_heading = NETWORK)]
    conn_limit: usize,

    /// UDP port: 0, as there is no UDP yet
    #[arg(short = 'U', long, value_name = "NUM", default_value_t = 0, value_parser = values::no_udp, help_heading = NETWORK)]
    udp_port: u16,

    /// Memory for items, index and connections together, in MiB
    ///
    /// memcached bounds its items with -m and comes on top of it with its hash table and connection buffers; here -m
    /// bounds all of it. The process itself takes a few MiB more.
    #[arg(short, long, value_name = "MIB", default_value_t = MEMORY_MIB_DEFAULT, value_parser = values::mebibytes, help_heading = MEMORY)]
    memory_limit: usize,

    /// Largest item, in bytes or with a k or m behind the number: 1k to 1024m
    ///
    /// Key, value and a header of 8 bytes count. Where -m is too small for a handful of the largest items, the limit is lowered,
    /// and the line printed at start says so.
    #[arg(short = 'I', long, value_name = "SIZE", default_value = "1m", value_parser = values::item_size, help_heading = MEMORY)]
    max_item_size: usize,

    /// Key and value bytes of a typical item
    ///
    /// Decides how memory is split between the log, which holds the items, and the index, which finds them. Items much smaller
    /// than this run out of index before they run out of log; larger ones leave index unused. The default fits items
    /// like a key of 16 bytes with a value of 32; at 1000 it gives the log 8% more.
    #[arg(long, value_name = "BYTES", default_value_t = ITEM_BYTES_HINT_DEFAULT, help_heading = MEMORY)]
    item_size_hint: usize,

    /// What leaves when the memory is full: fifo, lru or s3fifo
    ///
    /// fifo: the oldest item. lru: an item that is read in the older part of the log is put back at its tail, so that roughly the least
    /// recently used leaves. s3fifo: an item that was read since it came stays, one that was not goes; it resists scans, costs next to nothing on a
    /// read, and is the default because it has the best hit ratio of the three.
    #[arg(long, value_name = "RULE", default_value_t = EvictionRule::S3Fifo, help_heading = MEMORY)]
    evict: EvictionRule,

    /// With --evict lru: the newer share of the log in which a read moves nothing, 0 to 1
    ///
    /// An item that is read is put back at the tail of the log unless it lies in this share next to it. At 0 every read moves its item, which is
    /// exact and costly; at 1 none does.
    #[arg(long, value_name = "SHARE", default_value_t = LRU_THRESHOLD_DEFAULT, help_heading = MEMORY)]
    lru_threshold: f64,

    /// Pages to use: auto, hugetlb, transparent or off
    ///
    /// Huge pages save a page-table walk on nearly every access to a large store. auto takes reserved ones
    /// (/proc/sys/vm/nr_hugepages), else transparent ones, else 4 KiB pages; hugetlb refuses to start without
    /// reserved ones. `stats memory` shows what the kernel really gave.
    #[arg(long, value_name = "POLICY", default_value_t = HugepagePolicy::Auto, help_heading = MEMORY)]
    hugepages: HugepagePolicy,

    /// Worker threads; one per core if not given
    ///
    /// memcached's default is 4 whatever the machine has. A worker sleeps when it has nothing to do. Each needs buffers for a few of the
    /// largest items, so that a small -m is served by fewer workers than there are cores unless -t insists: 4 at -m 64 and -I 1m.
    #[arg(short, long, value_name = "NUM", help_heading = WORKERS)]
    threads: Option<usize>,

    /// Who may touch a partition: erew, crew or crcw
    ///
    /// erew: its owner alone reads and writes it, without any synchronisation; every other request crosses over to the owner.
    /// crew: any worker reads, the owner writes. crcw: any worker reads and writes, so that nothing crosses. A TCP connection carries
    /// requests for every partition, hence the default.
    #[arg(long, value_name = "MODE", default_value_t = AccessMode::Crcw, help_heading = WORKERS)]
    access: AccessMode,

    /// Bind each worker to a core of its own
    ///
    /// For machines that do nothing else; off because two pinned programs on one core do badly.
    #[arg(long, help_heading = WORKERS)]
    pin: bool,

    /// File to write the process id to; removed at the end
    #[arg(short = 'P', long, value_name = "FILE", help_heading = PROCESS)]
    pidfile: Option<PathBuf>,

    /// User to become once the addresses are bound; only when started as root
    ///
    /// memcached refuses to run as root without it. This server goes on, and says so.
    #[arg(short, long, value_name = "USER", help_heading = PROCESS)]
    user: Option<String>,

    /// Say more: -v shows how memory is laid out and when the server stops, -vv also administrative commands
    ///
    /// Nothing is logged per request. A client can change this with `verbosity`.
    #[arg(short, long, action = ArgAction::Count, help_heading = PROCESS)]
    verbose: u8,
}

const NETWORK: &str = "Network";
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

impl Arguments {
    /// Serves until a signal asks to stop.
    pub fn run(self) -> anyhow::Result<()> {
        let config = self.config()?;
        glimmer_server::serve(config)?;
        Ok(())
    }

    fn config(self) -> anyhow::Result<Config> {
        let mut config = Config {
            listen: values::addresses(&self.listen, self.port)?,
            memory_bytes: self.memory_limit,
            workers: self.threads.unwrap_or_else(cores),
            connections_max: self.conn_limit,
            item_bytes_max: self.max_item_size,
            item_bytes_hint: self.item_size_hint,
            access: self.access,
            evict: self.evict,
            lru_threshold: self.lru_threshold,
            hugepages: self.hugepages,
            pin: self.pin,
            verbosity: self.verbose,
            pid_file: self.pidfile,
            user: self.user,
        };
        config.check()?;
        if self.threads.is_none() {
            config.workers = MemoryPlan::workers_fitting(Needs::of(&config));
        }
        Ok(config)
    }
}

fn cores() -> usize {
    std::thread::available_parallelism()
        .map_or(1, usize::from)
        .min(limits::WORKERS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn parse(line: &str) -> Result<Config, String> {
        let words = std::iter::once("serve").chain(line.split_whitespace());
        let line = Line::try_parse_from(words).map_err(|error| error.to_string())?;
        line.arguments
            .config()
            .map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn memcacheds_defaults() {
        let config = parse("").unwrap();
        assert!(
            config
                .listen
                .iter()
                .all(|address| address.port() == 11211 && address.ip().is_unspecified())
        );
        assert_eq!(config.memory_bytes, 64 << 20);
        assert_eq!(config.connections_max, 1024);
        assert_eq!(config.item_bytes_max, 1 << 20);
        assert_eq!(config.verbosity, 0);
    }

    #[test]
    fn memcacheds_short_flags() {
        let config = parse(
            "-p 21201 -l 127.0.0.1 -m 100 -t 3 -c 10 -I 512k -P /tmp/x.pid -u nobody -vv -U 0",
        )
        .unwrap();
        assert_eq!(config.listen, ["127.0.0.1:21201".parse().unwrap()]);
        assert_eq!(config.memory_bytes, 100 << 20);
        assert_eq!((config.workers, config.connections_max), (3, 10));
        assert_eq!(config.item_bytes_max, 512 << 10);
        assert_eq!(config.pid_file, Some("/tmp/x.pid".into()));
        assert_eq!(config.user.as_deref(), Some("nobody"));
        assert_eq!(config.verbosity, 2);
    }

    #[test]
    fn memcacheds_long_names() {
        let line = "--port=1234 --listen=127.0.0.1 --memory-limit=32 --threads=2 --conn-limit=5 --max-item-size=2m \
                    --pidfile=/tmp/x --user=nobody --udp-port=0 --verbose";
        let config = parse(line).unwrap();
        assert_eq!(config.listen, ["127.0.0.1:1234".parse().unwrap()]);
        assert_eq!(config.item_bytes_max, 2 << 20);
        assert_eq!(config.verbosity, 1);
    }

    #[test]
    fn our_own_flags() {
        let config = parse("--access erew --evict lru --lru-threshold 0.3 --hugepages off --pin --item-size-hint 500").unwrap();
        assert_eq!(config.access, AccessMode::Erew);
        assert_eq!(config.evict, EvictionRule::Lru);
        assert_eq!(config.lru_threshold, 0.3);
        assert_eq!(config.hugepages, HugepagePolicy::Off);
        assert!(config.pin);
        assert_eq!(config.item_bytes_hint, 500);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (line, names) in [
            ("-U 11211", "UDP"),
            ("-p 0", "0"),
            ("-p 70000", "70000"),
            ("-m 0", "-m"),
            ("-m lots", "lots"),
            ("-t 0", "-t 0"),
            ("-c 0", "-c 0"),
            ("-I 5", "-I 5"),
            ("-I 1025m", "-I"),
            ("-I 1q", "1q"),
            ("--access mine", "erew, crew, crcw"),
            ("--evict random", "fifo, lru, s3fifo"),
            ("--lru-threshold 2", "--lru-threshold 2"),
            ("-l 127.0.0.1:x", "127.0.0.1:x"),
            ("-z", "-z"),
        ] {
            let error = parse(line).expect_err(line);
            assert!(
                error.contains(names),
                "{line}: {error:?} does not name {names:?}"
            );
        }
    }
}
