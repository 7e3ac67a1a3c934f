//! Floor 1: the hot-key accelerator without I/O: a small cache of the hottest items, in front of
//! the server. It answers reads before the server sees them, and the server fills it and keeps it
//! exact. The idea is that of "Hardware Acceleration of Key-Value Stores" (Mao et al.).
//!
//! | file | idea |
//! | --- | --- |
//! | `layout/` | the memory that a body shares with the server: slots, control block, tallies |
//! | `memory` | where that memory lies |
//! | `hash` | the two slots of a key |
//! | `sums` | a checksum put together from those of pieces |
//! | `lookup` | how a reader finds an item and knows that it was valid |
//! | `directory` | keyhash → slot, for whoever changes items |
//! | `guard` | the one door for changes, fills, evictions, flushes and pauses |
//! | `pause` | why nothing is answered for a while |

pub mod device;
pub mod layout;
pub mod policies;
pub mod sums;

mod controller;
mod directory;
mod guard;
mod hash;
mod hot_keys;
mod lookup;
mod memory;
mod pause;
mod policy;
mod popularity;
mod quarantine;
mod sampler;
mod sketch;

pub use controller::{Changed, Controller, Credit};
pub use directory::Directory;
pub use guard::{Epoch, Filled, Guard, Token};
pub use hash::{hash, places};
pub use hot_keys::HotKey;
pub use lookup::{Hit, Reader};
pub use memory::{Mapped, Memory};
pub use pause::Pause;
pub use policy::{AfterChange, Decision, Incumbent, Offer, Policy};
pub use popularity::{Popularity, SampledRead};
pub use sampler::Sampler;
pub use sketch::Sketch;

/// Bytes of memory of an accelerator with this many slots and readers: slots, counts, the shadow
/// directory, and what a policy knows of keys.
pub const fn bytes(slots: usize, readers: usize) -> usize {
    const POLICY_BYTES_PER_SLOT: usize =
        2 * glimmer_base::limits::SKETCH_CELLS_PER_SLOT + 2 * size_of::<u64>() + 16;
    let slot_bytes = layout::dimensions::SLOT_BYTES
        + readers * size_of::<u64>()
        + directory::BYTES_PER_SLOT
        + POLICY_BYTES_PER_SLOT;
    slots * slot_bytes + readers * layout::TALLIES * size_of::<u64>()
}
