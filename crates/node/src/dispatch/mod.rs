//! Makes dispatch plans from what the workers measure, and gives each new plan to all workers.
//! Plans, and the policies that make them, are defined in `glimmer-dispatch`.
//!
//! | file | idea |
//! | --- | --- |
//! | [`exchange`] | a rendezvous of all workers, for what is replaced in all of them at once |
//! | [`published`] | a value that one thread replaces and many read |
//! | `ask` | what the plan is asked about a request |
//! | `profile` | what one worker's requests were for, by size |
//! | `sampler`, `service_times` | how long a sample of them takes, by size |
//! | `latencies` | the same by what they do, since the start |
//! | `slow` | the latest slow requests |
//! | `counting` | what a worker counts now: all requests, a sample, or nothing |
//! | `calls` | calls for datagrams that a worker passes on |
//! | `work` | how much of the workers' time large requests take |
//! | `queue_length` | how much has been handed to one worker |
//! | `plans` | the policy in force, its epochs, and the plan that all workers go by |

#[cfg(not(loom))]
pub(crate) mod ask;
#[cfg(not(loom))]
pub mod calls;
#[cfg(not(loom))]
pub mod counting;
pub mod exchange;
#[cfg(not(loom))]
pub mod latencies;
#[cfg(not(loom))]
pub mod plans;
#[cfg(not(loom))]
pub mod profile;
pub mod published;
#[cfg(not(loom))]
pub mod queue_length;
#[cfg(not(loom))]
pub(crate) mod sampler;
#[cfg(not(loom))]
pub mod service_times;
#[cfg(not(loom))]
pub mod slow;
#[cfg(not(loom))]
pub(crate) mod work;
