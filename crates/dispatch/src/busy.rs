//! How busy the cores were, and how many of them large requests need.

/// Large cores that were busy for this part of an epoch are too few: their queues grow.
const FULL: f64 = 0.95;
/// So many large cores are enough that requests keep them busy for this part of the time.
const ENOUGH: f64 = 0.75;
/// Where all cores are busy for this part of an epoch, none is given to large requests: it would be
/// missing for small ones.
const ALL_FULL: f64 = 0.9;

/// Large cores that are busy with large requests for this part of the time are reserved for them,
const RESERVED_FROM: f64 = 0.5;
/// until they are for less than this part.
const RESERVED_UNTIL: f64 = 0.25;
/// But only where small requests take less than this part of the time of the other cores.
const SMALL_MAX: f64 = 0.8;

/// CPU time that requests took in an epoch, in cores: 1.5 is all the time of one core and half of
/// that of another one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Busy {
    /// The time of small requests.
    pub small: f64,
    /// The time of large requests.
    pub large: f64,
}

impl Busy {
    /// How many of `cores` should be large, at least `formula`, if `now` of them are.
    pub fn large_cores(self, cores: usize, now: usize, formula: usize) -> usize {
        let is_full = self.large > FULL * now as f64;
        let has_room = self.small + self.large < ALL_FULL * cores as f64;
        let wanted = match is_full && has_room {
            true => now + 1,
            false => {
                let enough = (self.large / ENOUGH).ceil() as usize;
                now.min(enough.max(formula))
            }
        };
        wanted.max(formula)
    }

    /// Whether `large` of `cores` should be reserved for large requests, if they are now or not.
    ///
    /// A reserved core serves its large requests whole and makes no small one wait. It has time to
    /// spare which nobody uses, so the other cores have to have enough.
    pub fn reserves(self, cores: usize, large: usize, is_reserved: bool) -> bool {
        let least = match is_reserved {
            true => RESERVED_UNTIL,
            false => RESERVED_FROM,
        };
        self.large >= least * large as f64 && self.small < SMALL_MAX * (cores - large) as f64
    }
}
