//! The rule by which every statement of every paper is judged.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::value::{Formula, Value};
use crate::Data;

/// The part of the paper's effect that counts as the same effect.
pub const SAME: f64 = 0.8;

/// What a paper states, with its number.
#[derive(Clone, Debug, PartialEq)]
pub enum Stated {
    /// The ratio of two quantities. Ratios are compared on the logarithm.
    Factor(f64),
    /// The difference of two quantities.
    Difference(f64),
    /// A ratio is above 1 or below it; the paper has no number.
    Order(Way),
    /// A ratio is 1: there is no difference, or a minor one.
    Same,
    /// A limit that something keeps.
    AtLeast(f64),
    /// A limit that something keeps.
    AtMost(f64),
    /// An absolute number, of which more is better.
    Amount(f64),
    /// An absolute number, of which less is better.
    Cost(f64),
    /// Whole numbers, in order.
    Counts(Vec<f64>),
    /// Numbers that rise or fall.
    Trend(Way),
}

/// Upwards or downwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// Above 1, or rising.
    Up,
    /// Below 1, or falling.
    Down,
}

/// A verdict on a statement, from the worst to the best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grade {
    /// There is no difference here, or one the other way round.
    NotReproduced,
    /// The direction is the paper's, and less than [`SAME`] of the effect is there.
    Weaker,
    /// At least [`SAME`] of the effect is there.
    Reproduced,
}

impl fmt::Display for Grade {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Grade::NotReproduced => "not reproduced",
            Grade::Weaker => "weaker",
            Grade::Reproduced => "reproduced",
        })
    }
}

/// Our result: from the medians of all repetitions, and from each repetition on its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// From the medians.
    pub whole: Value,
    /// From each repetition; `None` where a number is missing.
    pub each: Vec<Option<Value>>,
}

impl Found {
    /// Computes a result from the data, and from each repetition if the data tell them apart.
    pub fn of(data: &Data, formula: &Formula) -> Option<Found> {
        let whole = formula.of(data)?;
        let each = data.each_repetition(|row| formula.reads(row));
        Some(Found {
            each: each.iter().map(|data| formula.of(data)).collect(),
            whole,
        })
    }

    /// Whether a repetition has no number, or the ratio of nothing to nothing. It is no evidence.
    fn lacks_number(&self) -> bool {
        self.each.iter().any(|value| match value {
            None => true,
            Some(Value::One(number)) => number.is_nan(),
            Some(Value::Many(numbers)) => numbers.iter().any(|number| number.is_nan()),
        })
    }

    /// The lowest number of all repetitions, that of the medians, and the highest.
    fn interval(&self) -> Option<(f64, f64, f64)> {
        let Value::One(whole) = self.whole else {
            return None;
        };
        let each = self.each.iter().filter_map(|value| match value {
            Some(Value::One(number)) => Some(*number),
            Some(Value::Many(_)) | None => None,
        });
        let (low, high) = each.fold((whole, whole), |(low, high), number| {
            (low.min(number), high.max(number))
        });
        Some((low, whole, high))
    }
}

impl fmt::Display for Found {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = match &self.whole {
            Value::One(number) => told(*number),
            Value::Many(numbers) => {
                let each: Vec<String> = numbers.iter().map(|number| told(*number)).collect();
                each.join(", ")
            }
        };
        out.write_str(&whole)?;
        match self.interval() {
            Some((_, whole, _)) if whole.is_nan() => Ok(()),
            _ if self.lacks_number() => out.write_str(", but a repetition has no number"),
            Some((low, _, high)) if told(low) != told(high) => {
                let count = self.each.len();
                write!(out, " ({}..{} of {count})", told(low), told(high))
            }
            _ => Ok(()),
        }
    }
}

/// A number with about three digits.
fn told(number: f64) -> String {
    let size = number.abs();
    match size {
        _ if number.is_nan() => "no number".to_owned(),
        f64::INFINITY if number < 0.0 => "-infinite".to_owned(),
        f64::INFINITY => "infinite".to_owned(),
        _ if number.fract() == 0.0 && size < 1e6 => format!("{number}"),
        1e6.. => format!("{:.2} million", number / 1e6),
        100.0.. => format!("{number:.0}"),
        10.0.. => format!("{number:.1}"),
        0.1.. => format!("{number:.2}"),
        _ => format!("{number:.4}"),
    }
}

/// The verdict: the one place where a result meets a paper's number.
pub fn grade(stated: &Stated, found: &Found) -> Grade {
    match stated {
        _ if found.lacks_number() => Grade::NotReproduced,
        Stated::Counts(counts) => {
            let same = found.whole == Value::Many(counts.clone());
            if same {
                Grade::Reproduced
            } else {
                Grade::NotReproduced
            }
        }
        Stated::Trend(way) => trend(*way, found),
        _ => match found.interval() {
            Some(interval) => number(stated, interval, found),
            None => Grade::NotReproduced,
        },
    }
}

