//! A line through measurements.

/// The line `a + b x` whose relative distances from the places `(x, y)` have the smallest sum of
/// squares. Returns `(a, b)`, with `a` at least 0.
pub fn line(places: impl Iterator<Item = (f64, f64)>) -> (f64, f64) {
    // Relative distances: each place is divided by its y, whose wanted value is then 1.
    let (mut one, mut both, mut square, mut left, mut right) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for (x, y) in places {
        let (u, v) = (1.0 / y, x / y);
        one += u * u;
        both += u * v;
        square += v * v;
        left += u;
        right += v;
    }
    let determinant = one * square - both * both;
    let a = (left * square - right * both) / determinant;
    match a >= 0.0 {
        true => (a, (one * right - both * left) / determinant),
        false => (0.0, right / square),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_found_and_never_begins_below_zero() {
        let places = [1.0, 10.0, 400.0].map(|x| (x, 300.0 + 20.0 * x));
        let (a, b) = line(places.into_iter());
        assert!((a - 300.0).abs() < 1e-6 && (b - 20.0).abs() < 1e-6);
        let (a, b) = line([(1.0, 1.0), (10.0, 30.0)].into_iter());
        assert!(a == 0.0 && b > 1.0 && b < 3.0);
    }
}
