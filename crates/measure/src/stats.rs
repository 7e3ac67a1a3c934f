//! Summarises repetitions of a measurement as a median with its spread.

use serde::Serialize;

/// Median, minimum and maximum of several repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The median. For an even number of repetitions, the mean of the middle two.
    pub median: f64,
    /// The minimum.
    pub min: f64,
    /// The maximum.
    pub max: f64,
}

impl Spread {
    /// Summarises at least one repetition.
    pub fn of(values: &[f64]) -> Spread {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (low, high) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
        Spread {
            median: (low + high) / 2.0,
            min: sorted[0],
            max: sorted[sorted.len() - 1],
        }
    }

    /// Summarises the ratios of repetitions that ran next to each other, so that a slow spell of
    /// the machine affects both sides.
    pub fn of_ratios(ours: &[f64], theirs: &[f64]) -> Spread {
        let ratios: Vec<f64> = ours
            .iter()
            .zip(theirs)
            .map(|(ours, theirs)| ours / theirs)
            .collect();
        Spread::of(&ratios)
    }

    /// The width of the spread relative to the median.
    pub fn width(&self) -> f64 {
        (self.max - self.min) / self.median
    }

    /// `median (min..max)` with this many decimals.
    pub fn text(&self, decimals: usize) -> String {
        let text = |value| number(value, decimals);
        format!(
            "{} ({}..{})",
            text(self.median),
            text(self.min),
            text(self.max)
        )
    }
}

/// A number with this many decimals; a dash for the ratio of something to nothing, such as the time
/// of an operation where none has ended.
pub fn number(value: f64, decimals: usize) -> String {
    match value.is_finite() {
        true => format!("{value:.decimals$}"),
        false => "–".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_odd_and_even_counts() {
        assert_eq!(
            Spread::of(&[3.0, 1.0, 2.0]),
            Spread {
                median: 2.0,
                min: 1.0,
                max: 3.0
            }
        );
        assert_eq!(Spread::of(&[4.0, 1.0, 2.0, 3.0]).median, 2.5);
        assert_eq!(Spread::of(&[5.0]).text(1), "5.0 (5.0..5.0)");
    }

    #[test]
    fn ratios_to_nothing_are_dashes() {
        let ratio = Spread::of_ratios(&[1.0, 1.0, 3.0], &[0.0, 2.0, 2.0]);
        assert_eq!(ratio.text(1), "1.5 (0.5..–)");
        assert_eq!(Spread::of_ratios(&[0.0], &[0.0]).text(0), "– (–..–)");
    }

    #[test]
    fn ratios_pair_neighbours() {
        let ratio = Spread::of_ratios(&[2.0, 20.0, 4.0], &[1.0, 10.0, 1.0]);
        assert_eq!(
            ratio,
            Spread {
                median: 2.0,
                min: 2.0,
                max: 4.0
            }
        );
        assert_eq!(ratio.width(), 1.0);
    }
}
