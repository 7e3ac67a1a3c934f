//! Formulas of the ledger: how our number follows from a figure's data.
//!
//! A cell `{panel|series|x}` is a median of the data, and `{panel|series|x|column}` the median of
//! another column. Cells are divided (`/`) and subtracted (`-`). `least(a, b)` and `most(a, b)`
//! choose. In `least[e]`, `most[e]`, `median[e]` and `each[e]`, an `x` of `*` stands for every
//! place on the horizontal axis in turn, and `1.2..6.1` for the places in this range.
//! `highest[e <= 100]` is the last place at which `e` keeps the bound. `highest_or_first[e <= 100]`
//! is the first place if none keeps it, which is more than the true limit. Apart from places and
//! this bound, a formula has no numbers: it cannot move a result.

use anyhow::{Context, Result, bail, ensure};

use glimmer_measure::stats::Spread;

use crate::{Data, Row, X, data::distinct};

/// What a formula yields.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// One number.
    One(f64),
    /// A number for each place, in order.
    Many(Vec<f64>),
}

/// A formula.
#[derive(Clone, Debug, PartialEq)]
pub struct Formula(Expression);

#[derive(Clone, Debug, PartialEq)]
enum Expression {
    Cell(Cell),
    Over(Box<Expression>, Box<Expression>),
    Minus(Box<Expression>, Box<Expression>),
    Choose(Fold, Vec<Expression>),
    Across(Fold, Box<Expression>),
    Each(Box<Expression>),
    Highest {
        of: Box<Expression>,
        bound: f64,
        or_first: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fold {
    Least,
    Most,
    Median,
}

#[derive(Clone, Debug, PartialEq)]
struct Cell {
    panel: String,
    series: String,
    place: Place,
    column: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
enum Place {
    At(String),
    Any { from: f64, to: f64 },
}

impl Formula {
    /// Reads a formula.
    pub fn parse(text: &str) -> Result<Formula> {
        let mut parser = Parser { rest: text.trim() };
        let expression = parser.sum().with_context(|| format!("in {text:?}"))?;
        ensure!(parser.rest.is_empty(), "{:?} is left over", parser.rest);
        Ok(Formula(expression))
    }

    /// Its value for these data; `None` if something is missing.
    pub fn of(&self, data: &Data) -> Option<Value> {
        match &self.0 {
            Expression::Each(inner) => Some(Value::Many(values(inner, data)?)),
            expression => one(expression, data, None).map(Value::One),
        }
    }

    /// Whether its value may depend on this row.
    pub fn reads(&self, row: &Row) -> bool {
        self.0.reads(row)
    }
}

fn one(expression: &Expression, data: &Data, at: Option<&X>) -> Option<f64> {
    match expression {
        Expression::Cell(cell) => cell.of(data, at),
        Expression::Over(above, below) => Some(one(above, data, at)? / one(below, data, at)?),
        Expression::Minus(first, second) => Some(one(first, data, at)? - one(second, data, at)?),
        Expression::Choose(fold, all) => {
            let values: Option<Vec<f64>> = all.iter().map(|each| one(each, data, at)).collect();
            fold.of(values?)
        }
        Expression::Across(fold, inner) => fold.of(values(inner, data)?),
        Expression::Each(_) => None,
        Expression::Highest {
            of,
            bound,
            or_first,
        } => {
            let keeps = |place: &&&X| one(of, data, Some(place)).is_some_and(|y| y <= *bound);
            let places = places(of, data)?;
            let first = places.first().filter(|_| *or_first);
            places
                .iter()
                .rfind(keeps)
                .or(first)
                .copied()
                .and_then(number)
        }
    }
}

/// The values of an expression at each of its places. A number without a value is left out: it is a
/// load that a system does not reach. A word without one leaves nothing.
fn values(expression: &Expression, data: &Data) -> Option<Vec<f64>> {
    let mut values = Vec::new();
    for place in places(expression, data)? {
        match (one(expression, data, Some(place)), place) {
            (Some(value), _) => values.push(value),
            (None, X::Number(_)) => {}
            (None, X::Word(_)) => return None,
        }
    }
    Some(values)
}

/// The places that the first variable cell has.
fn places<'a>(expression: &Expression, data: &'a Data) -> Option<Vec<&'a X>> {
    let cell = expression.variable()?;
    let Place::Any { from, to } = cell.place else {
        return None;
    };
    let is_in = |row: &&Row| {
        let is_its = row.panel == cell.panel && row.series == cell.series;
        is_its && number(&row.x).is_none_or(|x| (from..=to).contains(&x))
    };
    let rows = data.rows.iter().filter(is_in);
    Some(distinct(rows.map(|row| &row.x)))
}

fn number(x: &X) -> Option<f64> {
    match x {
        X::Number(number) => Some(*number),
        X::Word(_) => None,
    }
}

impl Expression {
    fn variable(&self) -> Option<&Cell> {
        match self {
            Expression::Cell(cell) => matches!(cell.place, Place::Any { .. }).then_some(cell),
            Expression::Over(one, other) | Expression::Minus(one, other) => {
                one.variable().or_else(|| other.variable())
            }
            Expression::Choose(_, all) => all.iter().find_map(Expression::variable),
            _ => None,
        }
    }

