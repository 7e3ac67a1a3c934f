//! Limits the length of lines in Rust files. `cargo fmt` wraps code, but not comments and strings.

use crate::process;
use anyhow::bail;
use std::path::Path;

/// Longest line in columns.
pub const COLUMNS_MAX: usize = 100;

/// The folders with Rust files, in the repository.
const FOLDERS: &[&str] = &["crates", "examples", "fuzz", "tests", "xtask"];

/// Fails with the place of each longer line. Returns the number of lines.
pub fn check() -> anyhow::Result<usize> {
    let repository = process::repository();
    let (mut lines, mut faults) = (0, Vec::new());
    for folder in FOLDERS.iter().map(|folder| repository.join(folder)) {
        if folder.exists() {
            read(&folder, &mut |file, text| {
                let file = file.strip_prefix(&repository).unwrap_or(file);
                lines += text.lines().count();
                let numbers = too_long(text);
                faults.extend(numbers.map(|number| format!("{}:{number}", file.display())));
            })?;
        }
    }
    if !faults.is_empty() {
        bail!(
            "lines of more than {COLUMNS_MAX} columns:\n  {}",
            faults.join("\n  ")
        );
    }
    Ok(lines)
}

/// Passes every Rust file below a folder to `on_file`. Skips hidden folders and build output.
fn read(folder: &Path, on_file: &mut dyn FnMut(&Path, &str)) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            read(&path, on_file)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            on_file(&path, &std::fs::read_to_string(&path)?);
        }
    }
    Ok(())
}

/// The numbers of the lines that are too long.
fn too_long(text: &str) -> impl Iterator<Item = usize> {
    let lines = (1..).zip(text.lines());
    lines
        .filter(|(_, line)| line.chars().count() > COLUMNS_MAX)
        .map(|(number, _)| number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_characters_and_not_bytes() {
        let fits = "µ".repeat(COLUMNS_MAX);
        let text = format!("{fits}\n{fits}x\n\n{fits}µ");
        assert_eq!(too_long(&text).collect::<Vec<_>>(), [2, 4]);
    }
}
