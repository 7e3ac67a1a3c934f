//! Every limit of the system, and what happens when it is reached.

mod accelerator;
mod bypass;
mod dispatch;
mod http;
mod native;
mod prefixes;
mod resp;
mod store;
mod tenants;
mod tls;

pub use accelerator::*;
pub use bypass::*;
pub use dispatch::*;
pub use http::*;
pub use native::*;
pub use prefixes::*;
pub use resp::*;
pub use store::*;
pub use tenants::*;
pub use tls::*;

/// Longest key in bytes. A longer key is refused; the memcached text protocol answers
/// `CLIENT_ERROR`.
pub const KEY_BYTES_MAX: usize = 250;

/// Largest item (key, value and header together) in bytes unless `-I` sets another limit, as in
/// memcached.
pub const ITEM_BYTES_DEFAULT: usize = 1 << 20;

/// Smallest and largest `-I` in bytes, as in memcached.
pub const ITEM_BYTES_MIN: usize = 1 << 10;
/// See [`ITEM_BYTES_MIN`].
pub const ITEM_BYTES_MAX: usize = 1 << 30;

/// Requests that pass the engine's prefetch stages together. MICA (§4.2.1) uses bursts of 32. A
/// segment batch has up to 64 datagrams, and the stages stall once per batch, so a larger batch
/// stalls less often.
pub const BATCH_MAX: usize = 64;

/// Longest command line in bytes that is parsed as a whole, without its line feed. The keys of a
/// longer `get`, `gets`, `gat` or `gats` are handed out as they arrive. A connection that sends
/// another line of this length is closed.
pub const LINE_BYTES_MAX: usize = 256 << 10;

/// Longest command line other than `get`, `gets`, `gat` and `gats`, in bytes without its line feed.
/// A connection that sends a longer one is closed. An ordinary buffer holds such a line. This is
/// the longest that memcached answers, if the line arrives at once.
pub const COMMAND_LINE_BYTES_MAX: usize = BUFFER_BYTES - 1;

/// Longest line of a login in bytes without its line feed. A connection that sends a longer one is
/// closed.
pub const LOGIN_LINE_BYTES_MAX: usize = 2 << 10;

/// Longest user name and password together in bytes, including the space between them, as in
/// memcached. Longer ones are refused.
pub const LOGIN_BYTES_MAX: usize = 16 << 10;

/// Arguments of a command from a client that has yet to authenticate, as in Redis. A connection
/// that sends more is closed.
pub const LOCKED_ARGUMENTS_MAX: usize = 10;

/// Bytes of a command from a client that has yet to authenticate: an ordinary buffer holds it. A
/// connection that sends a longer one is closed, and a command that stores a value is refused at
/// its name.
pub const LOCKED_BYTES_MAX: usize = 16 << 10;

/// Maximum number of users in the file of `-Y`. A file with more is refused.
pub const USERS_MAX: usize = 1 << 12;

/// Bytes of unsent replies of a connection above which its next request waits. The reply that
/// crosses the limit is completed, so one more item may be held.
pub const REPLY_BYTES_HIGH: usize = 256 << 10;

/// Bytes of long replies that a batch makes, in all buffers together. The reply that crosses the
/// limit is completed, and the requests after it are executed in another batch.
pub const BATCH_REPLY_BYTES_HIGH: usize = 4 << 20;

/// Bytes of an ordinary receive or send buffer. A connection holds one only while there is data in
/// it.
pub const BUFFER_BYTES: usize = 16 << 10;

/// An empty buffer of more than this many bytes is *large*: it is kept for reuse only while it is
/// used now and then ([`LARGE_BUFFER_IDLE_MS`]). A smaller one is kept for any time.
pub const BUFFER_BYTES_KEPT_MAX: usize = 64 << 10;

/// The unused buffers that a worker keeps take at most this part (1 / n) of its memory for buffers,
/// and its unused large buffers take as much once more. A further one is freed; of large ones, the
/// one that was used least recently. A worker may always keep one large buffer for a reply with the
/// largest item, because each turn has memory for one.
pub const BUFFERS_KEPT_PART: usize = 4;

/// Milliseconds after which a large buffer that is not used is freed: between one and two times as
/// many. All of them are freed at once when memory is short.
pub const LARGE_BUFFER_IDLE_MS: u64 = 5_000;

/// A worker that has freed this many bytes of buffers makes the allocator return free memory to the
/// kernel at its next tick, so that the process shrinks again.
pub const FREED_BYTES_HIGH: usize = 1 << 20;

