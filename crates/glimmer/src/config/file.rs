//! A TOML file of settings. Its keys are the long names of flags.

use super::{EXTENDED, Origin, Setting, Value, check_extended, refused, text_of, words};
use crate::serve::extended;
use clap::Command;
use std::path::Path;
use toml_span::Span;
use toml_span::value::{Table, ValueInner};

/// The settings of a file.
///
/// # Errors
///
/// Each mistake in a line of its own, with the file and the line that it is in.
pub fn read(flags: &Command, path: &Path) -> anyhow::Result<Vec<Setting>> {
    let text = text_of(path)?;
    let place = |span: Span| Origin::File(path.to_owned(), line_of(&text, span));
    let mut table = match toml_span::parse(&text) {
        Ok(table) => table,
        Err(error) => {
            // It may name a character that a terminal should not get.
            let what = error.to_string().escape_debug().to_string();
            return Err(refused(&[format!("{}: {what}", place(error.span))]));
        }
    };
    let mut mistakes = Vec::new();
    let mut settings = Vec::new();
    let ValueInner::Table(table) = table.take() else {
        unreachable!("a file is a table")
    };
    // In the order of the file.
    let mut entries: Vec<_> = table.into_iter().collect();
    entries.sort_by_key(|(name, _)| name.span.start);
    for (name, mut value) in entries {
        let origin = place(name.span);
        let name = name.name.into_owned();
        let read = match value.take() {
            // Each entry is an option, and a later one counts more.
            ValueInner::Table(options) if name == EXTENDED => {
                let (options, wrong) = options_of(options);
                let wrong = wrong.into_iter();
                mistakes.extend(wrong.map(|(span, what)| format!("{}: {what}", place(span))));
                Ok(Value::List(options))
            }
            value => value_of(&name, value),
        };
        match read.and_then(|value| words(flags, &name, value)) {
            Ok(words) => settings.push(Setting {
                name,
                origin,
                words,
            }),
            Err(reason) => mistakes.push(format!("{origin}: {reason}")),
        }
    }
    match mistakes.is_empty() {
        true => Ok(settings),
        false => Err(refused(&mistakes)),
    }
}

/// The number of the line, from 1.
fn line_of(text: &str, span: Span) -> usize {
    let before = text.as_bytes().iter().take(span.start);
    1 + before.filter(|&&byte| byte == b'\n').count()
}

fn value_of(name: &str, value: ValueInner<'_>) -> Result<Value, String> {
    match value {
        ValueInner::Array(items) => {
            let items = items.into_iter().map(|mut item| one(name, item.take()));
            items.collect::<Result<_, _>>().map(Value::List)
        }
        ValueInner::Table(_) => Err(format!(
            "{name} is no table; only [{EXTENDED}] is one, and settings come before it"
        )),
        ValueInner::Boolean(is_on) => Ok(Value::Switch(is_on)),
        ValueInner::Integer(_) | ValueInner::Float(_) => one(name, value).map(Value::Number),
        value => one(name, value).map(Value::Text),
    }
}

/// The entries of `[extended]` as `-o` takes them, and what is wrong with the others.
fn options_of(table: Table<'_>) -> (Vec<String>, Vec<(Span, String)>) {
    let mut entries: Vec<_> = table.into_iter().collect();
    entries.sort_by_key(|(name, _)| name.span.start);
    let (mut options, mut mistakes) = (Vec::new(), Vec::new());
    for (name, mut value) in entries {
        match option(&name.name, value.take()) {
            Ok(option) => options.extend(option),
            Err(what) => mistakes.push((name.span, what)),
        }
    }
    (options, mistakes)
}

/// An entry of `[extended]` as `-o` takes it. None: it asks for nothing that `-o` has a word for.
fn option(name: &str, value: ValueInner<'_>) -> Result<Option<String>, String> {
    let option = match value {
        ValueInner::Boolean(is_on) => extended::switch(name, is_on),
        _ if extended::is_switch(name) => return Err(format!("{name} is true or false")),
        value => Some(format!("{name}={}", one(name, value)?)),
    };
    option
        .iter()
        .try_for_each(|option| check_extended(option))?;
    Ok(option)
}

/// A value that is no list.
fn one(name: &str, value: ValueInner<'_>) -> Result<String, String> {
    match value {
        ValueInner::String(text) => Ok(text.into_owned()),
        ValueInner::Integer(number) => Ok(number.to_string()),
        ValueInner::Float(number) => Ok(number.to_string()),
        _ => Err(format!(
            "{name} is a string, a number, true or false, or a list of strings"
        )),
    }
}
