//! Dispatch by owner: a request executes on the core that owns its partition, also where the access
//! mode lets other cores execute it.
//!
//! These are the routes of MICA's EREW mode (§4.1.2) over any store. Over a store that all cores
//! may read and write, they are the baseline of size-aware sharding: hardware dispatch by keyhash,
//! as Minos simulates it (§2.2).

use crate::{Layout, Plan, Policy};

/// Sends every request to the owner of its partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByOwner;

impl Policy for ByOwner {
    fn name(&self) -> &'static str {
        "owner"
    }

    fn summary(&self) -> &'static str {
        "the owner of the request's key, also where --access lets other workers execute it"
    }

    fn plan(&self, layout: Layout) -> Plan {
        Plan::by_owner(layout)
    }
}
