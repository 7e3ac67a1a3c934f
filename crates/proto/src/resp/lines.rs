//! Every fixed reply of RESP.

/// Done.
pub const OK: &str = "+OK\r\n";
/// `PING`.
pub const PONG: &str = "+PONG\r\n";
/// `PING` has more than one argument.
pub const PING_ARITY: &str = "-ERR wrong number of arguments for 'ping' command\r\n";
/// No value, in version 2.
pub const NULL_2: &str = "$-1\r\n";
/// No value, in version 3.
pub const NULL_3: &str = "_\r\n";
/// The options of a command contradict one another, or there is no such option.
pub const SYNTAX: &str = "-ERR syntax error\r\n";
/// Not a number of 64 bits.
pub const NOT_AN_INTEGER: &str = "-ERR value is not an integer or out of range\r\n";
/// The sum has more than 64 bits.
pub const OVERFLOW: &str = "-ERR increment or decrement would overflow\r\n";
/// The negative of the number has more than 64 bits.
pub const DECREMENT_OVERFLOW: &str = "-ERR decrement would overflow\r\n";
/// A key is empty or longer than [`glimmer_base::limits::KEY_BYTES_MAX`]; Redis takes it.
pub const BAD_KEY: &str = "-ERR keys have 1 to 250 bytes\r\n";
/// The command is larger than the item limit allows.
pub const TOO_LARGE: &str = "-ERR string exceeds maximum allowed size (see -I)\r\n";
/// A `SET` with `IFEQ` has a value of [`glimmer_base::limits::DRAFT_BYTES_MIN`] bytes or more.
pub const TOO_LARGE_TO_COMPARE: &str =
    "-ERR the value is too large for IFEQ (see docs/resp.md)\r\n";
/// There is no memory for the value.
pub const OUT_OF_MEMORY: &str = "-OOM command not allowed when used memory > 'maxmemory'.\r\n";
/// The client has yet to authenticate.
pub const NO_AUTH: &str = "-NOAUTH Authentication required.\r\n";
/// User or password are wrong.
pub const WRONG_PASS: &str = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";
/// The user may not use the command, in the words of Redis 6.
pub const COMMAND_DENIED: &str = "-NOPERM this user has no permissions to run this command\r\n";
/// The user may not use a key of the command, in the words of Redis 6.
pub const KEY_DENIED: &str = "-NOPERM this user has no permissions to access one of the keys \
    used as arguments\r\n";
/// The user or the address has waited for its limits for as long as it may.
pub const OVER_LIMIT: &str = "-ERR over the limit of this user or address\r\n";
/// The server has as many connections as it may; the connection is closed. In the words of Redis.
pub const TOO_MANY_CONNECTIONS: &str = "-ERR max number of clients reached\r\n";
/// The address has as many connections as it may; the connection is closed.
pub const ADDRESS_CONNECTIONS: &str = "-ERR too many connections from this address\r\n";
/// The user has as many connections as it may; the connection is closed.
pub const USER_CONNECTIONS: &str = "-ERR too many connections of this user\r\n";
/// No client needs to authenticate.
pub const NO_PASSWORD: &str = "-ERR AUTH <password> called without any password configured for \
    the default user. Are you sure your configuration is correct?\r\n";
/// `HELLO` with another version.
pub const NO_PROTO: &str = "-NOPROTO unsupported protocol version\r\n";
/// `HELLO` with something that is no number.
pub const BAD_PROTO: &str = "-ERR Protocol version is not an integer or out of range\r\n";
/// `SELECT` of another database than the only one.
pub const BAD_INDEX: &str = "-ERR DB index is out of range\r\n";
/// `flush_all` is forbidden (`-F`).
pub const FLUSH_NOT_ALLOWED: &str = "-ERR flush_all not allowed\r\n";
/// `INFO` is disabled by an option.
pub const INFO_NOT_ALLOWED: &str = "-ERR stats not allowed\r\n";
/// A command that is not carried out for a datagram.
pub const NOT_OVER_UDP: &str = "-ERR not available over UDP\r\n";
/// The reply does not fit into the protocol that it came by.
pub const NO_FIGURES: &str = "-ERR no such section\r\n";
/// Conditions of `EXPIRE` that exclude each other.
pub const EXPIRE_NX: &str =
    "-ERR NX and XX, GT or LT options at the same time are not compatible\r\n";
/// See [`EXPIRE_NX`].
pub const EXPIRE_GT_LT: &str = "-ERR GT and LT options at the same time are not compatible\r\n";
/// Not a number with a fraction.
pub const NOT_A_DECIMAL: &str = "-ERR value is not a valid float\r\n";
/// The sum is out of range.
pub const DECIMAL_OVERFLOW: &str = "-ERR increment would produce NaN or Infinity\r\n";
/// A position in a value is negative.
pub const BAD_OFFSET: &str = "-ERR offset is out of range\r\n";
/// Client-side caching by another way than `OPTIN`, or in version 2.
pub const TRACKING: &str = "-ERR client-side caching needs HELLO 3 and CLIENT TRACKING ON OPTIN \
    (see docs/resp.md)\r\n";
/// `CLIENT CACHING` without `CLIENT TRACKING`.
pub const NOT_TRACKING: &str = "-ERR CLIENT CACHING can be called only when the client is in \
    tracking mode with OPTIN or OPTOUT mode enabled\r\n";
