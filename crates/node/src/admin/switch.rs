//! Putting another dispatch policy in force while the server runs.

use std::sync::Arc;

use glimmer_base::sync::Ordering;

use crate::core::Core;
use crate::shared::Shared;

/// A policy that is being put in force. It is complete when every worker goes by its plan.
pub(crate) struct Switch {
    shared: Arc<Shared>,
    /// The version of the plan.
    version: u64,
}

impl Switch {
    /// Whether every worker goes by the new plan, or the server stops.
    pub fn is_complete(&self) -> bool {
        let is_stopping = self.shared.stopping.load(Ordering::Relaxed);
        is_stopping || self.shared.plans.is_taken(self.version)
    }
}

/// Begins to put the policy of this name in force.
///
/// # Errors
///
/// The reason why it cannot be.
pub(crate) fn to_policy(name: &[u8], core: &Core) -> Result<Switch, String> {
    let name = str::from_utf8(name).map_err(|_| "a policy's name is text".to_owned())?;
    let settings = &core.shared.config.dispatch_settings;
    let policy = glimmer_dispatch::named(name, settings)?;
    if !core.is_alone {
        policy.check(core.engine.layout().access)?;
        policy.check_workers(core.shared.workers())?;
    }
    let version = core.shared.plans.switch(policy, core.now.ms);
    core.shared.wake_all();
    Ok(Switch {
        shared: core.shared.clone(),
        version,
    })
}
