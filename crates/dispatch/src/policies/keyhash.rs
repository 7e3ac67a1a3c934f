//! Dispatch by keyhash: a request executes where it arrives, unless the access mode leaves its
//! partition to the owner (MICA §4.1.2).

use crate::{Layout, Plan, Policy};

/// The default policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByKeyhash;

impl Policy for ByKeyhash {
    fn name(&self) -> &'static str {
        "keyhash"
    }

    fn summary(&self) -> &'static str {
        "the worker that received the request, or the owner of its key if --access demands it"
    }

    fn plan(&self, layout: Layout) -> Plan {
        Plan::by_keyhash(layout)
    }
}
