//! How many cores serve large requests.

/// A product that is a whole number up to this rounding is that number.
const ROUNDING: f64 = 1e-9;

/// The rule for the number of cores that serve large requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LargeCores {
    /// As many as the paper's formula says, and more while large requests keep these busy all the
    /// time ([`Busy`](crate::Busy)) and other cores are not. A large core that has no large request
    /// takes small ones, one at a time. Minos (§6.1) proposes both and does not build it.
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
    /// It takes small requests from any RX queue, one at a time.
    AnyRx,
}

impl LargeCores {
    /// Divides two cores or more. `small_share` is the share of small requests in the cost of all,
    /// from 0 to 1.
    pub fn divide(self, cores: usize, small_share: f64) -> Division {
        let small = ((cores as f64 * small_share - ROUNDING).ceil() as usize).min(cores);
        let by_formula = cores - small;
        let (large, spare) = match self {
            LargeCores::Auto => (by_formula, Spare::AnyRx),
            LargeCores::Paper if by_formula == 0 => (1, Spare::OwnRx),
            LargeCores::Paper => (by_formula, Spare::Wait),
            LargeCores::Fixed(large) => (large, Spare::Wait),
        };
        Division::new(cores, large, spare)
    }
}

impl Division {
    fn new(cores: usize, large: usize, spare: Spare) -> Division {
        let large = large.clamp(1, cores - 1);
        Division {
            small: cores - large,
            large,
            spare,
        }
    }

    /// The same with another number of large cores.
    pub fn with_large(self, large: usize) -> Division {
        Division::new(self.small + self.large, large, self.spare)
    }
}
