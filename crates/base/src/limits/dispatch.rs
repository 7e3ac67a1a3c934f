//! Limits of dispatch: how often plans change, and what is handed between workers.

/// A client may have the plan changed again (`dispatch`) after this time, in milliseconds. Each
/// change is work for every worker and for many connections.
pub const DISPATCH_PAUSE_MS: u64 = 200;
/// This many changes may follow one another without a pause.
pub const DISPATCH_CHANGES_MAX: u64 = 16;

/// Connections that wait in a worker's software queue for any worker to take them. Further ones
/// stay with their worker. Each may hold an ordinary buffer, which no budget counts meanwhile.
pub const SOFTWARE_QUEUE_MAX: usize = 128;

/// Connections that are given to another worker, and that are taken from others, in one turn, when
/// the plan gives them another home.
pub const MOVES_PER_TURN_MAX: usize = 64;

/// Requests that a core reads from its RX queue in one turn (Minos, §5.3). Further requests wait
/// for the next turn.
pub const DISPATCH_BATCH: usize = 32;

/// Milliseconds for which requests are counted by size before there is another plan, unless the
/// operator sets another length (Minos, §5.2).
pub const DISPATCH_EPOCH_MS: u64 = 1000;

/// Milliseconds of the longest epoch.
pub const DISPATCH_EPOCH_MS_MAX: u64 = 3_600_000;

/// A worker times the requests of one turn of this many. It is a prime, so that a rhythm of the
/// clients does not coincide with it.
pub const SAMPLED_TURNS_EVERY: i32 = 61;

/// Milliseconds for which timed requests count, and at most twice as long.
pub const SERVICE_WINDOW_MS: u64 = 30_000;

/// An epoch with fewer requests keeps the plan, because a percentile of few requests says little.
pub const EPOCH_REQUESTS_MIN: u64 = 1000;

/// Requests for values of fewer bytes are never handed over for their size, unless the operator
/// sets another limit.
pub const LARGE_BYTES_MIN: u32 = 2 << 10;
