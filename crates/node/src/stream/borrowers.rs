//! Connections that have values to send which the table lends, for as long as their clients take.
//!
//! Such a value costs its connection nothing as long as it lies in the table. A writer that needs
//! its place copies it aside, into memory that is little and is for all tables together. So the
//! worker looks at these connections every now and then, and has each take over such a copy into
//! its own buffer. From then on the connection holds memory, and may be closed when that is short
//! ([`relief`](super::relief)).

use glimmer_base::limits::SHORT_TICK_MS;

use super::Streams;
use super::key::ConnectionKey;
use crate::core::Core;

/// The connections that borrow, some of which may do so no longer.
#[derive(Default)]
pub(super) struct Borrowers {
    keys: Vec<ConnectionKey>,
    /// When they are looked at again, in milliseconds since the epoch.
    look_ms: u64,
}

impl Streams {
    /// Notes that a connection has left values waiting that are lent.
    #[cold]
    pub(super) fn note_borrower(&mut self, key: ConnectionKey) {
        let tx = &mut self.connections[key].tx;
        if !std::mem::replace(&mut tx.is_listed, true) {
            self.borrowers.keys.push(key);
        }
    }

    /// Whether there are connections that are to be looked at.
    #[inline]
    pub fn has_borrowers(&self) -> bool {
        !self.borrowers.keys.is_empty()
    }

    /// Has connections take over the values that are not in the table any more. One whose value is
    /// lost is closed.
    #[cold]
    pub fn look_after_borrowers(&mut self, core: &mut Core) {
        if core.now.ms < self.borrowers.look_ms {
            return;
        }
        self.borrowers.look_ms = core.now.ms + SHORT_TICK_MS;
        let mut stay = Vec::new();
        let mut keys = std::mem::take(&mut self.borrowers.keys);
        keys.sort_unstable();
        keys.dedup();
        for key in keys {
            let Some(connection) = self.connections.get_mut(key) else {
                continue;
            };
            if !connection.borrows() {
                connection.tx.is_listed = false;
            } else if connection.take_over_asides() {
                connection.recharge(&mut core.memory.budget);
                stay.push(key);
            } else {
                core.tally.stalled_kicks += 1;
                self.close(key, core);
            }
        }
        self.borrowers.keys = stay;
    }
}
