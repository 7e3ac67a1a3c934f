//! Floor 2: where a request meets a table. A batch of parsed requests goes in; replies come out in the same order, appended to the
//! buffers that the caller handed in. This is the only crate that sees protocol and store together.

mod job;

pub use job::{Done, Engine, Job, Place, Status, TableStats};
