//! Settings from a file and from the environment. Each setting is a flag of `glimmer serve` under
//! its long name, so that its values, errors and help exist once: what a file or a variable says
//! becomes words of the command line, before those that were typed.
//!
//! | file | what it reads |
//! | --- | --- |
//! | `file` | a TOML file (`--config`) |
//! | `environment` | variables such as `GLIMMER_MEMORY_LIMIT` |
//! | `memcached` | a configuration file of memcached, to convert it |
//! | `command` | `glimmer config` |

pub mod command;
mod environment;
mod file;
mod memcached;
mod written;

use crate::serve::{Arguments, Refused};
use clap::builder::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args};
use glimmer_cli::told;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

/// The flag that names the file. It is no setting of the file.
const CONFIG: &str = "config";
/// The setting that is a list of options (`-o`).
const EXTENDED: &str = "extended";
/// The setting whose list cannot be empty. Without it the server listens on all interfaces, which a
/// list of no addresses does not ask for.
const LISTEN: &str = "listen";
/// Settings that only a command line has: they print something, or read settings.
const ONLY_FLAGS: [&str; 4] = [CONFIG, "license", "help", "version"];

/// Where a setting comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A line of a file.
    File(PathBuf, usize),
    /// A variable of the environment.
    Variable(String),
    CommandLine,
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::File(path, line) => write!(f, "{}:{line}", path.display()),
            Origin::Variable(name) => write!(f, "variable {name}"),
            Origin::CommandLine => f.write_str("command line"),
            Origin::Default => f.write_str("default"),
        }
    }
}

/// One setting that a source has.
#[derive(Clone, Debug)]
struct Setting {
    /// Its long flag, without the hyphens.
    name: String,
    origin: Origin,
    /// The words of the command line that mean the same. None: the flag is off.
    words: Vec<OsString>,
}

/// The flags of `glimmer serve`.
fn flags() -> Command {
    let command = Command::new("serve").args_override_self(true);
    <Arguments as Args>::augment_args(command).allow_negative_numbers(true)
}

/// The flags that may be settings.
fn settings(flags: &Command) -> impl Iterator<Item = (&str, &Arg)> {
    flags.get_arguments().filter_map(|flag| {
        let name = flag.get_long()?;
        (!ONLY_FLAGS.contains(&name)).then_some((name, flag))
    })
}

/// A command line of `glimmer serve`, with what file and environment add.
#[derive(Clone, Default)]
pub struct Whole {
    /// All words, the least important ones first.
    pub words: Vec<OsString>,
    /// Where each setting comes from that a file, a variable or a flag has.
    origins: Vec<(String, Origin)>,
    /// The file, with its whole path: a server may change its folder.
    pub file: Option<PathBuf>,
    /// The words of each setting of the file and the environment.
    added: Vec<(String, Vec<OsString>)>,
    /// The words that were typed.
    typed: Vec<OsString>,
    /// Warnings about variables: names that are nearly those of settings, and options of the file
    /// that one replaces.
    pub notices: Vec<String>,
}

