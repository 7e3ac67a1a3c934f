//! A server of native clients without sockets: real engines, and an native endpoint for each
//! worker.
#![allow(dead_code, reason = "each test program uses its own part")]

use std::net::SocketAddr;

use glimmer_base::{Moment, Seed};
use glimmer_engine::{Engine, Spread, Uniques, build};
use glimmer_node::native::{NativeEndpoint, Rules, TokenKey};
use glimmer_proto::native::directory::{Access as Told, Direction, Mode};
use glimmer_store::access::{Access, Crcw, Crew, Erew};
use glimmer_store::evict::S3Fifo;
use glimmer_store::memory::PagePolicy;
use glimmer_store::mica_cache::{Owner, PartitionConfig};
use glimmer_transport::udp::{DATAGRAMS_MAX, Peer, Train, Trains};

pub const SEED: Seed = Seed(11);
pub const VERSION: u32 = 3;
pub const ITEM_BYTES_MAX: usize = 64 << 10;
pub const KEPT_BYTES_MAX: usize = 4 << 20;

/// A datagram or several of one length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    pub bytes: Vec<u8>,
    pub stride: usize,
}

pub struct Server {
    pub engines: Vec<Box<dyn Engine>>,
    pub endpoints: Vec<NativeEndpoint>,
    pub ports: Vec<u16>,
    pub rules: Rules,
    trains: Trains,
}

impl Server {
    pub fn new(access: Told, workers: usize) -> Server {
        Server::directed(Direction::Client, access, workers)
    }

    pub fn directed(by: Direction, access: Told, workers: usize) -> Server {
        match access {
            Told::Erew => Server::of::<Erew>(access, by, workers),
            Told::Crew => Server::of::<Crew>(access, by, workers),
            Told::Crcw => Server::of::<Crcw>(access, by, workers),
        }
    }

    fn of<A: Access>(access: Told, direction: Direction, workers: usize) -> Server {
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
            seed: SEED,
            ..PartitionConfig::default()
        };
        let make = |_| Owner::<A, S3Fifo>::new(&config, S3Fifo);
        let engines = build(&spread, Uniques::Kept, make).unwrap();
        let rules = Rules {
            seed: SEED,
            checks_reads: false,
            token_key: TokenKey([5, 6]),
            directory_version: VERSION,
            partitions: spread.partitions,
            workers,
            item_bytes_max: ITEM_BYTES_MAX,
            mode: Mode::Cache,
            access,
            direction,
        };
        Server {
            engines,
            endpoints: (0..workers)
                .map(|me| NativeEndpoint::new(rules, me, KEPT_BYTES_MAX))
                .collect(),
            ports: (0..workers).map(|worker| 4000 + worker as u16).collect(),
            rules,
            trains: Trains::default(),
        }
    }

    /// What is answered to trains that arrive together at a worker. Where the server directs
    /// requests, datagrams cross to their owners as they do over the mesh.
    pub fn answer(
        &mut self,
        worker: usize,
        from: SocketAddr,
        trains: &[Sent],
        now_ms: u64,
    ) -> Vec<Sent> {
        if self.rules.direction == Direction::Client {
            return self.answer_here(worker, from, trains, now_ms);
        }
        let mut of_workers = vec![Vec::new(); self.rules.workers];
        for train in trains {
            for datagram in train.bytes.chunks(train.stride) {
                let owner = self.rules.destination(worker, datagram);
                of_workers[owner.unwrap_or(worker)].push(Sent {
                    bytes: datagram.to_vec(),
                    stride: datagram.len(),
                });
            }
        }
        let mut answers = Vec::new();
        for (worker, datagrams) in of_workers.iter().enumerate() {
            for some in datagrams.chunks(DATAGRAMS_MAX) {
                answers.extend(self.answer_here(worker, from, some, now_ms));
            }
        }
        answers
    }

    /// What a worker answers to what it executes itself.
    pub fn answer_here(
        &mut self,
        worker: usize,
        from: SocketAddr,
        trains: &[Sent],
        now_ms: u64,
    ) -> Vec<Sent> {
        self.trains.clear();
        for train in trains {
            self.trains
                .push(Peer::from(from), &train.bytes, train.stride);
        }
        let mut sent = Vec::new();
        let mut send = |trains: &[Train<'_>]| {
            for train in trains {
                assert_eq!(train.peer.as_bytes(), Peer::from(from).as_bytes());
                assert!(
                    train.bytes.len().div_ceil(train.stride) <= 64 && train.bytes.len() <= 65_507
                );
                sent.push(Sent {
                    bytes: train.bytes.to_vec(),
                    stride: train.stride,
                });
            }
        };
        let (endpoint, engine) = (&mut self.endpoints[worker], &mut *self.engines[worker]);
        endpoint.answer(
            &mut self.trains,
            engine,
            moment(now_ms),
            &self.ports,
            &mut send,
        );
        sent
    }
}

pub fn moment(now_ms: u64) -> Moment {
    Moment {
        ms: 10_000 + now_ms,
        epoch_unix_ms: 1_700_000_000_000,
    }
}
