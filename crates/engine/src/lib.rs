//! Floor 2: where a request meets a table. A batch of parsed requests goes in; replies come out in
//! the same order, appended to the buffers that the caller handed in. This is the only crate that
//! sees protocol and store together.
//!
//! | file | idea |
//! | --- | --- |
//! | `job` | the contract with the worker |
//! | `lent` | parts of replies that the table lends |
//! | `build` | one engine per worker over one set of partitions |
//! | `rebuild` | engines over the same partitions under another access mode |
//! | `partitions_of` | the handles by which one worker reaches the partitions |
//! | `pipeline` | the staged prefetch over a batch |
//! | `execute` | what each verb does |
//! | `observer` | who learns of every change of an item |
//! | [`snapshot`] | all items as a stream of bytes, and back |
//! | `flush` | `flush_all`, seen by every worker before its next batch |
//! | `tally` | what the requests of one worker did |

mod build;
mod execute;
mod flush;
mod job;
mod lent;
mod observer;
mod partitions_of;
mod pipeline;
mod rebuild;
pub mod snapshot;
mod tally;

pub use build::{Spread, build, build_observed, partitions};
pub use execute::Uniques;
pub use flush::FlushClock;
pub use glimmer_store::groups::Groups;
pub use glimmer_store::heap::{History, Item, Marks, NewItem};
pub use glimmer_store::removals::{Reason, Removal, RemovalObserver, Tap, Told};
pub use glimmer_store::table::{Asides, LentValue, Whereabouts};
pub use job::{
    Announced, Arrival, Arrived, Begun, Counts, Done, Engine, Figures, GroupError, Headway, Job,
    ListCursor, ListScope, Listed, PageReport, Status, SweepCursor, TableStats, Tally, Upload,
    UploadFigures, Visit, Visited,
};
pub use lent::{LentPart, LentParts};
pub use observer::{ChangeObserver, Unobserved};
pub use partitions_of::{Partitions, Place};
pub use pipeline::{Execute, Prefetch, Stages, staged};
pub use rebuild::{Rebuild, rebuild};
