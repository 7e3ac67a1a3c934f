//! Puts load on a server: plans, the loops that execute them, and their results.

pub mod closed;
mod drive;
mod gather;
pub mod hdr_log;
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

pub use drive::{CountBy, Drive};
pub use open::{Arrivals, Idle};
pub use outcome::{Latency, Outcome, QUANTILES, Second, Summary};
pub use pass::{Pass, pass};
pub use plan::{Pace, Plan, Requests, WarmUp};
pub use record::{Interval, Recorder, ServerCpu, Window};
pub use run::{Progress, run};
pub use tally::Tally;
pub use world::{Kernel, World};
