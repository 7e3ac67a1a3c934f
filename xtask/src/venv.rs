//! Python environments of the checkout, with exactly what a file pins.

use crate::process::{program, run};
use std::path::{Path, PathBuf};

/// The Python of an environment in `folder` that has exactly what `pins` names.
pub fn python(folder: &Path, pins: &Path) -> anyhow::Result<PathBuf> {
    let python = folder.join("bin/python");
    unless_made(folder, pins, || {
        run(program("python3", &["-m", "venv", "--clear"]).arg(folder))?;
        run(program(
            &python,
            &[
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "-r",
            ],
        )
        .arg(pins))
    })?;
    Ok(python)
}

/// Makes the folder's content again, unless it was made from these pins.
pub fn unless_made(
    folder: &Path,
    pins: &Path,
    make: impl FnOnce() -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let stamp = folder.join("made-from");
    let pinned = std::fs::read_to_string(pins)?;
    if std::fs::read_to_string(&stamp).is_ok_and(|made_from| made_from == pinned) {
        return Ok(());
    }
    if folder.exists() {
        std::fs::remove_dir_all(folder)?;
    }
    std::fs::create_dir_all(folder)?;
    make()?;
    std::fs::write(&stamp, pinned)?;
    Ok(())
}
