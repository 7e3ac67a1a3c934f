//! Floor 0: the seed of a random test.
//!
//! A test asks for its seed where it begins, and everything random in it follows from the seed.
//! `cargo xtask soak` recognises random tests by the line that [`seed`] prints.

/// The environment variable that names the seed.
pub const VARIABLE: &str = "GLIMMER_SEED";

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

/// The kernel's random numbers cost Miri nothing, and follow from its own seed.
fn chosen(given: Option<&str>) -> u64 {
    match given {
        Some(given) => given.parse().expect("GLIMMER_SEED is a number"),
        None => getrandom::u64().expect("the system has random numbers"),
    }
}

#[cfg(test)]
mod tests {
    use super::chosen;

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
