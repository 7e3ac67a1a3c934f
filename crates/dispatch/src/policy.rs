//! What makes plans.

use crate::{AccessMode, Layout, Plan};
use std::fmt::Debug;

/// A dispatch policy: decides how requests are spread over cores.
pub trait Policy: Debug + Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// Where requests execute, in one sentence for people who choose a policy. It starts in lower
    /// case and has no full stop.
    fn summary(&self) -> &'static str;

    /// Whether it works with an access mode.
    ///
    /// # Errors
    ///
    /// The reason why it does not, with what to do instead.
    fn check(&self, access: AccessMode) -> Result<(), &'static str> {
        let _ = access;
        Ok(())
    }

    /// The plan that cores start with, for an access mode that [`Policy::check`] has passed.
    fn plan(&self, layout: Layout) -> Plan;
}
