//! Checks that are not worth repeating as long as what they depend on stays the same: the model
//! checker tries every order, a proof holds for every input, instructions are counted for the same
//! requests each time, a planted bug is looked for from the same seed on, and the seeds of Miri and
//! of the circuit's simulation are for long runs. The test suite leaves them out while nothing has
//! changed since they last passed, which `xtask/passed.txt` tells. The commands for a check run it
//! whatever the file says.
//!
//! A check depends on whole folders: of a crate, of the crates that it is built from, and of what
//! else is named for it. It also depends on the versions of the crates of others, on the profiles,
//! and on the compiler.

use crate::process::{self, program};
use anyhow::Context as _;
use cargo_metadata::{DependencyKind, MetadataCommand};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// A line for each check: its name, and the digest of what it depended on.
const FILE: &str = "xtask/passed.txt";
const HEAD: &str = "\
# Checks of which the test suite leaves out those that passed as everything is. After a tab, the
# digest of what each depends on. Their commands run them all the same, and write this file.
";

/// What decides how everything is built.
const BUILT_BY: [&str; 2] = ["Cargo.toml", "Cargo.lock"];

/// Folders of a crate that only its own tests, and no crate that depends on it, are built from.
const OF_TESTS: [&str; 3] = ["tests", "benches", "examples"];

/// Which checks of one kind are run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// All of them.
    All,
    /// Those that have not passed as everything is now.
    Changed,
}

/// What a check depends on.
#[derive(Clone, Copy, Default)]
pub struct Inputs<'a> {
    /// Files and folders of the repository.
    pub paths: &'a [&'a str],
    /// A crate. All crates of the workspace that it and its tests are built from count, too.
    pub package: Option<&'a str>,
    /// What the paths of those files begin with, in the crate's folder, that are its tests.
    pub tests: &'a [&'a str],
}

/// A check as everything is now.
pub struct Check {
    name: String,
    root: PathBuf,
    digest: String,
}

impl Check {
    /// A check of this name with what it depends on now.
    pub fn new(name: &str, inputs: Inputs<'_>) -> anyhow::Result<Check> {
        Check::in_folder(&process::repository(), name, inputs)
    }

    fn in_folder(root: &Path, name: &str, inputs: Inputs<'_>) -> anyhow::Result<Check> {
        Ok(Check {
            name: name.to_owned(),
            root: root.to_owned(),
            digest: digest(root, inputs)?,
        })
    }

    /// Whether it passed when all was as it is now, so that it is left out; prints that.
    pub fn is_left_out(&self) -> bool {
        let known = read(&fs::read_to_string(self.root.join(FILE)).unwrap_or_default());
        let is_same = known.get(&self.name) == Some(&self.digest);
        if is_same {
            let name = &self.name;
            println!("left out, as nothing has changed since it passed: {name} ({FILE})");
        }
        is_same
    }

    /// Notes that it has passed.
    pub fn note(&self) -> anyhow::Result<()> {
        let path = self.root.join(FILE);
        let turn = File::create(process::target_dir().join("passed.lock"))?;
        turn.lock()?;
        let mut known = read(&fs::read_to_string(&path).unwrap_or_default());
        known.insert(self.name.clone(), self.digest.clone());
        let lines = known
            .iter()
            .map(|(name, digest)| format!("{name}\t{digest}\n"));
        fs::write(&path, HEAD.to_owned() + &lines.collect::<String>())?;
        Ok(())
    }
}

/// A digest of the names and contents of all files, and of the compiler's version.
fn digest(root: &Path, inputs: Inputs<'_>) -> anyhow::Result<String> {
    let mut files = Vec::new();
    for path in inputs.paths {
        add(&mut files, &root.join(path), &|_| true)?;
    }
    let mut sum = sha1_smol::Sha1::new();
    let mut update = |part: &[u8]| {
        sum.update(&(part.len() as u64).to_le_bytes());
        sum.update(part);
    };
    if let Some(package) = inputs.package {
        add_crates(&mut files, root, package, inputs.tests)?;
        update(compiler()?.as_bytes());
    }
    files.sort();
    files.dedup();
    for file in files {
        let name = file.strip_prefix(root)?.to_string_lossy();
        update(name.as_bytes());
        update(&fs::read(&file).with_context(|| file.display().to_string())?);
    }
    Ok(sum.digest().to_string())
}

