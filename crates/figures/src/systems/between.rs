//! Native servers over other transports than sockets on loopback: between network namespaces. A
//! server that polls is paused while others are measured, as it would take their core.

use std::sync::Arc;

use anyhow::Result;
use glimmer_comparisons::transports::Between;
use glimmer_loadgen::{
    driver::{Dialect, Target},
    load::{Outcome, Plan},
};
use glimmer_measure::namespaces::Visit;

use super::{Running, System};

/// A server that runs, and the calling thread where its clients are. Both end with this value.
pub(super) struct AtWork<'a> {
    running: &'a Running,
    _visit: Option<Visit>,
}

impl System {
    /// Serves native clients over another transport, and is named after it in figures.
    pub fn over(mut self, name: &str, between: Arc<Between>) -> System {
        self.arguments.extend(between.server_arguments());
        self.name = name.to_owned();
        self.apart(between)
    }

    /// Runs in another namespace than its clients.
    pub fn apart(mut self, between: Arc<Between>) -> System {
        self.between = Some(between);
        self
    }
}

impl Running {
    /// Executes a plan in another dialect than the usual one of its clients.
    pub fn measure_as(&self, dialect: Dialect, plan: Plan) -> Result<Outcome> {
        let target = Target {
            dialect,
            ..self.target.clone()
        };
        self.measure_at(&target, plan)
    }

    /// Has the kernel bring each datagram to any worker, whichever flow it belongs to.
    pub fn scatter_datagrams(&self) -> Result<()> {
        self.server.scatter_datagrams()
    }

    /// Has it run, and moves the calling thread to its clients.
    pub(super) fn at_work(&self) -> Result<AtWork<'_>> {
        let visit = self.between.as_ref().map(|it| it.visit_clients());
        let at_work = AtWork {
            running: self,
            _visit: visit.transpose()?,
        };
        self.pause(false)?;
        Ok(at_work)
    }

    /// Pauses it or has it go on, if it polls.
    fn pause(&self, is_paused: bool) -> Result<()> {
        match &self.between {
            Some(between) if between.is_polled() => self.server.pause(is_paused),
            _ => Ok(()),
        }
    }
}

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        // It fails only if the server has ended, which the next measurement says.
        let _ = self.running.pause(true);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A paused server would not hear that it is to end.
        let _ = self.pause(false);
    }
}