/// Bytes that the kernel is asked to keep of the datagrams of a socket that have not been received,
/// or that the network has not taken. It may allow less (`net.core.rmem_max`, `wmem_max`).
pub const DATAGRAM_BUFFER_BYTES: usize = 4 << 20;

/// Segment batches that a packet device receives or sends with one call. Further ones wait for the
/// next call.
pub const PACKET_BATCH_MAX: usize = 32;

/// Buffers that an in-process packet device keeps for later packets. Further ones are freed.
pub const SPARE_PACKET_BUFFERS_MAX: usize = 1 << 10;

/// Packets that may wait at one port of an in-process packet device. Further packets are dropped
/// and counted, like those of a socket whose buffer is full.
pub const SWITCH_QUEUE_PACKETS: usize = 1 << 10;

/// Bytes that may wait in one direction of an in-process stream. The writer is told to wait for
/// room.
pub const STREAM_BUFFER_BYTES: usize = 64 << 10;

/// How often a worker reads one UDP socket before it serves its connections again. Each read
/// returns up to 32 datagrams.
pub const DATAGRAM_BURSTS_PER_TURN_MAX: usize = 8;

/// Requests of datagrams from one device after which a worker receives no more from it in this
/// turn, and requests of datagrams that have waited for other workers after which it goes on with
/// no further one. Those of the last call are executed.
pub const DATAGRAM_REQUESTS_PER_TURN_MAX: u64 = 1 << 12;

/// Datagrams that have what they waited for and with which a worker goes on in one turn.
pub const PENDING_PER_TURN_MAX: usize = 256;

/// Segment batches that a worker receives with one call from a socket from which idle workers
/// receive as well. The rest stays there for them.
pub const SHARED_PACKETS_MAX: usize = 8;

/// Datagrams over memcached's UDP protocol that may wait for other workers, which execute requests
/// of theirs. A worker that has this many drops further datagrams and counts them.
pub const PENDING_DATAGRAMS_MAX: usize = 1 << 12;

/// Datagrams of one reply over UDP: enough for the largest item with `-I 1m`. A longer reply is
/// replaced by an error line.
pub const REPLY_DATAGRAMS_MAX: usize = 1 << 10;

/// Bytes of listed items that may wait for one client before the listing pauses
/// (`lru_crawler metadump`).
pub const DUMP_BYTES_HIGH: usize = 64 << 10;

/// What administrative commands may cost a worker in one turn, in nanoseconds as priced below, on a
/// processor of about 3 GHz. Lists of items, crawls and statistics share it; what is left over goes
/// on in the next turn. One step may exceed it: a chain of the index has 120 items at most, and a
/// piece of a reply [`REPORT_BYTES_HIGH`] bytes.
pub const ADMIN_TURN_NS: u64 = 50_000;
/// The part of it that one step of a list or a crawl may take, and that datagrams may.
pub const ADMIN_SHARE_NS: u64 = ADMIN_TURN_NS / 2;
/// What administrative commands may cost a worker in each millisecond on the average, priced in the
/// same way. A worker with such commands alone therefore sleeps for much of its time. One that was
/// never idle would lose its core to every other thread that wants it, and for a whole time slice
/// of the kernel, in which its other clients wait.
pub const ADMIN_NS_PER_MS: u64 = 250_000;
/// What may be saved up of that for commands that come together.
pub const ADMIN_SAVED_NS_MAX: u64 = 5_000_000;
/// The part of both that datagrams may take.
pub const ADMIN_DATAGRAMS_PART: u64 = 2;
/// The price of a command or of another piece of its reply.
pub const ADMIN_COMMAND_NS: u64 = 2_000;
/// The price of a byte of the reply, most of which are decimal numbers and their names.
pub const ADMIN_BYTE_NS: u64 = 4;
/// The price of a line of statistics or of a listed item, whose figures have to be gathered and
/// written as numbers.
pub const ADMIN_LINE_NS: u64 = 250;
/// The price of one worker's counters, which that worker writes meanwhile.
pub const ADMIN_WORKER_NS: u64 = 1_000;
/// The price of a chain of the index, which is in no cache.
pub const ADMIN_CHAIN_NS: u64 = 1_000;
/// The price of a step of comparing a key with a pattern.
pub const ADMIN_STEP_NS: u64 = 2;
/// The price of an item that is removed because it has expired.
pub const ADMIN_REMOVAL_NS: u64 = 300;

