//! What comes from outside the worker: readiness, new connections, and connections that another
//! worker accepted.

use std::sync::Arc;

use glimmer_base::limits::ACCEPTS_PER_TURN_MAX;
use glimmer_proto::text::lines;
use glimmer_proto::{Accepts, Parser};
use glimmer_transport::{Readiness, Stream};
use slotmap::{Key, KeyData};

use crate::admin::alarm::Failure;
use crate::stream::connection::{Connection, Link};
use crate::stream::key::ConnectionKey;
use crate::stream::ready::ReplyClass;
use crate::stream::registry::SocketEntry;
use crate::worker::Worker;

/// The bell's token in the poller. Listeners follow downwards; connections' tokens, whose
/// generations count up from one, stay far below.
const BELL: u64 = u64::MAX;

/// What a client reads that is one too many, as memcached says it.
const TOO_MANY: &[u8] = lines::TOO_MANY_CONNECTIONS.as_bytes();

impl Worker {
    /// Has the poller watch the bell and the listeners.
    pub fn watch_sources(&mut self) -> std::io::Result<()> {
        let bell = &self.shared.doorbells[self.me].bell().0;
        self.poller.watch_edges(bell, BELL)?;
        self.watch_sockets()?;
        self.watch_native()?;
        self.watch_listeners()
    }

    /// Enters what connections and datagrams come by into the connection registry.
    pub fn register_sources(&self) {
        let now_ms = self.now.ms;
        let listeners = self.listeners.iter();
        let listeners =
            listeners.map(|source| SocketEntry::listening(&source.listener, false, now_ms));
        let sockets = self.sockets.iter();
        let sockets = sockets.map(|source| SocketEntry::listening(&source.socket, true, now_ms));
        let native = self.native_sources().iter();
        let native = native.map(|source| SocketEntry::listening(&*source.socket, true, now_ms));
        for entry in listeners.chain(sockets).chain(native) {
            self.shared.registry.add(Arc::new(entry));
        }
    }

    fn watch_listeners(&self) -> std::io::Result<()> {
        let mut token = BELL;
        for source in &self.listeners {
            token -= 1;
            self.poller.watch_level(&source.listener, token)?;
        }
        Ok(())
    }

    fn watch_sockets(&self) -> std::io::Result<()> {
        for (index, source) in self.sockets.iter().enumerate() {
            self.poller
                .watch_level(&source.socket, self.socket_token(index))?;
        }
        Ok(())
    }

    fn watch_native(&self) -> std::io::Result<()> {
        for (index, source) in self.native_sources().iter().enumerate() {
            self.poller
                .watch_level(&*source.socket, self.native_token(index))?;
        }
        Ok(())
    }

    /// The number under which the poller knows a socket for datagrams.
    pub fn socket_token(&self, index: usize) -> u64 {
        BELL - (self.listeners.len() + 1 + index) as u64
    }

    /// The number under which the poller knows a socket for native datagrams.
    pub fn native_token(&self, index: usize) -> u64 {
        self.socket_token(self.sockets.len() + index)
    }

    /// Acts on what the poller reported.
    pub fn take_events(&mut self) {
        let listeners = self.listeners.len() as u64;
        let sockets = self.sockets.len() as u64;
        let native = self.native_sources().len() as u64;
        for index in 0..self.poller.ready_count() {
            let ready = self.poller.ready(index);
            match BELL - ready.token {
                0 => {}
                source if source <= listeners => self.accept_some(source as usize - 1),
                source if source <= listeners + sockets => {
                    self.serve_datagrams((source - listeners) as usize - 1);
                }
                source if source <= listeners + sockets + native => {
                    self.serve_native((source - listeners - sockets) as usize - 1);
                }
                _ => self.note_readiness(ready),
            }
        }
    }

    #[inline]
    fn note_readiness(&mut self, ready: Readiness) {
        let key = ConnectionKey::from(KeyData::from_ffi(ready.token));
        let Some(connection) = self.connections.get_mut(key) else {
            return;
        };
        connection.readable |= ready.readable && !connection.ended;
        connection.hung_up |= ready.hung_up;
        if connection.feed.is_some() {
            self.note_watchers_readiness(key, ready);
            return;
        }
        if ready.writable && !connection.tx.is_empty() {
            self.send_and_settle(key);
        } else if !connection.queued && connection.is_runnable() {
            connection.queued = true;
            self.ready
                .push(key, ReplyClass::of(connection.burst_reply_bytes));
        }
    }

