//! The hot-key accelerator: which one the operator wants, and how its body comes to be.
//!
//! | file | idea |
//! | --- | --- |
//! | `setting` | the values of `--accelerate`, `--accelerate-from` and `--accelerate-policy` |
//! | `circuit` | a circuit in another process, or why there is none |
//! | `attachment` | a packet program at an interface, or why there is none |

mod attachment;
mod circuit;
mod setting;

pub use attachment::{AccelerateError, Refusal};
pub(crate) use attachment::{Attachment, Mode, attach, refused};
pub(crate) use circuit::connect;
pub use setting::{Accelerate, Hook, HotPolicy, Sources};

use crate::config::Config;
use glimmer_base::sync::Arc;
use glimmer_node::{Accelerator, Body, Clock};

/// Bytes of memory that the accelerator of this configuration takes.
pub(crate) fn bytes(config: &Config) -> usize {
    let slots = config.accelerate_slots;
    match config.accelerate {
        Accelerate::Off => 0,
        Accelerate::Model => Accelerator::bytes(slots, config.workers),
        Accelerate::At { .. } => {
            glimmer_xdp::memory_bytes(slots) + Accelerator::upkeep_bytes(slots)
        }
        Accelerate::Circuit { .. } => Accelerator::device_bytes(slots),
    }
}

/// An accelerator with the policy of the configuration.
pub(crate) fn accelerator(config: &Config, body: Body, clock: Arc<dyn Clock>) -> Accelerator {
    let policy = config
        .accelerate_policy
        .make(config.accelerate_slots, clock.now().ms);
    Accelerator::new(body, policy, config.workers, clock)
}
