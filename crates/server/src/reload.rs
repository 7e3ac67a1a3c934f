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
    /// The long flags of those that say something else than when the server started.
    pub not_of_start: Vec<String>,
}

/// Reads the settings again. An error is one line for each mistake, and leaves all as they are.
type Read = Box<dyn FnMut() -> Result<Reread, String> + Send>;

/// What reads the settings again, and which of them have not been applied yet.
pub struct Reader {
    read: Read,
    /// The long flags of those that could not be applied. They are due at the next SIGHUP, whether
    /// they change until then or not.
    failed: Vec<String>,
    /// The policy of the latest settings, by its name. `None`: they are those of the start.
    policy: Option<&'static str>,
}

impl Reader {
    /// One that reads by this function.
    pub fn new(read: impl FnMut() -> Result<Reread, String> + Send + 'static) -> Reader {
        Reader {
            read: Box::new(read),
            failed: Vec::new(),
            policy: None,
        }
    }

    /// The settings, with all that are due: those that have changed, and those that could not be
    /// applied before.
    fn read(&mut self, policy_at_start: &'static str) -> Result<Reread, String> {
        let mut read = (self.read)()?;
        // Settings that name no policy have one that goes with the access mode.
        let policy = read.config.dispatch.name();
        let before = self.policy.replace(policy).unwrap_or(policy_at_start);
        if policy != before {
            read.changed.push("dispatch".to_owned());
        }
        read.changed.append(&mut self.failed);
        read.changed.sort();
        read.changed.dedup();
        Ok(read)
    }
}

/// Settings that are due, and what all of them say.
struct Due<'a> {
    /// The long flags of those that are due.
    names: Vec<String>,
    config: &'a Config,
}

impl Due<'_> {
    fn has(&self, name: &str) -> bool {
        self.names.iter().any(|due| due == name)
    }
}

/// Applies one group of settings, of which one is due at least. Returns what holds now, or why it
/// could not be applied.
type Apply = fn(&ServerAdmin, &Due<'_>) -> Result<String, String>;

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
    (
        &["address-connections", "address-requests", "address-bytes"],
        addresses,
    ),
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
    let Some(reader) = reader else {
        return;
    };
    let read = match reader.read(admin.config.dispatch.name()) {
        Ok(read) => read,
        Err(mistakes) => {
            for mistake in mistakes.lines() {
                tracing::warn!("SIGHUP: {mistake}");
            }
            return tracing::warn!("SIGHUP: the settings stay as they were");
        }
    };
    for (names, apply) in CHANGEABLE {
        let of_group = |name: &&String| names.contains(&name.as_str());
        let due = Due {
            names: read.changed.iter().filter(of_group).cloned().collect(),
            config: &read.config,
        };
        if due.names.is_empty() {
            continue;
        }
        match apply(admin, &due) {
            Ok(now) => tracing::info!("SIGHUP: {now}"),
            Err(reason) => {
                tracing::warn!("SIGHUP: {reason}; the next SIGHUP tries it again");
                reader.failed.extend(due.names);
            }
        }
    }
    let waits = |name: &&String| !is_changeable(name) && read.not_of_start.contains(name);
    for name in read.changed.iter().filter(waits) {
        tracing::warn!(
            "SIGHUP: {name} stays as it was; the change takes effect when the server starts again"
        );
    }
}

/// A client may have put another policy or access mode in force. It stays unless that very setting
/// is due, with the settings of policies as they are now.
fn dispatch(admin: &ServerAdmin, due: &Due<'_>) -> Result<String, String> {
    let Config {
        dispatch,
        access,
        dispatch_settings,
        ..
    } = due.config;
    let policy = due.has("dispatch").then(|| dispatch.clone());
    let access = due.has("access").then_some(*access);
    let node = admin.node().ok_or("the server has not started")?;
    node.switch(policy, access, *dispatch_settings)
        .map_err(|reason| format!("dispatch: {reason}"))?;
    let view = node.dispatch().ok_or("the server stops")?;
    let access = access.unwrap_or(view.access);
    Ok(format!(
        "dispatch is {}, and access {access}",
        view.policy.name()
    ))
}

fn connections(admin: &ServerAdmin, due: &Due<'_>) -> Result<String, String> {
    let wanted = due.config.connections_max;
    let fitting = process::raise_descriptor_limit(wanted, due.config.workers)
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

fn addresses(admin: &ServerAdmin, due: &Due<'_>) -> Result<String, String> {
    let quotas = due.config.address_quotas;
    admin.tenants().limit_addresses(quotas);
    let node = admin.node().ok_or("the server has not started")?;
    // Workers that sleep look at their connections again.
    node.wake();
    let name = |count: u64| match count {
        0 => "no limit".to_owned(),
        count => count.to_string(),
    };
    Ok(format!(
        "address-connections is {}, address-requests {} and address-bytes {}",
        name(quotas.connections),
        name(quotas.requests),
        name(quotas.bytes)
    ))
}

fn verbosity(admin: &ServerAdmin, due: &Due<'_>) -> Result<String, String> {
    let config = due.config;
    admin.set_verbosity(config.verbosity.into());
    Ok(format!("verbose is {}", config.verbosity))
}

fn slow(admin: &ServerAdmin, due: &Due<'_>) -> Result<String, String> {
    let config = due.config;
    let node = admin.node().ok_or("the server has not started")?;
    let log = node.slow().ok_or("the server has not started")?;
    log.set_threshold_ms(config.slow_ms);
    Ok(format!("slow-ms is {}", config.slow_ms))
}
