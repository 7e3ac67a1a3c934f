//! Every dispatch policy.
//!
//! A policy is one file here and one line in the list below. The name and the help of `--dispatch`,
//! and the tests of plans, of the order of replies and of whole servers follow from [`POLICIES`].
//!
//! A policy outside the list is one that the workers do not carry out yet. Only the simulator of
//! `glimmer-queueing` runs it.

mod handoff;
mod size_aware;
mod stealing;

pub use handoff::Handoff;
pub use size_aware::{Controller, SizeAware};
pub use stealing::Stealing;

use crate::Policy;

/// Declares the modules of the policies, and the list of them.
macro_rules! policies {
    ($($module:ident::$policy:ident,)+) => {
        $(
            mod $module;
            pub use $module::$policy;
        )+

        /// Every policy. The first is the default.
        pub const POLICIES: &[&dyn Policy] = &[$(&$policy),+];
    };
}

policies! {
    keyhash::ByKeyhash,
    owner::ByOwner,
}

/// The policy of this name.
///
/// # Errors
///
/// The names that there are.
pub fn named(name: &str) -> Result<&'static dyn Policy, String> {
    let known = POLICIES.iter().find(|policy| policy.name() == name);
    known.copied().ok_or_else(|| format!("one of {}", names()))
}

/// The names of all policies, separated by commas.
pub fn names() -> String {
    let names: Vec<_> = POLICIES.iter().map(|policy| policy.name()).collect();
    names.join(", ")
}