    fn reads(&self, row: &Row) -> bool {
        match self {
            Expression::Cell(cell) => cell.reads(row),
            Expression::Over(one, other) | Expression::Minus(one, other) => {
                one.reads(row) || other.reads(row)
            }
            Expression::Choose(_, all) => all.iter().any(|each| each.reads(row)),
            Expression::Across(_, inner)
            | Expression::Each(inner)
            | Expression::Highest { of: inner, .. } => inner.reads(row),
        }
    }
}

impl Cell {
    fn reads(&self, row: &Row) -> bool {
        let is_its = row.panel == self.panel && row.series == self.series;
        is_its
            && match &self.place {
                Place::Any { from, to } => {
                    number(&row.x).is_none_or(|x| (*from..=*to).contains(&x))
                }
                Place::At(place) => is_at(place, &row.x),
            }
    }

    fn of(&self, data: &Data, at: Option<&X>) -> Option<f64> {
        let is_here = |row: &&Row| match &self.place {
            Place::Any { .. } => Some(&row.x) == at,
            Place::At(place) => is_at(place, &row.x),
        };
        let row = data.line(&self.panel, &self.series).find(is_here)?;
        match &self.column {
            None => Some(row.spread().median),
            Some(column) => row.also(column),
        }
    }
}

fn is_at(place: &str, x: &X) -> bool {
    match x {
        X::Word(word) => place == word,
        X::Number(number) => place.parse() == Ok(*number),
    }
}

impl Fold {
    fn of(self, values: Vec<f64>) -> Option<f64> {
        let spread = (!values.is_empty()).then(|| Spread::of(&values))?;
        Some(match self {
            Fold::Least => spread.min,
            Fold::Most => spread.max,
            Fold::Median => spread.median,
        })
    }
}

/// Reads an expression from the left.
struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn takes(&mut self, token: &str) -> bool {
        let rest = self.rest.trim_start();
        match rest.strip_prefix(token) {
            Some(after) => {
                self.rest = after.trim_start();
                true
            }
            None => false,
        }
    }

    fn needs(&mut self, token: &str) -> Result<()> {
        ensure!(self.takes(token), "{token} is missing at {:?}", self.rest);
        Ok(())
    }

    fn until(&mut self, end: char) -> Result<&'a str> {
        let (text, rest) = (self.rest.split_once(end))
            .with_context(|| format!("{end} is missing after {:?}", self.rest))?;
        self.rest = rest.trim_start();
        Ok(text)
    }

    fn sum(&mut self) -> Result<Expression> {
        let mut left = self.product()?;
        while self.takes("-") {
            left = Expression::Minus(Box::new(left), Box::new(self.product()?));
        }
        Ok(left)
    }

    fn product(&mut self) -> Result<Expression> {
        let mut left = self.term()?;
        while self.takes("/") {
            left = Expression::Over(Box::new(left), Box::new(self.term()?));
        }
        Ok(left)
    }

    fn term(&mut self) -> Result<Expression> {
        if self.takes("{") {
            return cell(self.until('}')?).map(Expression::Cell);
        }
        if self.takes("(") {
            let inner = self.sum()?;
            self.needs(")")?;
            return Ok(inner);
        }
        if self.takes("each[") {
            let inner = Box::new(self.sum()?);
            self.needs("]")?;
            return Ok(Expression::Each(inner));
        }
        for (name, or_first) in [("highest[", false), ("highest_or_first[", true)] {
            if self.takes(name) {
                let of = Box::new(self.sum()?);
                self.needs("<=")?;
                let bound = self.until(']')?.trim().parse()?;
                return Ok(Expression::Highest {
                    of,
                    bound,
                    or_first,
                });
            }
        }
        for (name, fold) in [
            ("least", Fold::Least),
            ("most", Fold::Most),
            ("median", Fold::Median),
        ] {
            if self.takes(name) {
                return self.folded(fold);
            }
        }
        bail!("no cell and no function at {:?}", self.rest)
    }

    fn folded(&mut self, fold: Fold) -> Result<Expression> {
        if self.takes("[") {
            let inner = Box::new(self.sum()?);
            self.needs("]")?;
            return Ok(Expression::Across(fold, inner));
        }
        self.needs("(")?;
        let mut all = vec![self.sum()?];
        while self.takes(",") {
            all.push(self.sum()?);
        }
        self.needs(")")?;
        Ok(Expression::Choose(fold, all))
    }
}

