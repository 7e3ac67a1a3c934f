//! The rings of one worker.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use glimmer_base::Keyhash;
use glimmer_base::limits::{
    BUFFER_BYTES, FORWARD_BATCHES_PER_PEER, FORWARD_BATCHES_PER_TURN_MAX, HOMEWARD_BYTES_MAX,
};
use glimmer_dispatch::Plan;
use glimmer_proto::Request;

use super::batch::{Asker, CompletionTag, ForwardedBatch};
use super::bell::EventBell;
use super::doorbell::Doorbell;
use super::ring::{Consumer, Producer, ring};
use crate::admin::stats::Counts;
use crate::budget::memory::Memory;

/// The batches of both workers fit into one ring.
const RING_CAPACITY: usize = (2 * FORWARD_BATCHES_PER_PEER).next_power_of_two();

/// Bytes of replies that count as a batch of their own in a turn.
const REPLY_BYTES_PER_BATCH: usize = HOMEWARD_BYTES_MAX / FORWARD_BATCHES_PER_TURN_MAX;

/// The connection to one other worker.
struct Peer {
    outgoing: Producer<Box<ForwardedBatch>>,
    incoming: Consumer<Box<ForwardedBatch>>,
    doorbell: Arc<Doorbell<EventBell>>,
    /// Empty batches for this peer.
    free: Vec<Box<ForwardedBatch>>,
    /// Number of batches created so far, at most [`FORWARD_BATCHES_PER_PEER`].
    made: usize,
    /// Batches being filled; all except the last are full.
    filling: VecDeque<Box<ForwardedBatch>>,
    /// The peer's batches that arrived while an unfinished one is outstanding: requests of one
    /// worker are executed in order.
    held: VecDeque<Box<ForwardedBatch>>,
    /// Whether an unfinished batch of the peer was returned and will be sent again.
    awaits_resumed: bool,
    /// Whether something was pushed since the peer was last woken.
    pushed: bool,
}

/// The rings of one worker to every other worker.
pub(crate) struct Port {
    me: usize,
    peers: Vec<Option<Peer>>,
    /// Own batches that returned unfinished and wait for reply space: (peer, batch).
    unfinished: VecDeque<(usize, Box<ForwardedBatch>)>,
    /// The peer whose ring is read first in the next turn.
    first: usize,
    /// Whether a batch became free since the last call of [`Port::take_freed`].
    has_freed: bool,
    /// Bytes of memory of this worker's batches, as of their last return.
    bytes: usize,
    batches_sent: u64,
    datagrams_sent: u64,
    datagram_batches_sent: u64,
    batches_run: u64,
    /// Memory is scarce, as of the last call of [`Port::account`].
    is_scarce: bool,
    /// Under the plan, requests are forwarded to others than the owners of their partitions.
    is_beside_owners: bool,
    /// Batches with such requests that are not answered yet.
    beside_owners: usize,
}

