//! The ledger: every statement of a paper about behaviour or cost, in our words, with the paper's
//! number, and how ours is computed. One file per paper, in the order of its sections.

pub mod rule;
pub mod value;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::Data;
use rule::{Found, Grade, Stated, Way};
use value::Formula;

/// The files, by the name of the page.
const FILES: [(&str, &str); 5] = [
    ("mica", include_str!("mica.toml")),
    ("memc3", include_str!("memc3.toml")),
    ("minos", include_str!("minos.toml")),
    ("accel", include_str!("accel.toml")),
    ("formica", include_str!("formica.toml")),
];

/// The ledger of a paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ledger {
    /// Its sections, in order.
    #[serde(rename = "section")]
    pub sections: Vec<Section>,
    /// What the paper built, and what stands in its place here.
    #[serde(default, rename = "difference")]
    pub differences: Vec<Difference>,
}

/// A section of a paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Section {
    /// Its number.
    pub at: String,
    /// Its title.
    pub title: String,
    /// Why it has no statement that belongs here.
    pub none: Option<String>,
    /// Its statements, in order.
    #[serde(default, rename = "claim")]
    pub claims: Vec<Claim>,
}

/// A statement of a paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// A name that no other statement of the paper has.
    pub id: String,
    /// The paper's figure or table.
    pub at: Option<String>,
    /// The statement in our words.
    pub says: String,
    /// The paper's number as text, if it has more to say than the number.
    pub paper: Option<String>,
    factor: Option<f64>,
    difference: Option<f64>,
    order: Option<Way>,
    #[serde(default)]
    same: bool,
    at_least: Option<f64>,
    at_most: Option<f64>,
    amount: Option<f64>,
    cost: Option<f64>,
    counts: Option<Vec<f64>>,
    trend: Option<Way>,
    /// The figure whose data decide.
    pub figure: Option<String>,
    /// How our number is computed from them.
    pub ours: Option<String>,
    /// What it would take to measure it, and what is known instead.
    pub needs: Option<String>,
    /// Which measurement is still missing.
    pub later: Option<String>,
    /// Which other row judges it. It counts there.
    pub see: Option<String>,
    /// Why we find less than the paper, or which measurement would show it.
    pub why: Option<String>,
    /// The verdict before the rule or the statement changed.
    pub before: Option<String>,
    /// The sentence of the index, if this is a headline of the paper.
    pub headline: Option<String>,
}

/// A component of the paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Difference {
    /// What the paper has.
    pub theirs: String,
    /// What stands in its place.
    pub ours: String,
    /// Why.
    pub why: String,
    /// What that costs or gains.
    pub costs: String,
}

/// What can be said about a statement.
#[derive(Clone, Debug, PartialEq)]
pub enum State {
    /// It was measured and judged.
    Judged(Grade, Found),
    /// A measurement is missing.
    NotYet(String),
    /// This machine cannot measure it.
    Impossible(String),
    /// Another row judges it.
    Elsewhere(String),
}

impl Ledger {
    /// The ledger of a page; `None` if the page belongs to no paper.
    pub fn of(page: &str) -> Option<Ledger> {
        let (_, text) = FILES.iter().find(|(name, _)| *name == page)?;
        Some(Ledger::parse(text).unwrap_or_else(|error| panic!("{page}.toml: {error:#}")))
    }

    fn parse(text: &str) -> Result<Ledger> {
        let ledger: Ledger = toml::from_str(text)?;
        for claim in ledger.claims() {
            claim.check().with_context(|| claim.id.clone())?;
        }
        Ok(ledger)
    }

    /// All statements, in order.
    pub fn claims(&self) -> impl Iterator<Item = &Claim> {
        self.sections.iter().flat_map(|section| &section.claims)
    }

    /// The statements that a figure decides, with our results, in the order of the ledgers.
    pub fn decided(figure: &str, data: &Data) -> Vec<(Claim, Grade, Found)> {
        let ledgers = FILES.iter().filter_map(|(page, _)| Ledger::of(page));
        let claims = ledgers.flat_map(|ledger| {
            let is_its = |claim: &&Claim| claim.figure.as_deref() == Some(figure);
            ledger.claims().filter(is_its).cloned().collect::<Vec<_>>()
        });
        let judged = claims.filter_map(|claim| {
            let (grade, found) = claim.judged(data)?;
            Some((claim, grade, found))
        });
        judged.collect()
    }

