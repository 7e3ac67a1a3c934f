//! Floor 1: which core executes a request. Pure decisions: no I/O, threads or clocks.
//!
//! | file | idea |
//! | --- | --- |
//! | `partition_map` | which core owns a partition: the only place that computes it |
//! | `layout` | which cores may execute a request at all: partitions, cores and the access mode |
//! | `plan` | what the cores go by: a request runs here, or is handed to another core |
//! | `policy` | what makes plans |
//! | `policies/` | every policy, one file each |
//!
//! A policy is one new file and one line in `policies/`. A plan is a value: a core asks it twice at
//! most for each request, when the request arrives and when a lookup has found out how large the
//! value is. The core carries out what the plan says. The core that a request was handed to runs it
//! whatever its size.

mod layout;
mod partition_map;
mod plan;
mod policies;
mod policy;

pub use layout::{AccessMode, Layout};
pub use partition_map::PartitionMap;
pub use plan::{Ask, Decision, Plan, Role};
pub use policies::*;
pub use policy::Policy;