    #[cold]
    fn note_watchers_readiness(&mut self, key: ConnectionKey, ready: Readiness) {
        if ready.readable {
            self.hear_watcher(key);
        }
        if ready.writable {
            self.send_and_settle(key);
            self.feed_watcher(key);
        }
    }

    fn accept_some(&mut self, source: usize) {
        for _ in 0..ACCEPTS_PER_TURN_MAX {
            if self.is_full() {
                // Those that wait are taken when a connection is closed here, or with the next tick
                // if it is closed elsewhere.
                if self.full_since_ms.is_none() {
                    self.tally.listen_disabled += 1;
                    self.full_since_ms = Some(self.now.ms);
                }
                self.stop_listening();
                return;
            }
            match self.listeners[source].listener.accept() {
                Ok(Some(stream)) => {
                    let accepts = self.listeners[source].accepts;
                    self.place_accepted(stream, accepts);
                }
                Ok(None) => return,
                Err(error) => {
                    self.note_failure(Failure::Accept, 1, error.raw_os_error());
                    // Descriptors or kernel memory ran out. The listeners would be reported for
                    // ever; a closed connection, or the next tick, has them watched again.
                    self.stop_listening();
                    return;
                }
            }
        }
    }

    pub fn place_accepted(&mut self, stream: Stream, accepts: Accepts) {
        match self.shared.balancer.assign(self.me) {
            Some(worker) if worker == self.me => self.seat(stream, accepts),
            Some(worker) => self.shared.hand_over(worker, stream, accepts),
            None => {
                self.tally.rejected_connections += 1;
                self.show_figures();
                // Whether it arrives is the client's concern.
                let _ = stream.send(TOO_MANY);
            }
        }
    }

    /// Takes the connections that other workers accepted for this one.
    pub fn take_mail(&mut self) {
        while let Some((stream, accepts)) = self.shared.next_accepted(self.me) {
            self.seat(stream, accepts);
        }
    }

    /// Begins to serve a connection that may speak these protocols.
    fn seat(&mut self, stream: Stream, accepts: Accepts) {
        // Unix sockets have no such thing as NODELAY; without it replies are merely later.
        let _ = stream.set_nodelay();
        let parser = Parser::accepting(accepts, self.shared.config.limits);
        let entry = Arc::new(SocketEntry::connected(&stream, self.now.ms));
        self.shared.registry.add(entry.clone());
        let link = Link::Stream(stream, entry);
        let mut connection = Connection::new(link, parser, self.now.ms);
        connection.locked = self.shared.config.locked;
        let key = self.connections.insert(connection);
        self.tally.curr_connections += 1;
        let Link::Stream(stream, _) = &self.connections[key].link else {
            unreachable!("it was made of a stream");
        };
        let token = key.data().as_ffi();
        if let Err(error) = self.poller.watch_edges(stream, token) {
            self.note_failure(Failure::Accept, 1, error.raw_os_error());
            self.close(key);
            return;
        }
        self.tally.total_connections += 1;
        self.show_figures();
        if self.drain_until_ms.is_some() {
            // It gets one look at what has already arrived, as those that were open got.
            self.connections[key].readable = true;
            self.settle(key);
        }
        if let Some(entry) = self.connections[key].entry() {
            let shared = &self.shared;
            (shared.observers).show_connection(entry, None, &shared.doorbells);
        }
    }

    /// Whether those who come now have to wait.
    pub fn is_full(&self) -> bool {
        !self.shared.config.rejects_beyond_max && self.shared.balancer.is_full()
    }

    pub fn stop_listening(&mut self) {
        for source in &self.listeners {
            // A listener that is not watched need not be forgotten.
            let _ = self.poller.forget(&source.listener);
        }
        self.deaf = true;
    }

    /// Has the listeners watched again, if they are not.
    pub fn listen_again(&mut self) {
        if self.deaf && self.drain_until_ms.is_none() && !self.is_full() {
            self.deaf = self.watch_listeners().is_err();
            if let Some(since_ms) = self.full_since_ms.take() {
                self.tally.listen_disabled_ms += self.now.ms - since_ms;
            }
        }
    }
}
