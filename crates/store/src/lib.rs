//! Floor 1: one partition's data.
