//! Handles the poller's events.

use std::io;

use glimmer_base::limits::NATIVE_IDLE_TURNS_MAX;

use super::Worker;
use super::sources::Source;

impl Worker {
    /// Registers every source with the poller, and adds all but the doorbell to the connection
    /// registry.
    pub(super) fn watch_sources(&mut self) -> io::Result<()> {
        let core = &self.core;
        let doorbell = &core.shared.doorbells[core.me].bell().0;
        let token = self.sources.add(Source::Doorbell);
        self.poller.watch_edges(doorbell.wakeup(), token)?;
        self.packets.watch(core, &self.poller)?;
        self.acceptor.watch(&self.poller)?;
        self.acceptor.register(core);
        Ok(())
    }

    /// Handles the poller's events, and polls the packet devices that the poller does not watch.
    pub(super) fn take_events(&mut self) {
        for index in 0..self.poller.ready_count() {
            let ready = self.poller.ready(index);
            match self.sources.get(ready.token) {
                None => self.streams.note_readiness(ready, &mut self.core),
                Some(Source::Doorbell) => {}
                Some(Source::Listener(index)) => {
                    let (core, streams) = (&mut self.core, &mut self.streams);
                    (self.acceptor).accept_some(index, core, streams, &self.poller);
                }
                Some(Source::Packets(index)) => self.serve_packets(index),
            }
        }
        for index in 0..self.packets.count() {
            if self.packets.is_looked_at(index) {
                self.serve_packets(index);
            }
        }
    }

    /// Answers the datagrams that wait at one packet device.
    pub(super) fn serve_packets(&mut self, index: usize) {
        let (core, streams) = (&mut self.core, &mut self.streams);
        let port = &mut self.port;
        if (self.packets).serve(index, core, streams, port, &self.poller) {
            self.idle_turns_left = NATIVE_IDLE_TURNS_MAX;
        }
    }
}
