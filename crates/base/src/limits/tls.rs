//! Limits of TLS.

/// Most bytes that a record carries (RFC 8446, §5.1). More is sent as several records.
pub const TLS_RECORD_BYTES_MAX: usize = 1 << 14;

/// Full records that are encrypted before they are sent together. What the kernel does not take of
/// them stays with the connection, so a connection whose client is slow gets one at a time.
pub const TLS_RECORDS_SENT_MAX: usize = 4;

/// Times that a connection receives in a row without data, because what comes are parts of a record
/// or records without data, before others have their turn.
pub const TLS_RECEIVES_MAX: usize = 16;

/// Most bytes that a client may send until its handshake is over and that have not been taken yet.
/// Its certificates are the most of it. A connection that sends more is closed.
pub const TLS_HANDSHAKE_BYTES_MAX: usize = 64 << 10;

/// Milliseconds that a handshake may take. After that the connection is closed, and counted with
/// failed handshakes.
pub const TLS_HANDSHAKE_MS_MAX: u64 = 5_000;

/// Bytes of a file with certificates or a key. A system's list of all authorities has 250 KB.
pub const TLS_FILE_BYTES_MAX: u64 = 4 << 20;

/// Milliseconds between two searches of a worker for connections that hold memory for TLS without
/// progress, while all together hold almost as much as they may.
pub const TLS_SEARCH_MS_MIN: u64 = 100;

/// How much later than workers the threads that shake hands have their turn, as for `nice`: on a
/// core where both have something to do, such a thread has a tenth of the time.
pub const SHAKER_NICE: i32 = 10;

/// Blocks of 16 bytes that are encrypted with one key. After that, TLS 1.3 changes the key, and a
/// connection of TLS 1.2 is closed. RFC 8446 (§5.5) allows AES-GCM 2^24.5 full records, which have
/// 2^34.5 blocks.
pub const TLS_KEY_BLOCKS_MAX: u64 = 1 << 34;

/// Times in a row that a client may change its key without sending data. Each change costs as much
/// as tens of records. A connection with more is closed.
pub const TLS_KEY_UPDATES_MAX: u32 = 32;

/// Sessions that a client may resume after a handshake, one connection each. Clients that open
/// several connections at a time use several.
pub const TLS_TICKETS: usize = 2;

const _: () = assert!(TLS_HANDSHAKE_BYTES_MAX > 2 * TLS_RECORD_BYTES_MAX);
