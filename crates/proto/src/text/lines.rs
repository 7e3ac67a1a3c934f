//! Every fixed reply line, line end included, as memcached 1.6 spells it.

/// A store succeeded.
pub const STORED: &str = "STORED\r\n";
/// A store's condition did not hold.
pub const NOT_STORED: &str = "NOT_STORED\r\n";
/// The item's CAS unique is another one.
pub const EXISTS: &str = "EXISTS\r\n";
/// The key has no item.
pub const NOT_FOUND: &str = "NOT_FOUND\r\n";
/// The item was removed.
pub const DELETED: &str = "DELETED\r\n";
/// The item has its new expiry time.
pub const TOUCHED: &str = "TOUCHED\r\n";
/// Done.
pub const OK: &str = "OK\r\n";
/// The end of values or figures.
pub const END: &str = "END\r\n";
/// The figures were reset.
pub const RESET: &str = "RESET\r\n";
/// Unknown command.
pub const ERROR: &str = "ERROR\r\n";
/// A meta command was carried out.
pub const HD: &str = "HD\r\n";
/// The answer to the meta protocol's `mn`.
pub const META_NOOP: &str = "MN\r\n";

macro_rules! version_number {
    () => {
        concat!("1.6.45-glimmer.", env!("CARGO_PKG_VERSION"))
    };
}

/// Clients that compare versions see memcached 1.6.45, whose commands these are; people see whose it is.
pub const VERSION_NUMBER: &str = version_number!();
/// The answer to `version`.
pub const VERSION: &str = concat!("VERSION ", version_number!(), "\r\n");

/// There are too few words, a word that should be a number is none, or a key is too long.
pub const BAD_LINE: &str = "CLIENT_ERROR bad command line format\r\n";
/// A value is not followed by a line end.
pub const BAD_CHUNK: &str = "CLIENT_ERROR bad data chunk\r\n";
/// The expiry time of `touch`, `gat` or `flush_all` is no number.
pub const BAD_EXPTIME: &str = "CLIENT_ERROR invalid exptime argument\r\n";
/// What to add or subtract is no number.
pub const BAD_DELTA: &str = "CLIENT_ERROR invalid numeric delta argument\r\n";
/// The value to add to or subtract from is no number.
pub const NON_NUMERIC: &str = "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n";
/// `stats detail` without `on`, `off` or `dump`.
pub const STATS_DETAIL_USAGE: &str = "CLIENT_ERROR usage: stats detail on|off|dump\r\n";
/// `stats cachedump`, which memcached can be told to refuse.
pub const CACHEDUMP_NOT_ALLOWED: &str = "CLIENT_ERROR stats cachedump not allowed\r\n";
/// `watch`, which memcached can be told to refuse.
pub const WATCH_NOT_ALLOWED: &str = "CLIENT_ERROR watch commands not allowed\r\n";
/// `watch` behind commands whose replies are yet to be sent.
pub const WATCH_NOT_ALONE: &str = "ERROR cannot pipeline other commands before watch\r\n";
/// `watch` where there are as many watchers as there may be.
pub const TOO_MANY_WATCHERS: &str = "WATCHER_TOO_MANY log watcher limit reached\r\n";
/// `stats detail`, which the server can be told to refuse.
pub const STATS_DETAIL_NOT_ALLOWED: &str = "CLIENT_ERROR stats detail not allowed\r\n";
/// `flush_all`, which the server can be told to refuse.
pub const FLUSH_NOT_ALLOWED: &str = "CLIENT_ERROR flush_all not allowed\r\n";
/// `slabs reassign` where there are no slabs to move.
pub const SLABS_REASSIGN_DISABLED: &str = "CLIENT_ERROR slab reassignment disabled\r\n";
/// `lru_crawler metadump` and `mgdump` after `lru_crawler disable`.
pub const LRU_CRAWLER_DISABLED: &str = "CLIENT_ERROR lru crawler disabled\r\n";
/// `lru_crawler` with a class that cannot be.
pub const BAD_CLASS: &str = "BADCLASS invalid class id\r\n";
/// `lru_crawler sleep` for more than a second.
pub const CRAWLER_SLEEP_TOO_LONG: &str = "CLIENT_ERROR sleep must be one second or less\r\n";
/// `lru_crawler metadump` or `mgdump` while another lists items.
pub const CRAWLER_BUSY: &str = "BUSY currently processing crawler request\r\n";
/// `lru_crawler metadump`, which the server can be told to refuse.
pub const METADUMP_NOT_ALLOWED: &str = "ERROR metadump not allowed\r\n";
/// `lru_crawler mgdump`, which the server can be told to refuse.
pub const MGDUMP_NOT_ALLOWED: &str = "ERROR key dump not allowed\r\n";
/// `lru_crawler metadump` behind commands whose replies are yet to be sent.
pub const METADUMP_NOT_ALONE: &str = "ERROR cannot pipeline other commands before metadump\r\n";
/// `lru_crawler mgdump` behind commands whose replies are yet to be sent.
pub const MGDUMP_NOT_ALONE: &str = "ERROR cannot pipeline other commands before mgdump\r\n";
/// The end of what `lru_crawler mgdump` lists.
pub const META_END: &str = "EN\r\n";
/// A command with too few words.
pub const BAD_COMMAND_LINE: &str = "CLIENT_ERROR bad command line\r\n";
/// `stats cachedump` with a class that cannot be.
pub const ILLEGAL_CLASS: &str = "CLIENT_ERROR Illegal slab id\r\n";
/// `cache_memlimit` below memcached's smallest limit.
pub const MEMLIMIT_TOO_SMALL: &str = "MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m\r\n";
/// `cache_memlimit` with more than any machine has.
pub const MEMLIMIT_IN_BYTES: &str = "MEMLIMIT_ADJUST_FAILED input value is megabytes not bytes\r\n";
/// `cache_memlimit` with a limit that the server cannot change to.
pub const MEMLIMIT_FIXED: &str = "MEMLIMIT_ADJUST_FAILED out of bounds or unable to adjust\r\n";
/// `shutdown` where clients may not stop the server.
pub const SHUTDOWN_NOT_ENABLED: &str = "SERVER_ERROR: shutdown not enabled\r\n";
/// `shutdown` with an unknown word behind it.
pub const INVALID_SHUTDOWN_MODE: &str = "CLIENT_ERROR invalid shutdown mode\r\n";

