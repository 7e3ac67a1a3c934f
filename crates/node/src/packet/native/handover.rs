//! Software request direction: what comes to one worker's port and is another's to execute is
//! handed over to that one (MICA §5.5, where clients that direct their requests themselves are
//! compared with this).
//!
//! Whole datagrams are handed over, in batches over the mesh by which requests of connections cross,
//! before anything is judged: the owner treats them as if they had come to its own port, so that
//! tokens, directory, the completion table of mutations and the order within a datagram are the
//! owner's alone. A worker has so many batches for each other; what finds none is refused. Nothing of
//! this is there while clients direct their requests.

use super::rules::Rules;
use crate::forward::datagrams::{FORWARDED_DATAGRAMS_BYTES, ForwardedDatagrams};
use crate::forward::port::Port;
use glimmer_base::limits::FORWARD_DATAGRAM_BATCHES_PER_PEER;
use glimmer_proto::native::directory::Access;
use glimmer_proto::native::request::Action;
use glimmer_proto::native::{DATAGRAM_BYTES_MAX, Kind, Record, RequestHeader};
use glimmer_transport::udp::{Peer, Socket, Trains};
use std::sync::Arc;

impl Rules {
    /// The other worker that has to execute all that a datagram asks of worker `me`. None if there
    /// is no such worker, its requests belong to several, or there is something else to be said
    /// first.
    pub fn destination(&self, me: usize, datagram: &[u8]) -> Option<usize> {
        let header = RequestHeader::read(datagram)?;
        let is_request = header.kind == Kind::Requests
            && header.directory == self.directory_version
            && datagram.len() <= DATAGRAM_BYTES_MAX;
        if !is_request {
            return None;
        }
        let mut rest = &datagram[RequestHeader::BYTES..];
        let mut owner = None;
        for _ in 0..header.count {
            let (record, bytes) = Record::read(rest)?;
            rest = &rest[bytes..];
            let needs_owner = match record.action {
                Action::Noop => false,
                Action::Get | Action::Read { .. } => self.access == Access::Erew,
                Action::Mutate { .. } => true,
            };
            if needs_owner {
                let of_this = self.owner(record.keyhash);
                if owner.is_some_and(|owner| owner != of_this) {
                    return None;
                }
                owner = Some(of_this);
            }
        }
        owner.filter(|&owner| owner != me)
    }
}

/// Batches for each other worker however short memory is: one comes home while the other is filled.
const BATCHES_MIN: usize = 2;

/// Batches for one other worker.
#[derive(Default)]
struct PeerBatches {
    /// At home and empty.
    free: Vec<Box<ForwardedDatagrams>>,
    /// Being filled.
    filling: Option<Box<ForwardedDatagrams>>,
    made: usize,
}

/// One worker's way to hand datagrams over.
pub(crate) struct Handover {
    rules: Rules,
    me: usize,
    /// By worker.
    to_peer: Vec<PeerBatches>,
    /// Batches for each of them, at most.
    batches_max: usize,
    /// Bytes of memory behind the batches.
    pub bytes: usize,
    /// Datagrams handed over, since the start.
    pub datagrams: u64,
    /// Batches sent with them.
    pub batches: u64,
}

impl Handover {
    /// For worker `me`, whose batches may take `bytes_max` bytes, or what [`BATCHES_MIN`] for every
    /// other worker take.
    pub fn new(rules: Rules, me: usize, bytes_max: usize) -> Handover {
        let peers = rules.workers.saturating_sub(1).max(1);
        Handover {
            batches_max: (bytes_max / FORWARDED_DATAGRAMS_BYTES / peers)
                .clamp(BATCHES_MIN, FORWARD_DATAGRAM_BATCHES_PER_PEER),
            rules,
            me,
            to_peer: (0..rules.workers).map(|_| PeerBatches::default()).collect(),
            bytes: 0,
            datagrams: 0,
            batches: 0,
        }
    }

    /// Takes the datagrams out of a burst that other workers have to execute, as far as there are
    /// batches, and sends them. What came in by `socket` is answered by it.
    pub fn direct(
        &mut self,
        trains: &mut Trains,
        socket: &Arc<Socket>,
        ports: &Arc<[u16]>,
        mesh: &mut Port,
    ) {
        for train in 0..trains.count() {
            let (stride, end) = (trains.stride(train), trains.bytes(train).len());
            let (mut from, mut kept) = (0, 0);
            while from < end {
                let next = end.min(from + stride);
                let datagram = &trains.bytes(train)[from..next];
                let leaves = self
                    .rules
                    .destination(self.me, datagram)
                    .is_some_and(|owner| {
                        let context = (train, trains.peer(train), datagram, stride);
                        self.put(owner, context, (socket, ports), mesh)
                    });
                if !leaves {
                    if kept < from {
                        trains.bytes_mut(train).copy_within(from..next, kept);
                    }
                    kept += next - from;
                }
                from = next;
            }
            trains.truncate(train, kept);
        }
        for owner in 0..self.to_peer.len() {
            self.ship(owner, mesh);
        }
    }

