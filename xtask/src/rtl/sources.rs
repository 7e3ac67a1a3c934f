//! The circuit's files and tops.

use anyhow::{Context, ensure};
use std::path::{Path, PathBuf};

/// The folder of the circuit's modules, one to a file.
pub const RTL: &str = "accel/rtl";
/// The package, which the other files need before them.
const PACKAGE: &str = "kv_pkg.sv";

/// All files, the package first.
pub fn files() -> anyhow::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(RTL).context(RTL)?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "sv") {
            files.push(path);
        }
    }
    files.sort_by_key(|path| (!path.ends_with(PACKAGE), path.clone()));
    ensure!(!files.is_empty(), "{RTL} has no files");
    Ok(files)
}

/// A file's module, which has its name.
pub fn module(file: &Path) -> &str {
    file.file_stem()
        .and_then(|stem| stem.to_str())
        .expect("modules have ASCII names")
}

/// The files' modules: all but the package.
pub fn modules(files: &[PathBuf]) -> impl Iterator<Item = (&PathBuf, &str)> {
    files
        .iter()
        .filter(|file| !file.ends_with(PACKAGE))
        .map(|file| (file, module(file)))
}

/// Whether a file has the parameter `W`, the bytes of the datapath.
pub fn has_width(file: &Path) -> anyhow::Result<bool> {
    let text = std::fs::read_to_string(file)?;
    Ok(text.contains(" W = "))
}

/// Files as Yosys' script names them.
pub fn words(files: &[PathBuf]) -> String {
    let words: Vec<_> = files
        .iter()
        .map(|file| file.display().to_string())
        .collect();
    words.join(" ")
}
