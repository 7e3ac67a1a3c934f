//! Limits of users and addresses.

/// Milliseconds for which a connection waits at most while its user or its address is over its
/// limit of requests or bytes. After that, the requests of one turn are refused, and it waits
/// again.
pub const THROTTLE_WAIT_MS_MAX: u64 = 1_000;

/// Milliseconds of a limit that are taken at once after a rest: a user with 1,000 requests a second
/// who has asked for nothing may send 100 of them without a wait.
pub const THROTTLE_BURST_MS: u64 = 100;

/// Connections of one user or address that wait and that go on at a time in one worker. The others
/// follow a millisecond later at the earliest.
pub const THROTTLE_RELEASED_MAX: u64 = 64;
/// The same where only bytes are limited, so that it is not known how many requests there is room
/// for.
pub const THROTTLE_RELEASED_BY_BYTES: u64 = 8;

/// Addresses that are kept before those are forgotten that have no connection and are below their
/// limits. After that, twice those that are left are kept.
pub const ADDRESSES_KEPT_MIN: usize = 1 << 10;

/// Slots for users. A user keeps its slot while connections are logged in as it, also after a
/// reload without it.
pub const USER_SLOTS_MAX: usize = u16::MAX as usize;

const _: () = assert!(super::USERS_MAX < USER_SLOTS_MAX);
const _: () = assert!(
    THROTTLE_WAIT_MS_MAX < super::DRAIN_MS_MAX,
    "a server that is told to stop need not wait for a limit"
);
