//! The crates that are published.

use crate::process::{self, run};
use anyhow::{Context, bail};
use cargo_metadata::{DependencyKind, MetadataCommand, Package};
use std::path::{Path, PathBuf};

/// Builds each crate from what it would be published as, and `glimmer` as `cargo install` does,
/// without the network.
pub fn build(_folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let published = check()?;
    let mut package = process::cargo(&["package", "--offline", "--allow-dirty"]);
    for crate_ in &published {
        package.args(["-p", crate_.name.as_str()]);
    }
    run(&mut package)?;
    let files = published.iter().map(|crate_| {
        let name = format!("{}-{}.crate", crate_.name, crate_.version);
        process::target_dir().join("package").join(name)
    });
    let files: Vec<PathBuf> = files.collect();
    match files.iter().find(|file| !file.exists()) {
        Some(missing) => bail!("{} was not written", missing.display()),
        None => Ok(files),
    }
}

/// The crates that are published. Fails if one lacks something that a registry shows or demands, or
/// depends on one that is not published.
pub fn check() -> anyhow::Result<Vec<Package>> {
    let metadata = MetadataCommand::new().no_deps().exec()?;
    let (published, own): (Vec<Package>, Vec<Package>) = metadata
        .workspace_packages()
        .into_iter()
        .cloned()
        .partition(|crate_| crate_.publish != Some(Vec::new()));
    let faults: Vec<String> = published.iter().flat_map(|it| faults(it, &own)).collect();
    if !faults.is_empty() {
        bail!("crates cannot be published:\n  {}", faults.join("\n  "));
    }
    let server = published.iter().find(|crate_| crate_.name == "glimmer");
    server.context("glimmer is published")?;
    Ok(published)
}

fn faults(crate_: &Package, own: &[Package]) -> Vec<String> {
    let mut faults = Vec::new();
    let mut note = |holds: bool, what: &str| {
        if !holds {
            faults.push(format!("{}: {what}", crate_.name));
        }
    };
    note(crate_.description.is_some(), "it has no description");
    note(crate_.license.is_some(), "it has no licence");
    note(!crate_.keywords.is_empty(), "it has no keywords");
    note(!crate_.categories.is_empty(), "it has no categories");
    let folder = crate_.manifest_path.parent();
    let has_text = folder.is_some_and(|it| it.join("LICENSE").exists());
    note(
        has_text,
        "it lacks the text of the licence (a link to LICENSE)",
    );
    for dependency in &crate_.dependencies {
        let is_own = own.iter().any(|it| it.name.as_str() == dependency.name);
        let is_for_tests = dependency.kind == DependencyKind::Development;
        note(
            is_for_tests || !is_own,
            &format!("{} is not published", dependency.name),
        );
        // Of the versions of a path, cargo checks that the path has one of them.
        let is_exact = dependency.req.to_string() == format!("={}", crate_.version);
        note(
            dependency.path.is_none() || is_own || is_exact,
            &format!("{} has to be of exactly this version", dependency.name),
        );
    }
    faults
}
