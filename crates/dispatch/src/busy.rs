//! How busy the cores were, and how many of them large requests need.

/// Large cores that were busy for this part of an epoch are too few: their queues grow.
const FULL: f64 = 0.95;
/// Large cores are enough if requests keep them busy for this part of the time.
const ENOUGH: f64 = 0.75;
/// Where all cores are busy for this part of an epoch, none is given to large requests: it would be
/// missing for small ones.
const ALL_FULL: f64 = 0.9;

/// Large cores that are busy with large requests for this part of the time are reserved for them,
const RESERVED_FROM: f64 = 0.2;
/// until they are for less than this part.
const RESERVED_UNTIL: f64 = 0.1;
/// They are not where small requests take this part of the time of the other cores,
const SMALL_FROM: f64 = 0.7;
/// and are no longer where they take this part. The difference is for what the other cores get to
/// do when large cores are reserved, so that they are not reserved in every second epoch.
const SMALL_UNTIL: f64 = 0.9;

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
        let (large_min, small_max) = match is_reserved {
            true => (RESERVED_UNTIL, SMALL_UNTIL),
            false => (RESERVED_FROM, SMALL_FROM),
        };
        let others = (cores - large) as f64;
        self.large >= large_min * large as f64 && self.small < small_max * others
    }

    /// Whether large requests should have cores of their own where they are many. `is_separate`
    /// says whether they have them now, and `large_share` is their share of the cost of all
    /// requests, from 0 to 1.
    ///
    /// All cores serve them if they fill all cores but one while the cores have time to spare. They
    /// get cores of their own again when all cores but one would have time to spare for them.
    pub fn separates(self, cores: usize, is_separate: bool, large_share: f64) -> bool {
        let most = FULL * (cores - 1) as f64;
        let all = self.small + self.large;
        match is_separate {
            true => self.large <= most || all >= ALL_FULL * cores as f64,
            false => all * large_share < most,
        }
    }
}
