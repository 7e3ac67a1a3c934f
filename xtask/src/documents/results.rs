//! Tables of measurements in documents, which come from what benchmarks printed.
//!
//! `docs/results/NAME.txt` is what a command printed, tables and all. A hidden comment,
//! `<!-- record: NAME -->`, stands before a table of a page. The table has the first column of a
//! table of that record, others in an order of its own, and all rows. `cargo xtask results` writes
//! the rows. A table that looks measured and is not has the name `none`.

use crate::process;
use anyhow::{Context as _, bail};
use std::fs;
use std::path::PathBuf;

const MARKER: &str = "<!-- record: ";
/// The name before a table that has no figures.
const NO_RECORD: &str = "none";
/// Units of rates, times and costs. A table that has one was measured.
const UNITS: [&str; 12] = [
    " s",
    " ms",
    "µs",
    " ns",
    "instructions",
    "k/s",
    "M/s",
    "million/s",
    "GB/s",
    "MB/s",
    "ops/s",
    "requests/s",
];

/// Writes the rows of every measured table of every page.
pub fn write() -> anyhow::Result<()> {
    for path in pages()? {
        let page = fs::read_to_string(&path)?;
        let name = path.display().to_string();
        let filled = filled(&page, &read).with_context(|| name.clone())?;
        if filled != page {
            fs::write(&path, filled)?;
            println!("{name}: its tables are those of docs/results");
        }
    }
    Ok(())
}

/// The pages of the documents. Pages of figures come from figures.
fn pages() -> anyhow::Result<Vec<PathBuf>> {
    let mut pages = Vec::new();
    for entry in fs::read_dir(process::repository().join("docs"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "md") {
            pages.push(path);
        }
    }
    pages.sort();
    Ok(pages)
}

/// What a command printed.
fn read(name: &str) -> anyhow::Result<String> {
    let path = format!("docs/results/{name}.txt");
    fs::read_to_string(process::repository().join(&path)).context(path)
}

/// A table of Markdown: its headings and its rows.
pub struct Table<'a> {
    /// One for each column.
    pub heads: Vec<&'a str>,
    /// Their cells, without spaces around them.
    pub rows: Vec<Vec<&'a str>>,
}

