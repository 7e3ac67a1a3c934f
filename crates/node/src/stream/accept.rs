//! New connections: listeners, assignment to workers, and the start of a connection.

use std::io;
use std::sync::Arc;

use glimmer_base::limits::ACCEPTS_PER_TURN_MAX;
use glimmer_proto::{Accepts, Parser};
use glimmer_transport::Poller;
use glimmer_transport::stream::StreamListener;
use slotmap::Key;

use super::Streams;
use super::connection::{Connection, Input, Session};
use super::refused::Refusal;
use super::registry::SocketEntry;
use super::throttle::seat;
use crate::admin::alarm::Failure;
use crate::core::Core;
use crate::shared::Accepted;

/// A listener, and the protocols that its connections may speak.
pub(crate) struct StreamSource {
    pub listener: Box<dyn StreamListener>,
    pub accepts: Accepts,
    /// The socket stays open elsewhere when this process ends, and what waits at it with it.
    pub is_inherited: bool,
}

/// The listeners of one worker.
pub(crate) struct Acceptor {
    /// Each listener with its token in the poller.
    sources: Vec<(u64, StreamSource)>,
    /// Whether the listeners are unwatched, because descriptors ran out or the maximum number of
    /// connections is reached.
    is_deaf: bool,
    /// When the maximum number of connections was reached, in milliseconds since the epoch.
    full_since_ms: Option<u64>,
    /// The server stops, and no connection waits in a backlog any more.
    has_closed: bool,
}

impl Acceptor {
    pub fn new(sources: Vec<(u64, StreamSource)>) -> Acceptor {
        Acceptor {
            sources,
            is_deaf: false,
            full_since_ms: None,
            has_closed: false,
        }
    }

    /// Registers the listeners with the poller.
    pub fn watch(&self, poller: &Poller) -> io::Result<()> {
        for (token, source) in &self.sources {
            poller.watch_level(source.listener.wakeup(), *token)?;
        }
        Ok(())
    }

    /// Enters the listeners into the connection registry.
    pub fn register(&self, core: &Core) {
        let registry = &core.shared.registry;
        for (_, source) in &self.sources {
            let number = registry.number(source.listener.wakeup());
            let entry = SocketEntry::listening(&*source.listener, number, core.now.ms);
            registry.add(Arc::new(entry));
        }
    }

    /// Whether the listeners are not watched.
    pub fn is_deaf(&self) -> bool {
        self.is_deaf
    }

    /// Whether connections may still wait in the backlogs of a stopping worker.
    pub fn has_more(&self, core: &Core) -> bool {
        core.is_draining && !self.has_closed
    }

    /// Accepts connections that wait at one listener.
    pub fn accept_some(
        &mut self,
        index: usize,
        core: &mut Core,
        streams: &mut Streams,
        poller: &Poller,
    ) {
        for _ in 0..ACCEPTS_PER_TURN_MAX {
            let Ok(place) = Place::take(core) else {
                // Waiting connections are accepted when a connection of this worker is closed, or
                // at the next tick if another worker closes one.
                if self.full_since_ms.is_none() {
                    core.tally.listen_disabled += 1;
                    self.full_since_ms = Some(core.now.ms);
                }
                self.stop_listening(poller);
                return;
            };
            let (_, source) = &mut self.sources[index];
            match source.listener.accept() {
                Ok(Some(stream)) => {
                    streams.place_accepted((stream, source.accepts), place, core, poller);
                }
                Ok(None) => return place.give_back(core),
                Err(error) => {
                    place.give_back(core);
                    core.note_failure(Failure::Accept, 1, error.raw_os_error());
                    // Descriptors or kernel memory ran out, and the listeners would be reported for
                    // ever. A closed connection or the next tick watches them again.
                    self.stop_listening(poller);
                    return;
                }
            }
        }
    }

    /// The server stops: accepts waiting connections, and closes listeners at which none waits any
    /// more. Connections at inherited listeners are left to the next server.
    pub fn accept_waiting(&mut self, core: &mut Core, streams: &mut Streams, poller: &Poller) {
        if self.has_closed {
            return;
        }
        self.sources.retain(|(_, source)| !source.is_inherited);
        let mut left = ACCEPTS_PER_TURN_MAX;
        while let Some((_, source)) = self.sources.last_mut() {
            if left == 0 {
                return;
            }
            // With `-o no_maxconns_fast`, they wait until others have been closed.
            let place = Place::take(core);
            self.is_deaf = place.is_err();
            let Ok(place) = place else {
                return;
            };
            left -= 1;
            match source.listener.accept() {
                Ok(Some(stream)) => {
                    streams.place_accepted((stream, source.accepts), place, core, poller);
                }
                Ok(None) => {
                    place.give_back(core);
                    self.sources.pop();
                }
                // Descriptors ran out: closed connections return theirs.
                Err(error) => {
                    place.give_back(core);
                    core.note_failure(Failure::Accept, 1, error.raw_os_error());
                    self.is_deaf = true;
                    return;
                }
            }
        }
        self.has_closed = true;
        core.shared.note_closed_listeners();
    }

