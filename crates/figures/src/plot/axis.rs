//! Scales: positions of values, tick marks and their labels.

use serde::Serialize;

/// Target number of tick marks.
const MARKS: f64 = 5.0;
/// Fewer tick marks say too little about a logarithmic scale.
const MARKS_MIN: usize = 4;
/// More tick marks are crowded.
const MARKS_MAX: usize = 9;
/// Counts from here on are labelled with a unit letter.
const LETTERS_FROM: f64 = 10_000.0;
/// Space between the largest value and the end of a scale, as a factor.
const ROOM: f64 = 1.08;
/// The same factor for a logarithmic scale, at both ends.
const LOG_ROOM: f64 = 1.3;

/// The unit of a scale.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum Unit {
    /// Counts. Large numbers have a letter: `250 k`.
    #[default]
    Count,
    /// Nanoseconds. Large numbers have a larger unit: `20 µs`.
    Nanoseconds,
    /// Microseconds.
    Microseconds,
    /// Milliseconds.
    Milliseconds,
}

impl Unit {
    /// A number on its own: `0`, `250`, `1.5 k`, `20 ms`.
    pub fn label(self, value: f64) -> String {
        self.label_beside(value, value)
    }

    /// A number on a scale whose largest number is `largest`. Counts have a letter only if one of
    /// them has five digits.
    fn label_beside(self, value: f64, largest: f64) -> String {
        const LETTERS: [(f64, &str); 4] = [(1e9, " G"), (1e6, " M"), (1e3, " k"), (1.0, "")];
        const NO_LETTERS: [(f64, &str); 4] = [(1.0, ""); 4];
        const TIMES: [(f64, &str); 4] = [(1e9, " s"), (1e6, " ms"), (1e3, " µs"), (1.0, " ns")];
        let (value, units) = match self {
            Unit::Count if largest < LETTERS_FROM => (value, NO_LETTERS),
            Unit::Count => (value, LETTERS),
            Unit::Nanoseconds => (value, TIMES),
            Unit::Microseconds => (value * 1e3, TIMES),
            Unit::Milliseconds => (value * 1e6, TIMES),
        };
        let size = value.abs();
        if size == 0.0 {
            return "0".to_owned();
        }
        let unit = units.iter().find(|(unit, _)| size >= unit * 0.9995);
        let (unit, name) = unit.copied().unwrap_or((1.0, units[3].1));
        let scaled = value / unit;
        // Three digits distinguish any two tick marks; small numbers need more decimals.
        let decimals = (2.0 - scaled.abs().log10().floor()).clamp(0.0, 6.0) as usize;
        let digits = format!("{scaled:.decimals$}");
        let digits = match digits.contains('.') {
            true => digits.trim_end_matches('0').trim_end_matches('.'),
            false => &digits,
        };
        format!("{digits}{name}")
    }
}

/// A scale.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    low: f64,
    high: f64,
    is_log: bool,
    /// Tick marks with their labels.
    pub marks: Vec<(f64, String)>,
}

impl Axis {
    /// A scale from zero that contains all these values.
    pub fn linear(values: &[f64], unit: Unit) -> Axis {
        let largest = values.iter().copied().fold(0.0, f64::max);
        let high = if largest > 0.0 { largest * ROOM } else { 1.0 };
        let low = values.iter().copied().fold(0.0, f64::min) * ROOM;
        Axis::new(low, high, false, steps(low, high), unit)
    }

    /// A scale of whole numbers, such as cores. It begins half a step before the first value and
    /// has tick marks only at the given values.
    pub fn whole(values: &[f64]) -> Axis {
        let largest = values.iter().copied().fold(f64::MIN, f64::max);
        let smallest = values.iter().copied().fold(f64::MAX, f64::min);
        if values.is_empty() {
            return Axis::linear(values, Unit::Count);
        }
        let mut marks: Vec<f64> = values.to_vec();
        marks.sort_by(f64::total_cmp);
        marks.dedup();
        let side = ((largest - smallest) / 12.0).max(0.5);
        Axis::new(smallest - side, largest + side, false, marks, Unit::Count)
    }

    /// A logarithmic scale that contains all positive values. With `at`, the tick marks are at
    /// exactly these values.
    pub fn log(values: &[f64], unit: Unit, at: Option<Vec<f64>>) -> Axis {
        let positive = || values.iter().copied().filter(|&value| value > 0.0);
        let smallest = positive().fold(f64::INFINITY, f64::min);
        let largest = positive().fold(0.0, f64::max);
        let (low, high) = match smallest.is_finite() {
            true => (smallest / LOG_ROOM, largest * LOG_ROOM),
            false => (0.1, 1.0),
        };
        let marks = at.unwrap_or_else(|| decades(low, high));
        Axis::new(low, high, true, marks, unit)
    }

    fn new(low: f64, high: f64, is_log: bool, marks: Vec<f64>, unit: Unit) -> Axis {
        let largest = marks.iter().copied().fold(0.0, f64::max);
        let label = |mark| (mark, unit.label_beside(mark, largest));
        let marks = marks.into_iter().map(label);
        Axis {
            low,
            high,
            is_log,
            marks: marks.collect(),
        }
    }

