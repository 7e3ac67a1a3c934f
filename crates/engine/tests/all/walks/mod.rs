//! Walks over all items: as clients list them, and as snapshots copy them.

mod bytes;
mod listed;
mod snapshots;
