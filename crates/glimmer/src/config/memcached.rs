//! Converts a configuration file of memcached, as Debian's package has it: one flag on each line.

use super::{flags, refused, settings, text_of, written};
use clap::parser::ValueSource;
use clap::{ArgAction, ArgMatches, Command};
use std::collections::BTreeMap;
use std::path::Path;

/// A line of the converted file.
enum Line {
    /// A comment, or nothing.
    Comment(String),
    /// The place of a setting.
    Setting(String),
}

/// What the lines so far say of a setting.
enum Found {
    Switch,
    Count(usize),
    One(String),
    Several(Vec<String>),
}

/// The same settings as a TOML file. Comments stay: one after a flag comes to stand before it. What
/// has no meaning becomes a comment.
///
/// # Errors
///
/// Each line that memcached would not take either, with its number.
pub fn convert(path: &Path) -> anyhow::Result<String> {
    let flags = flags();
    let mut lines = Vec::new();
    let mut found = BTreeMap::new();
    let mut mistakes = Vec::new();
    for (number, line) in text_of(path)?.lines().enumerate() {
        let (line, comment) = parted(line.trim());
        if line.is_empty() || !comment.is_empty() {
            lines.push(Line::Comment(comment.to_owned()));
        }
        // What the shell makes of it, by which Debian's script starts memcached.
        let line = line.trim_end().replace("\\#", "#");
        if line.is_empty() {
            // It was a comment, or nothing.
        } else if line.split_whitespace().next() == Some("logfile") {
            lines.push(Line::Comment(format!(
                "# {line}: the log goes to stderr, from where systemd takes it into the journal"
            )));
        } else if let Err(reason) = take(&flags, &line, &mut lines, &mut found) {
            mistakes.push(format!("{}:{}: {reason}", path.display(), number + 1));
        }
    }
    if !mistakes.is_empty() {
        return Err(refused(&mistakes));
    }
    let lines = lines.iter().map(|line| match line {
        Line::Comment(text) => text.clone(),
        Line::Setting(name) => line_of(name, &found[name]),
    });
    Ok(lines.map(|line| line + "\n").collect())
}

/// A line without its comment, and the comment. It begins with a `#` that has no backslash before
/// it.
fn parted(line: &str) -> (&str, &str) {
    let mut marks = line.match_indices('#').map(|(at, _)| at);
    let start = marks.find(|&at| !line[..at].ends_with('\\'));
    line.split_at(start.unwrap_or(line.len()))
}

/// Takes the flags of a line, as Debian's start script does: words, without quotes.
fn take(
    flags: &Command,
    line: &str,
    lines: &mut Vec<Line>,
    found: &mut BTreeMap<String, Found>,
) -> Result<(), String> {
    let words = std::iter::once("serve").chain(line.split_whitespace());
    super::check(
        flags,
        &line.split_whitespace().map(Into::into).collect::<Vec<_>>(),
    )?;
    let matches = flags.clone().try_get_matches_from(words);
    let matches = matches.map_err(|error| error.to_string())?;
    for (name, flag) in settings(flags) {
        let id = flag.get_id().as_str();
        if matches.value_source(id) != Some(ValueSource::CommandLine) {
            continue;
        }
        let values = || raw_values(&matches, id);
        if !found.contains_key(name) {
            lines.push(Line::Setting(name.to_owned()));
        }
        let entry = found.remove(name);
        let now = match (flag.get_action(), entry) {
            (ArgAction::SetTrue, _) => Found::Switch,
            (ArgAction::Count, before) => {
                let before = match before {
                    Some(Found::Count(times)) => times,
                    _ => 0,
                };
                Found::Count(before + usize::from(matches.get_count(id)))
            }
            (ArgAction::Append, Some(Found::Several(before))) => {
                Found::Several(before.into_iter().chain(values()).collect())
            }
            (ArgAction::Append, _) => Found::Several(values()),
            _ => Found::One(values().pop().unwrap_or_default()),
        };
        found.insert(name.to_owned(), now);
    }
    Ok(())
}

/// The values of a flag as they are written.
pub fn raw_values(matches: &ArgMatches, id: &str) -> Vec<String> {
    let values = matches.get_raw(id).into_iter().flatten();
    values
        .map(|value| value.to_string_lossy().into_owned())
        .collect()
}

fn line_of(name: &str, found: &Found) -> String {
    written::line(
        name,
        &match found {
            Found::Switch => "true".to_owned(),
            Found::Count(times) => times.to_string(),
            Found::One(text) => written::scalar(text),
            Found::Several(items) => match items.as_slice() {
                [item] => written::scalar(item),
                items => written::list(items),
            },
        },
    )
}
