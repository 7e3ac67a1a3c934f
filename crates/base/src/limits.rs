//! Every bound of the system, in one place, with what happens at it.

/// Longest key in bytes. A longer one is refused with `CLIENT_ERROR` by the memcached front end.
pub const KEY_BYTES_MAX: usize = 250;

/// Largest item (key, value and header together) in bytes unless `-I` says otherwise, as
/// memcached's.
pub const ITEM_BYTES_DEFAULT: usize = 1 << 20;

/// Smallest and largest `-I` in bytes, as memcached's.
pub const ITEM_BYTES_MIN: usize = 1 << 10;
/// See [`ITEM_BYTES_MIN`].
pub const ITEM_BYTES_MAX: usize = 1 << 30;

/// Requests that go through the engine's prefetch stages together. MICA (§4.2.1) has bursts of 32; a train of datagrams has up to 64, and the
/// stages stand still once for each batch.
pub const BATCH_MAX: usize = 64;

/// Longest command line in bytes, its line end included. A `get` of very many keys may be this
/// long; a connection that sends a longer line is closed.
pub const LINE_BYTES_MAX: usize = 256 << 10;

/// A command line other than `get`, `gets`, `gat` and `gats` may be this long in bytes; a
/// connection that sends a longer one is closed, as memcached does.
pub const COMMAND_LINE_BYTES_MAX: usize = 2 << 10;

/// Bytes of a user and a password together, with the space between them, as memcached's; longer ones are refused.
pub const LOGIN_BYTES_MAX: usize = 16 << 10;

/// Users in the file of `-Y` at most; a file with more is refused.
pub const USERS_MAX: usize = 1 << 12;

/// Bytes of replies a connection may have waiting before its next request is left unexecuted until
/// it has read some of them. The reply that crosses the mark is finished, so one item more may be
/// held.
pub const REPLY_BYTES_HIGH: usize = 256 << 10;

/// Bytes of an ordinary receive or send buffer. A connection has one while it has something in it.
pub const BUFFER_BYTES: usize = 16 << 10;

/// A buffer that has grown beyond this many bytes is freed once it is empty; a smaller one is kept
/// for the next who needs one.
pub const BUFFER_BYTES_KEPT_MAX: usize = 64 << 10;

/// A worker that has freed this many bytes of buffers has the allocator give free memory back to the
/// kernel with its next tick, so that the process shrinks again.
pub const FREED_BYTES_HIGH: usize = 1 << 20;

/// Segment batches that a packet device receives or sends with one call. A device that has more
/// keeps them for the next call.
pub const PACKET_BATCH_MAX: usize = 32;

/// Buffers that an in-process packet device keeps for later packets. What exceeds them is freed.
pub const SPARE_PACKET_BUFFERS_MAX: usize = 1 << 10;

/// Packets that wait to be received at one port of an in-process packet device. What comes when as
/// many wait is dropped and counted, as by a socket whose buffer is full.
pub const SWITCH_QUEUE_PACKETS: usize = 1 << 10;

/// Bytes that wait in one direction of an in-process stream. The writer is told to wait for room.
pub const STREAM_BUFFER_BYTES: usize = 64 << 10;

/// Times that a worker asks one UDP socket for datagrams before its connections are served again; each brings up to 32.
pub const DATAGRAM_BURSTS_PER_TURN_MAX: usize = 8;

/// Datagrams that a reply over UDP may take: a largest item of `-I 1m` fits. A longer reply is replaced by a line that says so.
pub const REPLY_DATAGRAMS_MAX: usize = 1 << 10;

/// Bytes of listed items that one client may have waiting before the listing goes on (`lru_crawler metadump`).
pub const DUMP_BYTES_HIGH: usize = 64 << 10;

/// Chains of the index that a listing walks before everybody else has a turn.
pub const DUMP_CHAINS_PER_TURN: usize = 1 << 10;

/// Bytes of a long reply to a control command (`stats cachedump`, `stats conns`) that are made at a
/// time. The next ones follow when the client has taken these, and others have had their turn.
pub const REPORT_BYTES_HIGH: usize = 32 << 10;

/// Bytes that a long reply to a control command may take over UDP. One that takes more is replaced by
/// a line that says so: who asks need not be who is answered.
pub const REPORT_DATAGRAM_BYTES_MAX: usize = 64 << 10;

/// Bytes of key prefixes that `stats detail` counts; a further prefix is not counted. They are
/// shown in one piece, so this bounds that piece.
pub const PREFIXES_BYTES_MAX: usize = 128 << 10;

