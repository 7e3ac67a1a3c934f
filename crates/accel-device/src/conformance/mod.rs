//! What every device of the accelerator is held to. A function here takes a maker of devices, tries
//! one thing, and panics if a device does something else. Tests of devices call [`all`], and
//! [`coherence::all`] for a coherent one.
//!
//! | file | idea |
//! | --- | --- |
//! | `operations` | the paper's seven operations, one rule after the other |
//! | `oracle` | the same under random operations, against a table that is as simple as possible |
//! | `lengths` | every length of key and value, and values that do not overlap |
//! | `coherence` | flush, expiry and the recheck, for devices that share the guard's memory |

pub mod coherence;
mod lengths;
mod operations;
mod oracle;

use crate::models::LookUp;

/// Makes a device whose slots are all empty. All that it makes place keys alike.
pub type Make<'a> = &'a mut dyn FnMut() -> Box<dyn LookUp>;

/// Tries everything. `seed` decides the random operations, which are as many as `steps`.
///
/// # Panics
///
/// If a device does not conform.
pub fn all(make: Make<'_>, seed: u64, steps: u32) {
    operations::all(make);
    lengths::all(make);
    oracle::random_operations(make, seed, steps);
}

/// Marsaglia's xorshift: random numbers from a seed that a test prints.
#[derive(Clone, Debug)]
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Random {
        Random(seed | 1)
    }

    /// A number below `bound`.
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % bound
    }
}

/// The first `count` keys whose slots are as wanted.
fn keys(device: &dyn LookUp, count: usize, wanted: impl Fn([usize; 2]) -> bool) -> Vec<Vec<u8>> {
    let numbered = (0u32..).map(|number| format!("key:{number}").into_bytes());
    let found = numbered.filter(|key| wanted(device.places(key)));
    found.take(count).collect()
}
