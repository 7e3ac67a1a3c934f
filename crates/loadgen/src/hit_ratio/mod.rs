//! How many requests a cache answers under each eviction rule.

pub mod reference;
pub mod trace;
