//! How settings are written in TOML.

/// A line `name = value`.
pub fn line(name: &str, value: &str) -> String {
    format!("{name} = {value}")
}

/// A text, or a number if it is one.
pub fn scalar(text: &str) -> String {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_number = !digits.is_empty()
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && (digits == "0" || !digits.starts_with('0'))
        && text.parse::<i64>().is_ok();
    match is_number {
        true => text.to_owned(),
        false => string(text),
    }
}

/// A list of texts.
pub fn list(items: &[String]) -> String {
    let items: Vec<String> = items.iter().map(|item| string(item)).collect();
    format!("[{}]", items.join(", "))
}

/// A basic string of TOML 1.0.
pub fn string(text: &str) -> String {
    let mut written = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => written.extend(['\\', c]),
            c if c.is_control() => written.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => written.push(c),
        }
    }
    written + "\""
}