/// How long the kernel's account of the store's pages is shown again before it is read again
/// (`stats memory`), in milliseconds. The kernel walks all page tables for it.
pub const PAGES_KEPT_MS: u64 = 2_000;

/// Bytes of a long reply to a control command (`stats cachedump`, `stats conns`) that are produced
/// at a time. The next part follows when the client has read this one and other work has had a
/// turn.
pub const REPORT_BYTES_HIGH: usize = 4 << 10;

/// What copying items to a snapshot may cost a worker in one turn, priced as administrative
/// commands are. Requests that arrive meanwhile wait for it.
pub const SNAPSHOT_SHARE_NS: u64 = 10_000;
/// Bytes of items that a worker copies before it hands them over to who writes a snapshot. A larger
/// item is handed over alone.
pub const SNAPSHOT_BLOCK_BYTES: usize = 256 << 10;
/// Bytes of a block of a snapshot: one that says it has more is damaged. The largest item fits, and
/// a chain of the index with the largest values that are copied with it.
pub const SNAPSHOT_BLOCK_BYTES_MAX: usize = ITEM_BYTES_MAX + (4 << 20);
/// Bytes of values that are copied with one chain of the index. What is left of it is copied item
/// by item.
pub const SNAPSHOT_CHAIN_BYTES: usize = 64 << 10;
/// Blocks that wait to be written to a snapshot, for each worker. A worker that has filled them
/// goes on copying when one of them has been written.
pub const SNAPSHOT_BLOCKS_PER_WORKER: usize = 2;
/// Bytes of a snapshot that are written beside requests at a time, past the kernel's page cache.
/// The kernel works on such a write without a break: about as long as on a large request.
pub const SNAPSHOT_WRITE_BYTES: usize = 256 << 10;
/// Bytes of a snapshot that are written beside requests before they have to be on the disk, where
/// the page cache cannot be passed: more would take memory, and the disk would be kept from others
/// for longer at the end.
pub const SNAPSHOT_SYNC_BYTES: u64 = 32 << 20;
/// Items that a table has moved past a walk and that wait to be copied. If there are more, the walk
/// begins again.
pub const MOVED_PAST_MAX: usize = 1 << 14;
/// How often a walk may begin again. A snapshot whose walk would do so once more has failed.
pub const WALK_RESTARTS_MAX: u32 = 8;
/// The price of an item that is copied to a snapshot.
pub const ADMIN_COPY_NS: u64 = 150;
/// Bytes of such items that cost a nanosecond.
pub const ADMIN_COPY_BYTES_PER_NS: u64 = 8;

/// Bytes of key prefixes, as they are shown, that `stats detail` counts; a further prefix is not
/// counted. The reply is produced in one piece, so this bounds its size.
pub const PREFIXES_BYTES_MAX: usize = 128 << 10;

/// Bytes of connections that RESP's `CLIENT LIST` shows: the piece that crosses the limit is the
/// last.
pub const CLIENT_LIST_BYTES_MAX: usize = 1 << 20;

/// Bytes that `stats cachedump` shows (about memcached's limit), and index chains that it examines
/// for them.
pub const CACHEDUMP_BYTES_MAX: usize = 2 << 20;
/// See [`CACHEDUMP_BYTES_MAX`].
pub const CACHEDUMP_CHAINS_MAX: usize = 1 << 18;

/// Maximum number of watchers, as in memcached. A further one is refused.
pub const WATCHERS_MAX: usize = 20;

/// Bytes of unsent log lines of one watcher. Further lines are left out until it has taken these,
/// and then it is told how many.
pub const WATCH_BYTES_MAX: usize = 256 << 10;

/// Milliseconds after which a watcher is closed that has had no room for lines all the time: it
/// reads too slowly, or not at all. It may be a second more.
pub const WATCH_FULL_MS_MAX: u64 = 60_000;

/// Bytes of the configuration that `config set cluster` stores: about 250 servers with names of 40
/// bytes. As long as the buffer of a connection, so that it is received like a small value.
pub const CLUSTER_BYTES_MAX: usize = 16 << 10;

/// Connections that are read, parsed and answered together. Other ready connections follow in the
/// next burst.
pub const BURST_CONNECTIONS_MAX: usize = 32;

/// Bytes of replies after which a worker's turn ends even if more connections are ready. The worker
/// then reads its clock, accepts connections and polls for readiness before it continues.
pub const TURN_REPLY_BYTES_MAX: usize = 4 << 20;

