//! The hot-key accelerator: which one the operator wants, and how its body comes to be.
//!
//! | file | idea |
//! | --- | --- |
//! | `setting` | the values of `--accelerate`, `--accelerate-from` and `--accelerate-policy` |
//! | `attachment` | a packet program at an interface, or why there is none |
//! | `lookout` | looks whether the interface is still there |
//! | `made` | a body of another program that assembles a server, such as the co-simulation |

pub(crate) mod attachment;
mod lookout;
mod made;
mod setting;

pub use attachment::{AccelerateError, Refusal};
pub(crate) use attachment::{Attachment, Mode, attach, refused};
pub use made::MakeBody;
pub use setting::{Accelerate, Hook, HotPolicy, Sources};

use crate::config::Config;
use glimmer_base::sync::Arc;
use glimmer_hotset::{Body, Memory, Policy, Readers, Shared};
use glimmer_node::Clock;

/// Bytes of memory that the accelerator of this configuration takes.
pub(crate) fn bytes(config: &Config) -> usize {
    let slots = config.accelerate_slots;
    let upkeep_bytes = glimmer_hotset::upkeep_bytes(slots);
    match &config.accelerate {
        Accelerate::Off => 0,
        Accelerate::Model => glimmer_hotset::bytes(slots, config.workers),
        Accelerate::At { .. } => glimmer_xdp::memory_bytes(slots) + upkeep_bytes,
        Accelerate::Made(maker) => maker.memory_bytes(slots) + upkeep_bytes,
    }
}

/// The body of slots in this memory, with the policy of the configuration.
pub(crate) fn shared(
    config: &Config,
    memory: Arc<Memory>,
    readers: Readers,
    clock: &dyn Clock,
) -> Box<dyn Body> {
    let policy = policy(config, clock);
    Box::new(Shared::new(memory, readers, policy, clock.timeline()))
}

/// The slots in which workers look, if the configuration wants them. The seed places keys.
pub(crate) fn model(
    config: &Config,
    seed: impl FnOnce() -> u64,
    clock: &dyn Clock,
) -> Option<Box<dyn Body>> {
    matches!(config.accelerate, Accelerate::Model).then(|| {
        let memory = Memory::new(config.accelerate_slots, config.workers, seed());
        shared(config, Arc::new(memory), Readers::Workers, clock)
    })
}

/// The body that the program makes for this configuration, if it makes one.
pub(crate) fn make(
    config: &Config,
    clock: &dyn Clock,
) -> Result<Option<Box<dyn Body>>, AccelerateError> {
    let Accelerate::Made(maker) = &config.accelerate else {
        return Ok(None);
    };
    let made = maker.make(config.accelerate_slots, policy(config, clock));
    made.map(Some)
        .map_err(|reason| refused(config, Refusal::Made(reason)))
}

fn policy(config: &Config, clock: &dyn Clock) -> Box<dyn Policy> {
    let slots = config.accelerate_slots;
    config.accelerate_policy.make(slots, clock.now().ms)
}
