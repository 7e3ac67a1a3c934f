//! What the poller reports, by token.
//!
//! A connection's token is its key, whose generation is in the upper 32 bits and counts up from
//! one. The tokens of everything else have all of these bits set, and below them what it is and
//! which one.

use std::io;

use glimmer_base::limits::NATIVE_IDLE_TURNS_MAX;

use super::Worker;

/// What has a token beside connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The bell of this worker's doorbell.
    Bell,
    Listener,
    /// A socket for datagrams of memcached's UDP protocol.
    Datagrams,
    /// A socket for native datagrams.
    Native,
}

const KINDS: [Kind; 4] = [Kind::Bell, Kind::Listener, Kind::Datagrams, Kind::Native];

/// The upper half of every token that is no connection's.
const OTHERS: u64 = (u32::MAX as u64) << 32;
const INDEX_BITS: u32 = 24;

/// The token of the source of a kind with this number.
pub(super) fn token(kind: Kind, index: usize) -> u64 {
    debug_assert!(index < 1 << INDEX_BITS);
    OTHERS | (kind as u64) << INDEX_BITS | index as u64
}

/// What has a token, and its number; nothing if it is a connection's.
#[inline]
fn source(token: u64) -> Option<(Kind, usize)> {
    if token < OTHERS {
        return None;
    }
    let kind = KINDS[(token >> INDEX_BITS) as usize % KINDS.len()];
    Some((kind, token as usize & ((1 << INDEX_BITS) - 1)))
}

impl Worker {
    /// Has the poller watch the bell, the listeners and the sockets, and enters these into the
    /// connection registry.
    pub(super) fn watch_sources(&self) -> io::Result<()> {
        let core = &self.core;
        let bell = &core.shared.doorbells[core.me].bell().0;
        self.poller.watch_edges(bell, token(Kind::Bell, 0))?;
        self.packets.watch(&self.poller)?;
        self.packets.register(core);
        if let Some(native) = &self.native {
            native.watch(&self.poller)?;
            native.register(core);
        }
        self.acceptor.watch(&self.poller)?;
        self.acceptor.register(core);
        Ok(())
    }

    /// Acts on what the poller reported, and looks at the sockets that it does not watch.
    pub(super) fn take_events(&mut self) {
        let Worker {
            core,
            streams,
            packets,
            native,
            acceptor,
            port,
            ..
        } = self;
        for index in 0..self.poller.ready_count() {
            let ready = self.poller.ready(index);
            match source(ready.token) {
                None => streams.note_readiness(ready, core),
                Some((Kind::Bell, _)) => {}
                Some((Kind::Listener, index)) => {
                    acceptor.accept_some(index, core, streams, &self.poller);
                }
                Some((Kind::Datagrams, index)) => {
                    packets.serve(index, core, streams, port, &self.poller);
                }
                Some((Kind::Native, index)) => {
                    if let Some(native) = native {
                        native.serve(index, core, port);
                        self.idle_turns_left = NATIVE_IDLE_TURNS_MAX;
                    }
                }
            }
        }
        packets.look(core, streams, port, &self.poller);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_tells_what_it_is_of() {
        for (number, &kind) in KINDS.iter().enumerate() {
            assert_eq!(kind as usize, number);
            for index in [0, 1, 1000] {
                assert_eq!(source(token(kind, index)), Some((kind, index)));
            }
        }
        assert_eq!(source(1 << 32 | 7), None);
    }
}
