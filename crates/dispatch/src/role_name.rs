//! What a core's role is called.

use crate::{Intake, Plan};

/// Every name that [`Plan::role_name`] gives.
pub const ROLE_NAMES: [&str; 7] = [
    "all",
    "small",
    "large",
    "standby",
    "dispatcher",
    "executor",
    "stealing",
];

impl Plan {
    /// What the role of a core is called.
    ///
    /// - `all`: it executes what it receives.
    /// - `small`: the same, but it hands large requests over.
    /// - `large`: it executes the large requests that are handed to it, if the plan has sizes for
    ///   it, and no connection is at home with it.
    /// - `standby`: the same, and it takes small requests while it has no large one.
    /// - `dispatcher`: it receives requests for others.
    /// - `executor`: it executes the requests that dispatchers have received.
    /// - `stealing`: it executes what it receives, and what others have not begun when it is idle.
    pub fn role_name(&self, core: usize) -> &'static str {
        let role = self.role(core);
        let is_sorted = self.large_from() < u32::MAX;
        match role.intake {
            Intake::HandOff => "dispatcher",
            Intake::Enqueue => "stealing",
            Intake::Execute if !role.reads.is_empty() && !is_sorted => "all",
            Intake::Execute if !role.reads.is_empty() => "small",
            Intake::Execute if !is_sorted => "executor",
            Intake::Execute if role.takes.rx.is_empty() || role.is_reserved => "large",
            Intake::Execute => "standby",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        AccessMode, ByKeyhash, Handoff, LargeCores, Layout, PartitionMap, Policy, Settings,
        SizeAware, Stealing,
    };

    fn layout(cores: usize) -> Layout {
        Layout {
            map: PartitionMap::new(cores, cores),
            access: AccessMode::Crcw,
        }
    }

    fn names(plan: &Plan) -> Vec<&'static str> {
        let cores = 0..plan.roles().len();
        let names: Vec<_> = cores.map(|core| plan.role_name(core)).collect();
        assert!(names.iter().all(|name| ROLE_NAMES.contains(name)));
        names
    }

    #[test]
    fn every_policy_names_its_roles() {
        let of = |policy: &dyn Policy, cores| names(&policy.plan(layout(cores)));
        assert_eq!(of(&ByKeyhash, 2), ["all", "all"]);
        assert_eq!(of(&Stealing, 2), ["stealing", "stealing"]);
        let handoff = Handoff { dispatchers: 1 };
        assert_eq!(of(&handoff, 3), ["dispatcher", "executor", "executor"]);
        assert_eq!(of(&SizeAware::DEFAULT, 1), ["all"]);
        assert_eq!(of(&SizeAware::DEFAULT, 3), ["small", "small", "standby"]);
    }

    /// Before the first epoch one core has all large sizes. The others are large all the same.
    #[test]
    fn a_large_core_without_sizes_is_large() {
        let settings = Settings {
            large_cores: LargeCores::Fixed(3),
            ..Settings::DEFAULT
        };
        let plan = SizeAware::with(settings).plan(layout(4));
        assert!(plan.role(3).sizes.is_empty() && !plan.role(1).sizes.is_empty());
        assert_eq!(names(&plan), ["small", "large", "large", "large"]);
    }
}
