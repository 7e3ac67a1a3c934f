//! Floor 0: the seed of a random test.
//!
//! A test asks for its seed where it begins, and everything random in it follows from the seed.
//! `cargo xtask soak` recognises random tests by the line that both functions print.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// The environment variable that names the seed.
pub const VARIABLE: &str = "GLIMMER_SEED";

/// The environment variable that says how many seeds [`each_seed`] takes.
pub const RUNS: &str = "GLIMMER_RUNS";

/// What the line begins with by which a test says how many [states](tried_states) it has tried.
const STATES: &str = "GLIMMER_STATES=";

/// Seeds between two lines about how far a long run is.
const TELL: usize = 100;

/// The seed in `GLIMMER_SEED`, or another one at each call. It is printed, so that a failed test
/// shows it last.
///
/// # Panics
///
/// If `GLIMMER_SEED` is no number, or if the system has no random numbers.
pub fn seed() -> u64 {
    let given = std::env::var(VARIABLE).ok();
    let seed = chosen(given.as_deref());
    println!("{VARIABLE}={seed}");
    seed
}

/// Tries a test with the seed in `GLIMMER_SEED`. Without it, tries the test with the seeds that are
/// `kept`, and then with as many others as `GLIMMER_RUNS` says, one unless told. It is for tests
/// whose start costs much beside a run. Each seed is printed before it is tried, and those that
/// failed at the end.
///
/// # Panics
///
/// If a seed failed, after all of them were tried. If a variable is no number, or if the system has
/// no random numbers.
pub fn each_seed(kept: &[u64], mut test: impl FnMut(u64)) {
    let seeds = match std::env::var(VARIABLE) {
        Ok(given) => vec![chosen(Some(&given))],
        Err(_) => {
            let others = (0..runs()).map(|_| chosen(None));
            kept.iter().copied().chain(others).collect()
        }
    };
    let mut failed = Vec::new();
    for (place, &seed) in seeds.iter().enumerate() {
        println!("{VARIABLE}={seed}");
        if catch_unwind(AssertUnwindSafe(|| test(seed))).is_err() {
            failed.push(seed);
        }
        let tried = place + 1;
        if tried.is_multiple_of(TELL) {
            let thread = std::thread::current();
            let name = thread.name().unwrap_or_default();
            println!("{name}: {tried} of {} seeds tried", seeds.len());
        }
    }
    assert!(
        failed.is_empty(),
        "{} of {} seeds fail; {VARIABLE} repeats one: {failed:?}",
        failed.len(),
        seeds.len()
    );
}

/// Says in how many states a test has looked at what it tests. `cargo xtask soak` adds them up.
pub fn tried_states(count: u64) {
    println!("{STATES}{count}");
}

fn runs() -> u64 {
    match std::env::var(RUNS) {
        Ok(given) => given.parse().expect("GLIMMER_RUNS is a number"),
        Err(_) => 1,
    }
}

/// Every third of what a long test goes through, such as all eviction rules, from a random one on.
/// With `GLIMMER_SEED` it is all of them, so that the seed repeats a failure in any.
///
/// # Panics
///
/// If the system has no random numbers.
pub fn a_third<T>(all: &[T]) -> impl Iterator<Item = &T> {
    let (first, step) = match std::env::var_os(VARIABLE) {
        Some(_) => (0, 1),
        None => ((chosen(None) % 3) as usize, 3),
    };
    all.iter().skip(first).step_by(step)
}

/// The kernel's random numbers cost Miri nothing, and follow from its own seed.
fn chosen(given: Option<&str>) -> u64 {
    match given {
        Some(given) => given.parse().expect("GLIMMER_SEED is a number"),
        None => getrandom::u64().expect("the system has random numbers"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kept seeds come first, every seed is tried, and those that fail are named. With a seed
    /// given, that one alone would be tried.
    #[test]
    fn every_seed_is_tried_and_those_that_fail_are_named() {
        if std::env::var_os(VARIABLE).is_some() {
            return;
        }
        let mut tried = Vec::new();
        let result = catch_unwind(AssertUnwindSafe(|| {
            each_seed(&[7, 8, 9], |seed| {
                tried.push(seed);
                assert_ne!(seed, 8);
            });
        }));
        assert_eq!(tried[..3], [7, 8, 9]);
        assert_eq!(tried.len() as u64, 3 + runs());
        let text = result.unwrap_err().downcast::<String>().unwrap();
        assert!(text.ends_with("one: [8]"), "{text}");
    }

    #[test]
    fn each_third_is_taken_at_times() {
        if std::env::var_os(VARIABLE).is_some() {
            return;
        }
        let thirds = ["03", "14", "2"];
        let mut missing = thirds.to_vec();
        while !missing.is_empty() {
            let taken: String = a_third(&["0", "1", "2", "3", "4"]).copied().collect();
            assert!(thirds.contains(&&*taken), "{taken}");
            missing.retain(|third| *third != taken);
        }
    }

    #[test]
    fn a_given_seed_is_taken_and_others_differ() {
        assert_eq!(chosen(Some("18446744073709551615")), u64::MAX);
        assert_ne!(chosen(None), chosen(None));
    }

    #[test]
    #[should_panic(expected = "GLIMMER_SEED is a number")]
    fn a_seed_is_a_number() {
        chosen(Some("eleven"));
    }
}
