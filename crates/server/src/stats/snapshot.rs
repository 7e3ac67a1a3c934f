//! Everything that a thread can know of the server that is no worker: the counters, which it reads
//! without a lock, and what a worker has told.

use glimmer_base::Moment;
use glimmer_dispatch::Histogram;
use glimmer_engine::TableStats;
use glimmer_node::{Command, Latency, NodeFigures, SlowRequest, Tally};
use glimmer_proto::text::lines::VERSION_NUMBER;
use glimmer_transport::packet::Bypass;

use super::lines::Lines;
use super::told::{Kind, Texts};
use super::{Counts, ServerAdmin, conns, dispatch, general, hot, own, settings};
use crate::config::Config;
use crate::encryption::TlsFigures;
use crate::memory_plan::MemoryPlan;
use crate::snapshot::SnapshotFigures;

/// The server's figures at one moment. Each counter is exact and counts since the start, whatever
/// `stats reset` has done; together they are not a consistent snapshot.
#[derive(Debug)]
pub(crate) struct Figures {
    pub now: Moment,
    pub config: Config,
    pub plan: MemoryPlan,
    /// The counters of all tables and workers, summed.
    pub sum: Counts,
    /// Of each worker: its counters, and its CPU time in nanoseconds if that is known.
    pub workers: Vec<(Tally, Option<u64>)>,
    /// Requests by the size of their values, while they were counted by size.
    pub by_size: Histogram,
    /// How long a sample of the requests took.
    pub latencies: Vec<Latency>,
    /// The latest slow requests, the newest first.
    pub slow: Vec<SlowRequest>,
    pub slow_counts: (u64, u64),
    /// What a worker has told.
    pub texts: Texts,
    pub log_lines_lost: u64,
    /// What TLS has done, if there is TLS.
    pub tls: Option<TlsFigures>,
    /// What carries datagrams past the kernel's stack, if anything does.
    pub bypass: Option<Bypass>,
    /// What is told of snapshots, if there is a file for them.
    pub snapshots: Option<SnapshotFigures>,
}

impl Figures {
    /// The counters of all tables.
    pub fn table(&self) -> &TableStats {
        &self.sum.table
    }

    /// The counters of all workers.
    pub fn node(&self) -> &Tally {
        &self.sum.node
    }

    /// The version of memcached that the server reports to clients.
    pub fn memcached_version(&self) -> &'static str {
        VERSION_NUMBER
    }
}

impl ServerAdmin {
    /// A way to the workers, once they run.
    pub(crate) fn node(&self) -> Option<&NodeFigures> {
        self.node.get().map(|node| &node.figures)
    }

    /// The figures now. Takes no lock that a worker waits for, but for a moment those of packet
    /// devices past the kernel's stack.
    pub(crate) fn figures(&self) -> Figures {
        let node = self.node();
        let worker = |number| node?.worker(number);
        let slow = node.and_then(NodeFigures::slow);
        Figures {
            now: node.map_or_else(Moment::default, NodeFigures::now),
            config: self.config.clone(),
            plan: self.plan,
            sum: self.counts(),
            workers: (0..).map_while(worker).collect(),
            by_size: node.map_or_else(Histogram::default, NodeFigures::requests_by_size),
            latencies: node.map_or_else(Vec::new, |node| node.latencies(&Command::ALL)),
            slow: slow.as_ref().map_or_else(Vec::new, |slow| slow.latest()),
            slow_counts: slow.as_ref().map_or((0, 0), |slow| slow.counts()),
            texts: self
                .told
                .as_ref()
                .map(|told| told.texts())
                .unwrap_or_default(),
            log_lines_lost: self.log.lost(),
            tls: self.tls(),
            bypass: self.config.packets.figures(),
            snapshots: self.snapshots(),
        }
    }

    /// Writes one kind of statistics, on a worker's thread or before there is one.
    pub(super) fn tell(&self, kind: Kind, now: Moment, text: &mut Vec<u8>) {
        let mut lines = Lines(text);
        match kind {
            Kind::General => general::write(&self.snapshot(now), &mut lines),
            Kind::Glimmer => own::write(&self.snapshot(now), &mut lines),
            Kind::Settings => settings::write(self, &mut lines),
            Kind::Dispatch => dispatch::write_all(self, &mut lines),
            Kind::Accelerator => hot::write_accelerator(self, now, &mut lines),
            Kind::HotKeys => hot::write_keys(self, now, &mut lines),
            Kind::Connections => conns::write_states(self, &mut lines),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{self, LogFormat};
    use crate::memory_plan::Needs;
    use std::net::SocketAddr;

    #[test]
    fn figures_are_read_while_a_worker_holds_what_it_locks_for_statistics() {
        let config = Config {
            http: vec![SocketAddr::from(([127, 0, 0, 1], 0))],
            ..Config::default()
        };
        let plan = MemoryPlan::make(Needs::of(&config)).unwrap();
        let log = log::start(0, LogFormat::Text).unwrap();
        let admin = ServerAdmin::new(config, plan, None, Vec::new(), None, log, None).unwrap();
        let held = admin.at_reset.lock().unwrap();
        assert_eq!(admin.figures().table().store.items, 0);
        drop(held);
    }
}
