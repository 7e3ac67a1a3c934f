//! A server of native clients without sockets: real engines, and an native endpoint for each
//! worker.
#![allow(dead_code, reason = "each test program uses its own part")]

use std::net::SocketAddr;

use glimmer_base::{KeyHasher, Moment, Seed};
use glimmer_dispatch::Plan;
use glimmer_engine::{Engine, Spread, Uniques, build};
use glimmer_node::native::{Dispatch, HandTo, NativeEndpoint, Rules, TokenKey};
use glimmer_proto::native::directory::{Access as Told, Direction, Mode};
use glimmer_store::access::{Access, Crcw, Crew, Erew};
use glimmer_store::evict::S3_FIFO;
use glimmer_store::memory::PagePolicy;
use glimmer_store::mica_cache::{Owner, PartitionConfig};
use glimmer_transport::packet::{
    Message, PACKET_BATCH_MAX, PacketSender, RxBatch, SEGMENTED_BYTES_MAX, SEGMENTS_MAX,
    Transmitted,
};

pub const SEED: Seed = Seed(11);

/// What a server with this seed makes keyhashes by.
pub fn hasher() -> KeyHasher {
    KeyHasher::secret([3, 4], Some(SEED))
}
pub const VERSION: u32 = 3;
pub const ITEM_BYTES_MAX: usize = 64 << 10;
pub const KEPT_BYTES_MAX: usize = 4 << 20;

/// A datagram or several of one length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    pub bytes: Vec<u8>,
    pub segment_bytes: usize,
}

pub struct Server {
    pub engines: Vec<Box<dyn Engine>>,
    pub endpoints: Vec<NativeEndpoint>,
    pub ports: Vec<u16>,
    pub rules: Rules,
    /// What the workers go by for what has not been handed over yet.
    pub plan: Plan,
    received: RxBatch,
}

impl Server {
    pub fn new(access: Told, workers: usize) -> Server {
        Server::directed(Direction::Client, access, workers)
    }

    pub fn directed(by: Direction, access: Told, workers: usize) -> Server {
        match access {
            Told::Erew => Server::of::<Erew>(by, workers),
            Told::Crew => Server::of::<Crew>(by, workers),
            Told::Crcw => Server::of::<Crcw>(by, workers),
        }
    }

    fn of<A: Access>(direction: Direction, workers: usize) -> Server {
        let spread = Spread {
            partitions: 2 * workers,
            workers,
            numa_nodes: Vec::new(),
        };
        let config = PartitionConfig {
            log_bytes: 8 << 20,
            main_buckets: 256,
            spare_buckets: 16,
            item_bytes_max: ITEM_BYTES_MAX,
            pages: PagePolicy::Small,
            hasher: hasher(),
            ..PartitionConfig::default()
        };
        let make = |_| Owner::<A>::new(&config, S3_FIFO);
        let engines = build(&spread, Uniques::Kept, make).unwrap();
        let rules = Rules {
            seed: SEED,
            hasher: hasher(),
            checks_reads: false,
            token_key: TokenKey([5, 6]),
            directory_version: VERSION,
            layout: engines[0].layout(),
            item_bytes_max: ITEM_BYTES_MAX,
            mode: Mode::Cache,
            direction,
            begun_ms: None,
        };
        Server {
            engines,
            endpoints: NativeEndpoint::of_workers(rules.clone(), KEPT_BYTES_MAX),
            ports: (0..workers).map(|worker| 4000 + worker as u16).collect(),
            plan: Plan::by_keyhash(rules.layout),
            rules,
            received: RxBatch::default(),
        }
    }

    /// What is answered to segment batches that arrive together at a worker. Where the server
    /// directs requests, datagrams are handed over to their owners.
    pub fn answer(
        &mut self,
        worker: usize,
        from: SocketAddr,
        segment_batches: &[Sent],
        now_ms: u64,
    ) -> Vec<Sent> {
        if self.rules.direction == Direction::Client {
            return self.answer_here(worker, from, segment_batches, now_ms);
        }
        self.answer_or_hand_over(worker, from, segment_batches, now_ms)
    }

