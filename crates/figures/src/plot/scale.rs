//! Numbers at an axis.

/// A number as it stands at an axis: `0`, `250`, `1.5 k`, `2 M`.
pub fn label(value: f64) -> String {
    const UNITS: [(f64, &str); 4] = [(1e9, " G"), (1e6, " M"), (1e3, " k"), (1.0, "")];
    let size = value.abs();
    if size == 0.0 {
        return "0".to_owned();
    }
    let unit = UNITS.iter().find(|(unit, _)| size >= unit * 0.9995);
    let (unit, name) = unit.copied().unwrap_or((1.0, ""));
    let scaled = value / unit;
    // Three digits tell any two marks of an axis apart; small numbers need as many behind the point.
    let decimals = (2.0 - scaled.abs().log10().floor()).clamp(0.0, 6.0) as usize;
    let digits = format!("{scaled:.decimals$}");
    let digits = match digits.contains('.') {
        true => digits.trim_end_matches('0').trim_end_matches('.'),
        false => &digits,
    };
    format!("{digits}{name}")
}

/// Where a linear scale ends so that its largest value does not touch the frame.
pub fn top(largest: f64) -> f64 {
    if largest > 0.0 { largest * 1.08 } else { 1.0 }
}

/// The ends of a scale that holds all these values with some room: from zero, or, if logarithmic, from the smallest positive one.
pub fn ends(values: impl Iterator<Item = f64> + Clone, log: bool) -> (f64, f64) {
    let largest = values.clone().fold(0.0, f64::max);
    if !log {
        let smallest = values.fold(0.0, f64::min);
        return (smallest * 1.08, top(largest));
    }
    let positive = values.filter(|&value| value > 0.0);
    let smallest = positive.fold(f64::INFINITY, f64::min);
    if smallest.is_finite() {
        (smallest / 1.3, largest * 1.3)
    } else {
        (0.1, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_short() {
        let labels = [
            0.0, 0.25, 1.0, 999.0, 1000.0, 2500.0, 3e6, 1.25e9, -500.0, 0.002,
        ]
        .map(label);
        assert_eq!(
            labels,
            [
                "0", "0.25", "1", "999", "1 k", "2.5 k", "3 M", "1.25 G", "-500", "0.002"
            ]
        );
    }

    #[test]
    fn scales_hold_their_values() {
        let (low, high) = ends([2.0, 8.0].into_iter(), false);
        assert!(low == 0.0 && high > 8.0);
        let (low, high) = ends([0.0, 2.0, 8.0].into_iter(), true);
        assert!(0.0 < low && low < 2.0 && high > 8.0);
        assert_eq!(ends([0.0].into_iter(), true), (0.1, 1.0));
        assert_eq!(top(0.0), 1.0);
    }
}
