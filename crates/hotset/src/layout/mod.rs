//! The memory that the accelerator and the server share.
//!
//! A body of the accelerator outside this process, such as a program in the kernel, maps the same
//! bytes. So the types here are `repr(C)`, consist of 64-bit words, and are valid when all bytes
//! are zero. Fields that are smaller than a word lie in its bytes in the order in which a C
//! structure has them.
//!
//! | file | idea |
//! | --- | --- |
//! | `state` | one word that says whether a slot may be answered from |
//! | `dimensions` | how long the parts of a slot are |
//! | `slot` | one key with its value, and the protocol between its writer and its readers |
//! | `peek` | what a reader sees of it |
//! | `rendered` | an item as a slot holds it: the pieces of every reply, and their sums |
//! | `control` | one block that all readers look at: epoch, pause, the hash's seed |
//! | `tally` | what readers count |

mod control;
pub mod dimensions;
mod peek;
mod rendered;
mod slot;
mod state;
mod tally;

pub use control::{Control, LAYOUT_VERSION, NEVER_NS};
pub use dimensions::SLOT_BYTES;
pub use peek::{Peek, Piece};
pub use rendered::{HotItem, Refused};
#[cfg(not(loom))]
pub use slot::offsets;
pub use slot::{Slot, Writing};
pub use state::State;
pub use tally::{TALLIES, Tally};
