//! One worker's end of the mesh.

use std::collections::VecDeque;
use std::sync::Arc;

use glimmer_base::limits::{
    BUFFER_BYTES, MESH_BOXES_PER_TURN_MAX, NATIVE_BUNDLES_PER_PEER, PARCELS_PER_PEER,
};
use glimmer_base::{Keyhash, Moment};
use glimmer_engine::Engine;
use glimmer_proto::Request;

use super::doorbell::Doorbell;
use super::parcel::{Parcel, Ticket};
use super::ring::{Consumer, Producer, ring};
use crate::connection::ConnectionKey;
use crate::native::Bundle;
use crate::wake::EventBell;

/// Boxes of both workers fit into one ring.
const RING_CAPACITY: usize = (2 * (PARCELS_PER_PEER + NATIVE_BUNDLES_PER_PEER)).next_power_of_two();

/// What crosses.
enum Cargo {
    /// Requests of connections, and replies to them.
    Parcel(Box<Parcel>),
    /// Native datagrams, or an empty box on its way home.
    Bundle(Box<Bundle>),
}

/// The way to and from one other worker.
struct Peer {
    outgoing: Producer<Cargo>,
    incoming: Consumer<Cargo>,
    doorbell: Arc<Doorbell<EventBell>>,
    /// Boxes for this peer that are at home and empty.
    free: Vec<Box<Parcel>>,
    /// Boxes that have been made, at most [`PARCELS_PER_PEER`].
    made: usize,
    /// Boxes being filled; all but the last are full.
    filling: VecDeque<Box<Parcel>>,
    /// Parcels of the peer that came while it has yet to send an unfinished one again: requests of one worker are executed in order.
    held: VecDeque<Box<Parcel>>,
    /// An unfinished parcel of the peer went back; it comes again.
    awaits_resumed: bool,
    /// Something was pushed since the peer was last woken.
    pushed: bool,
}

/// One worker's end of the mesh: a way to every other worker.
pub(crate) struct Port {
    me: usize,
    peers: Vec<Option<Peer>>,
    /// Own parcels that came home unfinished and wait for reply space: (peer, parcel).
    unfinished: VecDeque<(usize, Box<Parcel>)>,
    /// Boxes of native datagrams that have been taken out of the rings: (peer, box).
    bundles: VecDeque<(usize, Box<Bundle>)>,
    /// The peer whose ring is looked at first in the next turn.
    first: usize,
    /// A box became free since somebody last asked.
    has_freed: bool,
    /// Bytes of memory behind this worker's boxes, as of when they were last here.
    pub bytes: usize,
    pub parcels_sent: u64,
    pub parcels_run: u64,
}

/// Connects every worker with every other.
pub(crate) fn connect(doorbells: &[Arc<Doorbell<EventBell>>]) -> Vec<Port> {
    let workers = doorbells.len();
    let port = |me| Port {
        me,
        peers: (0..workers).map(|_| None).collect(),
        unfinished: VecDeque::new(),
        bundles: VecDeque::new(),
        first: 0,
        has_freed: false,
        bytes: 0,
        parcels_sent: 0,
        parcels_run: 0,
    };
    let mut ports: Vec<Port> = (0..workers).map(port).collect();
    for a in 0..workers {
        for b in a + 1..workers {
            let (a_out, b_in) = ring(RING_CAPACITY);
            let (b_out, a_in) = ring(RING_CAPACITY);
            ports[a].peers[b] = Some(Peer::new(a_out, a_in, doorbells[b].clone()));
            ports[b].peers[a] = Some(Peer::new(b_out, b_in, doorbells[a].clone()));
        }
    }
    ports
}

impl Peer {
    fn new(
        outgoing: Producer<Cargo>,
        incoming: Consumer<Cargo>,
        doorbell: Arc<Doorbell<EventBell>>,
    ) -> Peer {
        Peer {
            outgoing,
            incoming,
            doorbell,
            free: Vec::new(),
            made: 0,
            filling: VecDeque::new(),
            held: VecDeque::new(),
            awaits_resumed: false,
            pushed: false,
        }
    }