/// Bytes that `stats cachedump` shows, about as many as memcached's, and chains of the index that it looks at for them.
pub const CACHEDUMP_BYTES_MAX: usize = 2 << 20;
/// See [`CACHEDUMP_BYTES_MAX`].
pub const CACHEDUMP_CHAINS_MAX: usize = 1 << 18;

/// Watchers at a time, as memcached's; another is told that there are too many.
pub const WATCHERS_MAX: usize = 20;

/// Bytes of lines that a watcher has yet to be sent; further ones are lost, and it is told how many.
pub const WATCH_BYTES_MAX: usize = 256 << 10;

/// Items that were evicted and that no worker has shown to a watcher yet; further ones are not shown.
pub const REMOVALS_MAX: usize = 1 << 12;

/// Key prefixes that `stats detail` counts; further ones are not counted.
pub const PREFIXES_MAX: usize = 1 << 12;

/// Connections that are received from, parsed and answered together; the others that are ready
/// follow.
pub const BURST_CONNECTIONS_MAX: usize = 32;

/// Bytes of replies after which a turn of the worker ends although more connections are ready: it
/// looks at its clock, at new connections and at what has become ready before it serves the others.
pub const TURN_REPLY_BYTES_MAX: usize = 4 << 20;

/// A connection whose last burst made at least this many bytes of replies is served after those with
/// smaller replies. So is one whose first reply shows a larger value.
pub const LARGE_REPLY_BYTES: usize = 16 << 10;

/// Bytes of replies that connections with large replies are expected to make in one turn, together.
/// One connection is served whatever its replies take.
pub const TURN_LARGE_BYTES_MAX: usize = 1 << 20;

/// Bytes that are received at a time from a connection that holds nothing yet, while more than half
/// of what connections may hold is held: what is received and cannot be executed in the same burst
/// would be held as well.
pub const RECEIVE_BYTES_SCARCE: usize = 1 << 10;

/// Requests of one connection that are executed before the other connections have their turn.
pub const TURN_REQUESTS_MAX: u32 = 256;

/// Readiness reports fetched from the kernel at once.
pub const POLL_EVENTS_MAX: usize = 256;

/// Longest `--tcp-keepalive` and `--tcp-user-timeout` in seconds: the kernel takes no more for the
/// former. A longer one is refused.
pub const TCP_TIMEOUT_S_MAX: u64 = 32_767;

/// Of failures that no client is told of, each kind is logged at most once in this many
/// milliseconds, with their number.
pub const ALARM_MS: u64 = 10_000;

/// Lines that wait to be logged while stderr takes none; further ones are lost and counted.
pub const LOG_LINES_MAX: usize = 1 << 10;

/// Wrong logins of one connection, after which it is closed.
pub const LOGIN_FAILURES_MAX: u32 = 4;

/// The answer to a wrong login is held back for this many milliseconds, and the connection is not
/// read meanwhile. It keeps its place among the connections (`-c`) even if the client leaves, which
/// bounds how many passwords can be tried.
pub const LOGIN_DELAY_MS: u64 = 1_000;

/// Connections accepted before those that are open are served again.
pub const ACCEPTS_PER_TURN_MAX: usize = 64;

/// Requests of one connection that may be with other workers at a time; the next waits for all of
/// them.
pub const REORDER_SLOTS_MAX: usize = 128;

/// Forwarded batches that a worker has for each other worker: its credit. Requests beyond them stay
/// unparsed until a batch comes back.
pub const FORWARD_BATCHES_PER_PEER: usize = 8;

/// Forwarded batches that a worker takes in one turn, one from each worker in rotation. The
/// others stay in their rings until the worker has served its own connections.
pub const FORWARD_BATCHES_PER_TURN_MAX: usize = 32;

/// A forwarded batch is sent once it holds this many bytes of keys and values; the request that crosses the
/// mark still goes in.
pub const FORWARD_BATCH_BYTES_HIGH: usize = 256 << 10;

/// A connection that holds buffers and has been stalled for this many milliseconds is closed while
/// another one waits for memory, the longest-stalled first. Where more of them wait the time is
/// shorter: this, divided by one more than wait, so that all of them have their turn.
pub const STALLED_MS_MAX: u64 = 500;

/// The time of [`STALLED_MS_MAX`] is never shorter than this.
pub const STALLED_MS_MIN: u64 = 5;

