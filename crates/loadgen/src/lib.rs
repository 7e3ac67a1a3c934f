//! Floor 3: a load generator for key-value servers.
//!
//! | module | question |
//! | --- | --- |
//! | [`workload`] | which requests: keys, sizes, verbs, drawn or from a trace |
//! | [`driver`] | in which protocol, over which transport |
//! | [`load`] | when each request is sent, and what is recorded |
//! | [`stalling`] | what a closed loop hides, shown in virtual time |
//!
//! ```
//! use glimmer_loadgen::workload::{Drawn, Source, Ask, Verb, Workload};
//!
//! // 95% reads of a thousand keys. The seed determines every request.
//! let workload = Workload::preset("small", Some(1000)).unwrap();
//! let mut requests = Drawn::new(&workload, 42, 0, 1, &std::sync::Arc::new(1000.into()));
//! let mut request = Ask::default();
//! let reads = (0..10_000)
//!     .filter(|_| requests.next(&mut request) && request.verb == Verb::Get)
//!     .count();
//! assert!((9_400..9_600).contains(&reads));
//! ```
//!
//! A load opens its connections through [`driver::Connect`]. [`driver::Target`] chooses among the
//! protocols of this crate at run time:
//!
//! ```no_run
//! use glimmer_loadgen::{driver::Target, load::{self, Pace, Plan, Requests}, workload::Workload};
//!
//! # fn main() -> anyhow::Result<()> {
//! let server = Target::text("127.0.0.1:11211".parse()?);
//! let plan = Plan::new(Requests::Drawn(Workload::default()), Pace::Closed { in_flight: 32 });
//! println!("{}", load::run(&server, &plan, None, &mut |_| {})?.summary());
//! # Ok(())
//! # }
//! ```
//!
//! Your own protocol implements [`driver::Protocol`] and connects through [`driver::Endpoint`]; see
//! `examples/own_protocol.rs`.

pub mod driver;
pub mod load;
pub mod stalling;
pub mod workload;

#[doc = include_str!("../README.md")]
#[cfg(doctest)]
struct Readme;
