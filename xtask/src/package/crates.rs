//! The crates that are published.

use crate::process::{self, program, run};
use anyhow::{Context, bail};
use cargo_metadata::{DependencyKind, MetadataCommand, Package};
use std::path::{Path, PathBuf};
use std::{env, fs};

/// Builds each crate from what it would be published as, and `glimmer` as `cargo install` does,
/// without the network.
pub fn build(_folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let published = check()?;
    let target = process::target_dir().join("crates");
    // cargo takes a crate of a version to be the same as last time.
    forget(&target.join("debug/.fingerprint"))?;
    for unpacked in local_registries()? {
        forget(&unpacked)?;
    }
    let mut package = process::cargo(&["package", "--offline", "--allow-dirty"]);
    for crate_ in &published {
        package.args(["-p", crate_.name.as_str()]);
    }
    run(package.env("CARGO_TARGET_DIR", &target))?;
    let files = published.iter().map(|crate_| {
        let name = format!("{}-{}.crate", crate_.name, crate_.version);
        target.join("package").join(name)
    });
    let files: Vec<PathBuf> = files.collect();
    match files.iter().find(|file| !file.exists()) {
        Some(missing) => bail!("{} was not written", missing.display()),
        None => install(&published, &target)?,
    }
    Ok(files)
}

/// Installs the server as `cargo install glimmer` does, with the packages in place of a registry.
/// It is not optimised, which would take minutes and show no more.
fn install(published: &[Package], target: &Path) -> anyhow::Result<()> {
    let unpacked = |crate_: &Package| {
        let name = format!("{}-{}", crate_.name, crate_.version);
        std::path::absolute(target.join("package").join(name))
    };
    let server = published.iter().find(|crate_| crate_.name == "glimmer");
    let server = unpacked(server.context("glimmer is published")?)?;
    let root = target.join("installed");
    let mut install = process::cargo(&["install", "--offline", "--debug", "--force", "--path"]);
    install.arg(&server).arg("--root").arg(&root);
    for crate_ in published.iter().filter(|crate_| crate_.name != "glimmer") {
        let path = unpacked(crate_)?;
        let patch = format!("patch.crates-io.{}.path={:?}", crate_.name, path);
        install.args(["--config", &patch]);
    }
    run(install.env("CARGO_TARGET_DIR", target))?;
    run(&mut program(root.join("bin/glimmer"), &["--version"]))
}

/// Removes what cargo keeps in a folder of crates of this workspace.
fn forget(folder: &Path) -> anyhow::Result<()> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Ok(());
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with("glimmer") {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

/// Where cargo unpacks crates that come from no server, as those do that were just packaged.
fn local_registries() -> anyhow::Result<Vec<PathBuf>> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(env::home_dir()?.join(".cargo")));
    let unpacked = home.context("cargo has a home")?.join("registry/src");
    let Ok(entries) = fs::read_dir(unpacked) else {
        return Ok(Vec::new());
    };
    let folders = entries.map(|entry| Ok(entry?.path()));
    let folders = folders.collect::<anyhow::Result<Vec<_>>>()?;
    // The name begins with that of the server, which is empty.
    let is_local = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default();
        name.to_string_lossy().starts_with('-')
    };
    Ok(folders.into_iter().filter(is_local).collect())
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