/// Requests of connections with small replies after which a worker's turn ends likewise. Those of
/// the last burst are executed.
pub const TURN_SMALL_REQUESTS_MAX: u64 = 16 << 10;

/// Requests that a worker executes by one reading of its clock. They take well under a millisecond,
/// so that lifetimes in milliseconds are exact in long turns, too.
pub const CLOCK_REQUESTS: u64 = 64;

/// A connection whose last burst produced at least this many bytes of replies is served after
/// connections with smaller replies. So is one whose first reply has a larger value.
pub const LARGE_REPLY_BYTES: usize = 16 << 10;

/// A value of at least this many bytes leaves from the table's memory, which lends it, as far as
/// the client's stream takes it at once. A shorter one is copied, so that it leaves together with
/// other replies.
pub const LENT_BYTES_MIN: usize = 16 << 10;

/// While connections hold more than half of their memory, values of at least this many bytes are
/// treated as large ones always are: they leave from the table's memory, and what arrives of them
/// late is received into it. So slow clients hold little. At other times copies are faster.
pub const MEDIUM_BYTES_MIN: usize = 4 << 10;

/// Bytes of unsent replies of a connection behind which values of at least half a
/// [buffer](BUFFER_BYTES) are lent, too: a client that is slow from its first reply on is to hold
/// no more copies.
pub const LENT_AFTER_BYTES: usize = REPLY_BYTES_HIGH / 4;

/// Bytes of replies that the connections with large replies may be expected to produce in one turn.
/// One such connection is always served, whatever the size of its replies.
pub const TURN_LARGE_BYTES_MAX: usize = 1 << 20;

/// Bytes of requests, or of replies to connections with large replies, after which a burst takes no
/// further connection. What has been received is then still in the core's second-level cache when
/// it is stored, and so are replies when they are sent. The next burst uses the same buffers, and
/// the clients of this one can go on meanwhile.
pub const BURST_LARGE_BYTES_MAX: usize = 256 << 10;

/// Bytes of replies, or of large values that are stored, that a burst may be expected to have. One
/// connection is always served. The replies of a burst leave before the next burst is received, so
/// the first clients go on while others are served.
pub const BURST_EXPECTED_BYTES_MAX: usize = 16 << 10;

/// Bytes that a burst has for each connection, on average, when a worker may wait for the next
/// requests without sleeping.
pub const AWAKE_BYTES_MIN: usize = 8 << 10;

/// Idle turns in a row before such a worker sleeps again, if it has been woken soon after such
/// requests: a client reads a large reply in less time than a wake-up takes, and otherwise client
/// and worker would sleep in turns.
pub const AWAKE_IDLE_TURNS_MAX: u32 = 32;

/// Sleeps that such a worker begins at once after idle turns have been in vain several times.
pub const SLEEPS_AT_ONCE_MAX: u32 = 64;

/// Nanoseconds, the wake-up included, after which a worker has been woken soon.
pub const SHORT_SLEEP_NS: u64 = 100_000;

/// Bytes of large values that a worker sends or receives at a time while it serves small requests
/// as well. It looks for small requests after each such slice.
pub const SLICE_BYTES: usize = 64 << 10;

/// Milliseconds after its last small request for which a worker expects another one. A worker that
/// expects none copies, sends and receives large values whole.
pub const SMALL_REQUEST_MS: u64 = 1_000;

/// Bytes of a worker's buffers that are spared for what has arrived of values that wait until
/// another one is complete; less if the largest item is smaller.
pub const BEGUN_VALUES_BYTES: usize = 1 << 20;

/// Bytes of replies on their way from the worker that made them to the one at which their
/// connections are at home. With more on its way, a worker makes no further large replies for
/// others. The last one may be larger.
pub const HOMEWARD_BYTES_MAX: usize = 1 << 20;

/// Bytes received at a time from a connection that holds no buffer, while connections hold more
/// than half of their memory. Received data that cannot be executed in the same burst would have to
/// be held as well.
pub const RECEIVE_BYTES_SCARCE: usize = 1 << 10;

/// Requests of one connection that are executed before other connections have their turn.
pub const TURN_REQUESTS_MAX: u32 = 256;

/// As many of the requests that a connection has in one turn a `prepend` counts as: it copies the
/// whole value of its key, however few bytes it brings.
pub const PREPEND_REQUESTS: u32 = 16;