fn number(stated: &Stated, (low, whole, high): (f64, f64, f64), found: &Found) -> Grade {
    let ln = |part: f64| part.ln();
    match *stated {
        Stated::Factor(paper) => effect(ln(whole) / ln(paper), [ln(low), ln(high)], ln(paper)),
        Stated::Difference(paper) => effect(whole / paper, [low, high], paper),
        Stated::Order(way) => {
            let sign = if way == Way::Up { 1.0 } else { -1.0 };
            effect(f64::INFINITY, [ln(low), ln(high)], sign)
        }
        Stated::Same => limit(found, |ratio| (SAME..=1.0 / SAME).contains(&ratio)),
        Stated::AtLeast(least) => limit(found, |number| number >= least),
        Stated::AtMost(most) => limit(found, |number| number <= most),
        Stated::Amount(paper) => effect(whole / paper, [low, high], paper),
        Stated::Cost(paper) => effect(paper / whole, [low, high], paper),
        Stated::Counts(_) | Stated::Trend(_) => Grade::NotReproduced,
    }
}

/// The verdict on an effect of which this part is there. Each end of the interval has to have the
/// sign of the paper's effect. NaN has no sign.
fn effect(part: f64, ends: [f64; 2], paper: f64) -> Grade {
    if !ends.into_iter().all(|end| end * paper > 0.0) {
        Grade::NotReproduced
    } else if part >= SAME {
        Grade::Reproduced
    } else {
        Grade::Weaker
    }
}

/// The verdict on a limit: weaker if a repetition keeps it and the medians do not.
fn limit(found: &Found, keeps: impl Fn(f64) -> bool) -> Grade {
    let keeps = |value: &Value| matches!(value, Value::One(number) if keeps(*number));
    if keeps(&found.whole) {
        Grade::Reproduced
    } else if found.each.iter().flatten().any(keeps) {
        Grade::Weaker
    } else {
        Grade::NotReproduced
    }
}

