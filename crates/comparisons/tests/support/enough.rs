//! Measurements on a shared machine, where the amount of work done in a given time is
//! unpredictable.

use std::time::Duration;

/// Maximum number of attempts, each three times as long as the previous one.
const TRIES: u32 = 6;

/// Measures for `first`, then for longer and longer, until there is enough. Returns the last result
/// in any case.
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