    /// The same, whether clients or the server direct requests.
    pub fn answer_or_hand_over(
        &mut self,
        worker: usize,
        from: SocketAddr,
        segment_batches: &[Sent],
        now_ms: u64,
    ) -> Vec<Sent> {
        let mut of_workers = vec![Vec::new(); self.ports.len()];
        let mut hand_to = |to: usize, _, datagram: &[u8], _| {
            assert_ne!(to, worker);
            of_workers[to].push(Sent {
                bytes: datagram.to_vec(),
                segment_bytes: datagram.len(),
            });
            true
        };
        let hand_to: &mut HandTo<'_> = &mut hand_to;
        let mut answers = self.execute(worker, from, segment_batches, now_ms, Some(hand_to));
        for (worker, datagrams) in of_workers.iter().enumerate() {
            for some in datagrams.chunks(PACKET_BATCH_MAX) {
                answers.extend(self.answer_here(worker, from, some, now_ms));
            }
        }
        answers
    }

    /// A server for each worker, to be driven by a thread of its own.
    pub fn split(self) -> Vec<Server> {
        (self.engines.into_iter().zip(self.endpoints))
            .map(|(engine, endpoint)| Server {
                engines: vec![engine],
                endpoints: vec![endpoint],
                ports: self.ports.clone(),
                rules: self.rules.clone(),
                plan: self.plan.clone(),
                received: RxBatch::default(),
            })
            .collect()
    }

    /// What a worker answers to what it executes itself.
    pub fn answer_here(
        &mut self,
        worker: usize,
        from: SocketAddr,
        segment_batches: &[Sent],
        now_ms: u64,
    ) -> Vec<Sent> {
        self.execute(worker, from, segment_batches, now_ms, None)
    }

    fn execute(
        &mut self,
        worker: usize,
        from: SocketAddr,
        segment_batches: &[Sent],
        now_ms: u64,
        hand_to: Option<&mut HandTo<'_>>,
    ) -> Vec<Sent> {
        self.received.clear();
        for sent in segment_batches {
            self.received.push(from, &sent.bytes, sent.segment_bytes);
        }
        let (endpoint, engine) = (&mut self.endpoints[worker], &mut *self.engines[worker]);
        let mut replies = Replies {
            to: from,
            sent: Vec::new(),
        };
        let received = &mut self.received;
        let by_keyhash = Plan::by_keyhash(self.rules.layout);
        let plan = if hand_to.is_some() {
            &self.plan
        } else {
            &by_keyhash
        };
        let hand_to = hand_to.map(|hand_to| hand_to as &mut HandTo<'_>);
        let mut dispatch = Dispatch {
            plan,
            hand_to,
            fragments_to: None,
            tap: None,
        };
        let (now, ports) = (moment(now_ms), &self.ports);
        endpoint.answer(received, engine, now, &mut dispatch, ports, &mut replies);
        replies.sent
    }
}

/// Keeps what is sent to one client.
struct Replies {
    to: SocketAddr,
    sent: Vec<Sent>,
}

impl PacketSender for Replies {
    fn send(&mut self, messages: &[Message<'_>]) -> Transmitted {
        let mut transmitted = Transmitted::default();
        for message in messages {
            assert_eq!((message.to, message.header), (self.to, None));
            assert!(message.datagrams() <= SEGMENTS_MAX && message.bytes() <= SEGMENTED_BYTES_MAX);
            transmitted.datagrams += message.datagrams() as u64;
            transmitted.bytes += message.bytes() as u64;
            self.sent.push(Sent {
                bytes: message.payload.to_vec(),
                segment_bytes: message.segment_bytes,
            });
        }
        transmitted
    }
}

pub fn moment(now_ms: u64) -> Moment {
    Moment {
        ms: 10_000 + now_ms,
        epoch_unix_ms: 1_700_000_000_000,
    }
}