/// The verdict on a trend: weaker if only the last number is on the right side of the first.
fn trend(way: Way, found: &Found) -> Grade {
    let goes = |from: f64, to: f64| match way {
        Way::Up => to > from,
        Way::Down => to < from,
    };
    let ends = |value: &Value| match value {
        Value::Many(numbers) => match numbers[..] {
            [first, .., last] => goes(first, last),
            _ => false,
        },
        Value::One(_) => false,
    };
    let Value::Many(numbers) = &found.whole else {
        return Grade::NotReproduced;
    };
    if !ends(&found.whole) || !found.each.iter().flatten().all(ends) {
        Grade::NotReproduced
    } else if numbers.windows(2).all(|pair| goes(pair[0], pair[1])) {
        Grade::Reproduced
    } else {
        Grade::Weaker
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Point;

    fn judge(stated: Stated, each: &[f64]) -> Grade {
        let mut sorted = each.to_vec();
        sorted.sort_by(f64::total_cmp);
        let found = Found {
            whole: Value::One(sorted[sorted.len() / 2]),
            each: each
                .iter()
                .map(|number| Some(Value::One(*number)))
                .collect(),
        };
        grade(&stated, &found)
    }

    use Grade::{NotReproduced, Reproduced, Weaker};

    #[test]
    fn a_factor_is_compared_on_the_logarithm() {
        // 0.8 of the logarithm of 10 is a factor of 6.3.
        let ten = || Stated::Factor(10.0);
        assert_eq!(judge(ten(), &[6.4, 6.4, 9.0]), Reproduced);
        assert_eq!(judge(ten(), &[6.2]), Weaker);
        assert_eq!(judge(ten(), &[1.1, 1.2, 1.3]), Weaker);
        assert_eq!(judge(ten(), &[0.99, 1.2, 1.3]), NotReproduced);
        assert_eq!(judge(ten(), &[0.5]), NotReproduced);
        assert_eq!(judge(ten(), &[f64::NAN]), NotReproduced);
        assert_eq!(judge(ten(), &[f64::INFINITY]), Reproduced);
        // A repetition without a number is no evidence.
        assert_eq!(judge(ten(), &[6.4, 9.0, f64::NAN]), NotReproduced);
        // A loss is a factor below one.
        assert_eq!(judge(Stated::Factor(0.4), &[0.45]), Reproduced);
        assert_eq!(judge(Stated::Factor(0.4), &[0.7]), Weaker);
        assert_eq!(judge(Stated::Factor(0.4), &[1.1]), NotReproduced);
    }

    #[test]
    fn what_is_not_a_number_is_said() {
        let said = |whole, each: &[f64]| {
            let each = each
                .iter()
                .map(|number| Some(Value::One(*number)))
                .collect();
            let whole = Value::One(whole);
            Found { whole, each }.to_string()
        };
        assert_eq!(said(2.5, &[2.0, 3.5]), "2.50 (2..3.50 of 2)");
        assert_eq!(
            said(2.5, &[2.0, f64::NAN]),
            "2.50, but a repetition has no number"
        );
        assert_eq!(said(f64::NAN, &[]), "no number");
        assert_eq!(said(f64::NAN, &[f64::NAN]), "no number");
        assert_eq!(said(2.0, &[2.0, f64::INFINITY]), "2 (2..infinite of 2)");
    }

    #[test]
    fn a_repetition_without_a_number_is_no_evidence() {
        let formula = Formula::parse("{|ours|8|ns} / {|theirs|8}").unwrap();
        let judged = |stated: &Stated, ours: &[Point]| {
            let mut data = Data::default();
            for (repetition, ours) in ours.iter().enumerate() {
                data.add_of(repetition, Point::new("", "theirs", 8.0, 1.0));
                if ours.lacks_number().is_none() {
                    data.add_of(repetition, ours.clone());
                }
            }
            let found = Found::of(&data, &formula).unwrap();
            (grade(stated, &found), found.to_string())
        };
        let whole = Point::new("", "ours", 8.0, 1.0).also("ns", 2.0);
        let not_measured = Point::new("", "ours", 8.0, f64::NAN);
        let no_column = Point::new("", "ours", 8.0, 1.0).also("ns", f64::NAN);
        for stated in [
            Stated::Factor(2.0),
            Stated::AtMost(2.0),
            Stated::Order(Way::Up),
        ] {
            let all = [&whole, &whole].map(Clone::clone);
            assert_eq!(judged(&stated, &all), (Reproduced, "2".to_owned()));
            for bad in [&not_measured, &no_column] {
                let (grade, said) = judged(&stated, &[whole.clone(), bad.clone()]);
                assert_eq!(grade, NotReproduced, "{stated:?} {bad:?}");
                assert_eq!(said, "2, but a repetition has no number");
            }
        }
        assert_eq!(
            judge(Stated::AtMost(1.0), &[0.5, 0.6, f64::NAN]),
            NotReproduced
        );
        assert_eq!(judge(Stated::Same, &[f64::NAN, 1.0, 1.1]), NotReproduced);
    }

    #[test]
    fn limits_orders_and_absolute_numbers() {
        assert_eq!(judge(Stated::AtMost(1.0), &[0.9, 1.0, 5.0]), Reproduced);
        assert_eq!(judge(Stated::AtMost(1.0), &[0.9, 1.1, 5.0]), Weaker);
        assert_eq!(judge(Stated::AtMost(1.0), &[1.1]), NotReproduced);
        assert_eq!(judge(Stated::AtLeast(95.0), &[94.0]), NotReproduced);
        assert_eq!(judge(Stated::Order(Way::Up), &[1.01, 1.02]), Reproduced);
        assert_eq!(judge(Stated::Order(Way::Up), &[0.99, 1.02]), NotReproduced);
        assert_eq!(judge(Stated::Order(Way::Down), &[0.8]), Reproduced);
        assert_eq!(judge(Stated::Same, &[0.85]), Reproduced);
        assert_eq!(judge(Stated::Same, &[1.3]), NotReproduced);
        assert_eq!(judge(Stated::Amount(4.8), &[3.6]), Weaker);
        assert_eq!(judge(Stated::Cost(24.0), &[29.0]), Reproduced);
        assert_eq!(judge(Stated::Cost(24.0), &[50.0]), Weaker);
        assert_eq!(judge(Stated::Difference(10.0), &[8.1]), Reproduced);
        assert_eq!(judge(Stated::Difference(10.0), &[-1.0, 3.0]), NotReproduced);
    }

    #[test]
    fn lists_are_compared_number_by_number() {
        let list = |numbers: &[f64]| Found {
            whole: Value::Many(numbers.to_vec()),
            each: vec![Some(Value::Many(numbers.to_vec()))],
        };
        let counts = Stated::Counts(vec![1.0, 2.0]);
        assert_eq!(grade(&counts, &list(&[1.0, 2.0])), Reproduced);
        assert_eq!(grade(&counts, &list(&[1.0, 3.0])), NotReproduced);
        let rises = Stated::Trend(Way::Up);
        assert_eq!(grade(&rises, &list(&[1.0, 2.0, 3.0])), Reproduced);
        assert_eq!(grade(&rises, &list(&[1.0, 4.0, 3.0])), Weaker);
        assert_eq!(grade(&rises, &list(&[3.0, 4.0, 1.0])), NotReproduced);
        assert_eq!(grade(&rises, &list(&[])), NotReproduced);
        assert_eq!(list(&[1.5, 2.0]).to_string(), "1.50, 2");
    }
}
