//! Every fixed reply line with its line end, spelled as in memcached 1.6.

/// The value was stored.
pub const STORED: &str = "STORED\r\n";
/// The condition of a store was not met.
pub const NOT_STORED: &str = "NOT_STORED\r\n";
/// The item has a different CAS unique.
pub const EXISTS: &str = "EXISTS\r\n";
/// There is no item.
pub const NOT_FOUND: &str = "NOT_FOUND\r\n";
/// The item was deleted.
pub const DELETED: &str = "DELETED\r\n";
/// The item has its new expiry time.
pub const TOUCHED: &str = "TOUCHED\r\n";
/// The command was executed.
pub const OK: &str = "OK\r\n";
/// The end of values or statistics.
pub const END: &str = "END\r\n";
/// The statistics were reset.
pub const RESET: &str = "RESET\r\n";
/// Unknown command.
pub const ERROR: &str = "ERROR\r\n";
/// A meta command was executed.
pub const HD: &str = "HD\r\n";
/// The reply to the meta command `mn`.
pub const META_NOOP: &str = "MN\r\n";

macro_rules! version_number {
    () => {
        concat!("1.6.45-glimmer.", env!("CARGO_PKG_VERSION"))
    };
}

/// Clients that compare versions see memcached 1.6.45, whose commands the server supports. People
/// also see the name of this server.
pub const VERSION_NUMBER: &str = version_number!();
/// The reply to `version`.
pub const VERSION: &str = concat!("VERSION ", version_number!(), "\r\n");

/// Too few words, an invalid number, or a key that is too long.
pub const BAD_LINE: &str = "CLIENT_ERROR bad command line format\r\n";
/// No line end follows a value.
pub const BAD_CHUNK: &str = "CLIENT_ERROR bad data chunk\r\n";
/// The expiry time of `touch`, `gat` or `flush_all` is not a number.
pub const BAD_EXPTIME: &str = "CLIENT_ERROR invalid exptime argument\r\n";
/// The number to add or subtract is invalid.
pub const BAD_DELTA: &str = "CLIENT_ERROR invalid numeric delta argument\r\n";
/// The value to be incremented or decremented is not a number.
pub const NON_NUMERIC: &str = "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n";
/// `stats detail` without `on`, `off` or `dump`.
pub const STATS_DETAIL_USAGE: &str = "CLIENT_ERROR usage: stats detail on|off|dump\r\n";
/// `stats slow` with what is not a number of milliseconds.
pub const STATS_SLOW_USAGE: &str = "CLIENT_ERROR usage: stats slow [MILLISECONDS]\r\n";
/// `stats cachedump` is disabled by an option, as in memcached.
pub const CACHEDUMP_NOT_ALLOWED: &str = "CLIENT_ERROR stats cachedump not allowed\r\n";
/// `watch` is disabled by an option, as in memcached.
pub const WATCH_NOT_ALLOWED: &str = "CLIENT_ERROR watch commands not allowed\r\n";
/// `watch` while replies to earlier commands are unsent.
pub const WATCH_NOT_ALONE: &str = "ERROR cannot pipeline other commands before watch\r\n";
/// `watch` when the maximum number of watchers is reached.
pub const TOO_MANY_WATCHERS: &str = "WATCHER_TOO_MANY log watcher limit reached\r\n";
/// `stats prefix` to a server whose keys have no prefixes.
pub const NO_PREFIXES: &str =
    "CLIENT_ERROR keys have no prefixes: the server was started without --prefix-delimiter\r\n";
/// `stats detail` is disabled by an option.
pub const STATS_DETAIL_NOT_ALLOWED: &str = "CLIENT_ERROR stats detail not allowed\r\n";
/// `flush_all` is disabled by an option.
pub const FLUSH_NOT_ALLOWED: &str = "CLIENT_ERROR flush_all not allowed\r\n";
/// The answer to `config set cluster` if its data is not a configuration.
pub const BAD_CLUSTER: &str =
    "CLIENT_ERROR a cluster is a version and HOST|ADDRESS|PORT for each server\r\n";
