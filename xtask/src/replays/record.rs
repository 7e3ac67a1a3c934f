//! The record of the replays: a table with a row for each trace, and what each run printed.

use crate::documents::results::Table;
use crate::soak::record::grouped;
use anyhow::{Context as _, ensure};
use std::fmt::Write as _;

/// Shares of the bytes that have a column, in percent.
const SHARES: [f64; 5] = [1.0, 5.0, 10.0, 25.0, 50.0];
/// What stands before the name of a trace whose output follows.
const SECTION: &str = "\n## ";

/// A hit ratio of both servers, in percent.
#[derive(Clone, Copy)]
struct Pair {
    ours: f64,
    theirs: f64,
}

impl Pair {
    /// How far ours is ahead in what the cell shows, in tenths.
    fn lead(self) -> i64 {
        tenths(self.ours) - tenths(self.theirs)
    }

    fn shown(self) -> String {
        let [ours, theirs] = [self.ours, self.theirs].map(|it| tenths(it) as f64 / 10.0);
        let bold = if self.lead() < 0 { "**" } else { "" };
        format!("{bold}{ours:.1} / {theirs:.1}{bold}")
    }
}

fn tenths(percent: f64) -> i64 {
    (percent * 10.0).round() as i64
}

/// What one run printed, as far as the table has it.
struct Row<'a> {
    trace: &'a str,
    requests: u64,
    keys: u64,
    copies: u64,
    value_bytes: Option<u64>,
    pairs: [Option<Pair>; SHARES.len()],
}

