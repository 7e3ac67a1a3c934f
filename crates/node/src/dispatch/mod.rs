//! How the workers come by the plan that they go by. The plans themselves, and the policies that
//! make them, are in `glimmer-dispatch`.
//!
//! | file | idea |
//! | --- | --- |
//! | [`exchange`] | where all workers hand in what is to be replaced in all at once |
//! | [`published`] | a value that one thread replaces and many threads go by |
//! | `ask` | what the plan is asked about a request |
//! | `profile` | what one worker's requests were for, by size |
//! | `plans` | the policy in force, its epochs, and the plan that all workers go by |

#[cfg(not(loom))]
pub(crate) mod ask;
pub mod exchange;
#[cfg(not(loom))]
pub mod plans;
#[cfg(not(loom))]
pub mod profile;
pub mod published;