/// A connection that sends or takes this many bytes makes up for a millisecond. One that is slower
/// is stalled for the difference: a byte now and then is no progress.
pub const PROGRESS_BYTES_PER_MS: u64 = 16;

/// A connection that has held buffers for this many milliseconds counts as stalled from then on,
/// however fast it is.
pub const HELD_MS_MAX: u64 = 30_000;

/// A connection that has waited for memory for this many milliseconds has the value that it sends
/// refused. If it is no value that is too long, the connection is closed. Values of the newest are
/// refused before, where those who wait hold so much that none of them could go on.
pub const MEMORY_WAIT_MS_MAX: u64 = 750;

/// How often a worker that lacks memory looks for stalled connections, in milliseconds.
pub const SHORT_TICK_MS: u64 = 20;

/// Unused reorder buffers that a worker keeps; further ones are freed.
pub const REORDER_BUFFERS_KEPT_MAX: usize = BURST_CONNECTIONS_MAX;

/// A server that is told to stop waits so long for clients to take their replies.
pub const DRAIN_MS_MAX: u64 = 5_000;

/// How often an optimistic reader tries before it asks the owner (CREW) or takes the lock (CRCW).
pub const OPTIMISTIC_TRIES_MAX: u32 = 64;

/// Bytes of values that an optimistic reader may copy in vain before it asks the owner (CREW) or takes the lock (CRCW). The copy that
/// crosses the mark is finished, so one value more may be copied.
pub const OPTIMISTIC_BYTES_MAX: usize = 64 << 10;

/// Live items that one request may spare while it makes room, whatever the eviction rule says of them. The next one leaves even if
/// the rule would keep it.
pub const SPARED_ITEMS_MAX: usize = 256;

/// A request may spare one item more for each of these bytes that it wants.
pub const BYTES_PER_SPARED_ITEM: usize = 128;

/// Bytes of items that one request may copy to spare them, where sparing an item copies it. The item that crosses the mark leaves.
pub const SPARED_BYTES_MAX: usize = 512 << 10;

/// A request may copy this many bytes more for each byte that it wants.
pub const SPARED_BYTES_PER_BYTE: usize = 4;

/// Slabs in use of the MemC3 table that one request may spare. The next one is taken from its class, and its items leave.
pub const SPARED_SLABS_MAX: usize = 2;

/// Index slots of the MemC3 table that one store may go through to split segments, beyond those of the first segment. A store that
/// still finds no empty slot evicts an item of its own two buckets.
pub const SPLIT_SLOTS_MAX: usize = 16 << 10;

/// Bytes of a slab of the MemC3 table that one store may move to another place so that the index can grow. The items of a larger
/// slab leave.
pub const MOVED_SLAB_BYTES_MAX: usize = 1 << 20;

/// Hops of a cuckoo path at most. A store that finds no shorter one splits the segment.
pub const CUCKOO_HOPS_MAX: usize = 16;

/// Buckets that one store may add to the chained index in cache mode. What is lacking then is added by the stores that follow.
pub const BUCKETS_ADDED_PER_STORE_MAX: usize = 4;

/// The same in store mode, where a store that finds no slot is refused.
pub const BUCKETS_ADDED_FOR_ROOM_MAX: usize = 32;

/// Partitions of one store at most: the keyhash gives 16 bits to the partition. With the most that
/// one partition can address, this bounds `-m`; a server that is given more does not start.
pub const PARTITIONS_MAX: usize = 1 << 12;

/// Worker threads at most.
pub const WORKERS_MAX: usize = 256;

/// Bytes by which a client of the binary protocol may say who it is, and of any body of which no command makes use. A longer one is skipped and
/// answered with `Too large.`.
pub const SASL_BYTES_MAX: usize = 8 << 10;

/// Mutations of one native client that a worker remembers at most, so that none is executed twice; so many if the client has as many under way, or does not
/// say how many. An older one is refused with `Forgotten`.
pub const NATIVE_MUTATIONS_KEPT: u32 = 1 << 10;

/// Mutations of one native client that a worker remembers at least.
pub const NATIVE_MUTATIONS_KEPT_MIN: u32 = 1 << 1;

/// Native clients whose mutations a worker remembers at most, however much memory there is. Mostly
/// `-m` sets the bound: a client with one mutation under way takes some 220 bytes, and they all
/// share a part of the worker's buffers. When there is no room for another client, one gives way
/// that has been silent for [`NATIVE_CLIENT_IDLE_MS`], or one of the address (of IPv6: the network
/// of 64 bits) that has the most, or else one of the newcomer's own address. If none may, the
/// newcomer is refused with `TooManyWriters`. A client that has more mutations under way than there
/// is room for is refused these with `Overloaded`.
pub const NATIVE_CLIENTS_MAX: usize = 1 << 16;

