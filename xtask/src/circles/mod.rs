//! Checks that the files of a crate do not import one another in circles, except a module and its
//! own children.
//!
//! An import counts for the file that defines the imported item: re-exports are followed. Code that
//! exists only for tests does not count.

mod graph;
mod imports;
mod tokens;

use anyhow::{Context, bail};
use graph::Graph;
use imports::{Imports, Path};
use std::collections::BTreeMap;

/// Modules that are still in circles, by crate. The list may only shrink: a module that has left
/// its circle must be removed from it.
const EXCEPTIONS: &[(&str, &[&str])] = &[
    ("glimmer-client", &["in_flight", "session"]),
    ("glimmer-comparisons", &["abuse::manners", "abuse::subject"]),
    (
        "glimmer-figures",
        &[
            "data",
            "figure",
            "plot",
            "plot::legend",
            "plot::lines",
            "run",
        ],
    ),
    (
        "glimmer-loadgen",
        &["load::gather", "load::run", "load::warming"],
    ),
    (
        "glimmer-proto",
        &[
            "meta",
            "meta::read",
            "text::parser",
            "text::retrieval",
            "text::storage",
        ],
    ),
    ("glimmer-store", &["index::bucket", "index::tags"]),
];

/// The modules of one crate.
type Modules = BTreeMap<Path, Imports>;

/// Fails with a line for each file that is in a circle and for each unnecessary exception. Returns
/// the number of files and of exceptions.
pub fn check(crates: &[(String, std::path::PathBuf)]) -> anyhow::Result<(usize, usize)> {
    let (mut files, mut faults, mut excepted) = (0, Vec::new(), 0);
    for (name, folder) in crates {
        let modules = read_crate(&folder.join("src"))?;
        files += modules.len();
        let exceptions = EXCEPTIONS.iter().find(|(of, _)| of == name);
        let exceptions = exceptions.map_or(&[][..], |(_, modules)| modules);
        excepted += exceptions.len();
        let circles = Graph::of(&modules).circles();
        faults.extend(faults_of(name, &circles, exceptions));
    }
    let unknown = EXCEPTIONS.iter().map(|(of, _)| *of);
    let unknown = unknown.filter(|of| crates.iter().all(|(name, _)| name != of));
    faults.extend(unknown.map(|of| format!("there is no crate {of}; remove its exceptions")));
    if !faults.is_empty() {
        bail!(
            "files import one another in circles:\n  {}",
            faults.join("\n  ")
        );
    }
    Ok((files, excepted))
}

/// The errors for these circles. Each circle is a list of modules.
fn faults_of(name: &str, circles: &[Vec<String>], exceptions: &[&str]) -> Vec<String> {
    let mut faults = Vec::new();
    let is_excepted = |module: &String| exceptions.contains(&module.as_str());
    for circle in circles {
        if !circle.iter().all(is_excepted) {
            faults.push(format!("{name}: {}", circle.join(", ")));
        }
    }
    for &exception in exceptions {
        let is_needed = circles.iter().flatten().any(|module| module == exception);
        if !is_needed {
            faults.push(format!(
                "{name}: {exception} is in no circle; remove it from the exceptions"
            ));
        }
    }
    faults
}

/// Parses every source file of a crate.
fn read_crate(src: &std::path::Path) -> anyhow::Result<Modules> {
    let mut modules = Modules::new();
    read_folder(src, &[], &mut modules)?;
    let for_tests: Vec<Path> = modules
        .iter()
        .flat_map(|(module, imports)| {
            let child = |name: &String| [&module[..], std::slice::from_ref(name)].concat();
            imports.test_modules.iter().map(child)
        })
        .collect();
    modules.retain(|module, _| !for_tests.iter().any(|test| module.starts_with(test)));
    Ok(modules)
}

fn read_folder(folder: &std::path::Path, of: &[String], into: &mut Modules) -> anyhow::Result<()> {
    let entries = folder.read_dir();
    for entry in entries.with_context(|| format!("{} is no folder", folder.display()))? {
        let path = entry?.path();
        let name = path.file_stem().and_then(|name| name.to_str());
        let name = name.unwrap_or_default().to_string();
        if path.is_dir() {
            // Other programs of the package are crates of their own.
            if !(of.is_empty() && name == "bin") {
                read_folder(&path, &[of, &[name]].concat(), into)?;
            }
            continue;
        }
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let module = match name.as_str() {
            "mod" => of.to_vec(),
            "lib" | "main" if of.is_empty() => Path::new(),
            _ => [of, &[name]].concat(),
        };
        let source = std::fs::read_to_string(&path)?;
        into.insert(module.clone(), imports::read(&source, &module));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| name.to_string()).collect()
    }

    #[test]
    fn a_circle_is_a_fault_unless_all_of_it_is_excepted() {
        let circles = [strings(&["a", "b"])];
        assert_eq!(faults_of("x", &circles, &[]).len(), 1);
        assert_eq!(faults_of("x", &circles, &["a"]).len(), 1);
        assert_eq!(faults_of("x", &circles, &["a", "b"]), strings(&[]));
    }

    #[test]
    fn an_exception_without_need_is_a_fault() {
        assert_eq!(faults_of("x", &[], &["a"]).len(), 1);
    }
}
