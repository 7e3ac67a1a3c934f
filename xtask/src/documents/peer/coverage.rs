//! Which sentences of the pages the table speaks of.

use super::DOCUMENT;
use super::cells::{Row, split};
use std::fs;

/// The page of which every point has to be in the table.
const DIFFERENCES: &str = "docs/memcached-differences.md";
/// Where its list of points ends.
const LAST_HEADING: &str = "## How the differences are checked";
/// The heading over points that are not asked, each with the reason.
const NOT_ASKED: &str = "## Not asked";

/// Words that no page has, and points of the page of differences that the table does not have.
pub fn faults(text: &str, rows: &[Row]) -> anyhow::Result<Vec<String>> {
    let mut faults = Vec::new();
    for row in rows {
        let page = joined(&fs::read_to_string(&row.page)?);
        if !page.contains(&row.quote) {
            let (line, page, quote) = (row.line, &row.page, &row.quote);
            faults.push(format!("{DOCUMENT}:{line}: {page} does not say: {quote}"));
        }
    }
    let (_, not_asked) = text.split_once(NOT_ASKED).unwrap_or_default();
    let reasons: Vec<String> = not_asked
        .lines()
        .filter_map(|line| match &split(line)[..] {
            [quote, _] if quote.starts_with('"') => Some(quote.trim_matches('"').to_owned()),
            _ => None,
        })
        .collect();
    let page = fs::read_to_string(DIFFERENCES)?;
    let points = points(&page);
    let asked = rows.iter().map(|row| &row.quote);
    let known: Vec<&String> = asked.chain(&reasons).collect();
    for point in &points {
        if !known.iter().any(|quote| point.contains(&***quote)) {
            faults.push(format!(
                "{DOCUMENT} lacks this point of {DIFFERENCES}: {point}"
            ));
        }
    }
    for reason in &reasons {
        if !points.iter().any(|point| point.contains(&**reason)) {
            faults.push(format!("{DOCUMENT}: {DIFFERENCES} does not say: {reason}"));
        }
    }
    Ok(faults)
}

/// The points of the lists, each as one line.
fn points(page: &str) -> Vec<String> {
    let (list, _) = page.split_once(LAST_HEADING).unwrap_or((page, ""));
    let mut points: Vec<String> = Vec::new();
    let mut is_in_point = false;
    for line in list.lines() {
        let text = line.trim_start();
        if let Some(begun) = text.strip_prefix("- ") {
            points.push(begun.to_owned());
            is_in_point = true;
        } else if text.is_empty() || text.starts_with('#') {
            is_in_point = false;
        } else if let Some(point) = points.last_mut().filter(|_| is_in_point) {
            point.push(' ');
            point.push_str(text);
        }
    }
    points
}

/// The words with one space between any two.
fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_a_line_however_it_is_wrapped() {
        let page = "# x\n\ntext\n\n- one\n  goes on\n  - two\n\nno point\n- three\n\n## How the \
                    differences are checked\n- four\n";
        assert_eq!(points(page), ["one goes on", "two", "three"]);
    }
}
