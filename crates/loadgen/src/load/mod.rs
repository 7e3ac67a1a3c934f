//! Puts load on a server: plans, the loops that execute them, and their results.

pub mod by_size;
pub mod closed;
mod drive;
mod gather;
pub mod hdr_log;
mod in_order;
mod lanes;
mod latency;
#[cfg(test)]
mod loop_tests;
pub mod open;
mod outcome;
mod pass;
mod plan;
pub mod record;
mod run;
mod show;
pub mod steady;
pub mod sweep;
mod tally;
mod warming;
mod world;

pub use by_size::{BySize, Group, SizeLatency};
pub use drive::{CountBy, Drive};
pub use lanes::{KeyPart, Lanes};
pub use latency::{ABOVE_MIN, Latency, QUANTILES, is_told, percentile};
pub use open::{Arrivals, Idle};
pub use outcome::{Outcome, Second, Summary};
pub use pass::{Pass, pass};
pub use plan::{LargeApart, Pace, Plan, Requests, WarmUp};
pub use record::{Interval, Recorder, ServerCpu, Window};
pub use run::{Progress, run};
pub use tally::Tally;
pub use world::{Kernel, World};
