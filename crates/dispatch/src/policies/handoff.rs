//! Hand-off: a few cores read all requests, and the others pull them one at a time.
//!
//! Late binding, as in RAMCloud, and the baseline SHO of Minos (§5.2). A worker never has a request
//! wait for it, but every request costs a hand-off.

use crate::{AccessMode, Intake, Layout, Plan, Policy, Read, Role, Settings, Takes};
use glimmer_base::limits::DISPATCH_BATCH;

/// The first cores dispatch, the others execute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handoff {
    /// Number of dispatching cores: at least one, and fewer than there are cores.
    pub dispatchers: usize,
}

impl Policy for Handoff {
    fn name(&self) -> &'static str {
        "handoff"
    }

    fn summary(&self) -> &'static str {
        "any worker but the N that dispatch, which pass connections on; a worker takes one at \
         a time"
    }

    fn argument(&self) -> Option<&'static str> {
        Some("N")
    }

    fn configured(
        &self,
        _: &Settings,
        argument: Option<&str>,
    ) -> Result<Option<Box<dyn Policy>>, String> {
        let parse = |text: &str| match text.parse() {
            Ok(dispatchers @ 1..) => Ok(Box::new(Handoff { dispatchers }) as Box<dyn Policy>),
            _ => Err("handoff:N with the number of workers that dispatch, at least 1".to_owned()),
        };
        argument.map(parse).transpose()
    }

    fn check_workers(&self, workers: usize) -> Result<(), &'static str> {
        match self.dispatchers >= workers {
            true => Err("handoff leaves no worker that executes requests; lower N or raise -t"),
            false => Ok(()),
        }
    }

    fn check(&self, access: AccessMode) -> Result<(), &'static str> {
        match access {
            AccessMode::Crcw => Ok(()),
            _ => Err("handoff lets any worker execute any request; give --access crcw"),
        }
    }

    /// With one core there is no core to hand requests to, so it executes them.
    fn plan(&self, layout: Layout) -> Plan {
        let cores = layout.map.cores();
        if cores == 1 {
            return Plan::by_keyhash(layout);
        }
        let dispatchers = self.dispatchers.clamp(1, cores - 1);
        let role = |core| match core < dispatchers {
            true => Role {
                reads: (core..cores)
                    .step_by(dispatchers)
                    .map(|rx| Read {
                        rx,
                        budget: DISPATCH_BATCH,
                    })
                    .collect(),
                intake: Intake::HandOff,
                ..Role::default()
            },
            // Workers begin at different queues, so that the queues empty evenly.
            false => Role {
                takes: Takes {
                    queues: (0..dispatchers)
                        .map(|place| (core + place) % dispatchers)
                        .collect(),
                    ..Takes::default()
                },
                ..Role::default()
            },
        };
        Plan::by_role(layout, (0..cores).map(role).collect())
    }
}
