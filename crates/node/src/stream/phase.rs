//! What a connection waits for before its next request is parsed.

use std::sync::Arc;

use super::reorder::ReorderBuffer;
use crate::admin::dump::DumpCursor;
use crate::admin::long_reply::LongReply;
use crate::feeds::Feed;

/// A connection is in one of these phases. All but the first end where they began: it is
/// [`Open`](Phase::Open) again, or closed.
#[derive(Default)]
pub(crate) enum Phase {
    /// Nothing but its input, and that its replies are sent.
    #[default]
    Open,
    /// What comes before the first byte of an encrypted connection, until a time in milliseconds
    /// since the epoch.
    Handshake(u64),
    /// The same, and the stream is with a thread that sees to it.
    HandshakeAway,
    /// Replies that other workers make.
    Reordering(Box<ReorderBuffer>),
    /// The time at which the answer to a wrong login may be sent. Nothing is received meanwhile.
    Withheld(Vec<u8>),
    /// All items are being listed for it.
    Dump(Box<DumpCursor>),
    /// The same, and the listing is with another worker.
    DumpAway,
    /// The rest of a long reply is to be made.
    LongReply(Box<LongReply>),
    /// It is shown what happens, and is never parsed again.
    Watching(Arc<Feed>),
    /// The connection itself is with another worker, and this is its place.
    Away,
}

impl Phase {
    /// Whether everything that was asked has been answered.
    #[inline]
    pub fn is_settled(&self) -> bool {
        matches!(self, Phase::Open | Phase::Watching(_))
    }

    /// Whether the worker makes the next piece of a reply in the connection's turns.
    #[inline]
    pub fn is_producing(&self) -> bool {
        matches!(self, Phase::Dump(_) | Phase::LongReply(_))
    }

    /// Whether it shakes hands.
    pub fn is_handshake(&self) -> bool {
        matches!(self, Phase::Handshake(_) | Phase::HandshakeAway)
    }

    /// Whether only the client can end it: by what it sends, or by taking its replies.
    pub fn awaits_client(&self) -> bool {
        matches!(self, Phase::Open | Phase::Watching(_) | Phase::Withheld(_))
    }

    /// The reorder buffer, if the connection waits for other workers.
    #[inline]
    pub fn reorder(&self) -> Option<&ReorderBuffer> {
        match self {
            Phase::Reordering(reorder) => Some(reorder),
            _ => None,
        }
    }

    /// What it is shown, if it watches.
    #[inline]
    pub fn feed(&self) -> Option<&Arc<Feed>> {
        match self {
            Phase::Watching(feed) => Some(feed),
            _ => None,
        }
    }

    /// Begins this phase.
    #[inline]
    pub fn begin(&mut self, phase: Phase) {
        debug_assert!(matches!(self, Phase::Open), "one phase at a time");
        *self = phase;
    }

    /// Ends the phase. Returns it.
    #[inline]
    pub fn end(&mut self) -> Phase {
        std::mem::take(self)
    }

    /// Ends the phase if it is one that `ends` accepts. Returns it.
    #[inline]
    pub fn end_if(&mut self, ends: impl FnOnce(&Phase) -> bool) -> Option<Phase> {
        ends(self).then(|| self.end())
    }
}