    /// The batch of this worker's is home again, and empty.
    pub fn welcome(&mut self, from: usize, batch: Box<ForwardedDatagrams>) {
        self.to_peer[from].free.push(batch);
    }

    /// Puts a datagram (train, peer, bytes, stride) into a batch. False: there is none.
    fn put(
        &mut self,
        owner: usize,
        (train, peer, datagram, stride): (usize, &Peer, &[u8], usize),
        source: (&Arc<Socket>, &Arc<[u16]>),
        mesh: &mut Port,
    ) -> bool {
        for _ in 0..2 {
            let Some(batch) = self.filling(owner, source) else {
                return false;
            };
            if batch.put(train, peer, datagram, stride) {
                self.datagrams += 1;
                return true;
            }
            self.ship(owner, mesh);
        }
        false
    }

    fn filling(
        &mut self,
        owner: usize,
        (socket, ports): (&Arc<Socket>, &Arc<[u16]>),
    ) -> Option<&mut ForwardedDatagrams> {
        let to_peer = &mut self.to_peer[owner];
        if to_peer.filling.is_none() {
            to_peer.filling = match to_peer.free.pop() {
                Some(mut batch) => {
                    batch.reset(socket, ports);
                    Some(batch)
                }
                None if to_peer.made < self.batches_max => {
                    let batch = Box::new(ForwardedDatagrams::new(self.me, socket, ports));
                    to_peer.made += 1;
                    self.bytes += FORWARDED_DATAGRAMS_BYTES;
                    Some(batch)
                }
                None => None,
            };
        }
        to_peer.filling.as_deref_mut()
    }