/// Connects all workers with each other.
pub(crate) fn connect(doorbells: &[Arc<Doorbell<EventBell>>]) -> Vec<Port> {
    let workers = doorbells.len();
    let port = |me| Port {
        me,
        peers: (0..workers).map(|_| None).collect(),
        unfinished: VecDeque::new(),
        first: 0,
        has_freed: false,
        bytes: 0,
        batches_sent: 0,
        datagrams_sent: 0,
        datagram_batches_sent: 0,
        batches_run: 0,
        is_scarce: false,
        is_beside_owners: false,
        beside_owners: 0,
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
        outgoing: Producer<Box<ForwardedBatch>>,
        incoming: Consumer<Box<ForwardedBatch>>,
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

    /// Begins another batch, if there is credit.
    fn begin(&mut self, home: usize) -> Option<&mut Box<ForwardedBatch>> {
        let batch = match self.free.pop() {
            Some(batch) => batch,
            None if self.made < FORWARD_BATCHES_PER_PEER => {
                self.made += 1;
                Box::new(ForwardedBatch::new(home))
            }
            None => return None,
        };
        self.filling.push_back(batch);
        self.filling.back_mut()
    }

    /// Whether the last batch has room.
    fn is_filling(&self) -> bool {
        self.filling.back().is_some_and(|batch| !batch.is_full())
    }

    fn has_credit(&self) -> bool {
        self.is_filling() || !self.free.is_empty() || self.made < FORWARD_BATCHES_PER_PEER
    }

    /// Batches that have been sent and are not answered yet.
    fn under_way(&self) -> usize {
        self.made - self.free.len() - self.filling.len()
    }

    fn send(&mut self, batch: Box<ForwardedBatch>) {
        let sent = self.outgoing.push(batch);
        assert!(sent.is_ok(), "a ring holds the batches of both its workers");
        self.pushed = true;
    }
}

impl Port {
    fn peer(&mut self, worker: usize) -> &mut Peer {
        self.peers[worker]
            .as_mut()
            .expect("no worker crosses over to itself")
    }

    /// Requests are forwarded by this plan from now on. Nothing is being filled.
    pub fn note_plan(&mut self, plan: &Plan) {
        self.is_beside_owners = !plan.keeps_order();
    }

    /// Whether requests are not answered yet that were forwarded to others than the owners of their
    /// partitions.
    pub fn awaits_others_than_owners(&self) -> bool {
        self.beside_owners > 0
    }

    /// Whether a request for `owner` can be put into a batch.
    pub fn has_credit(&mut self, owner: usize) -> bool {
        let home = self.me;
        let peer = self.peer(owner);
        peer.is_filling() || peer.begin(home).is_some()
    }

    /// Adds a request for `owner` to a batch. Requires [`Port::has_credit`]. The next
    /// [`Port::ship`] sends it.
    pub fn put(
        &mut self,
        owner: usize,
        tag: CompletionTag,
        keyhash: Keyhash,
        request: &Request<'_>,
    ) {
        let batch = self.peer(owner).filling.back_mut();
        batch
            .expect("`has_credit` said so")
            .push(tag, keyhash, request);
    }

    /// Adds a native datagram to a batch for `worker`: see [`ForwardedBatch::push_datagram`].
    /// False: there is no credit. The next [`Port::ship`] sends it.
    pub fn put_datagram(
        &mut self,
        worker: usize,
        source: usize,
        peer: SocketAddr,
        datagram: &[u8],
        segment_bytes: usize,
    ) -> bool {
        let to = self.peer(worker);
        let batch = to.filling.back_mut();
        let is_put =
            batch.is_some_and(|it| it.push_datagram(source, peer, datagram, segment_bytes));
        let is_put = is_put || {
            let home = self.me;
            let batch = self.peer(worker).begin(home);
            batch.is_some_and(|it| it.push_datagram(source, peer, datagram, segment_bytes))
        };
        self.datagrams_sent += u64::from(is_put);
        is_put
    }

    /// Removes an asker's requests, from slot `from` on, from unsent batches.
    pub fn retract(&mut self, asker: Asker, from: u16) {
        for peer in self.peers.iter_mut().flatten() {
            for batch in &mut peer.filling {
                batch.retract(asker, from);
            }
        }
    }

    /// Sends the full batches in order. Their requests can no longer be retracted.
    pub fn ship_full(&mut self) {
        self.ship_while(ForwardedBatch::is_full);
    }

    /// Sends every batch, at the end of a turn, so that the requests of all connections travel
    /// together.
    pub fn ship(&mut self) {
        self.ship_while(|_| true);
    }

    fn ship_while(&mut self, ready: impl Fn(&ForwardedBatch) -> bool) {
        for peer in self.peers.iter_mut().flatten() {
            while let Some(mut batch) = peer.filling.pop_front_if(|batch| ready(batch)) {
                if batch.is_empty() {
                    // All of its requests were retracted.
                    peer.free.push(batch);
                    self.has_freed = true;
                    continue;
                }
                batch.recharge(&mut self.bytes);
                batch.is_beside_owners = self.is_beside_owners;
                batch.lends_medium = self.is_scarce;
                self.beside_owners += usize::from(self.is_beside_owners);
                self.batches_sent += 1;
                self.datagram_batches_sent += u64::from(batch.has_datagrams());
                peer.send(batch);
            }
        }
    }

    /// Wakes every peer to which something was sent since it was last woken.
    pub fn wake_peers(&mut self) {
        for peer in self.peers.iter_mut().flatten() {
            if std::mem::take(&mut peer.pushed) {
                peer.doorbell.wake();
            }
        }
    }

    /// Whether a ring is not empty.
    pub fn has_incoming(&self) -> bool {
        self.peers
            .iter()
            .flatten()
            .any(|peer| !peer.incoming.is_empty())
    }

    /// Receives batches from the rings, one from each peer in rotation, until the rings are empty
    /// or [`FORWARD_BATCHES_PER_TURN_MAX`] have been received, or fewer with long replies. The rest
    /// comes first in the next turn, after this worker's own connections.
    ///
    /// Each batch is passed to `handle`, the batches of one worker in order. Another worker's batch
    /// has to be executed, and is returned. An own batch has to be unpacked, and is free again,
    /// unless some request in it has no reply yet.
    pub fn drain(&mut self, mut handle: impl FnMut(&mut ForwardedBatch)) {
        let peers = self.peers.len();
        let (mut left, mut empty) = (FORWARD_BATCHES_PER_TURN_MAX, 0);
        while left > 0 && empty < peers {
            let worker = self.first;
            self.first = (worker + 1) % peers;
            let ring = self.peers[worker].as_mut().map(|peer| &mut peer.incoming);
            let Some(mut batch) = ring.and_then(Consumer::pop) else {
                empty += 1;
                continue;
            };
            empty = 0;
            // Executing one batch may release held ones; they count as well.
            let taken = if batch.home() == self.me {
                handle(&mut batch);
                // Long replies are now held by connections, and what they hold is bounded between
                // turns.
                let share = batch.reply_bytes() / REPLY_BYTES_PER_BATCH;
                self.take_home(worker, batch);
                1 + share
            } else {
                let executed = self.peer(worker).serve(batch, &mut handle);
                self.batches_run += executed;
                executed.max(1) as usize
            };
            left = left.saturating_sub(taken);
        }
    }

    /// Frees an own batch that has been unpacked, or keeps it until there is space for more
    /// replies.
    fn take_home(&mut self, worker: usize, mut batch: Box<ForwardedBatch>) {
        if batch.is_answered() {
            self.beside_owners -= usize::from(batch.is_beside_owners);
            batch.reset(BUFFER_BYTES);
            batch.recharge(&mut self.bytes);
            self.peer(worker).free.push(batch);
            self.has_freed = true;
        } else {
            batch.free_replies();
            batch.recharge(&mut self.bytes);
            self.unfinished.push_back((worker, batch));
        }
    }

    /// Updates the statistics of memory and batches.
    pub fn account(&mut self, memory: &mut Memory, tally: &mut Counts) {
        memory.forwarded_bytes = self.bytes;
        self.is_scarce = memory.budget.is_scarce();
        tally.forwarded_batches_sent = self.batches_sent;
        tally.forwarded_batches_run = self.batches_run;
        tally.native_handed_over = self.datagrams_sent;
        tally.native_handover_batches = self.datagram_batches_sent;
    }

    /// Whether a request for any other worker can be put into a batch.
    pub fn has_all_credit(&self) -> bool {
        self.peers.iter().flatten().all(Peer::has_credit)
    }

    /// Whether a batch became free since the last call.
    pub fn take_freed(&mut self) -> bool {
        std::mem::take(&mut self.has_freed)
    }

    /// Whether own batches wait for reply space.
    pub fn has_unfinished(&self) -> bool {
        !self.unfinished.is_empty()
    }

    /// Sends the oldest unfinished batch again whose next reply is allowed by `may`, which is told
    /// who waits for it, and whether others may wait behind. There is at most one per peer, which
    /// preserves order.
    pub fn resume_one(&mut self, may: impl Fn(CompletionTag, bool) -> bool) {
        let peers = &self.peers;
        let may = |(worker, batch): &(usize, Box<ForwardedBatch>)| {
            let is_only_one = || {
                peers[*worker]
                    .as_ref()
                    .is_some_and(|peer| peer.under_way() == 1)
            };
            let others_wait = batch.has_several_askers() || !is_only_one();
            batch
                .first_unanswered()
                .is_some_and(|tag| may(tag, others_wait))
        };
        if let Some((worker, batch)) = (self.unfinished.iter().position(may))
            .and_then(|position| self.unfinished.remove(position))
        {
            self.peer(worker).send(batch);
        }
    }
}

impl Peer {
    /// Executes a batch of the peer and the batches held after it. Returns their number.
    fn serve(
        &mut self,
        batch: Box<ForwardedBatch>,
        run: &mut impl FnMut(&mut ForwardedBatch),
    ) -> u64 {
        if batch.has_datagrams() {
            // They wait for no request of a connection.
            let mut batch = batch;
            run(&mut batch);
            self.send(batch);
            return 1;
        }
        if self.awaits_resumed && !batch.is_resumed() {
            self.held.push_back(batch);
            return 0;
        }
        let mut executed = 0;
        let mut next = Some(batch);
        while let Some(mut batch) = next {
            run(&mut batch);
            executed += 1;
            self.awaits_resumed = !batch.is_answered();
            self.send(batch);
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
