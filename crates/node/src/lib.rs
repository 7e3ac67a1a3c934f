//! Floor 3: workers and the mesh between them. One thread per core waits for its connections, receives, has the engine execute what
//! was asked, and sends; requests for keys that another worker owns cross over to it and their replies come back.
//!
//! | file | idea |
//! | --- | --- |
//! | `worker` | one core's loop |
//! | `door` | readiness and new connections |
//! | `datagrams` | memcached's requests over UDP |
//! | [`native`] | the native protocol |
//! | `serve` | receive, execute, send: what each connection waits for next |
//! | `burst` | from bytes to batches to replies, across connections |
//! | `administer` | commands that name no key |
//! | `window` | the order of replies while some are with other workers |
//! | [`mesh`] | rings between workers, the parcels in them, and how a sleeping worker is woken |
//! | `connection`, `pool` | what a client costs, and the budget it comes out of |
//! | `errand` | listing all items |
//! | `login` | clients that have yet to authenticate |
//! | `observe`, `watch` | showing clients what happens |
//! | `upkeep` | timers, and what happens when memory is short |
//! | `drain` | how a worker leaves |
//! | `alarm` | failures that no client is told of |
//! | `roster`, `guestbook` | who serves whom, and who is connected |
//! | `bind`, `node` | addresses, then threads and their handle |

pub mod mesh;

#[cfg(not(loom))]
mod administer;
#[cfg(not(loom))]
mod alarm;
#[cfg(not(loom))]
mod bind;
#[cfg(not(loom))]
mod burst;
#[cfg(not(loom))]
mod clock;
#[cfg(not(loom))]
mod config;
#[cfg(not(loom))]
mod connection;
#[cfg(not(loom))]
mod datagrams;
#[cfg(not(loom))]
mod door;
#[cfg(not(loom))]
mod drain;
#[cfg(not(loom))]
mod errand;
#[cfg(not(loom))]
mod frontdesk;
#[cfg(not(loom))]
mod guestbook;
#[cfg(not(loom))]
mod login;
#[cfg(not(loom))]
pub mod native;
#[cfg(not(loom))]
mod node;
#[cfg(not(loom))]
mod observe;
#[cfg(not(loom))]
mod owners;
#[cfg(not(loom))]
mod pool;
#[cfg(not(loom))]
mod relief;
#[cfg(not(loom))]
mod report;
#[cfg(not(loom))]
mod roster;
#[cfg(not(loom))]
mod serve;
#[cfg(not(loom))]
mod shared;
#[cfg(not(loom))]
mod stats;
#[cfg(not(loom))]
mod switches;
#[cfg(not(loom))]
mod upkeep;
#[cfg(not(loom))]
mod wake;
#[cfg(not(loom))]
mod watch;
#[cfg(not(loom))]
mod window;
#[cfg(not(loom))]
mod worker;

#[cfg(not(loom))]
pub use {
    alarm::{Alarm, Failure},
    bind::{Bound, PassedOver},
    clock::Clock,
    config::{Address, Error, NodeConfig, Permits},
    frontdesk::Frontdesk,
    guestbook::GuestView,
    node::{Node, NodeFigures},
    observe::WatchFigures,
    stats::{Tally, WorkerStats},
};
