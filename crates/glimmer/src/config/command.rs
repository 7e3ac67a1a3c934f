//! `glimmer config`: checks, shows and converts settings.

use super::memcached::{self, raw_values};
use super::{Origin, Whole, environment, flags, settings, written};
use crate::serve::{Arguments as ServeArguments, Refused};
use clap::{ArgAction, FromArgMatches, Subcommand};
use glimmer_notation::counted;
use glimmer_server::memory_plan::{MemoryPlan, Needs};
use glimmer_server::{Config, Mode, TableKind};
use std::ffi::OsString;
use std::path::PathBuf;

/// Check, show or convert settings of serve
///
/// Each flag of serve is also a setting of a TOML file (--config FILE) and of the environment:
/// --memory-limit 1024 is memory-limit = 1024 in the file, and GLIMMER_MEMORY_LIMIT=1024 in the
/// environment. A flag comes before a variable, and a variable before the file.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    glimmer config check /etc/glimmer.toml\n  \
    glimmer config print --config /etc/glimmer.toml -m 2048\n  \
    glimmer config from-memcached /etc/memcached.conf > /etc/glimmer.toml")]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check a file, and print one line for each mistake in it
    ///
    /// The file alone is checked, without the environment. Nothing is started.
    Check {
        /// The file
        file: PathBuf,
    },
    /// Print the settings that serve would have, and where each comes from
    ///
    /// The output is a file of settings itself.
    Print {
        /// Flags of serve, such as --config FILE
        #[arg(
            trailing_var_arg = true,
            allow_hyphen_values = true,
            value_name = "FLAGS"
        )]
        flags: Vec<OsString>,
    },
    /// Print memcached's configuration, one flag on each line, as a file of settings
    FromMemcached {
        /// memcached's file
        #[arg(default_value = "/etc/memcached.conf")]
        file: PathBuf,
    },
}

impl Arguments {
    /// Runs the command.
    pub fn run(self) -> anyhow::Result<()> {
        match self.command {
            Command::Check { file } => {
                let words = [OsString::from("--config"), file.clone().into()];
                let whole = Whole::of(&words, &[])?;
                let config = checked(&whole).map_err(|error| whole.blamed(error))?;
                for notice in config.notices {
                    eprintln!("glimmer: {notice}");
                }
                let settings = counted(whole.origins.len() as u64, "setting");
                println!("{}: no mistake in {settings}", file.display());
            }
            Command::Print { flags } => print!("{}", shown(&flags, &environment())?),
            Command::FromMemcached { file } => print!("{}", memcached::convert(&file)?),
        }
        Ok(())
    }
}

/// What the words come to: as flags, and as a configuration that could be served.
pub fn effective(whole: &Whole) -> anyhow::Result<(clap::ArgMatches, Config)> {
    let words = std::iter::once(OsString::from("serve")).chain(whole.words.iter().cloned());
    let matches = flags().try_get_matches_from(words);
    let matches = matches.map_err(|error| {
        let text = error.render().to_string();
        let text = text.strip_prefix("error: ").unwrap_or(&text);
        Refused::configuration(text.lines().next().unwrap_or_default())
    })?;
    let arguments = ServeArguments::from_arg_matches(&matches)?;
    let config = arguments.config()?;
    MemoryPlan::make(Needs::of(&config)).map_err(glimmer_server::ServeError::from)?;
    Ok((matches, config))
}

/// The configuration of settings that could be served.
pub(super) fn checked(whole: &Whole) -> anyhow::Result<Config> {
    let (_, config) = effective(whole)?;
    config
        .check_ports()
        .map_err(glimmer_server::ServeError::from)?;
    Ok(config)
}

/// The settings in effect, as a file of settings.
pub(super) fn shown(
    typed: &[OsString],
    environment: &[(String, OsString)],
) -> anyhow::Result<String> {
    let whole = Whole::of(typed, environment)?;
    let (matches, config) = effective(&whole).map_err(|error| whole.blamed(error))?;
    let port = ServeArguments::from_arg_matches(&matches)?.tcp_port();
    let flags = flags();
    let mut lines: Vec<(String, Origin)> = Vec::new();
    for (name, flag) in settings(&flags) {
        let origin = whole.origins.iter().find(|(known, _)| known == name);
        let origin = origin.map_or(Origin::Default, |(_, origin)| origin.clone());
        if flag.is_hide_set() && origin == Origin::Default {
            continue;
        }
        let id = flag.get_id().as_str();
        let value = match flag.get_action() {
            ArgAction::SetTrue => Some(matches.get_flag(id).to_string()),
            ArgAction::Count => Some(matches.get_count(id).to_string()),
            action => match (raw_values(&matches, id).as_slice(), action) {
                ([], _) if name == "port" => Some(port.to_string()),
                ([], _) => chosen(name, &config).map(|value| written::scalar(&value)),
                ([.., last], ArgAction::Set) => Some(written::scalar(last)),
                ([one], _) => Some(written::scalar(one)),
                (several, _) => Some(written::list(several)),
            },
        };
        lines.push(match value {
            Some(value) => (written::line(name, &value), origin),
            None => (format!("# {name}"), origin),
        });
    }
    let width = lines.iter().map(|(line, _)| line.len()).max().unwrap_or(0);
    let width = width.min(40);
    let lines = lines
        .iter()
        .map(|(line, origin)| match line.starts_with("# ") {
            true => format!("{line}\n"),
            false => format!("{line:width$}  # {origin}\n"),
        });
    Ok(lines.collect())
}

/// What the server chooses for a setting that nobody has given.
fn chosen(name: &str, config: &Config) -> Option<String> {
    Some(match name {
        "listen" => "*".to_owned(),
        "threads" => config.workers.to_string(),
        "mode" => config.mode.to_string(),
        "max-item-size" if config.item_bytes_max <= config.memory_bytes / 2 => {
            config.item_bytes_max.to_string()
        }
        "evict" if (config.mode, config.table) == (Mode::Cache, TableKind::Mica) => {
            config.eviction().to_owned()
        }
        "dispatch" => config.dispatch.name().to_owned(),
        "protocol" => config.protocol.to_string(),
        _ => return None,
    })
}