    fn ship(&mut self, owner: usize, mesh: &mut Port) {
        if let Some(batch) = self.to_peer[owner].filling.take() {
            self.batches += 1;
            mesh.send_datagrams(owner, batch);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forward::bell::EventBell;
    use crate::forward::doorbell::Doorbell;
    use crate::forward::port::connect;
    use crate::packet::native::TokenKey;
    use glimmer_base::{Keyhash, Seed};
    use glimmer_proto::native::directory::{Direction, Mode};
    use glimmer_transport::Bell;
    use std::net::SocketAddr;

    const RULES: Rules = Rules {
        seed: Seed(1),
        checks_reads: false,
        token_key: TokenKey([1, 2]),
        directory_version: 9,
        partitions: 2,
        workers: 2,
        item_bytes_max: 1 << 20,
        mode: Mode::Cache,
        access: Access::Erew,
        direction: Direction::Server,
    };

    fn datagram(owners: &[u64]) -> Vec<u8> {
        let header = RequestHeader {
            kind: Kind::Requests,
            count: owners.len() as u8,
            directory: RULES.directory_version,
            sequence: 0,
            timestamp: 0,
            client: 0,
            token: 0,
        };
        let mut bytes = header.bytes().to_vec();
        for &owner in owners {
            let record = Record {
                action: Action::Get,
                keyhash: Keyhash(owner << 63),
                key: b"k",
                shows_cas: false,
            };
            record.write(&mut bytes);
        }
        bytes
    }

    struct Mesh {
        handover: Handover,
        ports: Vec<Port>,
        socket: Arc<Socket>,
        native_ports: Arc<[u16]>,
        trains: Trains,
    }

    impl Mesh {
        fn new() -> Mesh {
            let bells = (0..2).map(|_| Arc::new(Doorbell::new(EventBell(Bell::new().unwrap()))));
            let any = SocketAddr::from(([127, 0, 0, 1], 0));
            Mesh {
                handover: Handover::new(RULES, 0, usize::MAX),
                ports: connect(&bells.collect::<Vec<_>>()),
                socket: Arc::new(Socket::bind_alone(any).unwrap()),
                native_ports: [1, 2].into(),
                trains: Trains::default(),
            }
        }

        /// A burst with one train; returns what stays of it.
        fn direct(&mut self, datagrams: &[Vec<u8>]) -> Vec<u8> {
            let peer = Peer::from(SocketAddr::from(([127, 0, 0, 1], 9000)));
            self.trains.clear();
            self.trains
                .push(peer, &datagrams.concat(), datagrams[0].len());
            let Mesh {
                handover,
                ports,
                socket,
                native_ports,
                trains,
            } = self;
            handover.direct(trains, socket, native_ports, &mut ports[0]);
            trains.bytes(0).to_vec()
        }
    }

    fn drain(port: &mut Port) -> Vec<(usize, Box<ForwardedDatagrams>)> {
        port.take_cargo();
        std::iter::from_fn(|| port.next_datagrams()).collect()
    }

    #[test]
    fn what_another_worker_owns_leaves_and_the_rest_closes_up() {
        let mut mesh = Mesh::new();
        let (mine, theirs) = (datagram(&[0]), datagram(&[1]));
        let short = [&theirs[..], &mine[..], &theirs[..], &mine[..], &theirs[..]];
        let short: Vec<_> = short.into_iter().map(<[u8]>::to_vec).collect();
        assert_eq!(mesh.direct(&short), [&mine[..], &mine[..]].concat());
        let arrived = drain(&mut mesh.ports[1]);
        assert_eq!(arrived.len(), 1);
        let (from, batch) = &arrived[0];
        assert_eq!((*from, batch.home(), batch.trains.count()), (0, 0, 1));
        assert_eq!(batch.trains.bytes(0), theirs.repeat(3));
        assert_eq!((mesh.handover.datagrams, mesh.handover.batches), (3, 1));
    }

    #[test]
    fn a_datagram_with_requests_of_two_workers_stays() {
        let both = datagram(&[0, 1]);
        assert_eq!(RULES.destination(0, &both), None);
        assert_eq!(RULES.destination(1, &both), None);
        assert_eq!(RULES.destination(0, &datagram(&[1, 1])), Some(1));
        assert_eq!(RULES.destination(1, &datagram(&[1, 1])), None);
        let mut old = datagram(&[1]);
        old[4] ^= 1;
        assert_eq!(RULES.destination(0, &old), None, "another directory");
        let reads_anywhere = Rules {
            access: Access::Crew,
            ..RULES
        };
        assert_eq!(reads_anywhere.destination(0, &datagram(&[1])), None);
    }

    /// However much comes, no more than the batches hold is under way; when they come home, more may
    /// follow.
    #[test]
    fn what_finds_no_box_stays() {
        let mut mesh = Mesh::new();
        let theirs = datagram(&[1]);
        for _ in 0..FORWARD_DATAGRAM_BATCHES_PER_PEER {
            assert_eq!(mesh.direct(std::slice::from_ref(&theirs)), []);
        }
        let bytes = mesh.handover.bytes;
        assert_eq!(mesh.direct(std::slice::from_ref(&theirs)), theirs);
        let mut arrived = drain(&mut mesh.ports[1]);
        assert_eq!(arrived.len(), FORWARD_DATAGRAM_BATCHES_PER_PEER);
        mesh.ports[1].send_datagrams(0, arrived.remove(0).1);
        for (from, batch) in drain(&mut mesh.ports[0]) {
            mesh.handover.welcome(from, batch);
        }
        assert_eq!(mesh.direct(std::slice::from_ref(&theirs)), []);
        assert_eq!(mesh.direct(std::slice::from_ref(&theirs)), theirs);
        assert_eq!(mesh.handover.bytes, bytes);
        assert_eq!(
            bytes,
            FORWARD_DATAGRAM_BATCHES_PER_PEER * FORWARDED_DATAGRAMS_BYTES
        );
        mesh.handover = Handover::new(RULES, 0, 1);
        for _ in 0..BATCHES_MIN {
            assert_eq!(mesh.direct(std::slice::from_ref(&theirs)), []);
        }
        assert_eq!(mesh.direct(std::slice::from_ref(&theirs)), theirs);
        // More than one batch holds goes in several.
        let mut mesh = Mesh::new();
        let train = vec![theirs.clone(); 1000];
        assert_eq!(mesh.direct(&train), []);
        let arrived = drain(&mut mesh.ports[1]);
        let count = |batch: &ForwardedDatagrams| {
            let trains = 0..batch.trains.count();
            trains
                .map(|train| batch.trains.bytes(train).len())
                .sum::<usize>()
                / theirs.len()
        };
        let all: usize = arrived.iter().map(|(_, batch)| count(batch)).sum();
        assert_eq!(all, 1000);
    }
}
