//! What a native endpoint counts.

/// What one worker's native endpoint counted, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NativeFigures {
    /// Datagrams that were no request.
    pub dropped: u64,
    /// Requests executed.
    pub requests: u64,
    /// Batches in which they were.
    pub batches: u64,
    /// Requests refused because their client's directory is not this server's, or because another
    /// worker owns the key.
    pub misdirected: u64,
    /// Mutations refused because the client has not shown that it owns its address.
    pub unproven: u64,
    /// Mutations that had been executed before, and were answered as they had been.
    pub repeated: u64,
    /// Mutations that came after a newer one of their key, and were not executed.
    pub superseded: u64,
    /// Replies that were written over their requests.
    pub in_place: u64,
    /// Replies that were longer than their requests.
    pub aside: u64,
    /// Bytes that the engine has written for replies.
    pub written: u64,
    /// Long replies that were copied and hashed whole.
    pub hashed: u64,
}