/// Adds the files of a crate and of those that it and its tests are built from.
fn add_crates(
    files: &mut Vec<PathBuf>,
    root: &Path,
    package: &str,
    tests: &[&str],
) -> anyhow::Result<()> {
    let crates = crates(root)?;
    let mut reached = vec![package.to_owned()];
    let mut place = 0;
    while let Some(name) = reached.get(place).cloned() {
        let is_checked = place == 0;
        let of = crates
            .get(&name)
            .with_context(|| format!("no crate {name}"))?;
        for (dependency, is_for_tests) in &of.dependencies {
            if (is_checked || !is_for_tests) && !reached.contains(dependency) {
                reached.push(dependency.clone());
            }
        }
        add(files, &of.folder, &|path| {
            let is_of_tests = OF_TESTS.iter().any(|folder| path.starts_with(folder));
            let is_chosen = tests.iter().any(|test| path.starts_with(test));
            !is_of_tests || (is_checked && is_chosen)
        })?;
        place += 1;
    }
    files.extend(BUILT_BY.map(|file| root.join(file)));
    Ok(())
}

/// Adds a file, or those files of a folder whose paths in it are wanted.
fn add(
    files: &mut Vec<PathBuf>,
    path: &Path,
    is_wanted: &dyn Fn(&str) -> bool,
) -> anyhow::Result<()> {
    let mut left = vec![path.to_owned()];
    while let Some(next) = left.pop() {
        if next.is_dir() {
            for entry in fs::read_dir(&next)? {
                left.push(entry?.path());
            }
        } else if is_wanted(&next.strip_prefix(path)?.to_string_lossy()) {
            files.push(next);
        }
    }
    Ok(())
}

/// The checks by name, with their digests.
fn read(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let checks = lines.filter_map(|line| line.split_once('\t'));
    checks
        .map(|(name, digest)| (name.to_owned(), digest.to_owned()))
        .collect()
}

/// A crate of the workspace.
struct Crate {
    folder: PathBuf,
    /// Crates of the workspace that it depends on, and whether only its tests do.
    dependencies: Vec<(String, bool)>,
}

fn crates(root: &Path) -> anyhow::Result<BTreeMap<String, Crate>> {
    let mut command = MetadataCommand::new();
    let metadata = command.current_dir(root).no_deps().exec()?;
    let mut crates = BTreeMap::new();
    for package in metadata.workspace_packages() {
        let folder = package
            .manifest_path
            .parent()
            .context("it is in a folder")?;
        let ours = package.dependencies.iter().filter(|it| it.path.is_some());
        let dependencies = ours
            .map(|it| (it.name.clone(), it.kind == DependencyKind::Development))
            .collect();
        let folder = folder.as_std_path().to_owned();
        crates.insert(
            package.name.to_string(),
            Crate {
                folder,
                dependencies,
            },
        );
    }
    Ok(crates)
}