    /// The verdicts of these statements, by their names.
    pub fn judge(figure: &str, data: &Data) -> Vec<(String, Grade)> {
        let decided = Ledger::decided(figure, data).into_iter();
        decided.map(|(claim, grade, _)| (claim.id, grade)).collect()
    }
}

impl Claim {
    /// What the paper states, as a number. A statement that is not measured may have none.
    pub fn stated(&self) -> Option<Stated> {
        let of = |number: Option<f64>, stated: fn(f64) -> Stated| number.map(stated);
        let all = [
            of(self.factor, Stated::Factor),
            of(self.difference, Stated::Difference),
            self.order.map(Stated::Order),
            self.same.then_some(Stated::Same),
            of(self.at_least, Stated::AtLeast),
            of(self.at_most, Stated::AtMost),
            of(self.amount, Stated::Amount),
            of(self.cost, Stated::Cost),
            self.counts.clone().map(Stated::Counts),
            self.trend.map(Stated::Trend),
        ];
        let mut stated = all.into_iter().flatten();
        let first = stated.next();
        if stated.next().is_some() { None } else { first }
    }

    /// The verdict with our result; `None` if the data lack something.
    pub fn judged(&self, data: &Data) -> Option<(Grade, Found)> {
        let formula = Formula::parse(self.ours.as_deref()?).expect("checked when it was read");
        let found = Found::of(data, &formula)?;
        Some((rule::grade(&self.stated()?, &found), found))
    }

    /// What can be said about it, with the data of each figure that was measured.
    pub fn state<'a>(&self, data: &impl Fn(&str) -> Option<&'a Data>) -> State {
        if let Some(needs) = &self.needs {
            return State::Impossible(needs.clone());
        }
        if let Some(later) = &self.later {
            return State::NotYet(later.clone());
        }
        if let Some(see) = &self.see {
            return State::Elsewhere(see.clone());
        }
        let figure = self.figure.as_deref().unwrap_or_default();
        match data(figure).and_then(|data| self.judged(data)) {
            Some((grade, found)) => State::Judged(grade, found),
            None => State::NotYet(format!("`glimmer figure {figure} --docs`.")),
        }
    }

    /// The kind of statement, for readers.
    pub fn kind(&self) -> &'static str {
        match self.stated() {
            Some(Stated::Factor(_)) => "ratio",
            Some(Stated::Difference(_)) => "difference",
            Some(Stated::Order(_) | Stated::Same) => "ordering",
            Some(Stated::AtLeast(_) | Stated::AtMost(_)) => "limit",
            Some(Stated::Amount(_) | Stated::Cost(_)) => "absolute",
            Some(Stated::Counts(_)) => "counts",
            Some(Stated::Trend(_)) => "trend",
            None => "statement",
        }
    }

    /// The paper's number, for readers.
    pub fn papers(&self) -> String {
        if let Some(paper) = &self.paper {
            return paper.clone();
        }
        match self.stated() {
            Some(Stated::Factor(number) | Stated::Amount(number) | Stated::Cost(number)) => {
                number.to_string()
            }
            Some(Stated::Difference(number)) => number.to_string(),
            Some(Stated::Order(Way::Up)) => "above 1".to_owned(),
            Some(Stated::Order(Way::Down)) => "below 1".to_owned(),
            Some(Stated::Same) => "no difference".to_owned(),
            Some(Stated::AtLeast(number)) => format!("at least {number}"),
            Some(Stated::AtMost(number)) => format!("at most {number}"),
            Some(Stated::Counts(counts)) => {
                let each: Vec<String> = counts.iter().map(f64::to_string).collect();
                each.join(", ")
            }
            Some(Stated::Trend(Way::Up)) => "rises".to_owned(),
            Some(Stated::Trend(Way::Down)) => "falls".to_owned(),
            None => String::new(),
        }
    }

    fn check(&self) -> Result<()> {
        let measured = self.figure.is_some();
        let others = [&self.needs, &self.later, &self.see];
        let others = others.into_iter().flatten().count();
        let count = usize::from(measured) + others;
        ensure!(count == 1, "it needs one of figure, needs, later and see");
        ensure!(
            measured == self.ours.is_some(),
            "figure and ours belong together"
        );
        if let Some(ours) = &self.ours {
            Formula::parse(ours)?;
            ensure!(self.stated().is_some(), "it needs one number of the paper");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
