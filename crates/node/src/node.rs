//! A running node: its workers' threads, and the handle by which the rest of the process knows
//! them.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::RawFd;
use std::sync::{Arc, Weak, mpsc};
use std::thread::JoinHandle;

use glimmer_base::limits::POLL_EVENTS_MAX;
use glimmer_base::sync::Ordering;
use glimmer_engine::Engine;
use glimmer_transport::{Bell, Poller, pin_to, udp};
use slotmap::SlotMap;

use crate::admin::handler::AdminHandler;
use crate::admin::observe::WatchFigures;
use crate::admin::stats::Tally;
use crate::bind::{Bound, Sources};
use crate::budget::pool::{Budget, Pool};
use crate::config::{Address, Error, NodeConfig};
use crate::forward::bell::EventBell;
use crate::forward::doorbell::Doorbell;
use crate::forward::port::{self, Port};
use crate::packet::memcached::{DatagramSource, Watch};
use crate::packet::native::{NativeConfig, NativeServer};
use crate::shared::Shared;
use crate::stream::burst::Burst;
use crate::stream::ready::ReadyQueue;
use crate::stream::registry::SocketView;
use crate::worker::Worker;

/// Share of a worker's buffers that native clients may have it keep for longer than a turn.
const NATIVE_BUFFER_SHARE: usize = 2;

/// A running node. Dropping it stops it and waits for its threads.
pub struct Node {
    shared: Arc<Shared>,
    addresses: Vec<Address>,
    udp: Vec<SocketAddr>,
    native_ports: Vec<(IpAddr, Arc<[u16]>)>,
    threads: Vec<JoinHandle<()>>,
}

/// A way to the workers' figures that does not keep the node alive: whoever answers `stats` is
/// itself a part of the node.
#[derive(Clone)]
pub struct NodeFigures(Weak<Shared>);

impl NodeFigures {
    /// At most `most` sockets in the order of their descriptors, from descriptor `from` on.
    pub fn sockets(&self, from: RawFd, most: usize) -> Vec<SocketView> {
        let shared = self.0.upgrade();
        shared.map_or_else(Vec::new, |shared| shared.registry.view(from, most))
    }

    /// What became of what watchers were shown.
    pub fn watch(&self) -> WatchFigures {
        let shared = self.0.upgrade();
        shared.map_or_else(WatchFigures::default, |shared| shared.observers.figures())
    }

    /// Whether requests are counted by key prefix.
    pub fn has_detail(&self) -> bool {
        let shared = self.0.upgrade();
        shared.is_some_and(|shared| shared.observers.has_detail())
    }

    /// Forgets the counts by key prefix.
    pub fn clear_detail(&self) {
        if let Some(shared) = self.0.upgrade() {
            shared.observers.clear_prefixes();
        }
    }

    /// Whether all items may be listed, as clients have it.
    pub fn has_crawler(&self) -> bool {
        let shared = self.0.upgrade();
        shared.is_some_and(|shared| shared.switches.has_crawler())
    }

    /// Whether all items are being listed for somebody, and how often that was begun.
    pub fn dumps(&self) -> (bool, u64) {
        let shared = self.0.upgrade();
        shared.map_or((false, 0), |shared| {
            let dumps = shared.switches.dumps.load(Ordering::Relaxed);
            (shared.switches.is_walking(), dumps)
        })
    }

    /// When the most recent `flush_all` takes effect, in milliseconds since the epoch; 0 if there
    /// was none.
    pub fn flush_ms(&self) -> u64 {
        let shared = self.0.upgrade();
        shared.map_or(0, |shared| shared.switches.flush_ms())
    }

    /// Each worker's figures as of its last turn; none when the node is gone.
    pub fn tallies(&self) -> Vec<Tally> {
        let shared = self.0.upgrade();
        shared
            .iter()
            .flat_map(|shared| &shared.stats)
            .map(|stats| stats.snapshot())
            .collect()
    }
}

impl Node {
    /// Listens, and starts one worker thread per engine. When it returns, connections are accepted.
    pub fn start(
        config: NodeConfig,
        engines: Vec<Box<dyn Engine>>,
        admin: Arc<dyn AdminHandler>,
    ) -> Result<Node, Error> {
        Bound::bind(config, engines.len())?.serve(engines, admin)
    }

    pub(crate) fn serve(
        bound: Bound,
        engines: Vec<Box<dyn Engine>>,
        admin: Arc<dyn AdminHandler>,
    ) -> Result<Node, Error> {
        let workers = engines.len();
        let bells = (0..workers).map(|_| Ok(Arc::new(Doorbell::new(EventBell(Bell::new()?)))));
        let doorbells = bells.collect::<Result<Vec<_>, std::io::Error>>()?;
        let ports = port::connect(&doorbells);
        let mut node = Node {
            shared: Arc::new(Shared::new(bound.config, admin, doorbells)),
            addresses: bound.addresses,
            udp: bound.udp,
            native_ports: bound.native_ports,
            threads: Vec::new(),
        };
        let shared = &node.shared;
        (shared.admin).open(&node.addresses, &node.udp, node.figures());
        if let Some(native) = &shared.config.native {
            (shared.admin).open_native(&node.native_ports, &native.rules);
        }
        let workers = engines.into_iter().zip(ports).zip(bound.sources);
        for (me, ((engine, port), sources)) in workers.enumerate() {
            node.spawn(me, engine, port, sources)?;
        }
        Ok(node)
    }

