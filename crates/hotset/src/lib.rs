//! Floor 1: the hot-key accelerator without I/O, a small cache of the hottest items in front of the
//! server. It answers reads before the server sees them. The server fills it and keeps it exact.
//! The idea and the operations are those of "Hardware Acceleration of Key-Value Stores" (Mao et
//! al.). The paper leaves coherence open; it is ours. `docs/accelerator.md` explains both.
//!
//! | file | idea |
//! | --- | --- |
//! | `layout/` | the memory that a body shares with the server: slots, control block, tallies |
//! | `memory` | where that memory lies |
//! | `hash` | the two slots of a key |
//! | `sums` | a checksum put together from those of pieces |
//! | `lookup` | how a reader finds an item and knows that it was valid |
//! | `request` | which requests are answered, and their replies: the software model |
//! | `twin/` | the packet program's twin (§IV-B): frame in, frame out |
//! | `directory` | keyhash → slot, for the code that changes items |
//! | `guard` | the one door for changes, fills, evictions, flushes and pauses |
//! | `deadline`, `pause` | until when an item is answered, and why nothing is for a while |
//! | `body`, `shared` | what answers, as the server deals with it: a trait, and ours |
//! | `policy`, `policies/` | which keys are in the accelerator (§VI-B) |
//! | `sampler`, `sketch`, `hot_keys`, `popularity` | how often keys are read |
//! | `prices`, `purse` | what changes cost and hits save, and whether a key's hits pay for it |
//! | `quarantine` | which keys are kept out although they are hot |
//! | `controller` | makes a policy's observations and carries its decisions out; credit for hits |

pub mod fuzzing;
pub mod layout;
pub mod policies;
pub mod sums;
pub mod twin;
pub mod virtual_time;

mod body;
mod controller;
mod deadline;
mod directory;
mod guard;
mod hash;
mod hot_keys;
mod lookup;
mod memory;
mod pause;
mod policy;
mod popularity;
mod prices;
mod purse;
mod quarantine;
mod request;
mod sampler;
mod shared;
mod sketch;

pub use body::{Body, BodyFigures, Kept, Retracted};
pub use controller::{Changed, Controller, Credit};
pub use deadline::Timeline;
pub use directory::Directory;
pub use guard::{Epoch, Filled, Guard, Token};
pub use hash::{hash, places};
pub use hot_keys::HotKey;
pub use lookup::{Hit, Reader};
pub use memory::{Mapped, Memory};
pub use pause::Pause;
pub use policy::{AfterChange, Decision, Incumbent, Offer, Policy};
pub use popularity::{Popularity, SampledRead};
pub use prices::{Meter, Prices};
pub use request::{Form, Reply, Request};
pub use sampler::Sampler;
pub use shared::{Readers, Shared};
pub use sketch::Sketch;

/// Bytes of memory of an accelerator in this process with this many slots and readers.
pub const fn bytes(slots: usize, readers: usize) -> usize {
    let slot_bytes = layout::dimensions::SLOT_BYTES + readers * size_of::<u64>();
    slots * slot_bytes + readers * layout::TALLIES * size_of::<u64>() + upkeep_bytes(slots)
}

/// Bytes of memory that the server needs for an accelerator besides what it shares with the body:
/// the shadow directory, and what a policy and its controller know of keys.
pub const fn upkeep_bytes(slots: usize) -> usize {
    const POLICY_BYTES_PER_SLOT: usize = 2 * glimmer_base::limits::SKETCH_CELLS_PER_SLOT
        + 2 * size_of::<u64>()
        + size_of::<purse::Purse>();
    slots * POLICY_BYTES_PER_SLOT + directory::bytes(slots)
}