    fn send(&mut self, cargo: Cargo) {
        let sent = self.outgoing.push(cargo);
        assert!(sent.is_ok(), "a ring holds the boxes of both its workers");
        self.pushed = true;
    }
}

impl Port {
    fn peer(&mut self, worker: usize) -> &mut Peer {
        self.peers[worker]
            .as_mut()
            .expect("no worker crosses over to itself")
    }

    /// Whether a request for `owner` can be put into a box.
    pub fn has_room(&mut self, owner: usize) -> bool {
        let home = self.me;
        let peer = self.peer(owner);
        if peer.filling.back().is_some_and(|parcel| !parcel.is_full()) {
            return true;
        }
        let parcel = match peer.free.pop() {
            Some(parcel) => parcel,
            None if peer.made < PARCELS_PER_PEER => {
                peer.made += 1;
                Box::new(Parcel::new(home))
            }
            None => return false,
        };
        peer.filling.push_back(parcel);
        true
    }

    /// Puts a request for `owner` into a box, after [`Port::has_room`]. It leaves with the next
    /// [`Port::ship`].
    pub fn put(&mut self, owner: usize, ticket: Ticket, keyhash: Keyhash, request: &Request<'_>) {
        let parcel = self.peer(owner).filling.back_mut();
        parcel
            .expect("`has_room` said so")
            .push(ticket, keyhash, request);
    }

    /// Takes a connection's requests from hole `from` on out of the boxes that have not left.
    pub fn retract(&mut self, connection: ConnectionKey, from: u16) {
        for peer in self.peers.iter_mut().flatten() {
            for parcel in &mut peer.filling {
                parcel.retract(connection, from);
            }
        }
    }

    /// Sends the boxes that are full, in order: nothing in them will be taken back.
    pub fn ship_full(&mut self) {
        self.ship_while(Parcel::is_full);
    }

    /// Sends every box, at the end of a turn: the requests of all its connections travel together.
    pub fn ship(&mut self) {
        self.ship_while(|_| true);
    }

    fn ship_while(&mut self, ready: impl Fn(&Parcel) -> bool) {
        for peer in self.peers.iter_mut().flatten() {
            while let Some(mut parcel) = peer.filling.pop_front_if(|parcel| ready(parcel)) {
                if parcel.is_empty() {
                    // All that was in it was taken back.
                    peer.free.push(parcel);
                    self.has_freed = true;
                    continue;
                }
                parcel.recharge(&mut self.bytes);
                self.parcels_sent += 1;
                peer.send(Cargo::Parcel(parcel));
            }
        }
    }

    /// Sends a box of native datagrams, or sends it home.
    pub fn send_bundle(&mut self, worker: usize, bundle: Box<Bundle>) {
        self.peer(worker).send(Cargo::Bundle(bundle));
    }

    /// The next box of native datagrams that [`Port::drain`] has taken out, and the worker that it came from.
    pub fn next_bundle(&mut self) -> Option<(usize, Box<Bundle>)> {
        self.bundles.pop_front()
    }

    /// Wakes every peer that was sent something since it was last woken.
    pub fn wake_peers(&mut self) {
        for peer in self.peers.iter_mut().flatten() {
            if std::mem::take(&mut peer.pushed) {
                peer.doorbell.wake();
            }
        }
    }

    /// Whether a ring has something to take.
    pub fn has_incoming(&self) -> bool {
        self.peers
            .iter()
            .flatten()
            .any(|peer| !peer.incoming.is_empty())
    }

