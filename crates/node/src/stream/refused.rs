//! Connections that are refused. Each is told so in the protocol of its client, and closed.
//!
//! A client of Redis' protocol, or a proxy before it, may take memcached's line for a value:
//! without a type in front, a line is a list of words. So a connection that has sent nothing yet
//! waits for two short ticks, and is looked at only then.

use std::collections::VecDeque;

use glimmer_base::limits::{REFUSED_MAX, SHORT_TICK_MS};
use glimmer_proto::{Accepts, resp, text};

use super::Streams;
use crate::core::Core;
use crate::shared::Accepted;

/// What is received of a refused connection. A close with more unread may reset the connection
/// before its client has read why.
const RECEIVED_BYTES: usize = 4 << 10;

/// Why a connection is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The server has as many as it may.
    Connections,
    /// Its address has as many as it may.
    Address,
}

impl Refusal {
    fn words(self, protocol: Option<Accepts>) -> &'static str {
        match (self, protocol) {
            (Refusal::Connections, Some(Accepts::Resp)) => resp::lines::TOO_MANY_CONNECTIONS,
            (Refusal::Connections, _) => text::lines::TOO_MANY_CONNECTIONS,
            (Refusal::Address, Some(Accepts::Resp)) => resp::lines::ADDRESS_CONNECTIONS,
            (Refusal::Address, _) => text::lines::ADDRESS_CONNECTIONS,
        }
    }
}

/// Refused connections that had sent nothing, each with the time at which it is told, in
/// milliseconds since the epoch, in the order of these times.
pub(super) type Refused = VecDeque<(u64, Accepted, Refusal)>;

impl Streams {
    /// Refuses a connection that was accepted.
    #[cold]
    pub(super) fn refuse(&mut self, accepted: Accepted, refusal: Refusal, core: &Core) {
        let may_wait = self.refused.len() < REFUSED_MAX;
        if let Some(accepted) = tell(accepted, refusal, may_wait) {
            let until_ms = core.now.ms + 2 * SHORT_TICK_MS;
            self.refused.push_back((until_ms, accepted, refusal));
        }
    }

    /// Whether refused connections have yet to be told.
    #[inline]
    pub fn has_refused(&self) -> bool {
        !self.refused.is_empty()
    }

    /// Tells those refused connections whose time is over.
    #[cold]
    pub fn tell_refused(&mut self, core: &Core) {
        let is_due = |&mut (until_ms, ..): &mut (u64, Accepted, Refusal)| core.now.ms >= until_ms;
        while let Some((_, accepted, refusal)) = self.refused.pop_front_if(is_due) {
            tell(accepted, refusal, false);
        }
    }
}

/// Tells a connection that it is refused, and closes it. Returns it if it has said nothing and may
/// wait. Whether the reply arrives is the client's concern.
fn tell((mut stream, accepts): Accepted, refusal: Refusal, may_wait: bool) -> Option<Accepted> {
    let mut received = Vec::with_capacity(RECEIVED_BYTES);
    if !stream.is_handshaking() {
        stream.receive(&mut received);
        let protocol = accepts.spoken(&received);
        if protocol.is_none() && may_wait {
            return Some((stream, accepts));
        }
        let _ = stream.send(refusal.words(protocol).as_bytes());
    }
    None
}
