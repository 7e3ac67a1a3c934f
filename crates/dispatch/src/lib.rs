//! Floor 1: which core executes a request. Pure decisions: no I/O, threads or clocks.
//!
//! | file | idea |
//! | --- | --- |
//! | `partition_map` | which core owns a partition: the only place that computes it |
//! | `layout` | which cores may execute a request at all: partitions, cores and the access mode |
//! | `role` | where one core's requests come from: RX queues, its software queue, other cores |
//! | `drains` | the same where cores take from one another's RX queues without a software queue |
//! | `role_name` | what a core's role is called |
//! | `plan` | what the cores go by: a request runs here, or is handed to another core |
//! | `size_class`, `histogram` | requests by size, and their moving average over epochs |
//! | `cost` | what a request costs, by its size |
//! | `threshold` | from which size on a request is large |
//! | `large_cores` | how many cores serve large requests, and what they do without any |
//! | `busy` | how busy the cores were, and how many of them large requests need |
//! | `size_ranges` | which large core serves which sizes |
//! | `policy` | what makes plans |
//! | `settings` | what an operator can set about policies |
//! | `policies/` | every policy, one file each |
//!
//! A policy is one new file and one line in `policies/`. A plan is a value: a core asks it twice at
//! most for each request, when the request arrives and when a lookup has found out how large the
//! value is. The core carries out what the plan says. The core that a request was handed to runs it
//! whatever its size.

mod busy;
mod cost;
mod drains;
mod histogram;
mod large_cores;
mod layout;
mod partition_map;
mod plan;
mod policies;
mod policy;
mod role;
mod role_name;
mod settings;
mod size_class;
mod size_ranges;
mod threshold;

pub use busy::Busy;
pub use cost::{Cost, PACKET_BYTES};
pub use drains::Drains;
pub use histogram::{Histogram, Smoothed};
pub use large_cores::{Division, LargeCores, Spare};
pub use layout::{AccessMode, Layout};
pub use partition_map::PartitionMap;
pub use plan::{Ask, Decision, Plan};
pub use policies::*;
pub use policy::Policy;
pub use role::{Depths, Idle, Intake, Read, Role, Takes};
pub use role_name::ROLE_NAMES;
pub use settings::Settings;
pub use size_class::SizeClass;
