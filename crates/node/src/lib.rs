//! Floor 3: workers and the rings between them. One thread per core waits for its connections,
//! receives, has the engine execute what was asked, and sends. A request for a key that another
//! worker owns is forwarded to that worker, and its reply comes back.
//!
//! | module | idea |
//! | --- | --- |
//! | `worker` | one core's loop, its events and its timers |
//! | `stream` | connections: from bytes to batches to replies, in order |
//! | `packet` | datagrams: memcached over UDP, and [`native`] |
//! | [`forward`] | rings between workers, the batches in them, and how a sleeping worker is woken |
//! | [`dispatch`] | how the workers come by the plan that they go by |
//! | [`feeds`] | lines about events, on their way to those who watch |
//! | `admin` | commands without a key, listings, `watch`, statistics, login |
//! | `hot` | hot keys, and the accelerator that answers reads of them |
//! | `tenants` | what users and addresses may do, and how much of it |
//! | `budget` | buffers, and who gives memory up when it is short |
//! | `bind`, `crew`, `node` | addresses, then workers, then threads and their handle |
//! | `devices`, `driven` | workers without sockets and threads, for a simulator |
//! | `core` | what every part of a worker works with |
//! | `shared` | what the workers share |

pub mod dispatch;
pub mod feeds;
pub mod forward;

#[cfg(not(loom))]
mod admin;
#[cfg(not(loom))]
mod bind;
#[cfg(not(loom))]
mod budget;
#[cfg(not(loom))]
mod busy_poll;
#[cfg(not(loom))]
mod clock;
#[cfg(not(loom))]
mod config;
#[cfg(not(loom))]
mod core;
#[cfg(not(loom))]
mod crew;
#[cfg(not(loom))]
mod devices;
#[cfg(not(loom))]
mod driven;
#[cfg(not(loom))]
mod figures;
#[cfg(not(loom))]
mod hot;
#[cfg(not(loom))]
mod node;
#[cfg(not(loom))]
mod packet;
#[cfg(not(loom))]
mod permits;
#[cfg(not(loom))]
mod shared;
#[cfg(not(loom))]
mod stream;
#[cfg(not(loom))]
mod tenants;
#[cfg(not(loom))]
mod worker;

#[cfg(not(loom))]
pub use {
    admin::alarm::{Alarm, Failure},
    admin::feed::{Portion, SnapshotFeed},
    admin::handler::{AdminHandler, Audited, Login, Part},
    admin::observe::Observers,
    admin::snapshot::copy_all,
    admin::stats::{Tally, WorkerStats},
    bind::{Bound, Inherited, PassedOver},
    busy_poll::BusyPoll,
    clock::{Clock, SystemClock},
    config::{Address, Encryption, Error, NodeConfig},
    devices::Devices,
    dispatch::latencies::{Command, Latencies, Latency},
    dispatch::plans::DispatchView,
    dispatch::service_times::{ServiceTimes, Times},
    dispatch::slow::{SlowLog, SlowRequest},
    driven::{DrivenNode, DrivenWorker},
    feeds::WatchFigures,
    figures::NodeFigures,
    hot::{Accelerator, AcceleratorFigures},
    node::Node,
    packet::native,
    permits::Permits,
    stream::registry::{ConnectionCounts, SocketView},
    tenants::meter::{Quotas, Usage},
    tenants::{Tenants, TooManyUsers, UserRules, UserView},
    worker::Rest,
};
