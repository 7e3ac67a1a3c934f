//! What is asked of a cache: which keys, how large their values, which verbs, in which order.

pub mod popularity;
pub mod zipf;

pub use popularity::{Law, Popularity, Sampler};