/// `config set` of something else.
pub const UNKNOWN_CONFIG: &str = "CLIENT_ERROR the only configuration is cluster\r\n";
/// `snapshot`, of a server that has no file for it.
pub const NO_SNAPSHOT_FILE: &str =
    "CLIENT_ERROR the server has no file for snapshots (--snapshot FILE)\r\n";
/// `snapshot` while one is being written.
pub const SNAPSHOT_BUSY: &str = "BUSY a snapshot is being written\r\n";
/// A command that is not carried out for a datagram, whose sender may be forged.
pub const NOT_OVER_UDP: &str = "CLIENT_ERROR not available over UDP\r\n";
/// `stats` in datagrams that ask for it too often.
pub const TOO_OFTEN_OVER_UDP: &str = "SERVER_ERROR too many statistics over UDP\r\n";
/// `slabs reassign`: there are no slabs to move.
pub const SLABS_REASSIGN_DISABLED: &str = "CLIENT_ERROR slab reassignment disabled\r\n";
/// `slabs automove window` with fewer than 3 or more than 1,800 of them.
pub const AUTOMOVE_WINDOW: &str = "CLIENT_ERROR automove window too low or too high\r\n";
/// `lru tune` with parts that are too large.
pub const LRU_PERCENT_TOO_LARGE: &str = "ERROR hot and warm pcts must not exceed 80\r\n";
/// `lru tune` with an age of zero or less.
pub const LRU_AGE_TOO_SMALL: &str = "ERROR hot/warm age factors must be greater than 0\r\n";
/// `lru_crawler metadump` and `mgdump` after `lru_crawler disable`.
pub const LRU_CRAWLER_DISABLED: &str = "CLIENT_ERROR lru crawler disabled\r\n";
/// `refresh_certs` of a server without TLS.
pub const TLS_NOT_ENABLED: &str = "Error TLS not enabled\r\n";
/// `lru_crawler` with an invalid class.
pub const BAD_CLASS: &str = "BADCLASS invalid class id\r\n";
/// `lru_crawler` with a list that names no class.
pub const NOTHING_TO_CRAWL: &str = "NOTSTARTED no items to crawl\r\n";
/// `lru_crawler sleep` for more than a second.
pub const CRAWLER_SLEEP_TOO_LONG: &str = "CLIENT_ERROR sleep must be one second or less\r\n";
/// `lru_crawler metadump` or `mgdump` while another listing is in progress.
pub const CRAWLER_BUSY: &str = "BUSY currently processing crawler request\r\n";
/// `lru_crawler metadump` is disabled by an option.
pub const METADUMP_NOT_ALLOWED: &str = "ERROR metadump not allowed\r\n";
/// `lru_crawler mgdump` is disabled by an option.
pub const MGDUMP_NOT_ALLOWED: &str = "ERROR key dump not allowed\r\n";
/// `lru_crawler metadump` while replies to earlier commands are unsent.
pub const METADUMP_NOT_ALONE: &str = "ERROR cannot pipeline other commands before metadump\r\n";
/// `lru_crawler mgdump` while replies to earlier commands are unsent.
pub const MGDUMP_NOT_ALONE: &str = "ERROR cannot pipeline other commands before mgdump\r\n";
/// The end of the list of `lru_crawler mgdump`.
pub const META_END: &str = "EN\r\n";
/// A command with too few words.
pub const BAD_COMMAND_LINE: &str = "CLIENT_ERROR bad command line\r\n";
/// `stats cachedump` with an invalid class.
pub const ILLEGAL_CLASS: &str = "CLIENT_ERROR Illegal slab id\r\n";
/// `cache_memlimit` below memcached's smallest limit.
pub const MEMLIMIT_TOO_SMALL: &str = "MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m\r\n";
/// `cache_memlimit` with an impossibly large limit.
pub const MEMLIMIT_IN_BYTES: &str = "MEMLIMIT_ADJUST_FAILED input value is megabytes not bytes\r\n";
/// `cache_memlimit` with a limit to which the server cannot change.
pub const MEMLIMIT_FIXED: &str = "MEMLIMIT_ADJUST_FAILED out of bounds or unable to adjust\r\n";
/// `shutdown` is not enabled.
pub const SHUTDOWN_NOT_ENABLED: &str = "SERVER_ERROR: shutdown not enabled\r\n";
/// `shutdown` with an unknown argument.
pub const INVALID_SHUTDOWN_MODE: &str = "CLIENT_ERROR invalid shutdown mode\r\n";

