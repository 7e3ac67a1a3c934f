//! Every bound of the system, in one place, with what happens at it.

/// Longest key in bytes. A longer one is refused with `CLIENT_ERROR` by the memcached front end.
pub const KEY_BYTES_MAX: usize = 250;

/// Largest item (key, value and header together) in bytes unless `-I` says otherwise, as memcached's.
pub const ITEM_BYTES_DEFAULT: usize = 1 << 20;

/// Smallest and largest `-I` in bytes, as memcached's.
pub const ITEM_BYTES_MIN: usize = 1 << 10;
/// See [`ITEM_BYTES_MIN`].
pub const ITEM_BYTES_MAX: usize = 1 << 30;

/// Requests that go through the engine's prefetch stages together (MICA §4.2.1 uses 32 as well).
pub const BATCH_MAX: usize = 32;

/// Longest command line in bytes, its line end included. A `get` of very many keys may be this long;
/// a connection that sends a longer line is closed.
pub const LINE_BYTES_MAX: usize = 256 << 10;

/// A command line other than `get`, `gets`, `gat` and `gats` may be this long in bytes; a connection that sends a longer one is
/// closed, as memcached does.
pub const COMMAND_LINE_BYTES_MAX: usize = 2 << 10;

/// Bytes of replies a connection may have waiting before its next request is left unexecuted until it has read
/// some of them. The reply that crosses the mark is finished, so one item more may be held.
pub const REPLY_BYTES_HIGH: usize = 256 << 10;

/// How often an optimistic reader tries before it asks the owner (CREW) or takes the lock (CRCW).
pub const OPTIMISTIC_TRIES_MAX: u32 = 64;

/// Partitions of one store at most: the keyhash gives 16 bits to the partition.
pub const PARTITIONS_MAX: usize = 1 << 12;

/// Worker threads at most.
pub const WORKERS_MAX: usize = 256;

const _: () = assert!(
    KEY_BYTES_MAX <= u8::MAX as usize,
    "the item header keeps the key's length in a byte"
);
const _: () = assert!(
    COMMAND_LINE_BYTES_MAX > KEY_BYTES_MAX * 2,
    "a line must hold any key and its arguments"
);
const _: () = assert!(
    LINE_BYTES_MAX >= 128 << 10,
    "multi-gets of at least 128 KiB are promised"
);
const _: () = assert!(PARTITIONS_MAX <= 1 << 16);
