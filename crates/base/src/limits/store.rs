//! Limits of the tables: what a store may take, move and search.

/// How often an optimistic reader retries before it asks the owner (CREW) or takes the lock (CRCW).
pub const OPTIMISTIC_TRIES_MAX: u32 = 64;

/// Bytes of values that an optimistic reader copies in vain before it asks the owner (CREW) or
/// takes the lock (CRCW). The copy that crosses the limit is completed.
pub const OPTIMISTIC_BYTES_MAX: usize = 64 << 10;

/// A value of at least this many bytes is copied to its place before its item is stored, while no
/// lock is held, if other threads may write to the partition. Where other threads may read beside
/// the writer, such an item is never updated in place. A smaller value is copied under the lock.
pub const DRAFT_BYTES_MIN: usize = 16 << 10;

/// Large values that are being copied to one partition at a time. One more is copied under the
/// lock.
pub const DRAFTS_MAX: usize = 16;

/// Values that are being received take at most this part of a partition's memory for items. One
/// alone is received whatever it takes. For one more its sender waits.
pub const UPLOADS_PART: usize = 4;

/// Commands of transactions are kept only while they and values that are being received take at
/// most this part (1 / n) of what these may take together. The rest is for values that have no
/// place yet.
pub const QUEUES_PART: u64 = 2;

/// Large values that one partition lends at a time, to clients that are slow for as long as these
/// take. One more is copied.
pub const LOANS_MAX: usize = 16 << 10;

/// Lent values whose places writers need are copied aside. The copies take at most this part of the
/// memory for buffers, or what the largest item takes. One more value is lost, and the connections
/// that read it are closed.
pub const ASIDES_PART: usize = 2;

/// Places of a partition that large items have left and that are remembered for the next ones. The
/// one that was left first is forgotten for one more; it is free again when the head has passed it.
pub const VACANT_PLACES_MAX: usize = 64;

/// An item that is appended to and moves for that gets free space after it: this part of its own
/// length, so that the next appends write no more than their own bytes. A value that grows is then
/// copied this many times over in all, as bytes go, however small the appends are.
pub const GROWTH_PART: usize = 4;

/// A smaller item gets no space to grow: it is copied in less time than a request takes.
pub const GROWTH_BYTES_MIN: usize = 1 << 10;

/// Bytes by which a store of a large value moves the head of a log before it lets other requests
/// use the partition. The item that crosses the limit is passed.
pub const ROOM_BYTES_PER_HOLD: usize = 32 << 10;

/// A store of a large value makes its room in steps until the head of a log has passed this many
/// times the value's size. Then it makes the rest at once, without letting others in.
pub const ROOM_TRIES_FACTOR: usize = 4;

/// Items that a worker passes at the heads of logs in one turn, to make room for large values that
/// are about to arrive. For what is missing then, it goes on in its next turn.
pub const ROOM_ITEMS_PER_TURN: u64 = 512;

/// Bytes of such room that are made again in one turn, beside those items, if others have taken
/// them in the meantime. Who took them did not have to pass items.
pub const ROOM_RETAKEN_BYTES_MAX: usize = 64 << 10;

/// Live items that one request may spare while it makes room, whatever the eviction rule decides.
/// The next one is evicted even if the rule would keep it.
pub const SPARED_ITEMS_MAX: usize = 256;

/// A request may spare one more item per this many bytes that it needs.
pub const BYTES_PER_SPARED_ITEM: usize = 128;

/// Bytes of items that one request may copy in order to spare them, where sparing means copying.
/// The item that crosses the limit is evicted.
pub const SPARED_BYTES_MAX: usize = 512 << 10;

/// A request may copy this many more bytes per byte that it needs.
pub const SPARED_BYTES_PER_BYTE: usize = 4;

/// Slabs of the MemC3 table in use that one request may spare. The next one is taken from its
/// class, and its items are evicted.
pub const SPARED_SLABS_MAX: usize = 2;

/// Index slots of the MemC3 table that one store may visit to split segments, beyond those of the
/// first segment. A store that still finds no empty slot evicts an item from its own two buckets.
pub const SPLIT_SLOTS_MAX: usize = 16 << 10;

/// Bytes of a slab of the MemC3 table that one store may move so that the index can grow. The items
/// of a larger slab are evicted.
pub const MOVED_SLAB_BYTES_MAX: usize = 1 << 20;

/// Longest cuckoo path in hops. A store that finds no shorter path splits the segment.
pub const CUCKOO_HOPS_MAX: usize = 16;

/// Buckets that one store may add to the chained index in cache mode. Later stores add the rest.
pub const BUCKETS_ADDED_PER_STORE_MAX: usize = 4;

/// The same limit in store mode, where a store that finds no slot is refused.
pub const BUCKETS_ADDED_FOR_ROOM_MAX: usize = 32;

/// Bytes of memory that a partition gives back at once after a flush: the kernel takes about a
/// tenth of a millisecond for as many small pages. Later stores give back the rest.
pub const GIVEN_BACK_BYTES_PER_STEP: usize = 1 << 20;
