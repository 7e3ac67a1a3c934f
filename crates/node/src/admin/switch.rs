//! Putting another dispatch policy or access mode in force while the server runs.

use std::sync::Arc;

use glimmer_base::Moment;
use glimmer_base::sync::Ordering;
use glimmer_dispatch::{AccessMode, Policy, Settings};

use crate::shared::Shared;

/// What a client or the operator wants to be in force. What is not named stays.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// A policy, which has the settings below if there are any.
    pub policy: Option<Arc<dyn Policy>>,
    pub access: Option<AccessMode>,
    /// Settings of the policy, and of those that clients name later.
    pub settings: Option<Settings>,
}

/// A policy or an access mode that is being put in force. It is complete when every worker goes by
/// its plan.
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

impl Wanted {
    /// What the words of a command name: a policy, an access mode, or both in this order.
    ///
    /// # Errors
    ///
    /// What is wrong with them.
    pub fn parse(words: [&[u8]; 2], settings: &Settings) -> Result<Wanted, String> {
        let [first, second] = words.map(|word| str::from_utf8(word).unwrap_or("?"));
        if second.is_empty()
            && let Ok(access) = first.parse()
        {
            return Ok(Wanted {
                access: Some(access),
                ..Wanted::default()
            });
        }
        let policy = glimmer_dispatch::named(first, settings)?;
        let access = match second {
            "" => None,
            name => Some(
                name.parse()
                    .map_err(|known| format!("an access mode is {known}"))?,
            ),
        };
        Ok(Wanted {
            policy: Some(policy),
            access,
            settings: None,
        })
    }
}

/// Begins to put in force what is wanted.
///
/// # Errors
///
/// The reason why it cannot be.
pub(crate) fn begin(wanted: Wanted, shared: &Arc<Shared>, now: Moment) -> Result<Switch, String> {
    let plans = &shared.plans;
    let policy = match (wanted.policy, &wanted.settings) {
        (Some(policy), _) => policy,
        (None, Some(settings)) => with_settings(plans.policy(), settings)?,
        (None, None) => plans.policy(),
    };
    let settings = wanted.settings.unwrap_or_else(|| plans.settings());
    let access_now = plans.access();
    // One worker shares nothing, and its access mode makes no difference.
    let access = match shared.is_alone() {
        true => access_now,
        false => wanted.access.unwrap_or(access_now),
    };
    policy.check_workers(shared.workers())?;
    if !shared.is_alone() {
        check(&*policy, access, shared)?;
    }
    let version = match access == access_now {
        true => plans.switch(policy, settings, now.ms),
        false if !shared.engines.is_idle() => None,
        false => plans.begin_access(policy, settings, access),
    };
    let version = version.ok_or("the access mode is being changed; try again")?;
    shared.wake_all();
    Ok(Switch {
        shared: shared.clone(),
        version,
    })
}

/// The same policy with other settings, if it has any.
fn with_settings(policy: Arc<dyn Policy>, settings: &Settings) -> Result<Arc<dyn Policy>, String> {
    let configured = policy.configured(settings, None)?;
    Ok(configured.map_or(policy, Arc::from))
}

/// Whether the policy works with the access mode, and the server can have both.
fn check(policy: &dyn Policy, access: AccessMode, shared: &Shared) -> Result<(), String> {
    if let Err(reason) = policy.check(access) {
        // The rest of the reason is for the command line.
        let reason = reason.split(';').next().unwrap_or_default();
        let name = policy.name();
        return Err(format!(
            "{reason}: change the access mode too (dispatch {name} crcw), or say \
             dispatch keyhash {access}"
        ));
    }
    let config = &shared.config;
    let has_one_port = config
        .native
        .as_ref()
        .is_some_and(|native| native.single_port);
    if access != AccessMode::Crcw && has_one_port {
        return Err("clients of one native port need crcw (--native-single-port)".to_owned());
    }
    if access != shared.plans.access() && config.access_modes.is_none() {
        return Err("this server cannot change its access mode".to_owned());
    }
    Ok(())
}