/// A step that passes over at least this many bytes does not count as a request: they are part of a
/// value that was refused. A step over fewer counts, as a line without a known command does.
pub const PASSED_BYTES_FREE: usize = 512;

/// Readiness events fetched from the kernel at once.
pub const POLL_EVENTS_MAX: usize = 256;

/// Longest `--tcp-keepalive` and `--tcp-user-timeout` in seconds, which is the kernel's limit for
/// the former. A longer one is refused.
pub const TCP_TIMEOUT_S_MAX: u64 = 32_767;

/// Shortest interval between two log lines about the same kind of failure, in milliseconds. The
/// line says how often the failure occurred. This applies to failures that are reported to no
/// client.
pub const ALARM_MS: u64 = 10_000;

/// Log lines that may wait while stderr accepts none. Further ones are dropped and counted.
pub const LOG_LINES_MAX: usize = 1 << 10;

/// Log lines of one place in the code that are written in [`LOG_WINDOW_S`]. Further ones are left
/// out, and their number is logged.
pub const LOG_REPEATS_MAX: u32 = 32;
/// See [`LOG_REPEATS_MAX`].
pub const LOG_WINDOW_S: u64 = 10;
/// Places in the code whose lines are counted. Lines of further ones are all written.
pub const LOG_PLACES_MAX: usize = 64;
/// Bytes of a user's name and of a command's words that a log line shows.
pub const LOG_NAME_BYTES_MAX: usize = 64;

/// Failed logins after which a connection is closed.
pub const LOGIN_FAILURES_MAX: u32 = 4;

/// Delay of the answer to a failed login in milliseconds. The connection is not read meanwhile. It
/// keeps its place among the connections (`-c`) even if the client leaves, which bounds how many
/// passwords can be tried.
pub const LOGIN_DELAY_MS: u64 = 1_000;

/// Connections accepted before the open ones are served again, and connections that a worker takes
/// over in one turn of those that others have accepted for it.
pub const ACCEPTS_PER_TURN_MAX: usize = 64;

/// Attempts to accept a connection, of those that have failed while they waited. After that, none
/// waits as far as the worker is told, and its poller reports the next one.
pub const ACCEPT_TRIES_MAX: usize = 8;

/// Connections that visit a worker or come home and that it takes in one turn. The others wait for
/// the next turn.
pub const TRAVELLERS_PER_TURN_MAX: usize = 256;

/// Answers to wrong logins that are sent in one turn. The others follow a millisecond later.
pub const WITHHELD_PER_TURN_MAX: usize = 64;

/// Bytes that a worker passes over at a time of what a watcher sends. It serves the other
/// connections before it passes over more.
pub const WATCHER_BYTES_PER_TURN: usize = BUFFER_BYTES;

/// Forwarded requests of one connection that may be in flight. The next one waits until all of them
/// are answered.
pub const REORDER_SLOTS_MAX: usize = 128;

/// Forwarded batches that a worker may have in flight to each other worker (its credit). Further
/// requests stay unparsed until a batch returns.
pub const FORWARD_BATCHES_PER_PEER: usize = 8;

/// Forwarded batches that a worker accepts in one turn, one from each worker in rotation. The
/// others stay in their rings until the worker has served its own connections.
pub const FORWARD_BATCHES_PER_TURN_MAX: usize = 32;

/// A forwarded batch is sent once it holds this many bytes of keys and values. The request that
/// crosses the limit still goes in.
pub const FORWARD_BATCH_BYTES_HIGH: usize = 256 << 10;

/// Bytes of native datagrams in a forwarded batch. Further datagrams go into the next batch. A
/// request for which there is no credit, or no memory, is refused with `Overloaded`.
pub const FORWARD_DATAGRAM_BYTES_MAX: usize = 64 << 10;

/// Milliseconds after which a stalled connection that holds buffers is closed while other
/// connections wait for memory, the longest-stalled first. With several waiting connections, of
/// which the first has waited for [`QUEUE_MS_MAX`], the time is this value divided by their number
/// plus one, so that all of them have their turn.
pub const STALLED_MS_MAX: u64 = 500;

/// Milliseconds that a connection may wait for memory before those who hold it have less time.
pub const QUEUE_MS_MAX: u64 = 100;

/// Lower bound of the time of [`STALLED_MS_MAX`].
pub const STALLED_MS_MIN: u64 = 5;

/// Bytes that a connection must send or receive per millisecond to count as making progress. A
/// slower connection is stalled for the difference, so that a byte now and then does not count as
/// progress.
pub const PROGRESS_BYTES_PER_MS: u64 = 16;

