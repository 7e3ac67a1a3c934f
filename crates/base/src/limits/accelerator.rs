//! Limits of the hot-key accelerator.

/// Slots of the hot-key accelerator, unless the operator sets another number. A key that finds none
/// stays with the server.
pub const HOT_SLOTS_DEFAULT: usize = 1 << 10;

/// Fewest and most slots of the hot-key accelerator. The shadow directory has 16 bits for a slot.
pub const HOT_SLOTS_MIN: usize = 1 << 8;
/// See [`HOT_SLOTS_MIN`].
pub const HOT_SLOTS_MAX: usize = 1 << 16;

/// Longest value in bytes that a slot of the accelerator holds. An item with a longer value stays
/// with the server.
pub const HOT_VALUE_BYTES_MAX: usize = 1400;

/// Longest datagram in bytes, with memcached's 8-byte header, that the accelerator sends. The
/// server answers a request whose reply is longer, in several datagrams.
pub const HOT_DATAGRAM_BYTES_MAX: usize = 1400;

/// Addresses of its own that the packet program answers for, of each family. With more, it is not
/// attached.
pub const HOT_ADDRESSES_MAX: usize = 16;

/// Networks of each family whose hosts the packet program answers. With more, it is not attached.
pub const HOT_SOURCES_MAX: usize = 32;

/// Most bytes that an operation of an accelerator in another process takes along: its reply port
/// has 16 bits for the length of a value.
pub const LINK_MEMORY_BYTES_MAX: usize = u16::MAX as usize;

/// Milliseconds in which an accelerator in another process has to answer an operation. After that
/// it is lost for good, and its keys are answered by the server.
pub const LINK_PATIENCE_MS: u64 = 10_000;

/// Milliseconds over which `stats hotkeys` averages the reads of a key.
pub const HOT_KEYS_WINDOW_MS: u64 = 10_000;

/// Cells of the sketch of key popularity: this many to a slot of the accelerator, two bytes each.
/// Keys that share all their cells are taken for one.
pub const SKETCH_CELLS_PER_SLOT: usize = 128;

/// Sampled reads to a slot of the accelerator after which all counts of the sketch are halved.
pub const SKETCH_READS_PER_SLOT: u64 = 128;

/// Keys that the sampler keeps by name, for `stats hotkeys`. The least popular one is replaced.
pub const HOT_KEYS_MAX: usize = 256;

/// One request of this many is sampled for the server's hottest keys.
pub const POPULAR_SAMPLE_EVERY: u32 = 256;

/// Milliseconds between two times that a worker takes credit for what the accelerator has answered.
pub const HOT_HARVEST_MS: u64 = 250;

/// Milliseconds after which the counts of an accelerator that cannot be read begin at zero again,
/// so that its keys have to be read again to keep their slots.
pub const HOT_COUNTS_RESET_MS: u64 = 1000;

/// Keys that may wait to be offered to the accelerator. Further ones are forgotten; their next
/// sampled reads bring them again.
pub const HOT_OFFERS_MAX: usize = 128;

/// Keys whose quarantine is remembered. Another key may replace one of them.
pub const HOT_QUARANTINES_MAX: usize = 1 << 10;

/// Milliseconds for which a key without an item is not offered to the accelerator.
pub const HOT_QUARANTINE_MS_MIN: u64 = 250;
/// Milliseconds for which a key is remembered that was changed too often. It comes in again earlier
/// if its reads pay for that.
pub const HOT_QUARANTINE_MS_MAX: u64 = 10_000;

/// Changes for which a key of the accelerator may have saved enough. More is not counted, so that a
/// key that is only written from some moment on costs no more than these. With fewer, a key would
/// leave that is changed in long bursts, or whose hits are reported late: four times a second.
pub const HOT_PURSE_CHANGES_MAX: u64 = 1 << 14;

/// Hits that a change of a key in the accelerator costs at most, and changes that a hit pays at
/// most, whatever was measured.
pub const HOT_HITS_PER_CHANGE_MAX: u64 = 8;
/// See [`HOT_HITS_PER_CHANGE_MAX`].
pub const HOT_CHANGES_PER_HIT_MAX: u64 = 32;

/// One change of this many of keys in the accelerator is timed.
pub const HOT_CHANGE_TIMED_EVERY: u64 = 64;

/// Requests that a worker has to have executed before their CPU time says what one costs.
pub const HOT_PRICED_REQUESTS_MIN: u64 = 256;
