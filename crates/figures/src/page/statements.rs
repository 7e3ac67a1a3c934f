//! The part of a page that holds a paper's ledger: what the paper states, section by section, what
//! we find, and where and why we find less.

use std::fmt::Write;

use super::wrapped;
use crate::{
    Data,
    ledger::{Claim, Ledger, State, rule::Grade},
};

/// A statement with what can be said about it.
pub struct Statement<'a> {
    /// The statement.
    pub claim: &'a Claim,
    /// What can be said.
    pub state: State,
    /// Whether a simulation decides.
    pub is_simulated: bool,
}

/// How many statements of a paper have each verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counts {
    reproduced: [usize; 2],
    weaker: [usize; 2],
    not_reproduced: [usize; 2],
    not_yet: usize,
    impossible: usize,
}

/// The statements of a paper in order, judged by the data of the figures.
pub fn judged<'a, 'd>(
    ledger: &'a Ledger,
    data: impl Fn(&str) -> Option<&'d Data>,
    is_simulated: impl Fn(&str) -> bool,
) -> Vec<Statement<'a>> {
    let statement = |claim: &'a Claim| Statement {
        claim,
        state: claim.state(&data),
        is_simulated: claim.figure.as_deref().is_some_and(&is_simulated),
    };
    ledger.claims().map(statement).collect()
}

impl Statement<'_> {
    /// The verdict in words.
    pub fn verdict(&self) -> String {
        match &self.state {
            State::Judged(grade, _) if self.is_simulated => format!("{grade} (simulated)"),
            State::Judged(grade, _) => grade.to_string(),
            State::NotYet(_) => "not measured yet".to_owned(),
            State::Impossible(_) => "cannot be measured here".to_owned(),
            State::Elsewhere(_) => "see there".to_owned(),
        }
    }

    /// Our number.
    pub fn ours(&self) -> String {
        match &self.state {
            State::Judged(_, found) => found.to_string(),
            State::NotYet(_) | State::Impossible(_) | State::Elsewhere(_) => String::new(),
        }
    }

    /// Where the paper has it.
    fn place(&self) -> String {
        self.claim.at.clone().unwrap_or_default()
    }

    /// The figure with a link to it, which may lie on another page.
    fn figure(&self, page_of: &dyn Fn(&str) -> String) -> String {
        let link = |figure: &String| format!("[{figure}]({})", page_of(figure));
        self.claim.figure.as_ref().map(link).unwrap_or_default()
    }

    fn is(&self, wanted: Grade) -> bool {
        matches!(&self.state, State::Judged(grade, _) if *grade == wanted)
    }
}

