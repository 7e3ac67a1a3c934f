//! Workers without threads and sockets, driven by their holder: what a simulator runs.

use std::sync::Arc;

use glimmer_base::Moment;
use glimmer_base::limits::POLL_EVENTS_MAX;
use glimmer_dispatch::{AccessMode, Policy};
use glimmer_engine::Engine;
use glimmer_transport::{Bell, Poller};

use crate::admin::handler::AdminHandler;
use crate::admin::switch::{self, Wanted};
use crate::bind::Bound;
use crate::clock::Clock;
use crate::config::{Error, NodeConfig};
use crate::crew::{Crew, Member};
use crate::devices::Devices;
use crate::figures::NodeFigures;
use crate::shared::Shared;
use crate::worker::{Rest, Worker};

/// The workers of a node, none of which has a thread.
///
/// Each is the worker that [`Node`](crate::Node) runs, with its poller, its clock and its devices
/// passed in. It does nothing until it is called, so that one thread runs all of them, in any order
/// and at any time. With a clock that the caller moves, and devices whose faults follow from a
/// seed, everything that they do follows from the calls.
pub struct DrivenNode {
    shared: Arc<Shared>,
    /// The workers, by number.
    pub workers: Vec<DrivenWorker>,
}

/// One worker of a [`DrivenNode`].
///
/// The loop of a thread is [`DrivenWorker::rest`], a sleep, and [`DrivenWorker::turn`].
pub struct DrivenWorker {
    worker: Worker,
    clock: Arc<dyn Clock>,
}

impl DrivenNode {
    /// One worker per engine, each with devices. The addresses of the configuration are not bound.
    ///
    /// # Panics
    ///
    /// If there are not as many engines as sets of devices, or native clients are served and a
    /// worker has no device for them.
    pub fn new(
        config: NodeConfig,
        devices: Vec<Devices>,
        engines: Vec<Box<dyn Engine>>,
        admin: Arc<dyn AdminHandler>,
    ) -> Result<DrivenNode, Error> {
        let clock = config.clock.clone();
        let bells = engines.iter().map(|_| Bell::local()).collect();
        let crew = Crew::gather(Bound::of(config, devices)?, engines, bells, 0, &*admin);
        let shared = crew.shared;
        let employ = |(me, member): (usize, Member)| {
            let poller = Poller::local(POLL_EVENTS_MAX);
            let worker = member.employ(me, shared.clone(), admin.clone(), poller)?;
            let clock = clock.clone();
            Ok(DrivenWorker { worker, clock })
        };
        let workers = crew.members.into_iter().enumerate().map(employ);
        let workers = workers.collect::<Result<Vec<_>, Error>>()?;
        Ok(DrivenNode { shared, workers })
    }

    /// A way to the workers' figures.
    pub fn figures(&self) -> NodeFigures {
        NodeFigures::of(&self.shared)
    }

    /// Begins to put another dispatch policy in force, and an access mode that it works with, as
    /// the command `dispatch` does.
    ///
    /// # Errors
    ///
    /// The reason why it cannot be.
    pub fn switch(
        &self,
        policy: Arc<dyn Policy>,
        access: AccessMode,
        now: Moment,
    ) -> Result<(), String> {
        let wanted = Wanted {
            policy: Some(policy),
            access: Some(access),
            settings: None,
        };
        switch::begin(wanted, &self.shared, now).map(drop)
    }

    /// Tells the workers to stop, as [`Node::stop`](crate::Node::stop) does.
    pub fn stop(&self) {
        self.shared.stop();
    }

    /// The engines, in the order of the workers, all of which have ended.
    pub fn into_engines(self) -> Vec<Box<dyn Engine>> {
        let workers = self.workers.into_iter();
        workers.map(|driven| driven.worker.into_engine()).collect()
    }
}

impl DrivenWorker {
    /// Asks whether the worker would sleep now. What others bring from here on rings its bell.
    pub fn rest(&mut self) -> Rest {
        self.worker.rest()
    }

    /// Whether something has become ready that would end its sleep: a device, or its bell.
    pub fn is_called(&self) -> bool {
        self.worker.has_signals()
    }

    /// Bytes of memory that its connections hold, by the account of its budget.
    pub fn held_bytes(&self) -> usize {
        self.worker.held_bytes()
    }

    /// Ends its rest, and takes a turn at the time that the clock tells. Returns whether the worker
    /// goes on.
    pub fn turn(&mut self) -> bool {
        if !self.worker.has_handed_in() {
            self.worker.poll(None);
        }
        self.worker.turn(self.clock.now())
    }
}
