//! Hot keys, and the accelerator that answers reads of them.
//!
//! | file | idea |
//! | --- | --- |
//! | `accelerator` | what all workers share of the accelerator; every change of an item passes it |
//! | `body` | what answers: its memory, and who reads it |
//! | `tend` | a worker's part: it fills slots and takes credit for hits |
//! | `popular` | the hottest keys, by sampled reads, with and without an accelerator |

mod accelerator;
mod body;
mod popular;
mod tend;

pub(crate) use accelerator::Retracted;
pub use accelerator::{Accelerator, AcceleratorFigures, Passed};
pub use body::{Body, Readers};
pub use glimmer_hotset::{HotKey, Policy as HotKeyPolicy, policies};
pub(crate) use popular::Popular;
pub(crate) use tend::Tender;
