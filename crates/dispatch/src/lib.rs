//! Floor 1: which core executes a request. Pure decisions: no I/O, threads or clocks.
//!
//! | file | idea |
//! | --- | --- |
//! | `partition_map` | which core owns a partition: the only place that computes it |
//! | `layout` | which cores may execute a request at all: partitions, cores and the access mode |
//! | `plan` | what the cores go by: a request runs here, or is handed to another core |
//! | `policy` | what makes plans |
//! | `registry` | the policies that there are |
//! | `keyhash` | the policy that hands requests over only where the access mode demands it |
//!
//! A policy is one new file and one line in [`POLICIES`]. `serve --dispatch` reads the names from
//! there. A plan is a value: a core asks it twice at most for each request, when the request
//! arrives and when a lookup has found out how large the value is. The core carries out what the
//! plan says, and the core that a request was handed to runs it whatever its size.

mod keyhash;
mod layout;
mod partition_map;
mod plan;
mod policy;
mod registry;

pub use keyhash::ByKeyhash;
pub use layout::{AccessMode, Layout};
pub use partition_map::PartitionMap;
pub use plan::{Ask, Decision, Plan, Role};
pub use policy::Policy;
pub use registry::{POLICIES, named};