impl Whole {
    /// Adds to the `typed` words what a file and the `environment` say. The file is the one that
    /// the words or the environment name. A flag that was typed replaces what they say of it.
    ///
    /// # Errors
    ///
    /// What is wrong with the file or a variable, with its place, one line for each mistake.
    pub fn of(typed: &[OsString], environment: &[(String, OsString)]) -> anyhow::Result<Whole> {
        let flags = flags();
        let first = std::iter::once(OsString::from("serve"));
        let Ok(matches) = (flags.clone()).try_get_matches_from(first.chain(typed.iter().cloned()))
        else {
            // The caller parses the words again. It reports the error, or shows the help.
            return Ok(Whole {
                words: typed.to_vec(),
                ..Whole::default()
            });
        };
        let mut notices = Vec::new();
        let of_environment = environment::read(&flags, environment, &mut notices)?;
        let file = config_file(&matches, environment);
        if file
            .as_ref()
            .is_some_and(|path| path.as_os_str().is_empty())
        {
            let what =
                "--config (or GLIMMER_CONFIG) is empty: give the path of a file, or leave it out";
            return Err(refused(&[what.to_owned()]));
        }
        let of_file = match &file {
            Some(path) => file::read(&flags, path)?,
            None => Vec::new(),
        };
        let is_typed = |name: &str| is_typed(&flags, &matches, name);
        let mut settings = of_file;
        let is_replaced = |it: &Setting| of_environment.iter().any(|other| other.name == it.name);
        let lost = settings
            .iter()
            .find(|it| it.name == EXTENDED && is_replaced(it));
        if let Some(lost) = lost.filter(|_| !is_typed(EXTENDED)) {
            let variable = environment::name_of(EXTENDED);
            let place = &lost.origin;
            notices.push(format!(
                "the variable {variable} replaces all options of extended at {place}"
            ));
        }
        settings.retain(|it| !is_replaced(it));
        settings.extend(of_environment);
        settings.retain(|it| !is_typed(&it.name));
        let named = |it: &Setting| (it.name.clone(), it.origin.clone());
        let mut origins: Vec<_> = settings.iter().map(named).collect();
        let typed_names = self::settings(&flags).filter(|(name, _)| is_typed(name));
        origins.extend(typed_names.map(|(name, _)| (name.to_owned(), Origin::CommandLine)));
        let words = settings.iter().flat_map(|it| &it.words);
        Ok(Whole {
            words: words.chain(typed).cloned().collect(),
            origins,
            file: file.map(|path| std::path::absolute(&path).unwrap_or(path)),
            added: settings.into_iter().map(|it| (it.name, it.words)).collect(),
            typed: typed.to_vec(),
            notices,
        })
    }

    /// The settings of the file and the environment that differ from an earlier reading.
    pub fn changed_since(&self, before: &Whole) -> Vec<String> {
        let differs = |one: &Whole, other: &Whole| -> Vec<String> {
            let new = one.added.iter().filter(|it| !other.added.contains(it));
            new.map(|(name, _)| name.clone()).collect()
        };
        let mut names = differs(self, before);
        names.extend(differs(before, self));
        names.sort();
        names.dedup();
        names
    }

    /// Whether the file or the environment has a part in a mistake: the settings cannot be served,
    /// and the words that were typed could be by themselves.
    pub fn has_mistake(&self) -> bool {
        let alone = Whole {
            words: self.typed.clone(),
            ..Whole::default()
        };
        let is_wrong = |whole: &Whole| command::checked(whole).is_err();
        !self.added.is_empty() && is_wrong(self) && !is_wrong(&alone)
    }

    /// An error of a command with these settings, with the exit code for a mistake in a file or in
    /// the environment if it is one.
    pub fn blamed(&self, error: anyhow::Error) -> anyhow::Error {
        match self.has_mistake() {
            true => refused(&[told(&error)]),
            false => error,
        }
    }
}

fn config_file(matches: &ArgMatches, environment: &[(String, OsString)]) -> Option<PathBuf> {
    let typed = matches.get_one::<PathBuf>(CONFIG).cloned();
    typed.or_else(|| {
        let name = environment::name_of(CONFIG);
        let variable = environment.iter().find(|(known, _)| *known == name);
        variable.map(|(_, path)| PathBuf::from(path))
    })
}

fn is_typed(flags: &Command, matches: &ArgMatches, name: &str) -> bool {
    let mut all = settings(flags);
    let found = all.find(|(known, _)| *known == name);
    let source = found.and_then(|(_, flag)| matches.value_source(flag.get_id().as_str()));
    source == Some(ValueSource::CommandLine)
}

/// A value as a file or a variable says it.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    Switch(bool),
    /// A number, as it is written.
    Number(String),
    Text(String),
    List(Vec<String>),
}

