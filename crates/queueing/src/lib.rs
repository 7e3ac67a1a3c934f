//! Floor 2: the queueing simulator. It runs dispatch policies in virtual time, on any number of
//! cores, and measures latency and throughput as Minos (NSDI'19, §2.2 and §6) does.
//!
//! The plans come from `glimmer-dispatch`, and so does every decision. The simulator has the queues
//! and charges the costs; it has no store, no protocol and no bytes. `glimmer-sim`, in contrast,
//! runs the whole server, with its tables and clients, and looks for wrong replies.
//!
//! | file | idea |
//! | --- | --- |
//! | `costs` | what each step of a request costs, in nanoseconds of CPU time and of the link |
//! | `calibration` | those of the paper's server, with their derivation |
//! | `workload` | which requests arrive, and when |
//! | `request` | one request on its way |
//! | `core` | a core: what it holds and what it does at the moment |
//! | `link` | a direction of the shared link, on which the packets of all its queues take turns |
//! | `machine/` | the events: an arrival, a core that is free, a link that is free; what cores do |
//! | `design` | designs that the paper speaks of and does not build |
//! | `server` | a server with costs, a link and bounded queues, under any policy |
//! | `shared` | queues that several cores share, and who waits for whom |
//! | `search` | the highest load that a server sustains |
//! | `outcome` | what was measured: latencies by class, lost requests, the load of each core |

pub mod calibration;
mod core;
mod costs;
mod design;
mod link;
mod machine;
mod outcome;
mod request;
mod search;
mod server;
mod shared;
mod workload;

pub use costs::{Costs, Service, Wire, packets};
pub use design::Design;
pub use machine::{Adaptive, Bounds, Run};
pub use outcome::{CoreLoad, Outcome};
pub use search::within;
pub use server::{Dispatch, Server, Trial};
pub use shared::{Accesses, Held};
pub use workload::{Bimodal, LARGE_KEYS, Phases, SMALL_KEYS, Steer, Trimodal, Workload};
