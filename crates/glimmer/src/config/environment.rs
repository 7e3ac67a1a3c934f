//! Settings in the environment, for containers: `GLIMMER_MEMORY_LIMIT` is `--memory-limit`.

use super::{CONFIG, Origin, Setting, Value, refused, settings, words};
use clap::{ArgAction, Command};
use std::ffi::{OsStr, OsString};
use strsim::osa_distance;

const PREFIX: &str = "GLIMMER_";
/// Letters that are wrong, missing or too many in a name that is meant to be that of a setting,
const SLIPS_MAX: usize = 2;
/// if it has as many bytes as this. Shorter names are near to others by chance.
const NAME_BYTES_MIN: usize = 6;

/// The variable of a setting.
pub fn name_of(setting: &str) -> String {
    format!("{PREFIX}{}", setting.replace('-', "_").to_uppercase())
}

/// The settings of the environment. A variable that is nearly the name of one adds a notice: others
/// put variables with this prefix into the environment, so it is no error.
///
/// # Errors
///
/// Each wrong value in a line of its own, with the variable.
pub fn read(
    flags: &Command,
    environment: &[(String, OsString)],
    notices: &mut Vec<String>,
) -> anyhow::Result<Vec<Setting>> {
    let mut found = Vec::new();
    let mut mistakes = Vec::new();
    let ours = (environment.iter()).filter(|(name, _)| name.starts_with(PREFIX));
    for (variable, value) in ours.filter(|(name, value)| !is_of_kubernetes(name, value)) {
        let flag = settings(flags).find(|(name, _)| name_of(name) == *variable);
        let Some((name, flag)) = flag else {
            let meant = settings(flags).map(|(name, _)| name_of(name));
            let meant = meant.filter(|_| *variable != name_of(CONFIG));
            let meant = meant.min_by_key(|name| osa_distance(name, variable));
            let is_near = |name: &String| {
                variable.len() >= PREFIX.len() + NAME_BYTES_MIN
                    && osa_distance(name, variable) <= SLIPS_MAX
            };
            notices.extend(meant.filter(is_near).map(|meant| {
                format!("the variable {variable} is no setting; did you mean {meant}?")
            }));
            continue;
        };
        let text = value.to_str().ok_or_else(|| "it is not UTF-8".to_owned());
        let read = text.and_then(|text| value_of(flag.get_action(), name, text));
        match read.and_then(|value| words(flags, name, value)) {
            Ok(words) => found.push(Setting {
                name: name.to_owned(),
                origin: Origin::Variable(variable.clone()),
                words,
            }),
            Err(reason) => mistakes.push(format!("{variable}={}: {reason}", value.display())),
        }
    }
    match mistakes.is_empty() {
        true => Ok(found),
        false => Err(refused(&mistakes)),
    }
}

/// In the containers of a namespace with a service called `glimmer`, Kubernetes sets variables of
/// this prefix, as Docker's links did: `GLIMMER_PORT=tcp://10.0.0.1:11211`.
fn is_of_kubernetes(name: &str, value: &OsStr) -> bool {
    (name == name_of("port") && value.to_string_lossy().contains("://"))
        || name.starts_with("GLIMMER_PORT_")
        || name.contains("_SERVICE_")
}

fn value_of(action: &ArgAction, name: &str, text: &str) -> Result<Value, String> {
    match action {
        ArgAction::SetTrue => match text {
            "true" | "1" | "yes" | "on" => Ok(Value::Switch(true)),
            "false" | "0" | "no" | "off" | "" => Ok(Value::Switch(false)),
            _ => Err(format!("{name} is true or false")),
        },
        ArgAction::Count => Ok(Value::Number(text.to_owned())),
        _ => Ok(Value::Text(text.to_owned())),
    }
}
