//! Limits of RESP, the protocol of Redis.

/// Arguments of a RESP command that are at hand together. A command with several keys may have any
/// number. Another command with more is refused.
pub const RESP_ARGUMENTS_KEPT_MAX: usize = 16;

/// Most arguments of a RESP command. A connection that announces more is closed.
pub const RESP_ARGUMENTS_MAX: usize = 1 << 20;

/// Longest argument of a RESP command in bytes, as in Redis. A connection that announces a longer
/// one is closed. A command that is longer than a largest item and
/// [`LINE_BYTES_MAX`](super::LINE_BYTES_MAX) together is refused.
pub const RESP_BULK_BYTES_MAX: usize = 512 << 20;

/// Bytes of a RESP command with several keys that is looked through before it is executed. The keys
/// of a longer one are executed as they arrive.
pub const RESP_WHOLE_BYTES_MAX: usize = 64 << 10;

/// Bytes of the commands of a transaction of RESP that stay in the receive buffer, and at most half
/// a largest item. Those of a longer one are kept in the table, in places as for values that are
/// being received.
pub const RESP_QUEUE_BYTES_KEPT: usize = super::BUFFER_BYTES;

/// Bytes of such a place at most, and at most half a largest item. A transaction takes larger ones
/// the longer it is.
pub const RESP_QUEUE_PLACE_BYTES_MAX: usize = 256 << 10;

/// Partitions that are full before a transaction waits for a place.
pub const RESP_QUEUE_PLACE_TRIES_MAX: u32 = 4;

/// Hashes that are tried for one that lies in a partition that the worker may write to: enough to
/// find one among those of many workers.
pub const RESP_QUEUE_PLACE_HASHES_MAX: u32 = 1 << 12;

/// Longest Lua script of RESP in bytes that may be one of those that are known.
pub const RESP_SCRIPT_BYTES_MAX: usize = 4 << 10;

/// Longest pattern of RESP's `SCAN` and `KEYS` in bytes.
pub const RESP_PATTERN_BYTES_MAX: usize = 1 << 10;

/// Bytes of keys from which on a page of RESP's `SCAN` ends: the chain of the index that crosses
/// the limit is the last.
pub const RESP_PAGE_BYTES_HIGH: usize = 64 << 10;

/// Chains of the index that a page of `SCAN` looks at: most of them are empty in a large index with
/// few items.
pub const RESP_PAGE_CHAINS_MAX: u32 = 1 << 14;

/// Bytes of keys that RESP's `KEYS` gathers, for one client at a time. If there are more, it is
/// refused.
pub const RESP_KEYS_BYTES_MAX: usize = 64 << 20;

/// Bytes of gathered keys that are sent at a time.
pub const RESP_PIECE_BYTES: usize = 16 << 10;

/// Longest inline RESP command in bytes, as in Redis. A connection that sends a longer one is
/// closed.
pub const RESP_INLINE_BYTES_MAX: usize = 64 << 10;
