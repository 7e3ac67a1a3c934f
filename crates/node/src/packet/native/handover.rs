//! Software request direction: a request at the port of a worker that does not own its key is
//! handed over to the owner (MICA §5.5, which compares this with clients that direct their requests
//! themselves).
//!
//! Whole datagrams are handed over before admission, in batches over the mesh that also forwards
//! requests of connections. The owner treats them like datagrams at its own port, so that tokens,
//! directory, the completion table and the order within a datagram concern only the owner. A worker
//! has a fixed number of batches for each other worker; a datagram that finds none is refused. None
//! of this exists while clients direct their requests.

use super::rules::Rules;
use crate::forward::datagrams::{FORWARDED_DATAGRAMS_BYTES, ForwardedDatagrams};
use crate::forward::port::Port;
use glimmer_base::limits::FORWARD_DATAGRAM_BATCHES_PER_PEER;
use glimmer_dispatch::AccessMode;
use glimmer_proto::native::request::Action;
use glimmer_proto::native::{DATAGRAM_BYTES_MAX, Kind, Record, RequestHeader};
use glimmer_transport::packet::RxBatch;
use std::net::SocketAddr;

impl Rules {
    /// The other worker that must execute all requests in a datagram received by worker `me`.
    /// `None` if there is no such worker, if the requests belong to several workers, or if the
    /// datagram needs a different answer first.
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
                Action::Get | Action::Read { .. } => self.layout.access == AccessMode::Erew,
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

/// Minimum number of batches per other worker, however short memory is: one returns while the other
/// is filled.
const BATCHES_MIN: usize = 2;

/// The batches for one other worker.
#[derive(Default)]
struct PeerBatches {
    /// Empty batches.
    #[expect(clippy::vec_box, reason = "the box itself moves through the rings")]
    free: Vec<Box<ForwardedDatagrams>>,
    /// The batch being filled.
    filling: Option<Box<ForwardedDatagrams>>,
    made: usize,
}

/// The state of one worker for handing over datagrams.
pub(crate) struct Handover {
    rules: Rules,
    me: usize,
    /// By worker.
    to_peer: Vec<PeerBatches>,
    /// Maximum number of batches per other worker.
    batches_max: usize,
    /// Bytes of memory of the batches.
    pub bytes: usize,
    /// Datagrams handed over, since the start.
    pub datagrams: u64,
    /// Batches sent with them.
    pub batches: u64,
}

impl Handover {
    /// For worker `me`. Its batches may take `bytes_max` bytes, or the bytes of [`BATCHES_MIN`] for
    /// every other worker if that is more.
    pub fn new(rules: Rules, me: usize, bytes_max: usize) -> Handover {
        let peers = rules.workers().saturating_sub(1).max(1);
        Handover {
            batches_max: (bytes_max / FORWARDED_DATAGRAMS_BYTES / peers)
                .clamp(BATCHES_MIN, FORWARD_DATAGRAM_BATCHES_PER_PEER),
            rules,
            me,
            to_peer: (0..rules.workers())
                .map(|_| PeerBatches::default())
                .collect(),
            bytes: 0,
            datagrams: 0,
            batches: 0,
        }
    }

    /// Removes datagrams that other workers must execute from a burst, as far as there are batches,
    /// and sends them. `source` is the index of the packet source at which they arrived.
    pub fn direct(&mut self, received: &mut RxBatch, source: usize, mesh: &mut Port) {
        for index in 0..received.count() {
            let (size, end) = (received.segment_bytes(index), received.bytes(index).len());
            let peer = received.peer(index);
            let (mut from, mut kept) = (0, 0);
            while from < end {
                let next = end.min(from + size);
                let datagram = &received.bytes(index)[from..next];
                let leaves = self
                    .rules
                    .destination(self.me, datagram)
                    .is_some_and(|owner| {
                        self.put(owner, (index, peer, datagram, size), source, mesh)
                    });
                if !leaves {
                    if kept < from {
                        received.bytes_mut(index).copy_within(from..next, kept);
                    }
                    kept += next - from;
                }
                from = next;
            }
            received.truncate(index, kept);
        }
        for owner in 0..self.to_peer.len() {
            self.ship(owner, mesh);
        }
    }

