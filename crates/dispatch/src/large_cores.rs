//! How many cores serve large requests.

/// A product that is a whole number up to this rounding is that number.
const ROUNDING: f64 = 1e-9;

/// The rule for the number of cores that serve large requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LargeCores {
    /// As many as large requests cost, rounded up. A large core that has no large request takes
    /// small ones, one at a time. Minos (§6.1) proposes this and does not build it.
    #[default]
    Auto,
    /// The formula of Minos (§3.1): `n_s = ceil(n * share of small requests in the cost)`.
    Paper,
    /// This number.
    Fixed(usize),
}

/// How cores are divided. With more than one core there is always a small one and a large one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Division {
    /// Cores that serve small requests alone.
    pub small: usize,
    /// Cores to which large requests are handed.
    pub large: usize,
    /// What a large core does without large requests.
    pub spare: Spare,
}

/// What a core that large requests are handed to does when it has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spare {
    /// It waits.
    Wait,
    /// It takes small requests from its own RX queue, one at a time: it is standby.
    OwnRx,
    /// It takes small requests from its own RX queue and then from others', one at a time.
    AnyRx,
}

impl LargeCores {
    /// Divides two cores or more. `small_share` is the share of small requests in the cost of all,
    /// from 0 to 1.
    pub fn divide(self, cores: usize, small_share: f64) -> Division {
        let small = cores as f64 * small_share;
        let (large, spare) = match self {
            LargeCores::Auto => (cores - (small + ROUNDING).floor() as usize, Spare::AnyRx),
            LargeCores::Paper => match cores - ((small - ROUNDING).ceil() as usize).min(cores) {
                0 => (1, Spare::OwnRx),
                large => (large, Spare::Wait),
            },
            LargeCores::Fixed(large) => (large, Spare::Wait),
        };
        let large = large.clamp(1, cores - 1);
        Division {
            small: cores - large,
            large,
            spare,
        }
    }
}
