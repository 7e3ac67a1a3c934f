//! The table of all suites in `docs/client-suites.md`. A run of some suites updates their parts and
//! keeps the others.

use super::Report;
use super::server::Kind;
use crate::process;
use std::collections::BTreeMap;
use std::fmt::Write;

const PATH: &str = "docs/client-suites.md";

const HEAD: &str = "\
# Test suites of clients

`cargo xtask suites` runs the test suites of memcached's clients against Glimmer and against
memcached, those of Redis' clients and of frameworks that use them against Glimmer and against
Redis, and writes this page. Where a package includes the client's own tests, these are run.
Where none does, tests in `tests/suites` use the client instead, and the table says so.
`tests/suites/suites.toml` has the entries, each with the commands that fetch and run a suite;
`.suites/<name>/work` has the logs. `cargo xtask suites <name>` runs single suites.

";
const COLUMNS: &str = "\
| client | version | tests | Glimmer | memcached, or Redis |
| --- | --- | --- | --- | --- |
";
const FAILURES: &str = "\n## Tests that fail\n";
/// The heading of a suite's part in the second half.
const HEADING: &str = "\n### ";

/// Writes the reports, in the order of the catalogue.
pub fn enter(order: &[String], reports: &[Report]) -> anyhow::Result<()> {
    let old = std::fs::read_to_string(PATH).unwrap_or_default();
    let mut rows = old_rows(&old);
    let mut details = old_details(&old);
    for report in reports {
        rows.insert(report.name.clone(), report.row());
        details.insert(report.name.clone(), report.details());
    }
    let mut page = String::from(HEAD);
    writeln!(page, "memcached is {}.\n", memcached_version())?;
    page.push_str(COLUMNS);
    page.extend(order.iter().filter_map(|name| rows.remove(name)));
    page.push_str(FAILURES);
    page.extend(order.iter().filter_map(|name| details.remove(name)));
    std::fs::write(PATH, page)?;
    println!("written to {PATH}");
    Ok(())
}

fn old_rows(page: &str) -> BTreeMap<String, String> {
    let rows = page.lines().filter(|line| line.starts_with("| "));
    rows.filter_map(|line| {
        Some((
            line.split('|').nth(1)?.trim().to_owned(),
            format!("{line}\n"),
        ))
    })
    .collect()
}

fn old_details(page: &str) -> BTreeMap<String, String> {
    let parts = page.split(HEADING).skip(1);
    parts
        .map(|part| {
            let name = part.lines().next().unwrap_or_default().to_owned();
            (name, format!("{HEADING}{part}"))
        })
        .collect()
}

fn memcached_version() -> String {
    let memcached = std::env::var("GLIMMER_MEMCACHED").unwrap_or_else(|_| "memcached".into());
    let output = process::program(memcached, &["-V"]).output();
    let text = output.map_or_else(|_| Vec::new(), |output| output.stdout);
    let text = String::from_utf8_lossy(&text);
    let version = text.split_whitespace().nth(1);
    version.unwrap_or("not installed").to_owned()
}

impl Report {
    fn row(&self) -> String {
        let peer = match self.peer {
            Kind::Redis => "Redis: ",
            _ => "",
        };
        let (version, glimmer, theirs) = match &self.result {
            Ok(results) => (
                results.version.clone(),
                results.glimmer.to_string(),
                format!("{peer}{}", results.peer),
            ),
            Err(reason) => (String::new(), format!("not run: {reason}"), String::new()),
        };
        let cells = [&self.name, &version, &self.about, &glimmer, &theirs];
        let cells = cells.map(|cell| cell.replace('|', "/").replace('\n', " "));
        format!("| {} |\n", cells.join(" | "))
    }

    /// The tests that fail with either server, with their notes. Empty if none fails.
    fn details(&self) -> String {
        let Ok(results) = &self.result else {
            return String::new();
        };
        let mut parts = String::new();
        let failed_both: Vec<_> = (results.glimmer.failed())
            .filter(|test| !results.peer.has_passed(test))
            .collect();
        let here: Vec<_> = results.failed_here_alone().collect();
        let there: Vec<_> = (results.peer.failed())
            .filter(|test| results.glimmer.has_passed(test))
            .collect();
        for (title, tests) in [
            (format!("With {} alone", Kind::Glimmer), here),
            (format!("With {} alone", self.peer), there),
            ("With both".to_owned(), failed_both),
        ] {
            if tests.is_empty() {
                continue;
            }
            let _ = writeln!(parts, "\n{title}:\n");
            for test in tests {
                let why = self
                    .note(test)
                    .map_or_else(String::new, |why| format!(": {why}"));
                let _ = writeln!(parts, "- `{test}`{why}");
            }
        }
        match parts.is_empty() {
            true => String::new(),
            false => format!("{HEADING}{}\n{parts}", self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_run_again_is_kept() {
        let page = format!(
            "{HEAD}{COLUMNS}| a | 1 | own | 1 passed, 0 failed | 1 passed, 0 failed |\n\
             {FAILURES}\n### a\n\nWith both:\n\n- `x`\n\n### b\n"
        );
        assert!(old_rows(&page)["a"].contains("1 passed"));
        assert_eq!(old_details(&page)["a"], "\n### a\n\nWith both:\n\n- `x`\n");
        assert_eq!(old_details(&page)["b"], "\n### b\n");
    }
}