impl Counts {
    /// Counts verdicts.
    pub fn of(statements: &[Statement<'_>]) -> Counts {
        let mut counts = Counts::default();
        for statement in statements {
            let simulated = usize::from(statement.is_simulated);
            match &statement.state {
                State::Judged(Grade::Reproduced, _) => counts.reproduced[simulated] += 1,
                State::Judged(Grade::Weaker, _) => counts.weaker[simulated] += 1,
                State::Judged(Grade::NotReproduced, _) => counts.not_reproduced[simulated] += 1,
                State::NotYet(_) => counts.not_yet += 1,
                State::Impossible(_) => counts.impossible += 1,
                State::Elsewhere(_) => {}
            }
        }
        counts
    }

    /// The cells of a table: statements, and each verdict.
    pub fn cells(self) -> String {
        let told = |[measured, simulated]: [usize; 2]| match simulated {
            0 => measured.to_string(),
            _ => format!("{} ({simulated} simulated)", measured + simulated),
        };
        let judged = [self.reproduced, self.weaker, self.not_reproduced];
        let count = judged.into_iter().flatten().sum::<usize>() + self.not_yet + self.impossible;
        let [reproduced, weaker, not_reproduced] = judged.map(told);
        format!(
            "{count} | {not_reproduced} | {weaker} | {reproduced} | {} | {}",
            self.not_yet, self.impossible
        )
    }
}

/// Verdicts that need a reason, in the order of the page.
const LESS: [Grade; 2] = [Grade::NotReproduced, Grade::Weaker];

/// Heads of a table of [`Counts`], after the name.
pub const COUNTED: &str = "statements | not reproduced | weaker | reproduced | not measured yet | \
                           cannot be measured here";

/// The ledger of a page, before its figures.
pub fn text(
    ledger: &Ledger,
    statements: &[Statement<'_>],
    page_of: &dyn Fn(&str) -> String,
) -> String {
    let mut text = String::new();
    short(statements, page_of, &mut text);
    by_section(ledger, statements, page_of, &mut text);
    differences(ledger, &mut text);
    judged_before(statements, &mut text);
    text
}

/// What contradicts us comes first, with the reasons.
fn short(statements: &[Statement<'_>], page_of: &dyn Fn(&str) -> String, text: &mut String) {
    text.push_str("\n## Where we find less than the paper\n");
    let less = |grade: &Grade| statements.iter().any(|statement| statement.is(*grade));
    if !LESS.iter().any(less) {
        let none = "No statement that was measured came out below the paper. The rows that are not \
                    measured say why.";
        let _ = write!(text, "\n{}\n", wrapped(none));
    }
    for grade in LESS {
        for statement in statements.iter().filter(|statement| statement.is(grade)) {
            let claim = statement.claim;
            let line = format!(
                "**{}** ({}): {} Paper: {}. Here: {}, {}. {}",
                statement.verdict(),
                claim.id,
                claim.says,
                claim.papers(),
                statement.ours(),
                statement.figure(page_of),
                claim.why.as_deref().unwrap_or_default(),
            );
            let _ = write!(text, "\n{}\n", wrapped(&line));
        }
    }
}

/// Each section with its statements.
fn by_section(
    ledger: &Ledger,
    statements: &[Statement<'_>],
    page_of: &dyn Fn(&str) -> String,
    text: &mut String,
) {
    text.push_str("\n## What the paper states, section by section\n\n");
    text.push_str("| section | statements |\n| --- | --- |\n");
    for section in &ledger.sections {
        let rows = match &section.none {
            Some(none) => format!("0: {none}"),
            None => section.claims.len().to_string(),
        };
        let _ = writeln!(
            text,
            "| {} | {} |",
            head(&section.at, &section.title),
            cell(&rows)
        );
    }
    let mut rest = statements.iter();
    for section in ledger
        .sections
        .iter()
        .filter(|section| section.none.is_none())
    {
        let _ = write!(
            text,
            "\n### {}\n\n| row | the paper | kind | its number | here | verdict |\n\
             | --- | --- | --- | --- | --- | --- |\n",
            head(&section.at, &section.title)
        );
        for statement in rest.by_ref().take(section.claims.len()) {
            row(statement, page_of, text);
        }
    }
}

fn row(statement: &Statement<'_>, page_of: &dyn Fn(&str) -> String, text: &mut String) {
    let claim = statement.claim;
    let place = statement.place();
    let says = match place.is_empty() {
        true => claim.says.clone(),
        false => format!("{place}: {}", claim.says),
    };
    let here = match &statement.state {
        State::Judged(_, found) => format!("{found}, {}", statement.figure(page_of)),
        State::NotYet(text) | State::Impossible(text) | State::Elsewhere(text) => text.clone(),
    };
    let remark = match (&statement.state, &claim.why) {
        (State::Judged(Grade::Reproduced, _), Some(why)) => format!("; {why}"),
        _ => String::new(),
    };
    let _ = writeln!(
        text,
        "| {} | {} | {} | {} | {} | {} |",
        claim.id,
        cell(&says),
        claim.kind(),
        cell(&claim.papers()),
        cell(&format!("{here}{remark}")),
        statement.verdict(),
    );
}

fn differences(ledger: &Ledger, text: &mut String) {
    if ledger.differences.is_empty() {
        return;
    }
    text.push_str(
        "\n## What stands in the place of the paper's components\n\n\
         | the paper | here | why | what the difference costs or gains |\n\
         | --- | --- | --- | --- |\n",
    );
    for difference in &ledger.differences {
        let cells = [
            &difference.theirs,
            &difference.ours,
            &difference.why,
            &difference.costs,
        ];
        let _ = writeln!(text, "| {} |", cells.map(|text| cell(text)).join(" | "));
    }
}

/// The statements that had a verdict by another rule.
fn judged_before(statements: &[Statement<'_>], text: &mut String) {
    let mut changed = statements
        .iter()
        .filter(|statement| statement.claim.before.is_some())
        .peekable();
    if changed.peek().is_none() {
        return;
    }
    let introduction = "Until 2026-11-27, each claim had a bound of its own, and some were \
                        chosen after the data. The same data by the one rule, and what has \
                        changed with it. A verdict that a later change of its row has changed \
                        has the date:";
    let _ = write!(
        text,
        "\n## Verdicts before and after\n\n{}\n\n| row | verdict before | verdict now |\n\
         | --- | --- | --- |\n",
        wrapped(introduction)
    );
    for statement in changed {
        let before = statement.claim.before.as_deref().unwrap_or_default();
        let _ = writeln!(
            text,
            "| {} | {} | {} |",
            statement.claim.id,
            cell(before),
            statement.verdict()
        );
    }
}

fn head(at: &str, title: &str) -> String {
    if at == title || !at.starts_with('§') {
        title.to_owned()
    } else {
        format!("{at} {title}")
    }
}

/// A vertical bar would end the cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
