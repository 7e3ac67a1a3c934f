//! Snapshots: all items of a server as a stream of bytes, and back.
//!
//! `docs/snapshot-format.md` describes the bytes. This module makes them and reads them; it knows
//! no file.
//!
//! | file | idea |
//! | --- | --- |
//! | `format` | the head of a file, the heads of its blocks, and its end |
//! | `record` | an item in a block |
//! | `reader` | a file, block by block, whatever its bytes are |
//! | `fuzzing` | the body of the fuzz target |
//! | `walk` | a walk over a worker's partitions that copies their items |

mod format;
pub mod fuzzing;
mod reader;
mod record;
mod walk;

pub use format::{BLOCK_HEAD_BYTES, FILE_HEAD_BYTES, FileHead, Totals, VERSION, seal};
pub use reader::{Damage, Foreign, NextBlock, SnapshotReader};
pub use record::{Record, Records};
pub use walk::{Copied, SnapshotWalk};
