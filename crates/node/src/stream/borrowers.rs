//! Connections that have values to send which the table lends, for as long as their clients take.
//!
//! Such a value costs its connection nothing as long as it lies in the table. A writer that needs
//! its place copies it aside, once for all connections that have it to send, and the copy is freed
//! with the last of them. The memory for copies is little, and all tables share it. So the worker
//! looks at these connections every now and then. While copies take more than half of that memory,
//! it closes connections whose clients make no progress.

use glimmer_base::limits::{SHORT_TICK_MS, STALLED_MS_MAX, STALLED_MS_MIN};
use glimmer_engine::{Asides, Whereabouts};

use super::Streams;
use super::connection::Connection;
use super::key::ConnectionKey;
use crate::core::Core;

/// The connections that borrow, some of which may do so no longer.
#[derive(Default)]
pub(super) struct Borrowers {
    keys: Vec<ConnectionKey>,
    /// When they are looked at again, in milliseconds since the epoch.
    look_ms: u64,
}

/// A connection that has copies to send: for how long it has been stalled, since when it has held
/// memory, and its key.
type Stalled = (u64, Option<u64>, ConnectionKey);

/// What copies take that connections have to send.
#[derive(Default)]
struct Copies {
    bytes: usize,
    /// The memory that they are in. Without one there are no copies.
    memory: Option<Asides>,
}

impl Copies {
    /// Adds those of a connection. Returns whether all of its values are there.
    fn add(&mut self, connection: &Connection) -> bool {
        connection.lent().all(|part| {
            let at = part.value.whereabouts();
            if let Whereabouts::Aside { bytes, memory } = at {
                self.bytes += bytes;
                self.memory.get_or_insert_with(|| memory.clone());
            }
            !matches!(at, Whereabouts::Lost)
        })
    }
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

    /// Counts the copies of values that connections have to send, and makes room for more of them.
    /// A connection of which a value is lost is closed.
    #[cold]
    pub fn look_after_borrowers(&mut self, core: &mut Core) {
        if core.now.ms < self.borrowers.look_ms {
            return;
        }
        self.borrowers.look_ms = core.now.ms + SHORT_TICK_MS;
        let (mut copies, mut stalled) = (Copies::default(), Vec::new());
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
                continue;
            }
            let before = copies.bytes;
            if !copies.add(connection) {
                core.tally.stalled_kicks += 1;
                self.close(key, core);
                continue;
            }
            stay.push(key);
            let has_copies = copies.bytes > before;
            if let Some(ms) = (connection.stalled_ms(core.now.ms)).filter(|_| has_copies) {
                stalled.push((ms, connection.patience.held_since_ms, key));
            }
        }
        self.borrowers.keys = stay;
        core.memory.note_asides(copies.bytes);
        if let Some(memory) = copies.memory
            && patience_ms(&memory).is_some()
        {
            let freed = self.close_stalled_borrowers(stalled, &memory, core);
            core.memory.note_asides(copies.bytes.saturating_sub(freed));
            core.memory.pool.clear();
            core.memory.return_freed(core.now.ms);
        }
    }

    /// Closes connections whose clients make no progress, the longest-stalled first, until copies
    /// take no more than half of their memory. Returns the bytes that have become free.
    fn close_stalled_borrowers(
        &mut self,
        mut stalled: Vec<Stalled>,
        memory: &Asides,
        core: &mut Core,
    ) -> usize {
        let before = memory.bytes();
        stalled.sort_unstable_by(|a, b| b.cmp(a));
        for (stalled_ms, _, key) in stalled {
            if patience_ms(memory).is_none_or(|least_ms| stalled_ms < least_ms) {
                break;
            }
            core.tally.stalled_kicks += 1;
            self.close(key, core);
        }
        before.saturating_sub(memory.bytes())
    }
}

/// For how long a connection that has copies to send may be stalled before it is closed: the less
/// room for copies is left, the shorter. None while they take no more than half of their memory.
fn patience_ms(memory: &Asides) -> Option<u64> {
    let half = memory.bytes_max() / 2;
    let room = memory.bytes_max().saturating_sub(memory.bytes());
    (room < half).then(|| (STALLED_MS_MAX * room as u64 / half as u64).max(STALLED_MS_MIN))
}
