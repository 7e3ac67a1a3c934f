//! A body that another program than `glimmer` has: it assembles a server and makes the body for it.

use glimmer_hotset::{Body, Policy};
use glimmer_proto::Accepts;
use std::fmt::{Debug, Display};

/// Makes a body of the accelerator for a server. It is shown as the argument that asks for it.
pub trait MakeBody: Debug + Display + Send + Sync {
    /// The body's name in statistics.
    fn name(&self) -> &'static str;

    /// Bytes of the server's memory for a body of this number of slots, without its policy.
    fn memory_bytes(&self, slots: usize) -> usize;

    /// Whether the body answers requests of a server whose connections speak this (`-B`).
    ///
    /// # Errors
    ///
    /// What the operator has to change.
    fn check(&self, protocol: Accepts) -> Result<(), &'static str>;

    /// Makes the body. It answers nothing until it is given keys. The server has not given its
    /// rights up yet.
    ///
    /// # Errors
    ///
    /// Why the body cannot be made, in one line that says what to do.
    fn make(&self, slots: usize, policy: Box<dyn Policy>) -> Result<Box<dyn Body>, String>;
}
