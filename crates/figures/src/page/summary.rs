//! The claims of ours on a page, and the tables of the index.

use std::fmt::Write;

use super::statements::{COUNTED, Counts, Statement};
use crate::{Finding, Record, Verdict, catalogue::Page};

/// A judged claim of ours and its figure.
pub struct Claim<'a> {
    figure: &'a str,
    finding: &'a Finding,
}

impl<'a> Claim<'a> {
    /// The claims of a figure. Numbers that are only shown side by side are not claims.
    pub fn of(record: &'a Record) -> impl Iterator<Item = Claim<'a>> {
        let judged = |finding: &&Finding| finding.verdict != Verdict::Beside;
        record.findings.iter().filter(judged).map(|finding| Claim {
            figure: &record.name,
            finding,
        })
    }
}

/// All claims of ours of a page.
pub fn table(claims: &[Claim<'_>]) -> String {
    let mut text = "| claim | figure | beside it | measured here | verdict |\n\
                    | --- | --- | --- | --- | --- |\n"
        .to_owned();
    for claim in claims {
        let (figure, verdict) = (claim.figure, claim.finding.told());
        let Finding {
            what, paper, ours, ..
        } = claim.finding;
        // A vertical bar would end the cell.
        let [what, paper, ours] = [what, paper, ours].map(|cell| cell.replace('|', "\\|"));
        let _ = writeln!(
            text,
            "| {what} | [{figure}](#{figure}) | {paper} | {ours} | {verdict} |"
        );
    }
    text
}

/// Heads of the table of headlines.
pub const HEADLINES: &str = "\
| source | what it states | its number | here | verdict | why |
| --- | --- | --- | --- | --- | --- |
";

/// The headlines of a page, in a row each.
pub fn headlines(page: &Page, statements: &[Statement<'_>]) -> String {
    let mut text = String::new();
    for statement in statements {
        let Some(why) = &statement.claim.headline else {
            continue;
        };
        let _ = writeln!(
            text,
            "| [{}]({}.md) | {} | {} | {} | {} | {why} |",
            page.title,
            page.name,
            statement.claim.says,
            statement.claim.papers(),
            statement.ours(),
            statement.verdict(),
        );
    }
    text
}

/// Heads of the table of verdicts on papers.
pub fn counts_head() -> String {
    format!(
        "| source | figures | {COUNTED} |\n|{}\n",
        " --- |".repeat(8)
    )
}

/// The verdicts on a paper.
pub fn counts_row(page: &Page, statements: &[Statement<'_>]) -> String {
    format!(
        "| [{}]({}.md) | {} | {} |\n",
        page.title,
        page.name,
        page.figures.len(),
        Counts::of(statements).cells()
    )
}

/// Heads of the table of claims of ours.
pub const OURS_HEAD: &str = "\
| page | claims of ours | that fail | that hold | not measured |
| --- | --- | --- | --- | --- |
";

/// The claims of ours on a page.
pub fn ours_row(page: &Page, claims: &[Claim<'_>]) -> String {
    let count = |is: fn(&Verdict) -> bool| {
        let these = claims.iter().filter(|claim| is(&claim.finding.verdict));
        these.count()
    };
    format!(
        "| [{}]({}.md) | {} | {} | {} | {} |\n",
        page.title,
        page.name,
        claims.len(),
        count(|verdict| matches!(verdict, Verdict::Fails(_))),
        count(|verdict| *verdict == Verdict::Holds),
        count(|verdict| matches!(verdict, Verdict::Open(_))),
    )
}