fn cell(text: &str) -> Result<Cell> {
    let parts: Vec<&str> = text.split('|').collect();
    let (panel, series, place, column) = match parts[..] {
        [panel, series, place] => (panel, series, place, None),
        [panel, series, place, column] => (panel, series, place, Some(column.to_owned())),
        _ => bail!("{{{text}}} is not {{panel|series|x}}"),
    };
    Ok(Cell {
        panel: panel.to_owned(),
        series: series.to_owned(),
        place: at(place),
        column,
    })
}

fn at(place: &str) -> Place {
    if place == "*" {
        let (from, to) = (f64::NEG_INFINITY, f64::INFINITY);
        return Place::Any { from, to };
    }
    let range = place.split_once("..");
    let range = range.and_then(|(from, to)| Some((from.parse().ok()?, to.parse().ok()?)));
    match range {
        Some((from, to)) => Place::Any { from, to },
        None => Place::At(place.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Point;

    fn data() -> Data {
        let mut data = Data::default();
        for (load, ours, theirs) in [(1.0, 10.0, 40.0), (2.0, 20.0, 40.0), (3.0, 90.0, 900.0)] {
            data.add(Point::new("8 cores", "ours", load, ours).also("busy", load / 10.0));
            data.add(Point::new("8 cores", "theirs", load, theirs));
        }
        data.add(Point::new("8 cores", "ours", 4.0, 500.0));
        data.add(Point::new("words", "ours", "50% GET", 3.0));
        data.add(Point::new("words", "ours", "95% GET", 6.0));
        data.add(Point::new("words", "theirs", "50% GET", 2.0));
        data
    }

    fn value(text: &str) -> Option<Value> {
        Formula::parse(text).unwrap().of(&data())
    }

    #[test]
    fn formulas_compute() {
        let one = |number| Some(Value::One(number));
        assert_eq!(value("{8 cores|theirs|2}/{8 cores|ours|2}"), one(2.0));
        assert_eq!(value("{8 cores|ours|3|busy}"), one(0.3));
        assert_eq!(
            value("most[{8 cores|theirs|*}/{8 cores|ours|*}]"),
            one(10.0)
        );
        assert_eq!(
            value("least[{8 cores|theirs|2..9}/{8 cores|ours|2..9}]"),
            one(2.0)
        );
        assert_eq!(value("median[{8 cores|theirs|*}]"), one(40.0));
        assert_eq!(value("highest[{8 cores|ours|*} <= 100]"), one(3.0));
        assert_eq!(value("highest_or_first[{8 cores|ours|*} <= 100]"), one(3.0));
        assert_eq!(value("highest[{8 cores|ours|*} <= 5]"), None);
        assert_eq!(value("highest_or_first[{8 cores|ours|*} <= 5]"), one(1.0));
        assert_eq!(value("median[{8 cores|ours|1..2}]"), one(15.0));
        let both = "least[most({words|ours|*}, {words|ours|*}) - {words|ours|*}]";
        assert_eq!(value(both), one(0.0));
        let each = Some(Value::Many(vec![10.0, 20.0, 90.0, 500.0]));
        assert_eq!(value("each[{8 cores|ours|*}]"), each);
    }

    #[test]
    fn a_load_that_one_system_lacks_is_left_out_and_a_workload_is_not() {
        let ratios = Some(Value::Many(vec![0.25, 0.5, 0.1]));
        assert_eq!(value("each[{8 cores|ours|*}/{8 cores|theirs|*}]"), ratios);
        assert_eq!(value("least[{words|ours|*}/{words|theirs|*}]"), None);
        assert_eq!(value("{8 cores|nobody|2}"), None);
    }

    #[test]
    fn what_is_no_formula_is_refused() {
        for text in [
            "",
            "{a|b}",
            "2",
            "{a|b|1}/",
            "{a|b|1} 2",
            "least{a|b|1}",
            "most[{a|b|1}",
        ] {
            assert!(Formula::parse(text).is_err(), "{text}");
        }
    }
}
