//! Programs in Python that try things with a server, and report by lines: `ok NAME`, `not ok NAME`,
//! `# THING: VERSION` and `# THING: not run: REASON`.

use super::record::Row;
use super::{Tried, version_of};
use crate::process::program;
use crate::suites::outcome::{Format, Outcomes};
use std::path::Path;
use std::process::Stdio;

/// The reason of a thing that was not run.
const NOT_RUN: &str = "not run: ";

/// A file that no registry has: the option, and the path if it was given.
type Given<'a> = (&'a str, Option<&'a Path>);

/// Tries the things in the folder's own folders, or those that were asked for, with both servers.
pub fn rows(folder: &str, with: &Tried, given: Given<'_>) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for name in names(Path::new(folder))? {
        if with.is_chosen(&name) {
            let row = row(folder, &name, with, given)?;
            println!("{name}: {}", row.shown());
            rows.push(row);
        }
    }
    Ok(rows)
}

/// The folders that have a program of their own, in order.
fn names(folder: &Path) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.join("recipe.py").is_file() {
            names.extend(
                path.file_name()
                    .map(|name| name.to_string_lossy().into_owned()),
            );
        }
    }
    names.sort();
    Ok(names)
}

fn row(folder: &str, name: &str, with: &Tried, given: Given<'_>) -> anyhow::Result<Row> {
    let mut printed = Vec::new();
    for server in with.servers() {
        let mut command = program("python3", &[folder, "--install", "--server"]);
        command.arg(server).arg(name);
        if let (option, Some(path)) = given {
            command.arg(option).arg(path);
        }
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        command.stdin(Stdio::null()).stderr(Stdio::inherit());
        let output = command.output()?;
        printed.push(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let about = about(&printed[0], name);
    let row = Row::new(name, about.strip_prefix(NOT_RUN).map_or(about, |_| ""))?;
    let [ours, theirs] = [0, 1].map(|server| Outcomes::of(&printed[server], Format::Tap));
    Ok(match about.strip_prefix(NOT_RUN) {
        Some(reason) => row.without(reason),
        None if ours.is_empty() => row.without("its program reported nothing"),
        None => row.with(&version_of(&with.memcached)?, &ours, &theirs),
    })
}

/// What the line `# NAME: ...` says.
fn about<'a>(printed: &'a str, name: &str) -> &'a str {
    let prefix = format!("# {name}: ");
    let mut lines = printed.lines();
    lines
        .find_map(|line| line.strip_prefix(&prefix))
        .unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_thing_says_of_itself() {
        let printed = "# go: go1.26, gomemcache v1\n# tried again: not ok x\nok x\n";
        assert_eq!(about(printed, "go"), "go1.26, gomemcache v1");
        assert_eq!(about("# go: not run: no go", "go"), "not run: no go");
        assert_eq!(about("ok x", "go"), "");
    }

    #[test]
    fn every_page_of_recipes_is_tried() {
        let folder = crate::process::repository();
        let names = names(&folder.join("tests/recipes")).unwrap();
        for name in &names {
            let page = folder.join(format!("docs/recipes/{name}.md"));
            assert!(page.exists(), "{}", page.display());
        }
        assert!(names.len() >= 7, "{names:?}");
    }
}
