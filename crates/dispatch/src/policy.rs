//! What makes plans.

use crate::{AccessMode, Controller, Layout, Plan, Settings};
use std::fmt::Debug;

/// A dispatch policy: decides how requests are spread over cores.
pub trait Policy: Debug + Send + Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// Where requests execute, in one sentence for people who choose a policy. It starts in lower
    /// case and has no full stop.
    fn summary(&self) -> &'static str;

    /// What may follow its name and a colon, as the help shows it; `None` if nothing may.
    fn argument(&self) -> Option<&'static str> {
        None
    }

    /// The same policy with these settings and the text after the colon, which is there only if
    /// [`Policy::argument`] allows it. Without a text, what an earlier one has set stays. `None`:
    /// there is nothing to set.
    ///
    /// # Errors
    ///
    /// What the text has to be.
    fn configured(
        &self,
        settings: &Settings,
        argument: Option<&str>,
    ) -> Result<Option<Box<dyn Policy>>, String> {
        let _ = (settings, argument);
        Ok(None)
    }

    /// Whether it works with an access mode.
    ///
    /// # Errors
    ///
    /// The reason why it does not, with what to do instead.
    fn check(&self, access: AccessMode) -> Result<(), &'static str> {
        let _ = access;
        Ok(())
    }

    /// Whether it works with this number of cores.
    ///
    /// # Errors
    ///
    /// The reason why it does not, with what to do instead.
    fn check_workers(&self, workers: usize) -> Result<(), &'static str> {
        let _ = workers;
        Ok(())
    }

    /// The plan that cores start with, for an access mode that [`Policy::check`] has passed.
    fn plan(&self, layout: Layout) -> Plan;

    /// What makes further plans from what was requested; `None` if the first one stays.
    fn controller(&self, layout: Layout) -> Option<Controller> {
        let _ = layout;
        None
    }
}

impl Policy for &'static dyn Policy {
    fn name(&self) -> &'static str {
        (**self).name()
    }

    fn summary(&self) -> &'static str {
        (**self).summary()
    }

    fn argument(&self) -> Option<&'static str> {
        (**self).argument()
    }

    fn configured(
        &self,
        settings: &Settings,
        argument: Option<&str>,
    ) -> Result<Option<Box<dyn Policy>>, String> {
        (**self).configured(settings, argument)
    }

    fn check(&self, access: AccessMode) -> Result<(), &'static str> {
        (**self).check(access)
    }

    fn check_workers(&self, workers: usize) -> Result<(), &'static str> {
        (**self).check_workers(workers)
    }

    fn plan(&self, layout: Layout) -> Plan {
        (**self).plan(layout)
    }

    fn controller(&self, layout: Layout) -> Option<Controller> {
        (**self).controller(layout)
    }
}
