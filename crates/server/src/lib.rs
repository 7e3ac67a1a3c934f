//! Floor 4: the server. A validated [`Config`] becomes a [`MemoryPlan`], the plan becomes
//! partitions and workers, and the workers run until a signal stops them.
//!
//! | file | idea |
//! | --- | --- |
//! | [`config`] | the configuration of a server |
//! | [`memory_plan`] | how `-m` is spent |
//! | `assembly` | the concrete combination of table, access mode and eviction rule |
//! | `serve` | starts a server from a configuration, and stops it |
//! | `driven` | a server for a simulator, without threads, sockets and a clock of its own |
//! | `accelerate` | what answers reads of hot keys, and how it comes to be |
//! | `stats` | answers `stats` |
//! | `web`, `metrics` | the pages of `--http`, and the metrics on one of them |
//! | `snapshot` | all items in a file, and back |
//! | `auth` | users and passwords |
//! | `reload` | what SIGHUP reads again |
//! | `service`, `patience` | what a service manager is told, and asked |
//! | [`machine`] | how much memory the process may take |
//! | `encryption` | TLS, if the build has it |
//! | `memory_file`, `store_clock` | the file that the store lies in, and the time there |
//! | [`preflight`] | whether a server could start with the user and the files of a configuration |
//! | `cores`, `process`, `log` | cores, privileges and limits of the process, and its log |

mod accelerate;
mod assembly;
mod attach;
mod auth;
pub mod config;
mod cores;
mod driven;
pub mod encryption;
mod log;
pub mod machine;
mod memory_file;
pub mod memory_plan;
mod metrics;
mod patience;
pub mod preflight;
mod process;
mod reload;
mod serve;
mod service;
mod snapshot;
mod stats;
mod store_clock;
mod web;

pub use accelerate::{Accelerate, AccelerateError, Hook, HotPolicy, MakeBody, Refusal, Sources};
pub use auth::AuthError;
pub use config::{
    AccessMode, BusyPoll, Config, ConfigError, Direction, HugepagePolicy, Mode, SliceBytes,
    TableKind, UnixSocket,
};
pub use driven::DrivenServer;
pub use glimmer_node::{Permits, Quotas};
pub use glimmer_proto::Accepts;
pub use glimmer_proto::AdminCommand;
pub use glimmer_proto::text::lines::VERSION_NUMBER;
pub use glimmer_store::evict;
pub use glimmer_store::table::ConfigError as StoreError;
pub use glimmer_transport::tcp::Liveness;
pub use log::LogFormat;
pub use memory_plan::{MemoryPlan, PlanError};
pub use process::inherited::InheritedError;
pub use process::{ProcessError, descriptors_reserved, descriptors_wanted};
pub use reload::{Reader, Reread};
pub use serve::{ServeError, serve};
pub use snapshot::SnapshotError;
