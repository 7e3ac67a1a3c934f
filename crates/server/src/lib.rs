//! Floor 4: the server. A validated [`Config`] becomes a [`MemoryPlan`], the plan becomes partitions and workers, and the workers run until
//! a signal asks them to stop.
//!
//! | file | idea |
//! | --- | --- |
//! | [`config`] | what a server is asked to be |
//! | [`memory_plan`] | how `-m` is spent |
//! | `assembly` | the concrete combination of access mode and eviction rule |
//! | `serve` | from a configuration to a running server, and to its end |
//! | `stats` | what `stats` answers |
//! | `auth` | users and passwords |
//! | `cores`, `process`, `log` | what is asked of the machine, and what is told to its keeper |

mod assembly;
mod auth;
pub mod config;
mod cores;
mod log;
pub mod memory_plan;
mod process;
mod serve;
mod stats;

pub use auth::AuthError;
pub use config::{
    AccessMode, Config, ConfigError, Direction, HugepagePolicy, Mode, TableKind, UnixSocket,
};
pub use glimmer_node::Permits;
pub use glimmer_proto::Accepts;
pub use glimmer_proto::text::lines::VERSION_NUMBER;
pub use glimmer_store::evict;
pub use glimmer_store::table::ConfigError as StoreError;
pub use glimmer_transport::tcp::Liveness;
pub use memory_plan::{MemoryPlan, PlanError};
pub use process::ProcessError;
pub use serve::{ServeError, serve};
