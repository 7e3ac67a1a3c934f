//! SIGHUP: what may change while the server runs is read again.

use crate::Config;
use crate::process;
use crate::stats::ServerAdmin;

/// The settings, read again from where they came from.
pub struct Reread {
    /// All of them.
    pub config: Config,
    /// The long flags of those that say something else than when they were read before.
    pub changed: Vec<String>,
}

/// Reads the settings again. An error is one line for each mistake, and leaves all as they are.
pub type Reader = Box<dyn FnMut() -> Result<Reread, String> + Send>;

/// Applies one group of settings. Returns what holds now, or why it could not be applied.
type Apply = fn(&ServerAdmin, &Config) -> Result<String, String>;

/// Settings that can change, by their flags. Passwords and certificates are read again with every
/// SIGHUP, because their files may have changed.
const CHANGEABLE: &[(&[&str], Apply)] = &[
    (
        &[
            "access",
            "dispatch",
            "dispatch-percentile",
            "dispatch-epoch-ms",
            "dispatch-alpha",
            "dispatch-batch",
            "dispatch-cost",
            "large-cores",
            "large-min",
        ],
        dispatch,
    ),
    (&["conn-limit"], connections),
    (&["verbose"], verbosity),
    (&["slow-ms"], slow),
];

/// Whether a setting can change while the server runs.
fn is_changeable(name: &str) -> bool {
    CHANGEABLE.iter().any(|(names, _)| names.contains(&name))
}

/// Reads everything again and says what became of it.
pub(crate) fn reload(admin: &ServerAdmin, reader: Option<&mut Reader>) {
    admin.reload_users();
    admin.reload_certificates();
    let read = match reader.map(|read| read()) {
        None => return,
        Some(Err(mistakes)) => {
            for mistake in mistakes.lines() {
                tracing::warn!("SIGHUP: {mistake}");
            }
            return tracing::warn!("SIGHUP: the settings stay as they were");
        }
        Some(Ok(read)) => read,
    };
    for (names, apply) in CHANGEABLE {
        let has_changed = |name: &String| names.contains(&name.as_str());
        if !read.changed.iter().any(has_changed) {
            continue;
        }
        match apply(admin, &read.config) {
            Ok(now) => tracing::info!("SIGHUP: {now}"),
            Err(reason) => tracing::warn!("SIGHUP: {reason}"),
        }
    }
    for name in read.changed.iter().filter(|name| !is_changeable(name)) {
        tracing::warn!(
            "SIGHUP: {name} stays as it was; the change takes effect when the server starts again"
        );
    }
}

fn dispatch(admin: &ServerAdmin, config: &Config) -> Result<String, String> {
    let (policy, access) = (config.dispatch.clone(), config.access);
    let name = policy.name();
    let node = admin.node().ok_or("the server has not started")?;
    node.switch(policy, Some(access))
        .map_err(|reason| format!("dispatch: {reason}"))?;
    Ok(format!("dispatch is {name}, and access {access}"))
}

fn connections(admin: &ServerAdmin, config: &Config) -> Result<String, String> {
    let wanted = config.connections_max;
    let fitting = process::raise_descriptor_limit(wanted, config.workers)
        .map_err(|error| format!("conn-limit: {error}"))?;
    let node = admin.node().ok_or("the server has not started")?;
    node.limit_connections(fitting);
    match fitting < wanted {
        true => Err(format!(
            "conn-limit {wanted} is lowered to {fitting}: the limit of open files (ulimit -n) \
             allows no more"
        )),
        false => Ok(format!("conn-limit is {fitting}")),
    }
}

fn verbosity(admin: &ServerAdmin, config: &Config) -> Result<String, String> {
    admin.set_verbosity(config.verbosity.into());
    Ok(format!("verbose is {}", config.verbosity))
}

fn slow(admin: &ServerAdmin, config: &Config) -> Result<String, String> {
    let node = admin.node().ok_or("the server has not started")?;
    let log = node.slow().ok_or("the server has not started")?;
    log.set_threshold_ms(config.slow_ms);
    Ok(format!("slow-ms is {}", config.slow_ms))
}
