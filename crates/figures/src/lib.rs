//! Floor 5: the papers' figures, reproduced.
//!
//! A figure is one file in [`catalogue`] that implements [`Figure`]: what it is and what the paper says about it, how it is measured, and what must be
//! true of the result. Everything else is done here: repetitions in turn, data as CSV, pictures as SVG and PNG, a record of the machine, the paper's
//! numbers beside ours, and the page in the documentation.

pub mod alone;
pub mod catalogue;
mod construct;
mod data;
mod figure;
mod latency_curve;
mod machine;
pub mod output;
pub mod page;
pub mod plot;
mod record;
mod run;
mod shape;
pub mod systems;
pub mod workload;

pub use data::{Data, Point, Row, X};
pub use figure::{Columns, Figure, Kind, Needs, Spec};
pub use machine::Machine;
pub use record::{Record, Unmet, reproduce};
pub use run::{Run, Settings};
pub use shape::{Finding, Shape, Verdict};
