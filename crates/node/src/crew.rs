//! Workers that are about to be made: what they share, and what each of them starts with.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use glimmer_engine::Engine;
use glimmer_transport::{Bell, Poller};

use crate::admin::handler::AdminHandler;
use crate::bind::{Bound, Sources, packets};
use crate::config::Address;
use crate::figures::NodeFigures;
use crate::forward::bell::EventBell;
use crate::forward::doorbell::Doorbell;
use crate::forward::port::{self, Port};
use crate::shared::Shared;
use crate::stream::journey::Travels;
use crate::worker::Worker;

/// The workers of a node before they are made.
pub(crate) struct Crew {
    pub shared: Arc<Shared>,
    pub addresses: Vec<Address>,
    pub udp: Vec<SocketAddr>,
    pub native_ports: Vec<(IpAddr, Arc<[u16]>)>,
    /// In the order of their numbers.
    pub members: Vec<Member>,
}

/// What one worker starts with.
pub(crate) struct Member {
    engine: Box<dyn Engine>,
    port: Port,
    travels: Arc<Travels>,
    sources: Sources,
}

impl Crew {
    /// One worker per engine and bell, and this many threads that shake hands for them. The admin
    /// handler is told where they serve.
    ///
    /// # Panics
    ///
    /// If there are not as many engines as workers that the addresses were bound for.
    pub fn gather(
        bound: Bound,
        engines: Vec<Box<dyn Engine>>,
        bells: Vec<Bell>,
        shakers: usize,
        admin: &dyn AdminHandler,
    ) -> Crew {
        assert_eq!(engines.len(), bound.sources.len(), "one engine per worker");
        let mut sources = bound.sources;
        packets::give_twins(&mut sources);
        let bells = bells.into_iter().map(EventBell);
        let doorbells: Vec<_> = bells.map(|bell| Arc::new(Doorbell::new(bell))).collect();
        let ports = port::connect(&doorbells);
        let travels = Arc::new(Travels::between(&doorbells));
        let layout = engines[0].layout();
        let shared = Arc::new(Shared::new(bound.config, doorbells, layout, shakers));
        if engines[0].groups_unswept() > 0 {
            // A memory file has groups that an earlier process has not swept.
            shared.switches.call_walks();
        }
        admin.open(&bound.addresses, &bound.udp, NodeFigures::of(&shared));
        if let Some(native) = &shared.config.native {
            admin.open_native(&bound.native_ports, &native.rules);
        }
        let members = engines.into_iter().zip(ports).zip(sources);
        let member = |((engine, port), sources)| Member {
            engine,
            port,
            travels: travels.clone(),
            sources,
        };
        Crew {
            shared,
            addresses: bound.addresses,
            udp: bound.udp,
            native_ports: bound.native_ports,
            members: members.map(member).collect(),
        }
    }
}

impl Member {
    /// Makes worker `me`, whose sources this poller watches from now on.
    pub fn employ(
        self,
        me: usize,
        shared: Arc<Shared>,
        admin: Arc<dyn AdminHandler>,
        poller: Poller,
    ) -> io::Result<Worker> {
        let Member {
            engine,
            port,
            travels,
            sources,
        } = self;
        Worker::new(me, shared, admin, engine, (port, travels), sources, poller)
    }
}