/// A command of a client that has yet to authenticate.
pub const UNAUTHENTICATED: &str = "CLIENT_ERROR unauthenticated\r\n";
/// A user and a password that are longer than any.
pub const LOGIN_TOO_LONG: &str = "CLIENT_ERROR auth token too long\r\n";
/// A user and a password without a line end behind them.
pub const LOGIN_UNTERMINATED: &str = "CLIENT_ERROR bad command line termination\r\n";
/// A user without a password.
pub const LOGIN_WITHOUT_PASSWORD: &str = "CLIENT_ERROR bad authentication token format\r\n";
/// A user and a password that do not belong together.
pub const WRONG_PASSWORD: &str = "CLIENT_ERROR authentication failure\r\n";
/// A meta command has more than [`crate::meta::WORDS_MAX`] words.
pub const TOO_MANY_FLAGS: &str = "CLIENT_ERROR options flags are too long\r\n";
/// A meta command has two flags of a kind.
pub const DUPLICATE_FLAG: &str = "CLIENT_ERROR duplicate flag\r\n";
/// A meta command has a flag that there is not.
pub const INVALID_FLAG: &str = "CLIENT_ERROR invalid flag\r\n";
/// A flag's token is no number.
pub const BAD_TOKEN: &str = "CLIENT_ERROR bad token in command line format\r\n";
/// What `ma` is to begin with is no number.
pub const BAD_INITIAL: &str = "CLIENT_ERROR invalid numeric initial value\r\n";
/// What `ma` is to add is no number.
pub const BAD_META_DELTA: &str = "CLIENT_ERROR invalid numeric delta value\r\n";
/// Whatever is wrong with the flags of `ma`.
pub const BAD_META_FLAGS: &str = "CLIENT_ERROR invalid or duplicate flag\r\n";
/// `ms` has an `M` with another letter than E, A, P, R and S.
pub const BAD_STORE_MODE: &str = "CLIENT_ERROR invalid mode for ms M token\r\n";
/// `ma` has an `M` with another letter than I, +, D and -.
pub const BAD_ARITHMETIC_MODE: &str = "CLIENT_ERROR invalid mode for ma M token\r\n";
/// A key with the flag `b` is no base64.
pub const BAD_BASE64: &str = "CLIENT_ERROR error decoding key\r\n";
/// An opaque is longer than [`crate::meta::OPAQUE_BYTES_MAX`].
pub const LONG_OPAQUE: &str = "CLIENT_ERROR opaque token too long\r\n";

/// A value is larger than the item limit.
pub const TOO_LARGE: &str = "SERVER_ERROR object too large for cache\r\n";
/// There is no memory for a value.
pub const NO_MEMORY_STORING: &str = "SERVER_ERROR out of memory storing object\r\n";
/// There is no memory for a number that has grown.
pub const NO_MEMORY: &str = "SERVER_ERROR out of memory\r\n";
/// A connection past the limit, before it is closed.
pub const TOO_MANY_CONNECTIONS: &str = "ERROR Too many open connections\r\n";

/// The line, or nothing for a client that wants no answer.
#[inline]
pub fn unless(quiet: bool, line: &'static str) -> &'static str {
    if quiet { "" } else { line }
}