    /// The position of a value between the ends of the scale, from 0 to 1.
    pub fn part(&self, value: f64) -> f64 {
        let part = match self.is_log {
            true => (value.max(self.low) / self.low).ln() / (self.high / self.low).ln(),
            false => (value - self.low) / (self.high - self.low),
        };
        part.clamp(0.0, 1.0)
    }
}

/// Tick marks at equal intervals of 1, 2, 2.5 or 5 times a power of ten.
fn steps(low: f64, high: f64) -> Vec<f64> {
    let rough = (high - low) / MARKS;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].map(|factor| factor * power);
    // Rather a few tick marks too many than too few.
    let step = step.into_iter().find(|step| *step >= rough * 0.75);
    let step = step.unwrap_or(power * 10.0);
    let first = (low / step).ceil() as i64;
    let last = (high / step).floor() as i64;
    (first..=last).map(|number| number as f64 * step).collect()
}

/// Tick marks of a logarithmic scale: powers of ten, and enough values between them.
fn decades(low: f64, high: f64) -> Vec<f64> {
    let powers = low.log10().floor() as i32..=high.log10().ceil() as i32;
    let with = |factors: &[f64]| -> Vec<f64> {
        let marks = powers
            .clone()
            .flat_map(|power| factors.iter().map(move |factor| factor * 10f64.powi(power)));
        marks.filter(|mark| (low..=high).contains(mark)).collect()
    };
    let all = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0];
    let some = [1.0, 2.0, 3.0, 5.0, 7.0];
    for factors in [&[1.0][..], &[1.0, 3.0], &[1.0, 2.0, 5.0], &some, &all] {
        let marks = with(factors);
        if marks.len() > MARKS_MAX {
            return marks.into_iter().step_by(2).collect();
        }
        if marks.len() >= MARKS_MIN {
            return marks;
        }
    }
    steps(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels_of(axis: &Axis) -> Vec<&str> {
        axis.marks.iter().map(|(_, label)| label.as_str()).collect()
    }

    #[test]
    fn labels_are_short() {
        let labels = [
            0.0, 0.25, 1.0, 999.0, 1024.0, 12_500.0, 3e6, 1.25e9, -500.0, 0.002,
        ];
        let expected = [
            "0", "0.25", "1", "999", "1024", "12.5 k", "3 M", "1.25 G", "-500", "0.002",
        ];
        assert_eq!(labels.map(|value| Unit::Count.label(value)), expected);
        let axis = Axis::linear(&[9000.0, 14_000.0], Unit::Count);
        assert_eq!(labels_of(&axis)[1], "2.5 k", "{axis:?}");
    }

    #[test]
    fn a_time_has_one_unit_and_no_letter() {
        let us = [0.5, 20.0, 1000.0, 100_000.0, 2e6].map(|us| Unit::Microseconds.label(us));
        assert_eq!(us, ["500 ns", "20 µs", "1 ms", "100 ms", "2 s"]);
        assert_eq!(Unit::Nanoseconds.label(1500.0), "1.5 µs");
        assert_eq!(Unit::Milliseconds.label(0.01), "10 µs");
    }

    #[test]
    fn a_linear_scale_begins_at_zero() {
        let axis = Axis::linear(&[2.0, 8.0], Unit::Count);
        assert_eq!(labels_of(&axis), ["0", "2", "4", "6", "8"]);
        assert!(axis.part(0.0) == 0.0 && axis.part(8.0) < 1.0);
        assert_eq!(
            labels_of(&Axis::linear(&[], Unit::Count)),
            ["0", "0.2", "0.4", "0.6", "0.8", "1"]
        );
        assert!(labels_of(&Axis::linear(&[-3.0, 5.0], Unit::Count)).contains(&"-2"));
    }

    #[test]
    fn cores_begin_with_the_first_one() {
        let axis = Axis::whole(&[1.0, 2.0, 1.0]);
        assert_eq!(labels_of(&axis), ["1", "2"]);
        assert_eq!((axis.part(1.0), axis.part(2.0)), (0.25, 0.75));
    }

    #[test]
    fn a_logarithmic_scale_has_several_marks_whatever_its_length() {
        for (smallest, largest) in [
            (12.0, 300.0),
            (40.0, 90.0),
            (97.0, 104.0),
            (1.0, 1e4),
            (0.5, 25.0),
            (1e-3, 1e9),
        ] {
            let axis = Axis::log(&[smallest, largest], Unit::Count, None);
            let count = axis.marks.len();
            assert!(
                (MARKS_MIN - 1..=MARKS_MAX + 2).contains(&count),
                "{smallest} to {largest}: {:?}",
                axis.marks
            );
            assert!(axis.part(smallest) > 0.0 && axis.part(largest) < 1.0);
        }
        assert_eq!(
            labels_of(&Axis::log(&[12.0, 300.0], Unit::Microseconds, None)),
            ["10 µs", "30 µs", "100 µs", "300 µs"]
        );
        let each = Axis::log(&[64.0, 128.0], Unit::Count, Some(vec![64.0, 128.0]));
        assert_eq!(labels_of(&each), ["64", "128"]);
        assert!(Axis::log(&[0.0], Unit::Count, None).part(0.5) > 0.0);
    }
}