impl<'a> Table<'a> {
    /// The table that begins with the first of these lines.
    fn read(lines: &[&'a str]) -> Table<'a> {
        let is_row = |line: &&&str| line.starts_with('|');
        let mut rows = lines.iter().take_while(is_row).map(|line| cells(line));
        let heads = rows.next().unwrap_or_default();
        Table {
            heads,
            rows: rows.skip(1).collect(),
        }
    }

    /// All tables of a text.
    pub fn all(text: &'a str) -> Vec<Table<'a>> {
        let lines: Vec<&str> = text.lines().collect();
        let begins = |place: &usize| {
            lines[*place].starts_with('|') && (*place == 0 || !lines[place - 1].starts_with('|'))
        };
        let places = (0..lines.len()).filter(begins);
        places.map(|place| Table::read(&lines[place..])).collect()
    }

    /// Where its columns with these headings are, if it has them all. `of` is what two headings of
    /// the first column have to have in common.
    fn columns(&self, heads: &[&str], of: fn(&str) -> String) -> Option<Vec<usize>> {
        let (first, others) = heads.split_first()?;
        let is_first = of(self.heads.first()?) == of(first);
        let column = |head: &&str| self.heads.iter().position(|it| it == head);
        let others = others.iter().map(column);
        is_first.then(|| [Some(0)].into_iter().chain(others).collect())?
    }
}

/// A heading without its numbers: a rate in it is measured, too.
fn without_numbers(head: &str) -> String {
    head.chars().filter(|it| !it.is_ascii_digit()).collect()
}

/// The cells of a row, without the spaces that align them.
fn cells(line: &str) -> Vec<&str> {
    let inside = line.trim().trim_matches('|');
    inside.split('|').map(str::trim).collect()
}

/// The page with the rows that the records have.
fn filled(page: &str, record: &dyn Fn(&str) -> anyhow::Result<String>) -> anyhow::Result<String> {
    let mut filled = String::new();
    let mut named = None;
    // What is done with the lines of a table: none outside of one.
    let mut is_kept = None;
    let (mut place, mut is_code) = (0, false);
    for line in page.lines() {
        is_code ^= line.starts_with("```");
        if let Some(rest) = line.strip_prefix(MARKER) {
            named = Some(rest.trim_end_matches("-->").trim());
        }
        if is_code || !line.starts_with('|') {
            is_kept = None;
        } else if is_kept.is_none() {
            let name = match named.take() {
                Some(name) => name,
                None if !looks_measured(&page[place..]) => NO_RECORD,
                None => bail!("no record: {line}"),
            };
            is_kept = Some(name == NO_RECORD);
            if name != NO_RECORD {
                let heads = cells(line);
                filled += &table(&heads, &record(name)?).with_context(|| name.to_owned())?;
            }
        }
        if is_kept != Some(false) {
            filled += &format!("{line}\n");
        }
        place += line.len() + 1;
    }
    Ok(filled)
}

/// Whether the table at the start of this text has a rate, a time, or a median with its range.
fn looks_measured(text: &str) -> bool {
    let mut rows = text.lines().take_while(|line| line.starts_with('|'));
    rows.any(|row| cells(row).iter().any(|cell| is_figure(cell)))
}

/// Whether a cell ends with a unit, or is a number with a range behind it.
fn is_figure(cell: &str) -> bool {
    let cell = cell.trim_matches('*');
    let range = cell
        .strip_suffix(')')
        .and_then(|cell| cell.rsplit_once('('));
    let is_range = |(_, inside): (&str, &str)| {
        let ends = ["..", " to ", "–"]
            .iter()
            .find_map(|between| inside.split_once(between));
        ends.is_some_and(|(least, _)| least.parse::<f64>().is_ok())
    };
    range.is_some_and(is_range) || UNITS.iter().any(|unit| cell.ends_with(unit))
}

/// The table of a record that has these headings, with only those columns. If none has them, the
/// first heading may have other numbers.
fn table(heads: &[&str], record: &str) -> anyhow::Result<String> {
    let tables = Table::all(record);
    let with = |of: fn(&str) -> String| {
        let found = tables.iter();
        let found = found.filter_map(move |table| Some((table, table.columns(heads, of)?)));
        found.collect::<Vec<_>>()
    };
    let mut found = with(str::to_owned);
    if found.is_empty() {
        found = with(without_numbers);
    }
    let [(table, columns)] = &found[..] else {
        bail!("{} tables have the columns {heads:?}", found.len());
    };
    let of_row = |cells: &[&str]| {
        let cell = |&column: &usize| *cells.get(column).unwrap_or(&"");
        row(&columns.iter().map(cell).collect::<Vec<_>>())
    };
    let rows = table.rows.iter().map(|cells| of_row(cells));
    Ok(of_row(&table.heads) + &row(&vec!["---"; heads.len()]) + &rows.collect::<String>())
}

fn row(cells: &[&str]) -> String {
    format!("| {} |\n", cells.join(" | ")).replace("|  |", "| |")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_are_those_of_the_records() {
        for path in pages().unwrap() {
            let page = fs::read_to_string(&path).unwrap();
            let filled = filled(&page, &read);
            assert!(
                filled.as_ref().is_ok_and(|filled| *filled == page),
                "{} differs from docs/results: cargo xtask results ({:?})",
                path.display(),
                filled.err()
            );
        }
    }

    #[test]
    fn every_record_says_where_it_was_measured_and_is_on_a_page() {
        let pages = pages().unwrap();
        let pages: String = pages
            .iter()
            .map(|page| fs::read_to_string(page).unwrap())
            .collect();
        let folder = process::repository().join("docs/results");
        for file in fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            let marker = format!("{MARKER}{name} -->");
            assert!(pages.contains(&marker), "no page has a table of {name}");
            let text = fs::read_to_string(&path).unwrap();
            let is_measured = text.contains("Measured at ") && text.contains(", release");
            assert!(is_measured, "{name}: from another build, or cut off");
        }
    }

    const RECORD: &str = "Text\n\n| a load |  k/s |  p99 |\n|--------|-----:|-----:|\n\
        | ours   |  6.0 |   12 |\n| theirs |      |    3 |\n\n| other | x |\n|---|---|\n";

    #[test]
    fn a_table_has_the_rows_of_its_record() {
        let page = "<!-- record: it -->\n| a load | p99 | k/s |\n| --- |\n| old |\n\nEnd\n";
        let filled = filled(page, &|name| {
            assert_eq!(name, "it");
            Ok(RECORD.to_owned())
        });
        let rows = "| a load | p99 | k/s |\n| --- | --- | --- |\n| ours | 12 | 6.0 |\n\
            | theirs | 3 | |\n";
        assert_eq!(
            filled.unwrap(),
            format!("<!-- record: it -->\n{rows}\nEnd\n")
        );
    }

    #[test]
    fn what_a_command_prints_is_no_table_of_the_page() {
        let page = "```console\n| p99 |\n|---|\n| 3 µs |\n```\n";
        let filled = filled(page, &|_| panic!("no record is asked for"));
        assert_eq!(filled.unwrap(), page);
    }

    #[test]
    fn a_table_without_figures_stays() {
        let page = "<!-- record: none -->\n| a | b |\n| --- |\n| 1 | 2 |\n\nEnd\n";
        let filled = filled(page, &|_| panic!("no record is asked for"));
        assert_eq!(filled.unwrap(), page);
    }

    #[test]
    fn a_heading_has_the_numbers_of_its_record() {
        let page = "<!-- record: it -->\n| at 7 k/s | p99 |\n";
        let record = "| at 41 k/s | p99 |\n|---|---|\n| ours | 3 |\n";
        let filled = filled(page, &|_| Ok(record.to_owned())).unwrap();
        assert!(filled.contains("| at 41 k/s | p99 |\n| --- | --- |\n| ours | 3 |\n"));
    }

    #[test]
    fn a_measured_table_without_a_record_is_an_error() {
        let of = |page: &str| filled(page, &|_| Ok(RECORD.to_owned())).unwrap_err();
        for table in [
            "| a load | p50, µs |\n",
            "| a | b |\n|---|---|\n| ours | 1.5 (1.2 to 1.7) |\n",
            "| a | b |\n|---|---|\n| ours | **12 M/s** |\n",
            "| a | b |\n|---|---|\n| ours | 3.1 s |\n",
            "| a | ours: ms |\n|---|---|\n| b | 3 / 7 |\n",
            "| a | one at a time, instructions |\n|---|---|\n| b | 3900 |\n",
        ] {
            assert!(of(table).to_string().contains("no record"), "{table}");
        }
        let other = of("<!-- record: it -->\n| a load | p50 |\n");
        assert!(
            format!("{other:#}").contains("0 tables have the columns"),
            "{other:#}"
        );
    }
}