    pub fn stop_listening(&mut self, poller: &Poller) {
        for (_, source) in &self.sources {
            // An unwatched listener need not be removed from the poller.
            let _ = poller.forget(source.listener.wakeup());
        }
        self.is_deaf = true;
    }

    /// Watches the listeners again if they are unwatched.
    pub fn listen_again(&mut self, core: &mut Core, poller: &Poller) {
        if self.is_deaf && !core.is_draining && !is_full(core) {
            self.is_deaf = self.watch(poller).is_err();
            if let Some(since_ms) = self.full_since_ms.take() {
                core.tally.listen_disabled_ms += core.now.ms - since_ms;
            }
        }
    }
}

/// A place for a connection that is about to be accepted. Where connections wait for others to be
/// closed, it is taken first: two workers may find room for one, and a connection that has been
/// accepted cannot wait any more.
struct Place(Option<usize>);

/// There is no place, and connections wait.
struct Full;

impl Place {
    fn take(core: &Core) -> Result<Place, Full> {
        let shared = &core.shared;
        match shared.config.rejects_beyond_max {
            true => Ok(Place(None)),
            false => match shared.balancer.assign(core.me, &core.plan) {
                Some(worker) => Ok(Place(Some(worker))),
                None => Err(Full),
            },
        }
    }

    /// Nobody was accepted.
    fn give_back(self, core: &Core) {
        if let Place(Some(worker)) = self {
            core.shared.balancer.release(worker);
        }
    }
}

/// Whether new connections have to wait.
fn is_full(core: &Core) -> bool {
    !core.shared.config.rejects_beyond_max && core.shared.balancer.is_full()
}

impl Streams {
    /// Passes a connection to the worker that is to serve it.
    fn place_accepted(
        &mut self,
        accepted: Accepted,
        Place(place): Place,
        core: &mut Core,
        poller: &Poller,
    ) {
        match place.or_else(|| core.shared.balancer.assign(core.me, &core.plan)) {
            Some(worker) if worker == core.me => self.open(accepted, core, poller),
            Some(worker) => core.shared.hand_over(worker, accepted),
            None => {
                core.tally.rejected_connections += 1;
                core.show_figures();
                self.refuse(accepted, Refusal::Connections, core);
            }
        }
    }

    /// Takes over connections that other workers accepted for this one, as many as one turn may.
    pub fn take_accepted(&mut self, core: &mut Core, poller: &Poller) {
        for _ in 0..ACCEPTS_PER_TURN_MAX {
            let Some(accepted) = core.shared.next_accepted(core.me) else {
                return;
            };
            self.open(accepted, core, poller);
        }
    }

    /// Starts to serve a connection that may speak these protocols.
    fn open(&mut self, accepted: Accepted, core: &mut Core, poller: &Poller) {
        let (stream, accepts) = accepted;
        let parser = Parser::accepting(accepts, core.shared.config.limits);
        let number = core.shared.registry.number(stream.wakeup());
        let entry = Arc::new(SocketEntry::connected(&*stream, number, core.now.ms));
        let session = Session::new(parser, core.shared.config.locked);
        let mut connection = Connection::new((stream, entry), session, core.now.ms);
        if !seat(&mut connection, false, core) {
            core.tally.address_connections_refused += 1;
            core.shared.balancer.release(core.me);
            core.show_figures();
            return self.refuse((connection.stream, accepts), Refusal::Address, core);
        }
        core.shared.registry.add(connection.entry.clone());
        let key = self.connections.insert(connection);
        core.tally.curr_connections += 1;
        let wakeup = self.connections[key].stream.wakeup();
        if let Err(error) = poller.watch_edges(wakeup, key.data().as_ffi()) {
            core.note_failure(Failure::Accept, 1, error.raw_os_error());
            self.close(key, core);
            return;
        }
        core.tally.total_connections += 1;
        core.show_figures();
        if self.connections[key].stream.is_handshaking() {
            self.begin_handshake(key, core);
            if core.is_draining {
                self.note_handshake(key);
            }
        }
        if core.is_draining {
            // Data that has already arrived is read once, as for the connections that were open.
            self.connections[key].input = Input::Readable;
            self.settle(key, core);
        }
        if let Some(connection) = self.connections.get(key) {
            core.shared
                .observers()
                .show_connection(&connection.entry, None);
        }
    }
}
