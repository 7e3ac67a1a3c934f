//! Limits of the native protocol.

/// Mutations of one native client that a worker remembers at most, so that none is executed twice.
/// It remembers this many if the client has as many in flight or does not say how many. An older
/// mutation is refused with `Forgotten`.
pub const NATIVE_MUTATIONS_KEPT: u32 = 1 << 10;

/// Mutations of one native client that a worker remembers at least.
pub const NATIVE_MUTATIONS_KEPT_MIN: u32 = 1 << 1;

/// Native clients whose mutations a worker remembers, however much memory there is. Usually `-m` is
/// the tighter bound: a client with one mutation in flight takes about 220 bytes, and all clients
/// share a part of the worker's buffers. When there is no room for another client, the worker
/// forgets one: a client that has been silent for [`NATIVE_CLIENT_IDLE_MS`], or one from the
/// address with the most clients (in IPv6, a 64-bit network), or one from the newcomer's own
/// address. If none may be forgotten, the newcomer is refused with `TooManyWriters`. If there is no
/// room for more mutations of a known client, they are refused with `Overloaded`.
pub const NATIVE_CLIENTS_MAX: usize = 1 << 16;

/// Milliseconds without a mutation after which a native client may be forgotten. A copy of a
/// mutation that arrives after that may be executed again.
pub const NATIVE_CLIENT_IDLE_MS: u64 = 30_000;

/// Milliseconds until which a native client sends a mutation again, however late its deadline:
/// after the request was issued, or after the last of its fragments was first sent. Later it only
/// waits for an answer. A copy that was sent in time has the rest of [`NATIVE_CLIENT_IDLE_MS`] to
/// arrive while the server still knows the client.
pub const NATIVE_RESEND_MS: u64 = 25_000;

/// Milliseconds that the last copy of a mutation may take to arrive at least.
const NATIVE_ARRIVAL_MS: u64 = 5_000;

/// Digests of long native replies that a worker remembers, so that a value is hashed once although
/// its reply is sent in many windows. Without the digest, it copies and hashes the whole reply
/// again.
pub const NATIVE_DIGESTS_MAX: usize = 256;

/// Milliseconds for which a worker remembers such a digest.
pub const NATIVE_DIGEST_MS: u64 = 1_000;

/// Fragmented requests that a worker reassembles at a time. A further one is refused with
/// `Overloaded`, unless another address has more of them, or more of their bytes, than the
/// newcomer's address would have.
pub const NATIVE_ASSEMBLIES_MAX: usize = 64;

/// Fragmented requests that one native client may be sending to a worker at a time. A further one
/// replaces the one that has been idle longest, which starts again.
pub const NATIVE_ASSEMBLIES_PER_CLIENT_MAX: usize = 8;

/// Milliseconds without progress after which a fragmented request is given up.
pub const NATIVE_ASSEMBLY_IDLE_MS: u64 = 2_000;

/// How often a native client begins a fragmented reply, or the sending of a fragmented request,
/// again because the server says so. After that, a reply with a wrong digest fails the read, and
/// other messages of this kind are ignored.
pub const NATIVE_RESTARTS_MAX: u32 = 64;

/// How often a native client sends a request again at once because an answer says so. After that,
/// it sends the request again only when it times out.
pub const NATIVE_TURNS_MAX: u8 = 64;

/// Seconds for which an address validation token of the native protocol is valid, at least; at most
/// twice as long.
pub const NATIVE_TOKEN_S: u32 = 3_600;

/// Idle turns in a row before a worker that has served native clients sleeps again.
pub const NATIVE_IDLE_TURNS_MAX: u32 = 64;

const _: () = assert!(
    NATIVE_RESEND_MS + NATIVE_ARRIVAL_MS <= NATIVE_CLIENT_IDLE_MS,
    "the server still knows of a mutation when its last copy arrives"
);
const _: () = assert!(
    NATIVE_MUTATIONS_KEPT.is_power_of_two()
        && NATIVE_MUTATIONS_KEPT_MIN.is_power_of_two()
        && NATIVE_MUTATIONS_KEPT_MIN <= NATIVE_MUTATIONS_KEPT,
    "numbers of mutations wrap around without a gap"
);