/// The compiler's version.
fn compiler() -> anyhow::Result<String> {
    let output = program("rustc", &["-V"])
        .output()
        .context("cannot start rustc")?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = "[package]\nname = \"NAME\"\nedition = \"2024\"\n";
    const DEPENDENCIES: [(&str, &str); 4] = [
        ("top", "[dependencies]\nmiddle = { path = \"../middle\" }\n"),
        (
            "middle",
            "[dependencies]\nlow = { path = \"../low\" }\n\
             [dev-dependencies]\nhelper = { path = \"../helper\" }\n",
        ),
        (
            "low",
            "[dev-dependencies]\nbeside = { path = \"../beside\" }\n",
        ),
        ("helper", ""),
    ];

    /// A workspace in which `top` needs `middle`, and `middle` needs `low` and, for its tests,
    /// `helper`. The tests of `low` need `beside`.
    fn workspace() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put(
            "Cargo.toml",
            "[workspace]\nmembers = [\"crates/*\"]\nresolver = \"3\"\n",
        );
        put("Cargo.lock", "");
        put("other/proof.txt", "it holds");
        for (name, dependencies) in DEPENDENCIES.into_iter().chain([("beside", "")]) {
            let manifest = MANIFEST.replace("NAME", name) + dependencies;
            put(&format!("crates/{name}/Cargo.toml"), &manifest);
            put(&format!("crates/{name}/src/lib.rs"), "");
            put(&format!("crates/{name}/src/deep/part.rs"), "");
            put(&format!("crates/{name}/tests/loom_a.rs"), "");
            put(&format!("crates/{name}/tests/support/shared.rs"), "");
            put(&format!("crates/{name}/tests/plain.rs"), "");
        }
        folder
    }

    const INPUTS: Inputs<'_> = Inputs {
        paths: &["other"],
        package: Some("middle"),
        tests: &["tests/loom_", "tests/support/"],
    };

    fn check(root: &Path) -> Check {
        Check::in_folder(root, "loom middle", INPUTS).unwrap()
    }

    #[test]
    fn a_change_of_anything_that_a_check_depends_on_has_it_run_again() {
        let folder = workspace();
        let before = check(folder.path()).digest;
        for path in [
            "crates/middle/src/lib.rs",
            "crates/middle/src/deep/part.rs",
            "crates/middle/src/deep/a_new_file.rs",
            "crates/middle/Cargo.toml",
            "crates/middle/build.rs",
            "crates/middle/tests/loom_a.rs",
            "crates/middle/tests/loom_new.rs",
            "crates/middle/tests/support/shared.rs",
            "crates/low/src/lib.rs",
            "crates/low/golden/table.tsv",
            "crates/helper/src/deep/part.rs",
            "other/proof.txt",
            "Cargo.toml",
            "Cargo.lock",
        ] {
            let path = folder.path().join(path);
            let kept = fs::read_to_string(&path).ok();
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let changed = kept.clone().unwrap_or_default() + "\n# changed\n";
            fs::write(&path, changed).unwrap();
            let after = check(folder.path()).digest;
            assert_ne!(after, before, "{}", path.display());
            match kept {
                Some(text) => fs::write(&path, text).unwrap(),
                None => fs::remove_file(&path).unwrap(),
            }
        }
        assert_eq!(check(folder.path()).digest, before);
    }

    #[test]
    fn other_crates_and_other_tests_do_not_count() {
        let folder = workspace();
        let before = check(folder.path()).digest;
        for path in [
            "crates/top/src/lib.rs",
            "crates/beside/src/lib.rs",
            "crates/middle/tests/plain.rs",
            "crates/low/tests/loom_a.rs",
            "README.md",
        ] {
            fs::write(folder.path().join(path), "// changed").unwrap();
        }
        assert_eq!(check(folder.path()).digest, before);
    }

    #[test]
    fn what_is_noted_is_left_out_until_something_changes() {
        let folder = workspace();
        fs::create_dir(folder.path().join("xtask")).unwrap();
        fs::create_dir_all(process::target_dir()).unwrap();
        assert!(!check(folder.path()).is_left_out());
        check(folder.path()).note().unwrap();
        assert!(check(folder.path()).is_left_out());
        let other = Check::in_folder(folder.path(), "another", INPUTS).unwrap();
        assert!(!other.is_left_out());
        other.note().unwrap();
        assert!(check(folder.path()).is_left_out());
        fs::write(folder.path().join("crates/low/src/lib.rs"), "// changed").unwrap();
        assert!(!check(folder.path()).is_left_out());
    }
}
