//! Floor 2: the accelerator as a device that takes the paper's operations and shares no memory with
//! the server, as a circuit does. No part of the server: the co-simulation assembles a server with
//! it (`crates/cosim`).
//!
//! | file | idea |
//! | --- | --- |
//! | `device` | the paper's seven operations as a trait (§VI-A) |
//! | `pearson`, `allocator` | the circuit's hash, and its memory for values |
//! | `models/` | devices in software: the paper's circuit (§IV-A), and our accelerator |
//! | `keeper` | the body that a server has of a device: it fills the device and keeps it exact |
//! | `conformance/` | what every device is held to |
//! | [`link`] | the device's operations over a Unix socket |

mod allocator;
pub mod conformance;
pub mod device;
mod keeper;
pub mod link;
pub mod models;
mod pearson;

pub use allocator::Allocator;
pub use keeper::Keeper;
pub use pearson::{TABLES, pearson};