    /// Takes back an own batch that is empty.
    pub fn welcome(&mut self, from: usize, batch: Box<ForwardedDatagrams>) {
        self.to_peer[from].free.push(batch);
    }

    /// Adds a datagram (segment batch, peer, bytes, segment bytes) to a batch. Returns false if
    /// there is no batch.
    fn put(
        &mut self,
        owner: usize,
        (index, peer, datagram, size): (usize, SocketAddr, &[u8], usize),
        source: usize,
        mesh: &mut Port,
    ) -> bool {
        for _ in 0..2 {
            let Some(batch) = self.filling(owner, source) else {
                return false;
            };
            if batch.put(index, peer, datagram, size) {
                self.datagrams += 1;
                return true;
            }
            self.ship(owner, mesh);
        }
        false
    }

    fn filling(&mut self, owner: usize, source: usize) -> Option<&mut ForwardedDatagrams> {
        let to_peer = &mut self.to_peer[owner];
        if to_peer.filling.is_none() {
            to_peer.filling = match to_peer.free.pop() {
                Some(mut batch) => {
                    batch.reset(source);
                    Some(batch)
                }
                None if to_peer.made < self.batches_max => {
                    let batch = Box::new(ForwardedDatagrams::new(self.me, source));
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
    use glimmer_dispatch::{Layout, PartitionMap};
    use glimmer_proto::native::directory::{Direction, Mode};
    use glimmer_transport::Bell;
    use std::sync::Arc;

    const RULES: Rules = Rules {
        seed: Seed(1),
        checks_reads: false,
        token_key: TokenKey([1, 2]),
        directory_version: 9,
        layout: Layout {
            map: PartitionMap::new(2, 2),
            access: AccessMode::Erew,
        },
        item_bytes_max: 1 << 20,
        mode: Mode::Cache,
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

    /// The packet source at which everything arrives.
    const SOURCE: usize = 3;

    struct Mesh {
        handover: Handover,
        ports: Vec<Port>,
        received: RxBatch,
    }

    impl Mesh {
        fn new() -> Mesh {
            let bells = (0..2).map(|_| Arc::new(Doorbell::new(EventBell(Bell::new().unwrap()))));
            Mesh {
                handover: Handover::new(RULES, 0, usize::MAX),
                ports: connect(&bells.collect::<Vec<_>>()),
                received: RxBatch::default(),
            }
        }

        /// Directs a burst with one segment batch. Returns the bytes that remain.
        fn direct(&mut self, datagrams: &[Vec<u8>]) -> Vec<u8> {
            let peer = SocketAddr::from(([127, 0, 0, 1], 9000));
            let Mesh {
                handover,
                ports,
                received,
            } = self;
            received.clear();
            received.push(peer, &datagrams.concat(), datagrams[0].len());
            handover.direct(received, SOURCE, &mut ports[0]);
            received.bytes(0).to_vec()
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
        assert_eq!((*from, batch.home(), batch.source), (0, 0, SOURCE));
        assert_eq!(batch.received.count(), 1);
        assert_eq!(batch.received.bytes(0), theirs.repeat(3));
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
            layout: Layout {
                access: AccessMode::Crew,
                ..RULES.layout
            },
            ..RULES
        };
        assert_eq!(reads_anywhere.destination(0, &datagram(&[1])), None);
    }

    /// However many datagrams arrive, at most the contents of all batches are in flight. When
    /// batches return, more may follow.
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
        // More datagrams than fit into one batch use several.
        let mut mesh = Mesh::new();
        let many = vec![theirs.clone(); 1000];
        assert_eq!(mesh.direct(&many), []);
        let arrived = drain(&mut mesh.ports[1]);
        let count = |batch: &ForwardedDatagrams| {
            let received = &batch.received;
            (0..received.count())
                .map(|index| received.bytes(index).len())
                .sum::<usize>()
                / theirs.len()
        };
        let all: usize = arrived.iter().map(|(_, batch)| count(batch)).sum();
        assert_eq!(all, 1000);
    }
}
