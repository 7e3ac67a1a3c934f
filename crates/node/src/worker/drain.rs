//! Stops a worker when the server is told to stop.
//!
//! First, every worker accepts the connections that wait in its backlogs, and closes its listeners
//! once none waits, because the kernel would reset the remaining ones. A worker may pass a
//! connection to another worker as long as it listens. No worker therefore reports that it has no
//! connections left before all have closed their listeners. When all have reported that, they stop.

use glimmer_base::limits::DRAIN_MS_MAX;
use glimmer_base::sync::Ordering;

use glimmer_hotset::Pause;

use super::Worker;
use crate::admin::observe::CloseReason;

/// The progress of stopping.
#[derive(Default)]
pub(super) struct Drain {
    /// When to stop waiting for clients, in milliseconds since the epoch.
    until_ms: u64,
    /// Whether this worker has reported that it has no connections left.
    has_drained: bool,
}

impl Worker {
    /// Whether the server has been told to stop and this worker has yet to begin.
    pub(super) fn is_told_to_stop(&self) -> bool {
        !self.core.is_draining && self.core.shared.stopping.load(Ordering::Relaxed)
    }

    /// Starts to stop if the server is to stop, and continues with it. Returns whether the worker
    /// has anything left to do.
    pub(super) fn goes_on(&mut self) -> bool {
        if self.is_told_to_stop() {
            self.begin_to_drain();
        }
        !self.core.is_draining || !self.may_leave()
    }

    /// Starts to stop: answers waiting datagrams, and reads once more what has arrived on each
    /// connection.
    fn begin_to_drain(&mut self) {
        let (core, port) = (&mut self.core, &mut self.port);
        if let Some(tender) = &core.tender {
            tender.accelerator.pause(Pause::Draining, true);
        }
        self.packets.serve_last(core, port, &self.poller);
        self.ship();
        let (core, streams, poller) = (&mut self.core, &mut self.streams, &self.poller);
        self.acceptor.stop_listening(poller);
        core.is_draining = true;
        // The turn may have begun long ago: the whole process may have been stopped for a while.
        let now = core.shared.config.clock.now();
        self.drain.until_ms = now.ms.max(core.now.ms) + DRAIN_MS_MAX;
        streams.begin_to_drain(core);
    }

    /// Closes idle connections, and returns whether the worker can stop: when no worker has a
    /// connection any more, because until then others may forward requests, or when the time is up.
    fn may_leave(&mut self) -> bool {
        let (core, streams) = (&mut self.core, &mut self.streams);
        streams.close_settled(core);
        let is_late = core.now.ms >= self.drain.until_ms;
        if is_late {
            streams.close_where(CloseReason::Shutdown, |_| true, core);
        }
        self.acceptor.accept_waiting(core, streams, &self.poller);
        if self.has_just_drained() {
            self.drain.has_drained = true;
            self.core.shared.note_drained();
        }
        is_late || (self.drain.has_drained && self.core.shared.all_drained())
    }

    /// Whether this worker has no connections left, will get none, and has not reported it yet.
    fn has_just_drained(&self) -> bool {
        let core = &self.core;
        core.is_draining
            && !self.drain.has_drained
            && self.streams.is_empty()
            && !self.packets.is_waiting()
            && core.shared.all_closed_listeners()
            && !core.shared.has_accepted(core.me)
            && !self.streams.has_travellers(core)
    }

    /// Whether there is something new to do about stopping.
    pub(super) fn has_news_of_drain(&self) -> bool {
        self.has_just_drained() || (self.drain.has_drained && self.core.shared.all_drained())
    }
}
