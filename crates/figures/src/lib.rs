//! Floor 5: reproduces the figures of the papers.
//!
//! A figure is one file in [`catalogue`] that implements [`Figure`]: its description and its
//! measurement, and claims of ours. What a paper states is a row of its [`ledger`], where one rule
//! judges all. This crate does the rest: repetitions in turn, data as CSV, pictures as SVG and PNG,
//! a record of the machine, and the pages in the documentation.

mod accelerated;
pub mod alone;
mod caches;
mod calibrate;
pub mod calibration;
pub mod catalogue;
mod construct;
mod data;
mod figure;
mod latency_curve;
pub mod ledger;
mod machine;
pub mod output;
pub mod page;
mod paper_index;
mod placement;
pub mod plot;
mod profile;
mod record;
mod run;
mod shape;
mod simulated;
pub mod systems;
mod tail;
mod transports;
pub mod workload;

pub use calibrate::calibrate;
pub use calibration::Calibration;
pub use data::{Data, Point, Row, X};
pub use figure::{Columns, Figure, Kind, Needs, Spec};
pub use machine::Machine;
pub use record::{Record, Unmet, reproduce};
pub use run::{Run, Settings};
pub use shape::{Finding, Shape, Verdict};
pub use transports::Transports;
