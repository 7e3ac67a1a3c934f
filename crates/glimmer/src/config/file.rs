//! A TOML file of settings. Its keys are the long names of flags.

use super::{Origin, Setting, Value, refused, text_of, words};
use clap::Command;
use std::ops::Range;
use std::path::Path;
use toml::de::{DeTable, DeValue};

/// The setting that may be a table: each of its entries is an extended option.
const EXTENDED: &str = "extended";

/// The settings of a file.
///
/// # Errors
///
/// Each mistake in a line of its own, with the file and the line that it is in.
pub fn read(flags: &Command, path: &Path) -> anyhow::Result<Vec<Setting>> {
    let text = text_of(path)?;
    let place = |span: Range<usize>| Origin::File(path.to_owned(), line_of(&text, span));
    let (table, errors) = DeTable::parse_recoverable(&text);
    let mut mistakes: Vec<String> = errors
        .iter()
        .map(|error| {
            let place = place(error.span().unwrap_or(0..0));
            format!("{place}: {}", error.message())
        })
        .collect();
    if !mistakes.is_empty() {
        return Err(refused(&mistakes));
    }
    let mut settings = Vec::new();
    for (name, value) in table.into_inner() {
        let origin = place(name.span());
        let name = name.into_inner().into_owned();
        let read = value_of(&name, value.into_inner());
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
fn line_of(text: &str, span: Range<usize>) -> usize {
    let before = text.as_bytes().iter().take(span.start);
    1 + before.filter(|&&byte| byte == b'\n').count()
}

fn value_of(name: &str, value: DeValue<'_>) -> Result<Value, String> {
    match value {
        DeValue::Array(items) => {
            let items = items.into_iter().map(|item| one(name, item.into_inner()));
            items.collect::<Result<_, _>>().map(Value::List)
        }
        DeValue::Table(options) if name == EXTENDED => {
            let options = options.into_iter().filter_map(|(option, value)| {
                let option = option.into_inner();
                match value.into_inner() {
                    DeValue::Boolean(true) => Some(Ok(option.into_owned())),
                    DeValue::Boolean(false) => None,
                    value => Some(one(name, value).map(|value| format!("{option}={value}"))),
                }
            });
            options.collect::<Result<_, _>>().map(Value::List)
        }
        DeValue::Table(_) => Err(format!(
            "{name} is no table; only [{EXTENDED}] is one, and settings come before it"
        )),
        DeValue::Boolean(is_on) => Ok(Value::Switch(is_on)),
        DeValue::Integer(_) | DeValue::Float(_) => one(name, value).map(Value::Number),
        value => one(name, value).map(Value::Text),
    }
}

/// A value that is no list.
fn one(name: &str, value: DeValue<'_>) -> Result<String, String> {
    match value {
        DeValue::String(text) => Ok(text.into_owned()),
        DeValue::Integer(number) if number.radix() == 10 => Ok(number.as_str().to_owned()),
        DeValue::Float(number) => Ok(number.as_str().to_owned()),
        _ => Err(format!(
            "{name} is a string, a decimal number, true or false, or a list of strings"
        )),
    }
}
