//! Workers that take their turns one by one, in one thread, with a clock that the test moves.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::support::{Admin, TestClock, config};
use glimmer_base::KeyHasher;
use glimmer_engine::{Engine, Figures, Spread, Uniques, build};
use glimmer_node::{Devices, DrivenNode, NodeConfig};
use glimmer_proto::Accepts;
use glimmer_store::access::Access;
use glimmer_store::evict::FIFO;
use glimmer_store::memory::PagePolicy;
use glimmer_store::mica_cache::{self, PartitionConfig};
use glimmer_store::mica_store::{self, StoreConfig};
use glimmer_transport::Received;
use glimmer_transport::stream::{ByteStream, LocalListener, LocalStream, StreamFaults};

/// Bytes of the table.
pub const TABLE_BYTES: usize = 16 << 20;

/// A kind of table.
pub trait Kind {
    fn engines(spread: &Spread, uniques: Uniques, hasher: KeyHasher) -> Vec<Box<dyn Engine>>;
}

/// Cache mode.
pub struct Cache<A, const BYTES: usize = TABLE_BYTES>(std::marker::PhantomData<A>);

impl<A: Access, const BYTES: usize> Kind for Cache<A, BYTES> {
    fn engines(spread: &Spread, uniques: Uniques, hasher: KeyHasher) -> Vec<Box<dyn Engine>> {
        let table = PartitionConfig {
            log_bytes: BYTES,
            main_buckets: 256,
            spare_buckets: 16,
            item_bytes_max: 2 << 20,
            pages: PagePolicy::Small,
            hasher,
            ..PartitionConfig::default()
        };
        let make = |_| mica_cache::Owner::<A>::new(&table, FIFO);
        build(spread, uniques, make).unwrap()
    }
}

/// Store mode.
pub struct Store<A, const BYTES: usize = TABLE_BYTES>(std::marker::PhantomData<A>);

impl<A: Access, const BYTES: usize> Kind for Store<A, BYTES> {
    fn engines(spread: &Spread, uniques: Uniques, hasher: KeyHasher) -> Vec<Box<dyn Engine>> {
        let table = StoreConfig {
            bytes: BYTES,
            roots: Some(256),
            spare_percent: 20,
            item_bytes_max: 2 << 20,
            pages: PagePolicy::Small,
            hasher,
            ..StoreConfig::default()
        };
        let make = |_| mica_store::Owner::<A>::new(&table);
        build(spread, uniques, make).unwrap()
    }
}

/// Workers and their clients. With one worker the table is its own.
pub struct Bench {
    pub node: DrivenNode,
    listener: LocalListener,
    pub clock: Arc<TestClock>,
    pub tables: Vec<Arc<dyn Figures>>,
}

impl Bench {
    pub fn new<K: Kind>(workers: usize, uniques: Uniques) -> Bench {
        Bench::with_partitions::<K>(1, workers, uniques)
    }

    pub fn with_partitions<K: Kind>(partitions: usize, workers: usize, uniques: Uniques) -> Bench {
        Bench::with_config::<K>((partitions, workers), uniques, config())
    }

    /// A node of this configuration with this many partitions and workers. There is much memory for
    /// buffers, unless the configuration says how much.
    pub fn with_config<K: Kind>(
        (partitions, workers): (usize, usize),
        uniques: Uniques,
        mut config: NodeConfig,
    ) -> Bench {
        let clock = Arc::new(TestClock::default());
        config.clock = clock.clone();
        config.limits.item_bytes_max = 2 << 20;
        if config.buffer_bytes == 0 {
            config.buffer_bytes = 256 << 20;
        }
        let spread = Spread {
            partitions,
            workers,
            numa_nodes: Vec::new(),
        };
        let engines = K::engines(&spread, uniques, config.hasher.clone());
        let tables = engines.iter().map(|engine| engine.figures()).collect();
        let listener = LocalListener::new(SocketAddr::from(([10, 0, 0, 1], 1)));
        let mut devices: Vec<_> = (0..workers).map(|_| Devices::default()).collect();
        let at_listener: Box<LocalListener> = Box::new(listener.clone());
        devices[0].listeners.push((at_listener, Accepts::Any));
        Bench {
            node: DrivenNode::new(config, devices, engines, Arc::new(Admin)).unwrap(),
            listener,
            clock,
            tables,
        }
    }

    pub fn connect(&mut self) -> LocalStream {
        self.connect_with_room(8 << 20)
    }

    /// A client that is sent this many bytes, and more only when it takes them.
    pub fn connect_with_room(&mut self, buffer_bytes: usize) -> LocalStream {
        let faults = StreamFaults {
            buffer_bytes,
            ..StreamFaults::default()
        };
        let client = SocketAddr::from(([10, 0, 0, 2], 1));
        let stream = self.listener.connect(client, faults, 1);
        self.turns(2);
        stream
    }

    /// Turns of all workers.
    pub fn turns(&mut self, count: usize) {
        for _ in 0..count {
            for worker in 0..self.node.workers.len() {
                self.turn(worker);
            }
        }
    }

    pub fn turn(&mut self, worker: usize) {
        self.node.workers[worker].rest();
        self.node.workers[worker].turn();
    }

    pub fn ask(&mut self, stream: &mut LocalStream, request: &[u8]) -> Vec<u8> {
        stream.send(request);
        self.turns(100);
        received(stream)
    }

    /// One turn of the first worker, in which a small request has to be answered.
    pub fn turn_beside(&mut self, small: &mut LocalStream) {
        small.send(b"get small\r\n");
        self.turn(0);
        let reply = received(small);
        assert_eq!(reply, b"VALUE small 0 1\r\nx\r\nEND\r\n");
    }

    /// Workers of which the first one has just executed a small request, for this connection.
    pub fn with_small_requests<K: Kind>(workers: usize, uniques: Uniques) -> (Bench, LocalStream) {
        let mut bench = Bench::new::<K>(workers, uniques);
        let mut small = bench.connect();
        let reply = bench.ask(&mut small, b"set small 0 0 1\r\nx\r\n");
        assert_eq!(reply, b"STORED\r\n");
        (bench, small)
    }
}

/// A command of RESP.
pub fn command(words: &[&[u8]]) -> Vec<u8> {
    let mut command = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        command.extend(format!("${}\r\n", word.len()).into_bytes());
        command.extend_from_slice(word);
        command.extend_from_slice(b"\r\n");
    }
    command
}

pub fn received(stream: &mut LocalStream) -> Vec<u8> {
    let mut all = Vec::new();
    loop {
        let mut buffer = Vec::with_capacity(1 << 20);
        let got = stream.receive(&mut buffer);
        all.extend_from_slice(&buffer);
        if !matches!(got, Received::Full(_)) {
            return all;
        }
    }
}
