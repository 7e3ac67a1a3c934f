//! The summary at the start of a page, and its line in the index.

use std::fmt::Write;

use crate::{Finding, Record, Verdict, catalogue::Page};

/// Heads of the index's table.
pub const INDEX_HEAD: &str = "\
| page | figures | claims that hold | claims that fail | not measured |
| --- | --- | --- | --- | --- |
";

/// A judged claim and its figure.
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

/// All claims of a page.
pub fn table(claims: &[Claim<'_>]) -> String {
    let mut text = "| claim | figure | paper | measured here | verdict |\n\
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

/// A page's line in the index.
pub fn index_row(page: &Page, claims: &[Claim<'_>]) -> String {
    let count = |is: fn(&Verdict) -> bool| {
        let these = claims.iter().filter(|claim| is(&claim.finding.verdict));
        these.count()
    };
    format!(
        "| [{}]({}.md) | {} | {} | {} | {} |\n",
        page.title,
        page.name,
        page.figures.len(),
        count(|verdict| *verdict == Verdict::Holds),
        count(|verdict| matches!(verdict, Verdict::Fails(_))),
        count(|verdict| matches!(verdict, Verdict::Open(_))),
    )
}
