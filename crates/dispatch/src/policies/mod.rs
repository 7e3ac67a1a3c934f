//! Every dispatch policy.
//!
//! A policy is one file here and one line in the list below. The name and the help of `--dispatch`,
//! and the tests of plans, of the order of replies and of whole servers follow from [`POLICIES`].

pub use size_aware::Controller;

use crate::{AccessMode, Policy, Settings};
use std::sync::Arc;

/// Declares the modules of the policies, and the list of them.
macro_rules! policies {
    ($($module:ident::$policy:ident $(= $default:expr)?,)+) => {
        $(
            mod $module;
            pub use $module::$policy;
        )+

        /// Every policy, with its default settings. The first works with every access mode.
        pub const POLICIES: &[&dyn Policy] = &[$(policies!(@value $policy $($default)?)),+];
    };
    (@value $policy:ident) => {
        &$policy
    };
    (@value $policy:ident $default:expr) => {
        &$default
    };
}

policies! {
    keyhash::ByKeyhash,
    owner::ByOwner,
    handoff::Handoff = Handoff { dispatchers: 1 },
    stealing::Stealing,
    size_aware::SizeAware = SizeAware::DEFAULT,
}

/// The policy of this name, with what follows the name after a colon.
///
/// # Errors
///
/// The names that there are, or what may follow this one.
pub fn named(text: &str, settings: &Settings) -> Result<Arc<dyn Policy>, String> {
    let (name, argument) = match text.split_once(':') {
        Some((name, argument)) => (name, Some(argument)),
        None => (text, None),
    };
    let known = POLICIES.iter().find(|policy| policy.name() == name);
    let &policy = known.ok_or_else(|| format!("one of {}", names()))?;
    if argument.is_some() && policy.argument().is_none() {
        return Err(format!("{name} without a colon"));
    }
    Ok(match policy.configured(settings, argument)? {
        Some(configured) => Arc::from(configured),
        None => Arc::new(policy),
    })
}

/// The policy of a server whose operator names none: size-aware where there is another worker that
/// can execute any request, so that large requests do not hold small ones up.
pub fn default_for(access: AccessMode, workers: usize) -> &'static dyn Policy {
    const PREFERRED: SizeAware = SizeAware::DEFAULT;
    match PREFERRED.check(access) {
        Ok(()) if workers > 1 => &PREFERRED,
        _ => &ByKeyhash,
    }
}

/// The names of all policies with what may follow them, separated by commas.
pub fn names() -> String {
    let mut names = Vec::new();
    for policy in POLICIES {
        names.push(match policy.argument() {
            Some(argument) => format!("{}[:{argument}]", policy.name()),
            None => policy.name().to_owned(),
        });
    }
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_policy_works_with_every_access_mode_and_number_of_workers() {
        for &access in AccessMode::ALL {
            for workers in 1..=4 {
                let policy = default_for(access, workers);
                assert_eq!(policy.check(access), Ok(()));
                assert_eq!(policy.check_workers(workers), Ok(()));
                let is_shared = access == AccessMode::Crcw && workers > 1;
                let expected = if is_shared { "size-aware" } else { "keyhash" };
                assert_eq!(policy.name(), expected, "{access:?}, {workers} workers");
            }
        }
    }
}
