//! Measurements on a machine that others use too: how much is answered in a time is anybody's
//! guess.

use std::time::Duration;

/// How often a measurement is repeated at most, each time three times as long.
const TRIES: u32 = 6;

/// Measures for `first`, and for longer and longer until there is enough. Returns the last result,
/// enough or not.
pub fn enough<R>(
    first: Duration,
    mut measure: impl FnMut(Duration) -> R,
    is_enough: impl Fn(&R) -> bool,
) -> R {
    let mut measured = first;
    for _ in 1..TRIES {
        let result = measure(measured);
        if is_enough(&result) {
            return result;
        }
        measured *= 3;
    }
    measure(measured)
}
