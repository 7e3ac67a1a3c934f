//! `docs/conformance.md`, from the records.

use super::record::{Count, Record, Row};
use super::{PARTS, Part};
use crate::process;
use std::fmt::Write as _;
use std::fs;

const PAGE: &str = "docs/conformance.md";

const HEAD: &str = "\
# Conformance

What was tried with this server and, in the same way, with memcached: passed of run. `cargo xtask
conformance` runs the parts, keeps what came out in [docs/conformance](conformance), and writes this
page. A skipped test is not counted. Each row has the day and the commit of its run.

";

/// Writes the page.
pub fn write() -> anyhow::Result<()> {
    fs::write(process::repository().join(PAGE), text(&Record::read)?)?;
    println!("{PAGE}: from docs/conformance");
    Ok(())
}

/// The whole page.
fn text(read: &dyn Fn(&str) -> anyhow::Result<Record>) -> anyhow::Result<String> {
    let mut page = String::from(HEAD);
    page += "| part | rows run | Glimmer | memcached, or Redis |\n| --- | --- | --- | --- |\n";
    let mut parts = String::new();
    for part in PARTS {
        let record = read(&part.name())?;
        let title = title(part);
        let anchor = title
            .to_lowercase()
            .replace(['\'', ','], "")
            .replace(' ', "-");
        let run: Vec<&Row> = record
            .row
            .iter()
            .filter(|row| row.not_run.is_none())
            .collect();
        let sum = |of: fn(&Row) -> Option<Count>| {
            let counts = run.iter().filter_map(|row| of(row));
            shown(counts.reduce(Count::and))
        };
        let (ours, theirs) = (sum(|row| row.ours), sum(|row| row.theirs));
        let rows = format!("{} of {}", run.len(), record.row.len());
        writeln!(
            page,
            "| [{title}](#{anchor}) | {rows} | {ours} | {theirs} |"
        )?;
        write!(parts, "\n## {title}\n\n{}\n", about(part))?;
        parts += &table(&record);
        parts += &failures(&record);
    }
    Ok(page + &parts)
}

fn title(part: Part) -> &'static str {
    match part {
        Part::Memcached => "memcached's own tests",
        Part::Clients => "Test suites of clients",
        Part::Proxies => "Proxies and rings",
        Part::Exporters => "Exporters",
        Part::Recipes => "Recipes",
    }
}

fn about(part: Part) -> &'static str {
    match part {
        Part::Memcached => {
            "The programs of memcached's folder `t`, each of which is a test: `cargo xtask \
             conformance\n--only memcached --source FOLDER`. Those of its proxy and of storage on \
             flash are left out.\n[memcached-differences.md](memcached-differences.md) says why \
             some fail here.\n"
        }
        Part::Clients => {
            "From [client-suites.md](client-suites.md), which says more: `cargo xtask suites`. \
             The date is\nthat of the last change of a result.\n"
        }
        Part::Proxies => {
            "Events of [scaling-out.md](scaling-out.md), such as a killed or a full server, under \
             load whose\nvalues carry key and version. An event passes if no read had a wrong \
             value.\n"
        }
        Part::Exporters => {
            "Programs that read the statistics: what they export is what clients did and what \
             `stats` says.\n"
        }
        Part::Recipes => {
            "Each page of [recipes](recipes/README.md), with the very configuration that it \
             shows.\n"
        }
    }
}

fn table(record: &Record) -> String {
    let mut table = String::from(
        "| name | what | Glimmer | beside | it | date | commit |\n\
         | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for row in &record.row {
        let ours = match &row.not_run {
            Some(reason) => format!("not run: {reason}"),
            None => shown(row.ours),
        };
        let cells = [
            &row.name,
            &row.about,
            &ours,
            &row.peer,
            &shown(row.theirs),
            &row.date,
            &row.commit,
        ];
        let cells = cells.map(|cell| cell.replace('|', "/").replace('\n', " "));
        table += &format!("| {} |\n", cells.join(" | ")).replace("|  |", "| |");
    }
    table
}

/// What failed with either server.
fn failures(record: &Record) -> String {
    let mut list = String::new();
    for row in &record.row {
        let both = row.failed.iter().filter(|it| row.peer_failed.contains(it));
        let here = row.failed.iter().filter(|it| !row.peer_failed.contains(it));
        let there = row.peer_failed.iter().filter(|it| !row.failed.contains(it));
        for (with, names) in [
            ("both", both.collect::<Vec<_>>()),
            ("Glimmer alone", here.collect()),
            ("the other alone", there.collect()),
        ] {
            for name in names {
                list += &format!("- {}: {name}: with {with}\n", row.name);
            }
        }
    }
    match list.is_empty() {
        true => list,
        false => format!("\nWhat failed:\n\n{list}"),
    }
}

fn shown(count: Option<Count>) -> String {
    count.map_or_else(String::new, |count| {
        format!("{} of {}", count.passed, count.run)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_that_of_the_records() {
        let page = fs::read_to_string(process::repository().join(PAGE)).unwrap();
        assert!(
            text(&Record::read).unwrap() == page,
            "{PAGE} differs from docs/conformance: cargo xtask conformance --page"
        );
    }

    /// Nothing that fails with this server alone is on the page without being seen here.
    #[test]
    fn every_row_was_run_or_says_why_not() {
        for part in PARTS {
            let record = Record::read(&part.name()).unwrap();
            assert!(!record.row.is_empty(), "{} has no rows", part.name());
            for row in &record.row {
                let has_run = row.ours.is_some_and(|count| count.run > 0);
                assert_ne!(has_run, row.not_run.is_some(), "{}", row.name);
                assert!(
                    row.date.len() == 10 && row.commit.len() >= 8,
                    "{}",
                    row.name
                );
                let failed = row.ours.map_or(0, |count| count.run - count.passed);
                assert_eq!(failed, row.failed.len(), "{}", row.name);
            }
        }
    }

    #[test]
    fn a_failure_is_listed_with_the_servers_that_have_it() {
        let row = Row {
            name: "it".to_owned(),
            failed: vec!["a".to_owned(), "b".to_owned()],
            peer_failed: vec!["b".to_owned(), "c".to_owned()],
            ..Row::default()
        };
        let list = failures(&Record { row: vec![row] });
        let wanted = "- it: b: with both\n- it: a: with Glimmer alone\n\
            - it: c: with the other alone\n";
        assert_eq!(list, format!("\nWhat failed:\n\n{wanted}"));
    }
}
