//! The files of a figure: data, pictures, and the record from which they can be drawn again.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use crate::{Figure, Record, plot};

/// Paths of a figure's files.
#[derive(Clone, Debug)]
pub struct Files {
    /// The data, one line per point.
    pub csv: PathBuf,
    /// The picture for documents.
    pub svg: PathBuf,
    /// The picture for other uses.
    pub png: PathBuf,
    /// All repetitions, and the record of the machine.
    pub json: PathBuf,
}

impl Files {
    /// The files of a figure of this name.
    pub fn of(name: &str, directory: &Path) -> Files {
        let file = |extension: &str| directory.join(name).with_extension(extension);
        Files {
            csv: file("csv"),
            svg: file("svg"),
            png: file("png"),
            json: file("json"),
        }
    }
}

/// Writes all files of a figure, and creates the directory if necessary.
pub fn write(figure: &dyn Figure, record: &Record, directory: &Path) -> Result<Files> {
    let spec = figure.spec();
    let files = Files::of(spec.name, directory);
    let svg = plot::svg(&spec, &record.data)?;
    let writing = || format!("writing {} to {}", spec.name, directory.display());
    fs::create_dir_all(directory).with_context(writing)?;
    let mut json = serde_json::to_vec_pretty(record)?;
    json.push(b'\n');
    fs::write(&files.csv, record.data.to_csv(&spec.columns)?).with_context(writing)?;
    fs::write(&files.png, plot::png(&svg)?).with_context(writing)?;
    fs::write(&files.svg, svg).with_context(writing)?;
    fs::write(&files.json, json).with_context(writing)?;
    Ok(files)
}

/// The record of an earlier run, if there is one.
pub fn read(name: &str, directory: &Path) -> Result<Option<Record>> {
    let file = Files::of(name, directory).json;
    let bytes = match fs::read(&file) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("reading {}", file.display())),
    };
    let record = serde_json::from_slice(&bytes);
    let record = record.with_context(|| format!("{} is no record of a figure", file.display()))?;
    Ok(Some(record))
}
