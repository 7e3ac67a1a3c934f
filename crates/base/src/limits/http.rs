//! Limits of the pages that `--http` serves.

/// Connections that are open at a time. A further one takes the place of the one that has been
/// silent for longest.
pub const HTTP_CONNECTIONS_MAX: usize = 32;

/// Bytes of a request: its line and its headers. A longer one is answered with 431, and its
/// connection is closed.
pub const HTTP_REQUEST_BYTES_MAX: usize = 8 << 10;

/// Headers of a request. One with more is answered with 431.
pub const HTTP_HEADERS_MAX: usize = 64;

/// Milliseconds after which a connection is closed on which a request is incomplete, or that takes
/// nothing of its reply.
pub const HTTP_PATIENCE_MS: u64 = 10_000;

/// Milliseconds between two looks at the workers, which are woken each time. A look costs a worker
/// one turn without anything to do.
pub const WORKER_WATCH_MS: u64 = 500;

/// Milliseconds without a turn after which a worker that has been woken is not ready (`/readyz`).
pub const WORKER_STALLED_MS: u64 = 1_000;

/// Milliseconds after which a connection without a request is closed. Prometheus scrapes at most
/// this seldom unless it is told otherwise.
pub const HTTP_IDLE_MS: u64 = 75_000;
