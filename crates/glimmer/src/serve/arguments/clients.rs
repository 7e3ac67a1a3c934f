//! What clients may do, and `-o`.

use super::super::values;
use clap::Args;
use glimmer_notation as notation;
use glimmer_server::{AdminCommand, Permits};
use std::path::PathBuf;

/// What clients may do, and `-o`.
#[derive(Args, Debug)]
#[command(next_help_heading = "Clients")]
pub struct Clients {
    /// Protocol that clients speak: ascii, binary, resp, or auto to detect it from the first byte
    #[arg(short = 'B', long, value_name = "NAME")]
    pub(in crate::serve) protocol: Option<String>,

    /// File of users and passwords, one `user:password` per line
    ///
    /// Text clients have to authenticate first, by `set x 0 0 N` with `user password` as the value.
    /// SIGHUP reads the file again.
    #[arg(short = 'Y', long, value_name = "FILE")]
    pub(in crate::serve) auth_file: Option<PathBuf>,

    /// File of users with passwords, rights and limits, in TOML, instead of -Y
    ///
    /// Each user is a table with `password`, and optionally `rights` (a list of get, set and
    /// admin), `prefix` of its keys, and `connections`, `requests` and `bytes` per second that it
    /// may have.
    /// Clients authenticate as with -Y. SIGHUP reads the file again, and what it says applies to
    /// open connections, too.
    #[arg(long, value_name = "FILE")]
    pub(in crate::serve) users: Option<PathBuf>,

    /// Connections that one address may have at a time; 0: as many as -c allows
    #[arg(
        long,
        value_name = "NUM",
        default_value = "0",
        hide_short_help = true,
        value_parser = notation::count,
    )]
    pub(in crate::serve) address_connections: u64,

    /// Requests per second that one address may have; 0: no limit
    ///
    /// A connection of an address with more is not read for up to a second, and after that its
    /// requests are answered with errors. Unix sockets, UDP and native clients have no such limits.
    #[arg(
        long,
        value_name = "NUM",
        default_value = "0",
        hide_short_help = true,
        value_parser = notation::count,
    )]
    pub(in crate::serve) address_requests: u64,

    /// Bytes per second that one address may send and receive; 0: no limit
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "0",
        hide_short_help = true,
        value_parser = notation::bytes,
    )]
    pub(in crate::serve) address_bytes: u64,

    /// Require SASL PLAIN from binary clients, with the users of -Y or --users
    #[arg(short = 'S', long, hide_short_help = true)]
    pub(in crate::serve) enable_sasl: bool,

    /// Enable the `shutdown` command
    #[arg(short = 'A', long)]
    pub(in crate::serve) enable_shutdown: bool,

    /// Disable CAS uniques: `gets` shows 0, and `cas` fails with EXISTS
    #[arg(short = 'C', long)]
    pub(in crate::serve) disable_cas: bool,

    /// Disable `flush_all`
    #[arg(short = 'F', long)]
    pub(in crate::serve) disable_flush_all: bool,

    /// Disable `stats cachedump`, `stats detail`, `lru_crawler metadump` and `mgdump`
    #[arg(short = 'X', long)]
    pub(in crate::serve) disable_dumping: bool,

    /// Disable `watch`
    #[arg(short = 'W', long)]
    pub(in crate::serve) disable_watch: bool,

    /// Disable administrative commands, separated by commas
    ///
    /// The names are cache_memlimit, cachedump, config, debugtime, detail, dispatch, flush_all,
    /// flush_prefix, lru, lru_crawler, metadump, mgdump, refresh_certs, shutdown, slabs, snapshot,
    /// stats, stats_reset, verbosity and watch.
    /// -F is flush_all, -W is watch, and -X is cachedump,detail,metadump,mgdump.
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = <AdminCommand as std::str::FromStr>::from_str,
    )]
    pub(in crate::serve) disable_commands: Vec<AdminCommand>,

    /// Delimiter of key prefixes for `stats detail`; also enables its counts at start [default: :]
    #[arg(
        short = 'D',
        long,
        value_name = "CHAR",
        value_parser = values::delimiter,
        conflicts_with = "prefix_delimiter",
    )]
    pub(in crate::serve) detail_delimiter: Option<u8>,

    /// Delimiter of key prefixes: enables `flush_prefix`, by which the items of a prefix are
    /// invalidated at once, and `stats prefix`; it is also that of `stats detail`
    #[arg(long, value_name = "CHAR", value_parser = values::prefix_delimiter)]
    pub(in crate::serve) prefix_delimiter: Option<u8>,

    /// memcached's extended options, separated by commas
    ///
    /// idle_timeout=SECONDS, maxconns_fast and no_maxconns_fast mean what they mean in memcached.
    /// Options about features that this server does not have (slabs, LRU segments) are accepted
    /// with a warning.
    #[arg(short = 'o', long, value_name = "OPTIONS")]
    pub(in crate::serve) extended: Vec<String>,

    /// Enable `debugtime`, with which clients advance the clock, as in a debug build of memcached
    #[arg(long, hide = true)]
    pub(in crate::serve) debug_commands: bool,

    /// Encrypt TCP connections with TLS. Needs -o ssl_chain_cert=FILE, and -o ssl_key=FILE if the
    /// key is not in that file
    #[arg(short = 'Z', long)]
    pub(in crate::serve) enable_ssl: bool,

    /// Threads by network queue, which this server does not support
    #[arg(short = 'N', long, value_name = "NUM", value_parser = values::napi_ids, hide = true)]
    pub(in crate::serve) napi_ids: Option<u32>,
}

impl Clients {
    /// Which administrative commands clients may use.
    pub(in crate::serve) fn permits(&self) -> Permits {
        use AdminCommand::*;
        let enabled = [
            (self.enable_shutdown, Shutdown),
            (self.debug_commands, Debugtime),
        ];
        let disabled = [
            (self.disable_flush_all, &[FlushAll][..]),
            (self.disable_dumping, &[Cachedump, Detail, Metadump, Mgdump]),
            (self.disable_watch, &[Watch]),
            (true, &self.disable_commands),
        ];
        let mut permits = Permits::DEFAULT;
        for (_, command) in enabled.into_iter().filter(|(is_given, _)| *is_given) {
            permits = permits.with(command);
        }
        for (_, commands) in disabled.into_iter().filter(|(is_given, _)| *is_given) {
            for &command in commands {
                permits = permits.without(command);
            }
        }
        permits
    }
}