/// A command from a client that has not authenticated yet.
pub const UNAUTHENTICATED: &str = "CLIENT_ERROR unauthenticated\r\n";
/// User name and password exceed their maximum length.
pub const LOGIN_TOO_LONG: &str = "CLIENT_ERROR auth token too long\r\n";
/// No line end follows user name and password.
pub const LOGIN_UNTERMINATED: &str = "CLIENT_ERROR bad command line termination\r\n";
/// A user name without a password.
pub const LOGIN_WITHOUT_PASSWORD: &str = "CLIENT_ERROR bad authentication token format\r\n";
/// Wrong user name or password.
pub const WRONG_PASSWORD: &str = "CLIENT_ERROR authentication failure\r\n";
/// The user may not use the command.
pub const COMMAND_DENIED: &str = "CLIENT_ERROR this user may not use the command\r\n";
/// The user may not use the key.
pub const KEY_DENIED: &str = "CLIENT_ERROR this user may not use the key\r\n";
/// The user or the address has waited for its limits for as long as it may.
pub const OVER_LIMIT: &str = "SERVER_ERROR over the limit of this user or address\r\n";
/// The user has as many connections as it may; the connection is closed.
pub const USER_CONNECTIONS: &str = "SERVER_ERROR too many connections of this user\r\n";
/// The address has as many connections as it may; the connection is closed.
pub const ADDRESS_CONNECTIONS: &str = "SERVER_ERROR too many connections from this address\r\n";
/// A meta command has more than [`crate::meta::WORDS_MAX`] words.
pub const TOO_MANY_FLAGS: &str = "CLIENT_ERROR options flags are too long\r\n";
/// A flag occurs twice in a meta command.
pub const DUPLICATE_FLAG: &str = "CLIENT_ERROR duplicate flag\r\n";
/// A meta command has an unknown flag.
pub const INVALID_FLAG: &str = "CLIENT_ERROR invalid flag\r\n";
/// A flag's token is not a number.
pub const BAD_TOKEN: &str = "CLIENT_ERROR bad token in command line format\r\n";
/// The initial value of `ma` is not a number.
pub const BAD_INITIAL: &str = "CLIENT_ERROR invalid numeric initial value\r\n";
/// The delta of `ma` is not a number.
pub const BAD_META_DELTA: &str = "CLIENT_ERROR invalid numeric delta value\r\n";
/// Any error in the flags of `ma`.
pub const BAD_META_FLAGS: &str = "CLIENT_ERROR invalid or duplicate flag\r\n";
/// The mode of `ms` is not E, A, P, R or S.
pub const BAD_STORE_MODE: &str = "CLIENT_ERROR invalid mode for ms M token\r\n";
/// The mode of `ma` is not I, +, D or -.
pub const BAD_ARITHMETIC_MODE: &str = "CLIENT_ERROR invalid mode for ma M token\r\n";
/// A key with the flag `b` is not base64.
pub const BAD_BASE64: &str = "CLIENT_ERROR error decoding key\r\n";
/// An opaque is longer than [`crate::meta::OPAQUE_BYTES_MAX`].
pub const LONG_OPAQUE: &str = "CLIENT_ERROR opaque token too long\r\n";

/// The value is larger than the item limit.
pub const TOO_LARGE: &str = "SERVER_ERROR object too large for cache\r\n";
/// The server has no memory for a value.
pub const NO_MEMORY_STORING: &str = "SERVER_ERROR out of memory storing object\r\n";
/// The server has no memory for a number that became longer.
pub const NO_MEMORY: &str = "SERVER_ERROR out of memory\r\n";
/// Sent to a connection above the limit before it is closed.
pub const TOO_MANY_CONNECTIONS: &str = "ERROR Too many open connections\r\n";

/// The line, or nothing if the client wants no reply.
#[inline]
pub fn unless(quiet: bool, line: &'static str) -> &'static str {
    if quiet { "" } else { line }
}