/// Milliseconds after which a connection that holds buffers counts as stalled, however fast it is.
pub const HELD_MS_MAX: u64 = 30_000;

/// Milliseconds that a connection waits for memory. After that, the value or the command that it is
/// sending is refused; if it is sending a long line, the connection is closed.
pub const MEMORY_WAIT_MS_MAX: u64 = 750;

/// Milliseconds without a byte after which a connection whose large value has a place in the table
/// is closed, while others wait for places.
pub const UPLOAD_IDLE_MS_MAX: u64 = 5_000;

/// Milliseconds that such a connection may be behind [`PROGRESS_BYTES_PER_MS`] while others wait.
pub const UPLOAD_SLOW_MS_MAX: u64 = 60_000;

/// Milliseconds without a byte after which a connection is closed whose client does not take a
/// reply that is gathered for one client at a time (`KEYS`, `stats prefix`), while others wait.
pub const GATHERED_IDLE_MS_MAX: u64 = 5_000;

/// Milliseconds that such a client may be behind [`PROGRESS_BYTES_PER_MS`] while others wait.
pub const GATHERED_SLOW_MS_MAX: u64 = 60_000;

/// How often a worker that lacks memory looks for stalled connections, in milliseconds.
pub const SHORT_TICK_MS: u64 = 20;

/// Connections that a worker has refused and that may still say which protocol they speak. Further
/// ones are told at once, in memcached's words.
pub const REFUSED_MAX: usize = 16;

/// Unused reorder buffers that a worker keeps. Further ones are freed.
pub const REORDER_BUFFERS_KEPT_MAX: usize = BURST_CONNECTIONS_MAX;

/// Milliseconds that a stopping server waits for clients to send the rest of their requests, and to
/// read their replies.
pub const DRAIN_MS_MAX: u64 = 5_000;

/// Maximum number of partitions of one store: the keyhash has 16 bits for the partition. Together
/// with the largest partition that can be addressed, this bounds `-m`. A server with a larger `-m`
/// does not start.
pub const PARTITIONS_MAX: usize = 1 << 12;

/// Maximum number of worker threads.
pub const WORKERS_MAX: usize = 256;

/// Bytes of a SASL message of the binary protocol, and of the body of any command that does not use
/// it. A longer one is skipped and answered with `Too large.`.
pub const SASL_BYTES_MAX: usize = 8 << 10;

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
    LOCKED_BYTES_MAX <= BUFFER_BYTES && LOCKED_ARGUMENTS_MAX <= RESP_ARGUMENTS_KEPT_MAX,
    "clients that have yet to authenticate hold an ordinary buffer each, and no more"
);
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
    BURST_CONNECTIONS_MAX <= u8::MAX as usize,
    "a batch notes its connections in bytes"
);
const _: () = assert!(
    BURST_CONNECTIONS_MAX <= BATCH_MAX,
    "the engine keeps a note for each reply buffer of a batch, and a batch has at most as many \
     reply buffers as jobs"
);
const _: () = assert!(
    BATCH_MAX <= u64::BITS as usize,
    "a batch notes its jobs in bytes, and some of them in the bits of a word"
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
    LARGE_REPLY_BYTES <= BURST_LARGE_BYTES_MAX && BURST_LARGE_BYTES_MAX <= TURN_LARGE_BYTES_MAX,
    "a turn has a burst with large replies, and a burst has one of them"
);
const _: () = assert!(
    LARGE_REPLY_BYTES <= BURST_EXPECTED_BYTES_MAX
        && BURST_EXPECTED_BYTES_MAX <= BURST_LARGE_BYTES_MAX,
    "connections with small replies share a burst"
);
const _: () = assert!(
    LARGE_REPLY_BYTES <= SLICE_BYTES && SLICE_BYTES <= BURST_LARGE_BYTES_MAX,
    "what is sent in slices is large, and a burst has room for a slice"
);
const _: () = assert!(
    STALLED_MS_MIN < STALLED_MS_MAX && STALLED_MS_MAX < MEMORY_WAIT_MS_MAX,
    "the stalled are closed before those who wait give up"
);
const _: () = assert!(
    2 * REPORT_BYTES_HIGH <= BUFFER_BYTES_KEPT_MAX && REPORT_BYTES_HIGH <= REPLY_BYTES_HIGH,
    "a buffer that a piece of a long reply has made grow is kept for the next"
);
