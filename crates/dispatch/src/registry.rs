//! The policies that there are.

use crate::{ByKeyhash, Policy};

/// Every policy. The first is the default.
pub const POLICIES: &[&dyn Policy] = &[&ByKeyhash];

/// The policy of this name.
///
/// # Errors
///
/// The names that there are.
pub fn named(name: &str) -> Result<&'static dyn Policy, String> {
    let known = POLICIES.iter().find(|policy| policy.name() == name);
    let names = || {
        POLICIES
            .iter()
            .map(|policy| policy.name())
            .collect::<Vec<_>>()
    };
    known
        .copied()
        .ok_or_else(|| format!("one of {}", names().join(", ")))
}