/// A native client that has sent no mutation for so long may be forgotten, in milliseconds. A datagram that arrives later than that may be executed again.
pub const NATIVE_CLIENT_IDLE_MS: u64 = 30_000;

/// Digests of long native replies that a worker remembers, so that a value is hashed once although
/// its reply leaves in many windows. Of one that it does not remember, it copies and hashes the
/// whole reply again.
pub const NATIVE_DIGESTS_MAX: usize = 256;

/// A worker remembers such a digest for this many milliseconds.
pub const NATIVE_DIGEST_MS: u64 = 1_000;

/// Requests in fragments that a worker puts together at a time; another is refused with `Overloaded`, unless another address has more of them, or of their
/// bytes, than its own would have.
pub const NATIVE_ASSEMBLIES_MAX: usize = 64;

/// Requests in fragments that one native client may be sending to a worker at a time; with another, the one that was last heard of longest ago begins anew.
pub const NATIVE_ASSEMBLIES_PER_CLIENT_MAX: usize = 8;

/// A request in fragments that gets no further for so long is given up, in milliseconds.
pub const NATIVE_ASSEMBLY_IDLE_MS: u64 = 2_000;

/// Seconds for which a token by which a native client shows that it owns its address is good, at least; at most twice as long.
pub const NATIVE_TOKEN_S: u32 = 3_600;

/// Batches of forwarded native datagrams that a worker has for each other worker, where the server
/// directs requests (`--native-direction server`); fewer where `-m` is small. Requests beyond them
/// are refused with `Overloaded` until a batch comes back.
pub const FORWARD_DATAGRAM_BATCHES_PER_PEER: usize = 8;

/// Turns in a row that find nothing to do before a worker that has served native clients sleeps again.
pub const NATIVE_IDLE_TURNS_MAX: u32 = 64;

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
const _: () = assert!(PARTITIONS_MAX < 1 << 16);
const _: () = assert!(
    SPARED_BYTES_MAX >= SPARED_ITEMS_MAX * BYTES_PER_SPARED_ITEM,
    "small items are spared up to their number, not up to their bytes"
);
const _: () = assert!(
    CUCKOO_HOPS_MAX >= 8,
    "a search of a thousand buckets of four items comes to paths of five hops and more"
);
const _: () = assert!(
    LOGIN_DELAY_MS < DRAIN_MS_MAX,
    "a server that is told to stop need not wait for a login"
);
const _: () = assert!(
    NATIVE_MUTATIONS_KEPT.is_power_of_two()
        && NATIVE_MUTATIONS_KEPT_MIN.is_power_of_two()
        && NATIVE_MUTATIONS_KEPT_MIN <= NATIVE_MUTATIONS_KEPT,
    "numbers of mutations wrap around without a gap"
);
const _: () = assert!(
    BURST_CONNECTIONS_MAX <= u8::MAX as usize,
    "a batch notes its connections in bytes"
);
const _: () = assert!(
    BURST_CONNECTIONS_MAX <= BATCH_MAX,
    "the engine keeps a note for each reply buffer of a batch, of which there are as many as jobs at most"
);
const _: () = assert!(
    BATCH_MAX <= u8::MAX as usize,
    "a batch notes its jobs in bytes"
);
const _: () = assert!(
    REORDER_SLOTS_MAX <= u16::MAX as usize && TURN_REQUESTS_MAX <= u16::MAX as u32,
    "slots and steps are counted in 16 bits"
);
const _: () = assert!(
    BUFFER_BYTES > COMMAND_LINE_BYTES_MAX && BUFFER_BYTES <= BUFFER_BYTES_KEPT_MAX,
    "an ordinary buffer holds any line but a long multi-get, and is kept"
);
const _: () = assert!(
    STALLED_MS_MIN < STALLED_MS_MAX && STALLED_MS_MAX < MEMORY_WAIT_MS_MAX,
    "the stalled are closed before those who wait give up"
);
const _: () = assert!(
    2 * REPORT_BYTES_HIGH <= BUFFER_BYTES_KEPT_MAX && REPORT_BYTES_HIGH <= REPLY_BYTES_HIGH,
    "a buffer that a piece of a long reply has made grow is kept for the next"
);
