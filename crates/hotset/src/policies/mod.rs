//! Every policy of the accelerator: one file here, and one line in the list below.

mod counting;
mod paper;

pub use counting::Counting;
pub use paper::{COUNT_MAX, Paper};

use crate::Policy;

/// How a policy is made, for a number of slots at a time in milliseconds.
pub type Make = fn(slots: usize, now_ms: u64) -> Box<dyn Policy>;

/// Every policy with its name. The first is the default.
pub const POLICIES: &[(&str, Make)] = &[
    ("counting", |slots, now_ms| {
        Box::new(Counting::new(slots, now_ms))
    }),
    ("paper", |slots, now_ms| Box::new(Paper::new(slots, now_ms))),
];