impl<'a> Row<'a> {
    /// Finds it in the output of `glimmer bench hit-ratio`.
    fn parse(trace: &'a str, output: &str) -> anyhow::Result<Row<'a>> {
        let number = |before: &str| -> Option<u64> {
            let rest = output.split_once(before)?.1;
            rest.split(|it: char| !it.is_ascii_digit())
                .next()?
                .parse()
                .ok()
        };
        let requests = number("Hit ratios of ").context("no number of requests")?;
        let copies = number("--copies ").unwrap_or(1);
        let table = Table::all(output).into_iter().next().context("no table")?;
        let row = |name: &str| {
            let mut rows = table.rows.iter();
            let row = rows.find(|row| row[0].starts_with(name));
            row.with_context(|| format!("no row of {name}"))
        };
        let (ours, theirs) = (row("glimmer")?, row("memcached")?);
        let mut pairs = [None; SHARES.len()];
        for (column, head) in table.heads.iter().enumerate().skip(1) {
            let share = percent(head).with_context(|| (*head).to_owned())?;
            let is_near = |it: &f64| (it - share).abs() < it / 10.0;
            let place = SHARES
                .iter()
                .position(is_near)
                .with_context(|| (*head).to_owned())?;
            let of = |row: &[&str]| percent(row.get(column)?);
            let pair = of(ours)
                .zip(of(theirs))
                .context("a cell without a hit ratio")?;
            pairs[place] = Some(Pair {
                ours: pair.0,
                theirs: pair.1,
            });
        }
        Ok(Row {
            trace,
            requests,
            keys: number(": ").context("no number of keys")? / copies,
            copies,
            value_bytes: number("--value-bytes "),
            pairs,
        })
    }

    fn shown(&self) -> String {
        let copies = match self.copies {
            1 => String::new(),
            copies => format!(" × {copies}"),
        };
        let value_bytes = self.value_bytes.map_or("recorded".to_owned(), grouped);
        let pairs = self
            .pairs
            .map(|pair| pair.map_or(String::new(), Pair::shown));
        format!(
            "| `{}` | {} | {}{copies} | {value_bytes} | {} |",
            self.trace,
            grouped(self.requests),
            grouped(self.keys),
            pairs.join(" | ")
        )
    }
}

/// The number before the first percent sign.
fn percent(text: &str) -> Option<f64> {
    let before = text.split_once('%')?.0;
    before.rsplit(['(', ' ']).next()?.parse().ok()
}

/// The outputs in a record, with the names of their traces.
pub fn read(record: &str) -> Vec<(String, String)> {
    let sections = record.split(SECTION).skip(1);
    let section = |text: &str| {
        let (name, output) = text.split_once('\n').unwrap_or((text, ""));
        (name.to_owned(), output.trim().to_owned())
    };
    sections.map(section).collect()
}

/// The record of these outputs: their table, what it comes to, and themselves.
pub fn written(outputs: &[(String, String)]) -> anyhow::Result<String> {
    let mut rows = Vec::new();
    for (trace, output) in outputs {
        rows.push(Row::parse(trace, output).with_context(|| trace.clone())?);
    }
    let mut record = "Hit ratios of recorded traces in percent, ours / memcached's, with a share \
        of the bytes of all items as memory limit. Bold: ours is behind.\n\n\
        | trace | requests | keys | value bytes | 1% | 5% | 10% | 25% | 50% |\n\
        |---|---|---|---|---|---|---|---|---|\n"
        .to_owned();
    for row in &rows {
        writeln!(record, "{}", row.shown())?;
    }
    writeln!(record, "\n{}", summary(&rows)?)?;
    for (trace, output) in outputs {
        write!(record, "{SECTION}{trace}\n\n{output}\n")?;
    }
    Ok(record)
}

/// How far ours is ahead on average, and where it is behind.
fn summary(rows: &[Row]) -> anyhow::Result<String> {
    let cells = rows.iter().flat_map(|row| {
        let pairs = row.pairs.iter().zip(SHARES);
        pairs.filter_map(|(pair, share)| Some(((*pair)?, row.trace, share)))
    });
    let cells: Vec<(Pair, &str, f64)> = cells.collect();
    ensure!(!cells.is_empty(), "nothing was replayed");
    let leads = cells.iter().map(|(pair, ..)| pair.ours - pair.theirs);
    let mean = leads.sum::<f64>() / cells.len() as f64;
    let mut behind = cells.clone();
    behind.retain(|(pair, ..)| pair.lead() < 0);
    behind.sort_by_key(|(pair, ..)| pair.lead());
    let behind = behind.iter().map(|(pair, trace, share)| {
        let points = -pair.lead() as f64 / 10.0;
        format!("{trace} at {share}% by {points:.1}")
    });
    let behind: Vec<String> = behind.collect();
    Ok(format!(
        "Over {} cells, ours is {mean:+.1} points from memcached's on average. Behind in {}: {}.",
        cells.len(),
        behind.len(),
        behind.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the benchmark prints, of a trace with copies.
    const PRINTED: &str = "\
Hit ratios of 282096 requests of target/replays/lirs/ps.txt: 83241 keys, 318.8 MiB.

| server                             | -m 16 (5.019% of the bytes) | -m 80 (25.09% of the bytes) |
|------------------------------------|----------------------------:|----------------------------:|
| glimmer 0.1.0                      |      20.44% (20.44%, 2 MiB) |      49.04% (49.04%, 2 MiB) |
| memcached-1.6.45: memcached 1.6.45 |      20.36% (20.36%, 2 MiB) |      52.35% (52.35%, 2 MiB) |

glimmer-bench hit-ratio --trace-file target/replays/lirs/ps.txt --value-bytes 4000 --copies 27";

    fn outputs(parts: &[(&str, &str)]) -> Vec<(String, String)> {
        let owned = |&(name, output): &(&str, &str)| (name.to_owned(), output.to_owned());
        parts.iter().map(owned).collect()
    }

    #[test]
    fn a_row_has_what_a_run_printed() {
        let record = written(&outputs(&[("lirs/ps", PRINTED)])).unwrap();
        let row = "| `lirs/ps` | 282,096 | 3,083 × 27 | 4,000 |  | 20.4 / 20.4 |  \
            | **49.0 / 52.4** |  |\n";
        assert!(record.contains(row), "{record}");
        let summary = "Over 2 cells, ours is -1.6 points from memcached's on average. Behind \
            in 1: lirs/ps at 25% by 3.4.\n";
        assert!(record.contains(summary), "{record}");
    }

    #[test]
    fn a_trace_may_have_lengths_and_no_copies() {
        let printed = PRINTED.split("--value-bytes").next().unwrap();
        let row = Row::parse("a", printed).unwrap();
        assert!(
            row.shown()
                .starts_with("| `a` | 282,096 | 83,241 | recorded |")
        );
    }

    #[test]
    fn a_cell_is_bold_where_ours_is_behind_in_what_it_shows() {
        let shown = |ours, theirs| Pair { ours, theirs }.shown();
        assert_eq!(shown(92.90, 92.99), "**92.9 / 93.0**");
        assert_eq!(shown(92.95, 93.04), "93.0 / 93.0");
        assert_eq!(shown(4.68, 1.76), "4.7 / 1.8");
    }

    #[test]
    fn the_table_of_the_record_is_that_of_its_outputs() {
        let path = crate::process::repository().join("docs/results/replays.txt");
        let record = std::fs::read_to_string(path).unwrap();
        assert_eq!(written(&read(&record)).unwrap(), record);
    }

    #[test]
    fn a_record_is_read_back_in_its_order() {
        let both = outputs(&[("b/two", PRINTED), ("a", PRINTED)]);
        assert_eq!(read(&written(&both).unwrap()), both);
        assert!(read("").is_empty());
    }

    #[test]
    fn a_run_without_figures_is_an_error() {
        for (from, to) in [
            ("glimmer 0.1.0 ", "redis"),
            ("49.04%", "none"),
            ("25.09%", "37%"),
        ] {
            let printed = PRINTED.replace(from, to);
            assert!(written(&outputs(&[("a", &printed)])).is_err(), "{to}");
        }
        assert!(written(&outputs(&[("a", "")])).is_err());
    }
}
