//! Work stealing: a core without requests takes those of other cores.
//!
//! As in ZygOS, and the baseline HKH+WS of Minos (§5.2): a core moves requests from its RX queue to
//! its software queue. An idle core takes from others' software queues, then from their RX queues.

use crate::{AccessMode, Intake, Layout, Plan, Policy, Role, Takes};
use glimmer_base::limits::DISPATCH_BATCH;

/// Every core serves its own requests, and others' when it has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stealing;

impl Policy for Stealing {
    fn name(&self) -> &'static str {
        "stealing"
    }

    fn summary(&self) -> &'static str {
        "the worker that received the request, or another one that has nothing to do"
    }

    fn check(&self, access: AccessMode) -> Result<(), &'static str> {
        match access {
            AccessMode::Crcw => Ok(()),
            _ => Err("stealing lets any worker execute any request; give --access crcw"),
        }
    }

    fn plan(&self, layout: Layout) -> Plan {
        let cores = layout.map.cores();
        let role = |core| {
            let others: Vec<usize> = (1..cores).map(|place| (core + place) % cores).collect();
            Role {
                intake: Intake::Enqueue,
                takes: Takes {
                    queues: others.clone(),
                    rx: others,
                    beside_large: false,
                },
                ..Role::reads_its_own(core, DISPATCH_BATCH)
            }
        };
        match cores {
            1 => Plan::by_keyhash(layout),
            _ => Plan::by_role(layout, (0..cores).map(role).collect()),
        }
    }
}