/// The client is to forget everything that it keeps of the server.
pub const INVALIDATE: &str = ">2\r\n$10\r\ninvalidate\r\n_\r\n";
/// `RENAME` of a key that has no item.
pub const NO_SUCH_KEY: &str = "-ERR no such key\r\n";
/// `COPY` of a key to itself.
pub const SAME_KEY: &str = "-ERR source and destination objects are the same\r\n";
/// `SCAN` with something that is no cursor.
pub const BAD_CURSOR: &str = "-ERR invalid cursor\r\n";
/// A pattern of more than [`glimmer_base::limits::RESP_PATTERN_BYTES_MAX`].
pub const LONG_PATTERN: &str = "-ERR the pattern is too long\r\n";
/// `KEYS` has found more than [`glimmer_base::limits::RESP_KEYS_BYTES_MAX`].
pub const TOO_MANY_KEYS: &str = "-ERR too many keys for KEYS: use SCAN\r\n";
/// Listings of keys are disabled by an option.
pub const KEYS_NOT_ALLOWED: &str = "-ERR listing keys is not allowed\r\n";
/// `EVALSHA` of a script that is not known; clients then send `EVAL`.
pub const NO_SCRIPT: &str = "-NOSCRIPT No matching script. Please use EVAL.\r\n";
/// `EVAL` of a script that is not known.
pub const NO_SUCH_SCRIPT: &str = "-ERR this server has no Lua, and the script is none of those \
    that it knows (see docs/resp.md#scripts)\r\n";
/// A command of a transaction will be executed later.
pub const QUEUED: &str = "+QUEUED\r\n";
/// A transaction one of whose commands was refused.
pub const EXEC_ABORT: &str = "-EXECABORT Transaction discarded because of previous errors.\r\n";
/// `EXEC` with arguments.
pub const EXEC_ARITY: &str = "-EXECABORT Transaction discarded because of: wrong number of \
                              arguments for 'exec' command\r\n";
/// `EXEC` without `MULTI`.
pub const EXEC_ALONE: &str = "-ERR EXEC without MULTI\r\n";
/// `DISCARD` without `MULTI`.
pub const DISCARD_ALONE: &str = "-ERR DISCARD without MULTI\r\n";
/// `MULTI` in a transaction, which goes on.
pub const NESTED: &str = "-ERR MULTI calls can not be nested\r\n";
/// `WATCH` in a transaction, which goes on.
pub const WATCH_INSIDE: &str = "-ERR WATCH inside MULTI is not allowed\r\n";
/// `WATCH`.
pub const WATCH: &str = "-ERR WATCH is not supported; SET with IFEQ compares and sets (see \
    docs/resp.md)\r\n";
/// A command of the connection in a transaction, which is given up.
pub const NOT_IN_MULTI: &str = "-ERR Command not allowed inside a transaction\r\n";
/// What Redis keeps about an item and this server does not.
pub const NOT_KEPT: &str = "-ERR the server keeps no such figure of an item\r\n";
/// Something was done.
pub const ONE: &str = ":1\r\n";
/// Nothing was done, or a figure that is always zero here.
pub const ZERO: &str = ":0\r\n";
/// More arguments than a command has here.
pub const TOO_MANY_ARGUMENTS: &str = "-ERR too many arguments\r\n";
/// `SCRIPT FLUSH` with another way to do it.
pub const SCRIPT_FLUSH: &str = "-ERR SCRIPT FLUSH only support SYNC|ASYNC option\r\n";
/// An inline argument has a quote after its first byte.
pub const INLINE_QUOTE: &str = "-ERR quotes within inline arguments are not supported\r\n";
/// An inline argument has an escape sequence.
pub const INLINE_ESCAPE: &str = "-ERR escape sequences in inline commands are not supported\r\n";
/// An array has a length that it may not have; the connection is closed.
pub const BAD_ARRAY: &str = "-ERR Protocol error: invalid multibulk length\r\n";
/// A string has a length that it may not have; the connection is closed.
pub const BAD_BULK: &str = "-ERR Protocol error: invalid bulk length\r\n";
/// An array of more than [`glimmer_base::limits::LOCKED_ARGUMENTS_MAX`] from a client that has yet
/// to authenticate; the connection is closed.
pub const LOCKED_ARRAY: &str = "-ERR Protocol error: unauthenticated multibulk length\r\n";
/// A command of more than [`glimmer_base::limits::LOCKED_BYTES_MAX`] from such a client; the
/// connection is closed.
pub const LOCKED_BULK: &str = "-ERR Protocol error: unauthenticated bulk length\r\n";
/// A quote that does not end; the connection is closed.
pub const UNBALANCED: &str = "-ERR Protocol error: unbalanced quotes in request\r\n";
/// A line without an end; the connection is closed.
pub const LONG_INLINE: &str = "-ERR Protocol error: too big inline request\r\n";
/// A length without an end; the connection is closed.
pub const LONG_ARRAY: &str = "-ERR Protocol error: too big mbulk count string\r\n";
/// See [`LONG_ARRAY`].
pub const LONG_BULK: &str = "-ERR Protocol error: too big bulk count string\r\n";