/// The words for a setting, checked as flags are.
fn words(flags: &Command, name: &str, value: Value) -> Result<Vec<OsString>, String> {
    let Some((_, flag)) = settings(flags).find(|(known, _)| *known == name) else {
        return Err(unknown(flags, name));
    };
    let long = format!("--{name}");
    let with = |text: &str| OsString::from(format!("{long}={text}"));
    let words = match (flag.get_action(), value) {
        (ArgAction::SetTrue, Value::Switch(true)) => vec![long.into()],
        (ArgAction::SetTrue, Value::Switch(false)) => Vec::new(),
        (ArgAction::SetTrue, _) => return Err(format!("{name} is true or false")),
        (ArgAction::Count, Value::Number(number)) => match number.parse() {
            Ok(times @ 0..=u8::MAX) => vec![long.into(); times.into()],
            Err(_) => return Err(format!("{name} is a number from 0 to {}", u8::MAX)),
        },
        (ArgAction::Count, _) => return Err(format!("{name} is a number")),
        (_, Value::Switch(_)) => return Err(format!("{name} has a value: {}", expected(flag))),
        (ArgAction::Append, Value::List(items)) if items.is_empty() && name == LISTEN => {
            return Err(format!(
                "{name} names no address; give one, or leave it out for all interfaces"
            ));
        }
        (ArgAction::Append, Value::List(items)) => items.iter().map(|item| with(item)).collect(),
        (_, Value::List(items)) => vec![with(&items.join(","))],
        (_, Value::Number(text) | Value::Text(text)) => vec![with(&text)],
    };
    check(flags, &words)?;
    if name == EXTENDED {
        let values = words.iter().filter_map(|it| it.to_str()?.split_once('='));
        values.map(|(_, list)| list).try_for_each(check_extended)?;
    }
    Ok(words)
}

/// Whether there are such extended options. As flags, they are read when all flags are known.
fn check_extended(list: &str) -> Result<(), String> {
    let mut unused = glimmer_server::Config::default();
    let read = crate::serve::extended::read(&[list.to_owned()], &mut unused);
    read.map_err(|error| error.to_string())
}

/// What a flag takes, as its help says it.
fn expected(flag: &Arg) -> String {
    let help = flag.get_help().map(ToString::to_string);
    help.unwrap_or_default()
}

/// Whether the flags take these words by themselves.
fn check(flags: &Command, words: &[OsString]) -> Result<(), String> {
    let first = std::iter::once(OsString::from("serve"));
    let parsed = (flags.clone()).try_get_matches_from(first.chain(words.iter().cloned()));
    parsed.map(|_| ()).map_err(|error| {
        let text = error.render().to_string();
        let (what, _) = text.split_once("\n\n").unwrap_or((&text, ""));
        let what = what.split_whitespace().collect::<Vec<_>>().join(" ");
        what.strip_prefix("error: ").unwrap_or(&what).to_owned()
    })
}

/// What to say of a name that no setting has.
fn unknown(flags: &Command, name: &str) -> String {
    match nearest(flags, name) {
        Some(nearest) => format!("there is no setting {name}; did you mean {nearest}?"),
        None => {
            format!("there is no setting {name}; `glimmer serve --help` lists them as flags")
        }
    }
}

/// The setting whose name is most like this one, if one is.
fn nearest(flags: &Command, name: &str) -> Option<String> {
    // The letter of a flag stands for its long name.
    if let [letter] = name.as_bytes() {
        let letter = Some(char::from(*letter));
        let meant = settings(flags).find(|(_, flag)| flag.get_short() == letter);
        return meant.map(|(known, _)| known.to_owned());
    }
    let name = name.replace('_', "-").to_lowercase();
    if settings(flags).any(|(known, _)| known == name) {
        return Some(name);
    }
    let words = ["serve".to_owned(), format!("--{name}")];
    let error = flags.clone().try_get_matches_from(words).err()?;
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    match error.get(ContextKind::SuggestedArg)? {
        ContextValue::String(flag) => Some(flag.trim_start_matches('-').to_owned()),
        ContextValue::Strings(flags) => Some(flags.first()?.trim_start_matches('-').to_owned()),
        _ => None,
    }
}

/// A source that has mistakes: one line for each.
fn refused(mistakes: &[String]) -> anyhow::Error {
    Refused::configuration(mistakes.join("\n")).into()
}

/// The variables of the process. Names that are not UTF-8 are left out: no setting has one.
pub fn environment() -> Vec<(String, OsString)> {
    let named = |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value));
    std::env::vars_os().filter_map(named).collect()
}

/// The text of a file of settings.
fn text_of(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path)
        .map_err(|error| refused(&[format!("{}: cannot be read: {error}", path.display())]))
}

#[cfg(test)]
mod tests;
