//! A running node: its workers' threads, and the handle by which the rest of the process knows
//! them.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use glimmer_base::limits::POLL_EVENTS_MAX;
use glimmer_engine::Engine;
use glimmer_transport::{Bell, Poller, ask_for_short_slices, pin_to};

use crate::admin::handler::AdminHandler;
use crate::bind::Bound;
use crate::config::{Address, Error, NodeConfig};
use crate::crew::{Crew, Member};
use crate::figures::NodeFigures;
use crate::shared::Shared;

/// A running node. Dropping it stops it and waits for its threads.
pub struct Node {
    shared: Arc<Shared>,
    addresses: Vec<Address>,
    udp: Vec<SocketAddr>,
    native_ports: Vec<(IpAddr, Arc<[u16]>)>,
    threads: Vec<JoinHandle<Option<Box<dyn Engine>>>>,
    /// Those that shake hands for the workers.
    shakers: Vec<JoinHandle<()>>,
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

    fn serve(
        bound: Bound,
        engines: Vec<Box<dyn Engine>>,
        admin: Arc<dyn AdminHandler>,
    ) -> Result<Node, Error> {
        let bells = (0..engines.len()).map(|_| Bell::new());
        let bells = bells.collect::<Result<Vec<_>, std::io::Error>>()?;
        let is_encrypted = bound.config.encryption.is_some();
        let shakers = if is_encrypted { engines.len() } else { 0 };
        let crew = Crew::gather(bound, engines, bells, shakers, &*admin);
        let mut node = Node {
            shared: crew.shared,
            addresses: crew.addresses,
            udp: crew.udp,
            native_ports: crew.native_ports,
            threads: Vec::new(),
            shakers: Vec::new(),
        };
        for number in 0..shakers {
            node.spawn_shaker(number)?;
        }
        for (me, member) in crew.members.into_iter().enumerate() {
            node.spawn(me, admin.clone(), member)?;
        }
        Ok(node)
    }

    fn spawn(
        &mut self,
        me: usize,
        admin: Arc<dyn AdminHandler>,
        member: Member,
    ) -> Result<(), Error> {
        let shared = self.shared.clone();
        let (report, reported) = mpsc::channel();
        let thread = thread::Builder::new()
            .name(format!("worker-{me}"))
            .spawn(move || {
                // Where the kernel refuses, requests wait for other programs as they do elsewhere.
                ask_for_short_slices();
                // Made by its own thread, on its own core, so that its memory is near.
                let worker = pin(&shared.config, me).and_then(|()| {
                    let poller = Poller::new(POLL_EVENTS_MAX)?;
                    Ok(member.employ(me, shared, admin, poller)?)
                });
                // The other end waits for this one message.
                match worker {
                    Ok(worker) => {
                        let _ = report.send(Ok(()));
                        Some(worker.run())
                    }
                    Err(error) => {
                        let _ = report.send(Err(error));
                        None
                    }
                }
            })?;
        self.threads.push(thread);
        reported
            .recv()
            .expect("a thread reports before it does anything else")
    }

    fn spawn_shaker(&mut self, number: usize) -> Result<(), Error> {
        let shared = self.shared.clone();
        let thread = thread::Builder::new().name(format!("handshakes-{number}"));
        let thread = thread.spawn(move || {
            let now_ms = || shared.config.clock.now().ms;
            let wake = |worker: usize| shared.doorbells[worker].wake();
            shared.shakers.run(now_ms, wake);
        })?;
        self.shakers.push(thread);
        Ok(())
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
        NodeFigures::of(&self.shared)
    }

    /// Tells the workers to stop: they accept no more, finish what has arrived, send what is to be
    /// sent for at most [`glimmer_base::limits::DRAIN_MS_MAX`], and end. Returns at once; may be
    /// called from any thread, and again.
    pub fn stop(&self) {
        self.shared.stop();
    }

    /// Waits until every worker has ended. Returns their engines, in the order of the workers.
    pub fn join(mut self) -> Vec<Box<dyn Engine>> {
        self.join_threads()
    }

    fn join_threads(&mut self) -> Vec<Box<dyn Engine>> {
        let workers: Vec<_> = self.threads.drain(..).map(JoinHandle::join).collect();
        // They see to what the workers wait for, to the end.
        self.shared.shakers.end();
        let shakers: Vec<_> = self.shakers.drain(..).map(JoinHandle::join).collect();
        if let Some(panic) = shakers.into_iter().find_map(Result::err) {
            std::panic::resume_unwind(panic);
        }
        let engine = |worker: thread::Result<_>| match worker {
            Ok(engine) => engine,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        workers.into_iter().filter_map(engine).collect()
    }
}

impl Bound {
    /// Starts one worker thread per engine. When it returns, connections are accepted.
    ///
    /// # Panics
    ///
    /// If there are not as many engines as workers that the addresses were bound for.
    pub fn serve(
        self,
        engines: Vec<Box<dyn Engine>>,
        admin: Arc<dyn AdminHandler>,
    ) -> Result<Node, Error> {
        assert_eq!(engines.len(), self.sources.len(), "one engine per worker");
        Node::serve(self, engines, admin)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let has_threads = !self.threads.is_empty() || !self.shakers.is_empty();
        if has_threads && !thread::panicking() {
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
