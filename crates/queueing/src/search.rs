//! Searches for the highest load that a server sustains.

use std::collections::BTreeMap;

/// Halvings of the range of loads: the result is known to 1% of the highest load.
const HALVINGS: u32 = 7;

/// The highest load up to `most` that holds, where a lower load holds if a higher one does.
pub fn highest(most: f64, mut holds: impl FnMut(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, most);
    for _ in 0..HALVINGS {
        let middle = (low + high) / 2.0;
        match holds(middle) {
            true => low = middle,
            false => high = middle,
        }
    }
    low
}

/// The highest load up to `most` at which the latency is at most each of these bounds. A load is
/// measured once for all bounds.
pub fn within<const N: usize>(
    most: f64,
    bounds: [f64; N],
    mut latency: impl FnMut(f64) -> f64,
) -> [f64; N] {
    let mut known = BTreeMap::new();
    bounds.map(|bound| {
        highest(most, |load| {
            *known.entry(load.to_bits()).or_insert_with(|| latency(load)) <= bound
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_load_is_found_to_one_percent() {
        let mut asked = 0;
        let found = within(100.0, [10.0, 40.0, 0.1, 1e9], |load| {
            asked += 1;
            load
        });
        for (found, exact) in found.into_iter().zip([10.0, 40.0, 0.1, 100.0]) {
            assert!(found <= exact && exact - found <= 1.0, "{found}, {exact}");
        }
        assert!(asked < 4 * HALVINGS);
    }
}
