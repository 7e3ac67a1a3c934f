//! How a worker leaves when the server is told to stop.
//!
//! First every worker accepts the connections that wait in its backlogs, and closes its listeners
//! once none waits: the kernel would reset those that are left. A worker may hand a connection over
//! to another one as long as it listens, so no worker says that it has no connections left before
//! all have closed their listeners. When all have said so, they leave.

use glimmer_base::limits::{ACCEPTS_PER_TURN_MAX, DRAIN_MS_MAX};
use glimmer_base::sync::Ordering;

use crate::admin::alarm::Failure;
use crate::admin::dump::Continuation;
use crate::admin::observe::CloseReason;
use crate::stream::key::ConnectionKey;
use crate::worker::Worker;

impl Worker {
    /// Whether the server has been told to stop and this worker has yet to begin.
    pub fn is_told_to_stop(&self) -> bool {
        self.drain_until_ms.is_none() && self.shared.stopping.load(Ordering::Relaxed)
    }

    /// Begins to stop: answers the datagrams that wait, and has one more look at each connection
    /// for what has already arrived.
    pub fn begin_to_drain(&mut self) {
        for source in 0..self.sockets.len() {
            self.serve_datagrams(source);
        }
        self.forget_sockets();
        self.stop_listening();
        self.drain_until_ms = Some(self.now.ms + DRAIN_MS_MAX);
        self.send_withheld(u64::MAX);
        let keys: Vec<ConnectionKey> = self.connections.keys().collect();
        for key in keys {
            let connection = &mut self.connections[key];
            // A listing of all items ends here; a long reply is made to its end.
            if let Some(Continuation::Home(_) | Continuation::Away) = connection.continuation {
                connection.continuation = None;
                connection.closing = true;
            }
            connection.readable |= !connection.ended;
            self.settle(key);
        }
    }

    /// Closes what has nothing left to be done, and says whether the worker can go: when no worker
    /// has a connection any more, because until then others may send requests across, or when
    /// clients have had time enough.
    pub fn may_leave(&mut self) -> bool {
        self.close_where(CloseReason::Shutdown, |c| {
            c.is_settled() && !c.is_runnable()
        });
        let is_late = self
            .drain_until_ms
            .is_some_and(|until_ms| self.now.ms >= until_ms);
        if is_late {
            self.close_where(CloseReason::Shutdown, |_| true);
        }
        self.accept_waiting();
        if self.has_just_drained() {
            self.has_drained = true;
            self.shared.note_drained();
        }
        is_late || (self.has_drained && self.shared.all_drained())
    }

    /// Accepts connections that wait, and closes the listeners where none waits any more.
    fn accept_waiting(&mut self) {
        if self.has_closed_listeners {
            return;
        }
        let mut left = ACCEPTS_PER_TURN_MAX;
        while let Some(source) = self.listeners.len().checked_sub(1) {
            // With `-o no_maxconns_fast` they wait until others have been closed.
            self.deaf = self.is_full();
            if left == 0 || self.deaf {
                return;
            }
            left -= 1;
            match self.listeners[source].listener.accept() {
                Ok(Some(stream)) => {
                    let accepts = self.listeners[source].accepts;
                    self.place_accepted(stream, accepts);
                }
                Ok(None) => {
                    self.listeners.pop();
                }
                // Descriptors ran out: connections that are closed give theirs back.
                Err(error) => {
                    self.note_failure(Failure::Accept, 1, error.raw_os_error());
                    self.deaf = true;
                    return;
                }
            }
        }
        self.has_closed_listeners = true;
        self.shared.note_closed_listeners();
    }

    /// Whether connections may still wait in the backlogs of a worker that is to leave.
    pub fn has_more_to_accept(&self) -> bool {
        self.drain_until_ms.is_some() && !self.has_closed_listeners
    }

    /// Whether this worker has no connections left and will get none, and has not said so yet.
    pub fn has_just_drained(&self) -> bool {
        self.drain_until_ms.is_some()
            && !self.has_drained
            && self.connections.is_empty()
            && self.shared.all_closed_listeners()
            && !self.shared.has_accepted(self.me)
    }
}
