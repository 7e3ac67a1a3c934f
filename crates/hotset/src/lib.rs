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
