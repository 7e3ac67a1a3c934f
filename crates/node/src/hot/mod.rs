//! Hot keys, and the accelerator that answers reads of them.
//!
//! | file | idea |
//! | --- | --- |
//! | `accelerator` | what all workers share of the accelerator; every change of an item passes it |
//! | `tend` | a worker's part: it fills slots and takes credit for hits |
//! | `popular` | the hottest keys, by sampled reads, with and without an accelerator |

mod accelerator;
mod popular;
mod tend;

pub(crate) use accelerator::Retracted;
pub use accelerator::{Accelerator, AcceleratorFigures};
pub(crate) use popular::Popular;
pub(crate) use tend::Tender;
