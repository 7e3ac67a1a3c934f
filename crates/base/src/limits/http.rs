//! Limits of what operators give and are shown: sockets of a service manager, the pages that
//! `--http` serves, and slow requests.

/// Sockets that a service manager can pass on.
pub const INHERITED_SOCKETS_MAX: usize = 32;

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

/// Milliseconds for which what a client still sends is passed over after its last reply. If its
/// connection were closed with unread bytes, the client might lose the reply.
pub const HTTP_LINGER_MS: u64 = 1_000;

/// Milliseconds between two looks at the workers, which are woken each time. A look costs a worker
/// one turn without anything to do.
pub const WORKER_WATCH_MS: u64 = 500;

/// Milliseconds without a turn after which a worker that has been woken is not ready (`/readyz`).
pub const WORKER_STALLED_MS: u64 = 1_000;

/// Milliseconds between two points of the history that the dashboard shows.
pub const HISTORY_STEP_MS: u64 = 5_000;

/// Points of that history: an hour. The oldest leave.
pub const HISTORY_POINTS_MAX: usize = 720;

/// Milliseconds after which a connection without a request is closed. Prometheus scrapes at most
/// this seldom unless it is told otherwise.
pub const HTTP_IDLE_MS: u64 = 75_000;

/// Slow requests that are kept (`stats slow`). The oldest leave.
pub const SLOW_KEPT_MAX: usize = 128;

/// Slow turns among them.
pub const SLOW_TURNS_KEPT_MAX: usize = 32;

/// Milliseconds in which a worker enters one slow turn.
pub const SLOW_TURNS_PAUSE_MS: u64 = 100;

/// Bytes of a key that are kept of a slow request.
pub const SLOW_KEY_BYTES_MAX: usize = 64;

/// Requests of a turn that are watched for being slow: one of each batch. Further ones are not.
pub const SLOW_CANDIDATES_MAX: usize = 8;

/// Milliseconds from which on a request is slow, unless `--slow-ms` says otherwise.
pub const SLOW_MS_DEFAULT: u64 = 10;
