//! The structural rules of the workspace. A crate depends only on lower floors, so that crates of
//! one floor never import one another. Within a crate, files do not import one another in circles
//! (`circles`). Crates that are published depend on published ones (`crates`). The server is built
//! from few crates (`server_crates`). No line of Rust exceeds 100 columns (`columns`).

use crate::package::crates;
use crate::{circles, columns, server_crates};
use anyhow::bail;
use cargo_metadata::{DependencyKind, MetadataCommand};

/// Every crate of the workspace and its floor. Add a new crate here first.
const FLOORS: &[(&str, u8)] = &[
    ("glimmer-base", 0),
    ("glimmer-measure", 0),
    ("glimmer-notation", 0),
    ("glimmer-seeds", 0),
    ("glimmer-connect", 1),
    ("glimmer-dispatch", 1),
    ("glimmer-hotset", 1),
    ("glimmer-http", 1),
    ("glimmer-proto", 1),
    ("glimmer-store", 1),
    ("glimmer-transport", 1),
    ("glimmer-accel-device", 2),
    ("glimmer-engine", 2),
    ("glimmer-cli", 2),
    ("glimmer-client", 2),
    ("glimmer-queueing", 2),
    ("glimmer-tls", 2),
    ("glimmer-xdp", 2),
    ("glimmer-accel-rtl", 3),
    ("glimmer-client-c", 3),
    ("glimmer-client-py", 3),
    ("glimmer-loadgen", 3),
    ("glimmer-node", 3),
    ("glimmer-comparisons", 4),
    ("glimmer-microbench", 4),
    ("glimmer-server", 4),
    ("glimmer-figures", 5),
    ("glimmer-sim", 5),
    ("glimmer", 6),
    ("glimmer-bench", 6),
    ("glimmer-top", 6),
    ("glimmer-cosim", 7),
    ("glimmer-packaging", 7),
];

/// Crates outside the floors: they depend on no crate of the workspace, and no crate depends on
/// them.
const BESIDE: &[&str] = &["xtask"];

/// Fails with one line per dependency that does not point downwards.
pub fn check() -> anyhow::Result<()> {
    let metadata = MetadataCommand::new().no_deps().exec()?;
    let mut edges = Vec::new();
    let (mut crates, mut folders) = (Vec::new(), Vec::new());
    for package in metadata.workspace_packages() {
        crates.push(package.name.to_string());
        let folder = package.manifest_path.parent().map(|folder| folder.into());
        folders.extend(folder.map(|folder| (package.name.to_string(), folder)));
        for dependency in package
            .dependencies
            .iter()
            .filter(|dependency| dependency.path.is_some())
        {
            edges.push(Edge {
                from: package.name.to_string(),
                to: dependency.name.clone(),
                for_tests: dependency.kind == DependencyKind::Development,
            });
        }
    }
    let faults = faults(&crates, &edges);
    if !faults.is_empty() {
        bail!("the floors do not hold:\n  {}", faults.join("\n  "));
    }
    println!(
        "floors: {} crates, {} dependencies between them, all of them downwards",
        crates.len(),
        edges.len()
    );
    let (files, excepted) = circles::check(&folders)?;
    println!("circles: none among {files} files but for {excepted} exceptions");
    let lines = columns::check()?;
    println!(
        "columns: {lines} lines of code and prose, of {} columns at most",
        columns::COLUMNS_MAX
    );
    let published = crates::check()?;
    println!(
        "published: {} crates, which depend on no other of ours",
        published.len()
    );
    server_crates::check()
}

/// A dependency of one crate of the workspace on another.
struct Edge {
    from: String,
    to: String,
    /// Tests may also compare two crates of the same floor, but never reach up.
    for_tests: bool,
}

fn floor(name: &str) -> Option<u8> {
    FLOORS
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, floor)| *floor)
}

fn faults(crates: &[String], edges: &[Edge]) -> Vec<String> {
    let unknown = crates
        .iter()
        .filter(|name| floor(name).is_none() && !BESIDE.contains(&name.as_str()))
        .map(|name| format!("{name} has no floor; enter it in xtask/src/floors.rs"));
    let upward = edges.iter().filter_map(|edge| {
        let from = floor(&edge.from);
        let to = floor(&edge.to);
        let (Some(from), Some(to)) = (from, to) else {
            return Some(format!(
                "{} and {} stand beside each other, yet one imports the other",
                edge.from, edge.to
            ));
        };
        let holds = to < from || (edge.for_tests && to == from);
        (!holds).then(|| {
            format!(
                "{} (floor {from}) imports {} (floor {to}): only lower floors may be imported",
                edge.from, edge.to
            )
        })
    });
    unknown.chain(upward).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(from: &str, to: &str, for_tests: bool) -> Edge {
        Edge {
            from: from.into(),
            to: to.into(),
            for_tests,
        }
    }

    #[test]
    fn downwards_holds() {
        assert!(
            faults(
                &["glimmer-engine".into()],
                &[edge("glimmer-engine", "glimmer-store", false)]
            )
            .is_empty()
        );
    }

    #[test]
    fn upwards_and_sideways_do_not() {
        for (from, to) in [
            ("glimmer-store", "glimmer-engine"),
            ("glimmer-store", "glimmer-proto"),
        ] {
            assert_eq!(
                faults(&[], &[edge(from, to, false)]).len(),
                1,
                "{from} -> {to}"
            );
        }
    }

    #[test]
    fn tests_may_look_sideways_but_not_up() {
        assert!(faults(&[], &[edge("glimmer-microbench", "glimmer-server", true)]).is_empty());
        assert_eq!(
            faults(&[], &[edge("glimmer-store", "glimmer-engine", true)]).len(),
            1
        );
    }

    #[test]
    fn a_crate_without_a_floor_is_named() {
        assert_eq!(faults(&["glimmer-attic".into()], &[]).len(), 1);
    }

    #[test]
    fn nothing_imports_what_stands_beside() {
        assert_eq!(
            faults(&[], &[edge("glimmer-server", "xtask", false)]).len(),
            1
        );
    }
}
