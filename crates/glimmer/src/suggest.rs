//! What is wrong with a command line, in one line, and what was probably meant.

use std::ffi::OsString;

use clap::{
    Command, CommandFactory,
    error::{ContextKind, ContextValue, ErrorKind},
};

use crate::Arguments;

/// The complaint about a command line that cannot be read.
pub fn complaint(error: &clap::Error, arguments: &[OsString]) -> String {
    let text = error.render().to_string();
    let (what, _) = text.split_once("\n\n").unwrap_or((&text, ""));
    let what = what.split_whitespace().collect::<Vec<_>>().join(" ");
    let what = what.strip_prefix("error: ").unwrap_or(&what);
    let meant = meant(error, arguments);
    let meant = meant.map(|meant| format!("; did you mean `{meant}`?"));
    let meant = meant.as_deref().unwrap_or(";");
    format!("{what}{meant} --help explains every option")
}

/// What the user probably meant.
fn meant(error: &clap::Error, arguments: &[OsString]) -> Option<String> {
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
            let command = Arguments::command();
            // memcached's command line, without the word that says what to do.
            if words.first().is_some_and(|word| word.starts_with('-')) {
                let serve = command.find_subcommand("serve")?;
                return knows(serve, &wrong).then(|| format!("glimmer serve {}", words.join(" ")));
            }
            let command = addressed(&command, words);
            let similar = text(ContextKind::SuggestedArg);
            let similar = similar.filter(|similar| knows(command, similar));
            longer(command, &wrong).or(similar)
        }
        ErrorKind::InvalidSubcommand => text(ContextKind::SuggestedSubcommand),
        _ => text(ContextKind::SuggestedValue),
    }
}

/// The command that these words lead to.
fn addressed<'a>(command: &'a Command, words: &[&str]) -> &'a Command {
    let descend = |command: &'a Command, word: &&str| command.find_subcommand(word);
    words.iter().fold(command, |command, word| {
        descend(command, word).unwrap_or(command)
    })
}

/// Whether a command has this option, and shows it.
fn knows(command: &Command, option: &str) -> bool {
    command.get_arguments().any(|argument| {
        let long = argument.get_long().map(|long| format!("--{long}"));
        let short = argument.get_short().map(|short| format!("-{short}"));
        let is_this = |name: Option<String>| name.as_deref() == Some(option);
        !argument.is_hide_set() && (is_this(long) || is_this(short))
    })
}

/// The shortest option that begins with the one that was given, as `--memory-limit` does with `--memory`.
fn longer(command: &Command, wrong: &str) -> Option<String> {
    let wrong = wrong.strip_prefix("--").filter(|wrong| wrong.len() > 2)?;
    let shown = command
        .get_arguments()
        .filter(|argument| !argument.is_hide_set());
    let begins = |long: &&str| long.starts_with(wrong);
    let found = shown.filter_map(clap::Arg::get_long).filter(begins);
    found
        .min_by_key(|long| long.len())
        .map(|long| format!("--{long}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn complaint(line: &str) -> String {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let error = Arguments::try_parse_from(&words).expect_err(line);
        super::complaint(&error, &words)
    }

    #[test]
    fn what_was_meant_is_suggested() {
        for (line, meant) in [
            ("glimmer -p 11211", "`glimmer serve -p 11211`"),
            ("glimmer -m 64 -vv", "`glimmer serve -m 64 -vv`"),
            ("glimmer --port=1", "`glimmer serve --port=1`"),
            ("glimmer server", "`serve`"),
            ("glimmer bnech", "`bench`"),
            ("glimmer serve --memory 64", "`--memory-limit`"),
            ("glimmer serve --thread 4", "`--threads`"),
            ("glimmer bench memory --memory 64", "`--memory-limit`"),
            ("glimmer bench versus --memory 64", "`--memory-limit`"),
            ("glimmer bench load --conections 4", "`--connections`"),
            ("glimmer bench laod", "`load`"),
            ("glimmer bench load --protocol txt", "`text`"),
        ] {
            let complaint = complaint(line);
            let asked = format!("did you mean {meant}?");
            assert!(complaint.contains(&asked), "{line}: {complaint}");
            assert!(!complaint.contains('\n'), "{line}: {complaint}");
        }
    }

    #[test]
    fn nothing_is_suggested_where_nothing_is_similar() {
        for line in [
            "glimmer --nonsense",
            "glimmer xyzzy",
            "glimmer serve --xyzzy",
            "glimmer serve -m lots",
        ] {
            let complaint = complaint(line);
            assert!(!complaint.contains("did you mean"), "{line}: {complaint}");
            assert!(complaint.ends_with("; --help explains every option"));
        }
    }

    #[test]
    fn what_is_hidden_is_not_suggested() {
        let complaint = complaint("glimmer serve --memory-fil x");
        assert!(!complaint.contains("memory-file"), "{complaint}");
    }
}