    /// Takes boxes out of the rings, one from each peer in rotation, until the rings are empty or
    /// [`MESH_BOXES_PER_TURN_MAX`] have been taken. What is left comes first in the next turn, after
    /// this worker's own connections.
    ///
    /// Parcels of other workers are executed, as [`Parcel::run`] does, and go back. Own parcels are
    /// handed to `unpack`, and their boxes are free again, unless something in them has yet to be
    /// answered. Native datagrams wait for [`Port::next_bundle`].
    pub fn drain(
        &mut self,
        engine: &mut dyn Engine,
        now: Moment,
        watched: bool,
        mut unpack: impl FnMut(&mut Parcel),
    ) {
        let peers = self.peers.len();
        let (mut left, mut empty) = (MESH_BOXES_PER_TURN_MAX, 0);
        while left > 0 && empty < peers {
            let worker = self.first;
            self.first = (worker + 1) % peers;
            let ring = self.peers[worker].as_mut().map(|peer| &mut peer.incoming);
            let Some(cargo) = ring.and_then(Consumer::pop) else {
                empty += 1;
                continue;
            };
            empty = 0;
            // Executing one parcel may release some that were held back: they count as well.
            let taken = match cargo {
                Cargo::Bundle(bundle) => {
                    self.bundles.push_back((worker, bundle));
                    1
                }
                Cargo::Parcel(parcel) if parcel.home() == self.me => {
                    self.take_home(worker, parcel, &mut unpack);
                    1
                }
                Cargo::Parcel(parcel) => {
                    let executed = self.peer(worker).serve(parcel, engine, now, watched);
                    self.parcels_run += executed;
                    executed.max(1) as usize
                }
            };
            left = left.saturating_sub(taken);
        }
    }

    /// Hands an own parcel that came back to `unpack`.
    fn take_home(
        &mut self,
        worker: usize,
        mut parcel: Box<Parcel>,
        unpack: &mut impl FnMut(&mut Parcel),
    ) {
        unpack(&mut parcel);
        if parcel.is_answered() {
            parcel.reset(BUFFER_BYTES);
            parcel.recharge(&mut self.bytes);
            self.peer(worker).free.push(parcel);
            self.has_freed = true;
        } else {
            parcel.free_replies();
            parcel.recharge(&mut self.bytes);
            self.unfinished.push_back((worker, parcel));
        }
    }

    /// Takes out of the rings what is no parcel.
    #[cfg(test)]
    pub fn take_cargo(&mut self) {
        for (worker, peer) in self.peers.iter_mut().enumerate() {
            let Some(peer) = peer else {
                continue;
            };
            while let Some(cargo) = peer.incoming.pop() {
                if let Cargo::Bundle(bundle) = cargo {
                    self.bundles.push_back((worker, bundle));
                }
            }
        }
    }

    /// Whether a box became free since this was last asked.
    pub fn take_freed(&mut self) -> bool {
        std::mem::take(&mut self.has_freed)
    }

    /// Whether own parcels wait for reply space.
    pub fn has_unfinished(&self) -> bool {
        !self.unfinished.is_empty()
    }

    /// Sends again the oldest unfinished parcel whose next reply `may` be made. Of one peer there is never more than one: order is kept.
    pub fn resume_one(&mut self, may: impl Fn(Ticket) -> bool) {
        let may = |(_, parcel): &(usize, Box<Parcel>)| parcel.first_unanswered().is_some_and(&may);
        if let Some((worker, parcel)) = (self.unfinished.iter().position(may))
            .and_then(|position| self.unfinished.remove(position))
        {
            self.peer(worker).send(Cargo::Parcel(parcel));
        }
    }
}

impl Peer {
    /// Executes a parcel of the peer and what was held behind it. Returns how many parcels were executed.
    fn serve(
        &mut self,
        parcel: Box<Parcel>,
        engine: &mut dyn Engine,
        now: Moment,
        watched: bool,
    ) -> u64 {
        if self.awaits_resumed && !parcel.is_resumed() {
            self.held.push_back(parcel);
            return 0;
        }
        let mut executed = 0;
        let mut next = Some(parcel);
        while let Some(mut parcel) = next {
            parcel.run(engine, now, watched);
            executed += 1;
            self.awaits_resumed = !parcel.is_answered();
            self.send(Cargo::Parcel(parcel));
            next = if self.awaits_resumed {
                None
            } else {
                self.held.pop_front()
            };
        }
        executed
    }
}

#[cfg(test)]
mod tests;