    fn spawn(
        &mut self,
        me: usize,
        engine: Box<dyn Engine>,
        port: Port,
        sources: Sources,
    ) -> Result<(), Error> {
        let shared = self.shared.clone();
        let (report, reported) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name(format!("worker-{me}"))
            .spawn(move || {
                // Made by its own thread, on its own core, so that its memory is near.
                let worker = pin(&shared.config, me)
                    .and_then(|()| Ok(new_worker(me, shared, engine, port, sources)?));
                // The other end waits for this one message.
                match worker {
                    Ok(worker) => {
                        let _ = report.send(Ok(()));
                        worker.run();
                    }
                    Err(error) => {
                        let _ = report.send(Err(error));
                    }
                }
            })?;
        self.threads.push(thread);
        reported
            .recv()
            .expect("a thread reports before it does anything else")
    }

    /// Where connections come in, with the ports that were chosen.
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// The IP addresses among them.
    pub fn local_addrs(&self) -> Vec<SocketAddr> {
        let address = |address: &Address| match *address {
            Address::Tcp(address) => Some(address),
            Address::Unix { .. } => None,
        };
        self.addresses.iter().filter_map(address).collect()
    }

    /// The addresses of UDP sockets, with the ports that were chosen.
    pub fn udp_addresses(&self) -> &[SocketAddr] {
        &self.udp
    }

    /// The workers' ports for native clients, at each address.
    pub fn native_ports(&self) -> &[(IpAddr, Arc<[u16]>)] {
        &self.native_ports
    }

    /// A way to the workers' figures.
    pub fn figures(&self) -> NodeFigures {
        NodeFigures(Arc::downgrade(&self.shared))
    }

    /// Tells the workers to stop: they accept no more, finish what has arrived, send what is to be
    /// sent for at most [`glimmer_base::limits::DRAIN_MS_MAX`], and end. Returns at once; may be
    /// called from any thread, and again.
    pub fn stop(&self) {
        self.shared.stop();
    }

    /// Waits until every worker has ended.
    pub fn join(mut self) {
        self.join_threads();
    }

    fn join_threads(&mut self) {
        for thread in self.threads.drain(..) {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if !self.threads.is_empty() && !std::thread::panicking() {
            self.stop();
            self.join_threads();
        }
    }
}

fn pin(config: &NodeConfig, worker: usize) -> Result<(), Error> {
    match config.cores.get(worker) {
        Some(&core) => pin_to(core).map_err(|source| Error::Core { core, source }),
        None => Ok(()),
    }
}

fn new_worker(
    me: usize,
    shared: Arc<Shared>,
    engine: Box<dyn Engine>,
    port: Port,
    sources: Sources,
) -> std::io::Result<Worker> {
    let config = &shared.config;
    let bytes = config
        .buffer_bytes
        .max(NodeConfig::buffer_bytes_min(&config.limits));
    let now = config.clock.now();
    let Sources {
        listeners,
        sockets,
        native,
    } = sources;
    let sockets = sockets.into_iter().map(|socket| DatagramSource {
        socket,
        watched_by: Watch::Poller,
        drops: 0,
    });
    let server = |native_config: &NativeConfig| {
        let bytes_max = bytes / NATIVE_BUFFER_SHARE;
        Box::new(NativeServer::new(
            native,
            native_config.rules,
            me,
            bytes_max,
        ))
    };
    let native = config.native.as_ref().map(server);
    let mut worker = Worker {
        me,
        engine,
        port,
        poller: Poller::new(POLL_EVENTS_MAX)?,
        listeners,
        sockets: sockets.collect(),
        inbox: udp::Inbox::default(),
        native,
        idle_turns_left: 0,
        deaf: false,
        full_since_ms: None,
        connections: SlotMap::with_key(),
        ready: ReadyQueue::default(),
        starved: VecDeque::new(),
        withheld: VecDeque::new(),
        out_of_credit: Vec::new(),
        watchers: Vec::new(),
        crawl: None,
        crawls: 0,
        moved: Vec::new(),
        burst: Burst::new(),
        pool: Pool::new(bytes / 4),
        budget: Budget::new(bytes, NodeConfig::turn_bytes(&config.limits)),
        reply_bytes_guess: 0,
        is_short: false,
        searched_ms: now.ms,
        shed_ms: now.ms,
        unshed_excess: 0,
        tally: Tally::default(),
        now,
        ticked_ms: now.ms,
        is_alarmed: false,
        drain_until_ms: None,
        has_closed_listeners: false,
        has_drained: false,
        shared,
    };
    worker.watch_sources()?;
    worker.register_sources();
    Ok(worker)
}
