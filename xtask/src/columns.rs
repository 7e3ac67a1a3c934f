//! Limits the length of lines in Rust files and documents. `cargo fmt` wraps code, but not comments
//! and strings.

use crate::process;
use anyhow::bail;
use std::path::{Path, PathBuf};

/// Longest line in columns.
pub const COLUMNS_MAX: usize = 100;

/// Most lines of a Rust file.
const LINES_MAX: usize = 600;

/// The folders with Rust files and documents, in the repository.
const FOLDERS: &[&str] = &[
    "accel", "contrib", "crates", "docs", "examples", "fuzz", "tests", "xtask",
];
/// Documents that a program writes, and reads again.
const WRITTEN: [&str; 3] = [
    "docs/figures",
    "docs/client-suites.md",
    "docs/conformance.md",
];

/// Fails with the place of each longer line. Returns the number of lines.
pub fn check() -> anyhow::Result<usize> {
    let repository = process::repository();
    let (mut lines, mut faults, mut paths) = (0, Vec::new(), Vec::new());
    for entry in std::fs::read_dir(&repository)? {
        paths.push(entry?.path());
    }
    for folder in FOLDERS.iter().map(|folder| repository.join(folder)) {
        if folder.exists() {
            files(&folder, &mut paths)?;
        }
    }
    for path in paths.iter().filter(|path| path.is_file()) {
        let file = path.strip_prefix(&repository).unwrap_or(path);
        let extension = file.extension().unwrap_or_default();
        let too_long: fn(&str) -> Vec<usize> = match extension.to_str() {
            Some("rs") => too_long,
            Some("md") if !WRITTEN.iter().any(|written| file.starts_with(written)) => {
                too_long_in_document
            }
            _ => continue,
        };
        let text = std::fs::read_to_string(path)?;
        let count = text.lines().count();
        lines += count;
        if extension == "rs" && count > LINES_MAX {
            bail!("{}: {count} lines, of {LINES_MAX} at most", file.display());
        }
        let numbers = too_long(&text).into_iter();
        faults.extend(numbers.map(|number| format!("{}:{number}", file.display())));
    }
    if !faults.is_empty() {
        bail!(
            "lines of more than {COLUMNS_MAX} columns:\n  {}",
            faults.join("\n  ")
        );
    }
    Ok(lines)
}

/// Finds every file below a folder. Skips hidden folders, build output, and what package managers
/// fetch.
fn files(folder: &Path, found: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_ours = name != "target" && name != "node_modules" && !name.starts_with('.');
        if path.is_dir() && is_ours {
            files(&path, found)?;
        } else if is_ours {
            found.push(path);
        }
    }
    Ok(())
}

/// The numbers of the lines that are too long.
fn too_long(text: &str) -> Vec<usize> {
    let lines = (1..).zip(text.lines());
    let lines = lines.filter(|(_, line)| line.chars().count() > COLUMNS_MAX);
    lines.map(|(number, _)| number).collect()
}

/// The same of a document, whose tables, headings, pictures and blocks of code may be wider, as may
/// a word.
fn too_long_in_document(text: &str) -> Vec<usize> {
    let mut in_block = false;
    let mut is_prose = |line: &str| {
        let line = line.trim_start();
        let is_fence = line.starts_with("```");
        in_block ^= is_fence;
        !in_block && !is_fence && !["|", "#", "!["].iter().any(|head| line.starts_with(head))
    };
    let mut is_too_long = |line: &str| {
        let could_be_wrapped = |line: &str| {
            let begun: String = line.trim_start().chars().take(COLUMNS_MAX).collect();
            begun.contains(' ')
        };
        is_prose(line) && line.chars().count() > COLUMNS_MAX && could_be_wrapped(line)
    };
    let lines = (1..).zip(text.lines());
    let lines = lines.filter(|(_, line)| is_too_long(line));
    lines.map(|(number, _)| number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_characters_and_not_bytes() {
        let fits = "µ".repeat(COLUMNS_MAX);
        let text = format!("{fits}\n{fits}x\n\n{fits}µ");
        assert_eq!(too_long(&text), [2, 4]);
    }

    #[test]
    fn prose_is_wrapped_and_tables_and_code_are_not() {
        let long = "a ".repeat(COLUMNS_MAX);
        let text =
            format!("{long}\n| {long}\n```\n{long}\n```\n- {long}\n# {long}\n![{long}](x)\n");
        assert_eq!(too_long_in_document(&text), [1, 6]);
        assert!(too_long_in_document(&long.replace(' ', "b")).is_empty());
    }
}
