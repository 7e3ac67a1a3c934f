//! Explains an error on the command line in one line, and suggests what was probably meant.

use std::ffi::OsString;

use clap::{
    Command,
    error::{ContextKind, ContextValue, ErrorKind},
};

/// What the standard library says of a number, and what it means to somebody who typed one.
const NUMBERS: [(&str, &str); 5] = [
    ("invalid digit found in string", "it must be a whole number"),
    (
        "cannot parse integer from empty string",
        "it must be a whole number",
    ),
    ("number too large to fit in target type", "it is too large"),
    ("invalid float literal", "it must be a number"),
    (
        "cannot parse float from empty string",
        "it must be a number",
    ),
];

/// The error message for a command line that cannot be parsed.
pub fn complaint(error: &clap::Error, arguments: &[OsString], command: &Command) -> String {
    let text = error.render().to_string();
    let (what, _) = text.split_once("\n\n").unwrap_or((&text, ""));
    let what = what.split_whitespace().collect::<Vec<_>>().join(" ");
    let what = what.strip_prefix("error: ").unwrap_or(&what);
    let reworded = NUMBERS.iter().find_map(|(from, to)| {
        let before = what.strip_suffix(from)?;
        Some(format!("{before}{to}"))
    });
    let what = reworded.as_deref().unwrap_or(what);
    let meant = meant(error, arguments, command);
    let meant = meant.map(|meant| format!("; did you mean `{meant}`?"));
    let meant = meant.as_deref().unwrap_or(";");
    format!("{what}{meant} --help explains every option")
}

/// The suggestion: what the user probably meant.
fn meant(error: &clap::Error, arguments: &[OsString], command: &Command) -> Option<String> {
    let words: Vec<&str> = arguments.iter().filter_map(|word| word.to_str()).collect();
    let (_, words) = words.split_first()?;
    let text = |kind| match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        ContextValue::Strings(texts) => texts.first().cloned(),
        _ => None,
    };
    match error.kind() {
        ErrorKind::UnknownArgument => {
            let wrong = text(ContextKind::InvalidArg)?;
            // memcached's command line, without a subcommand.
            if words.first().is_some_and(|word| word.starts_with('-'))
                && let Some(serve) = command.find_subcommand("serve")
            {
                return knows(serve, &wrong).then(|| format!("glimmer serve {}", words.join(" ")));
            }
            let command = addressed(command, words);
            let similar = text(ContextKind::SuggestedArg);
            let similar = similar.filter(|similar| knows(command, similar));
            longer(command, &wrong).or(similar)
        }
        ErrorKind::InvalidSubcommand => text(ContextKind::SuggestedSubcommand),
        _ => text(ContextKind::SuggestedValue),
    }
}

/// The subcommand that these words select.
fn addressed<'a>(command: &'a Command, words: &[&str]) -> &'a Command {
    let descend = |command: &'a Command, word: &&str| command.find_subcommand(word);
    words.iter().fold(command, |command, word| {
        descend(command, word).unwrap_or(command)
    })
}

/// Whether a command has this option and does not hide it.
fn knows(command: &Command, option: &str) -> bool {
    command.get_arguments().any(|argument| {
        let long = argument.get_long().map(|long| format!("--{long}"));
        let short = argument.get_short().map(|short| format!("-{short}"));
        let is_this = |name: Option<String>| name.as_deref() == Some(option);
        !argument.is_hide_set() && (is_this(long) || is_this(short))
    })
}

/// The first option of the help that begins with the one that was given, such as `--memory-limit`
/// for `--memory`.
fn longer(command: &Command, wrong: &str) -> Option<String> {
    let wrong = wrong.strip_prefix("--").filter(|wrong| wrong.len() > 2)?;
    let shown = command
        .get_arguments()
        .filter(|argument| !argument.is_hide_set());
    let mut found = shown.filter_map(clap::Arg::get_long);
    found
        .find(|long| long.starts_with(wrong))
        .map(|long| format!("--{long}"))
}
