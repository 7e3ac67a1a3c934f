//! The time in a store that lies in a file: it goes on from one process to the next.

use crate::snapshot::epoch_unix_ms;
use glimmer_base::{Expiry, Moment};
use glimmer_node::{Clock, SystemClock};
use glimmer_store::memory::{FileState, Kept, MemoryFile};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// No store goes on with a time from here on, 26 years after its epoch. An [`Expiry`] holds 34
/// years, and a later one counts as never.
pub const STORE_TIME_MS_MAX: u64 = 3 << (Expiry::BITS - 2);

/// The wall clock takes the time of a store no further than this, 17 years after its epoch. What
/// is left is for lifetimes, and for the time that processes run.
const WALL_TIME_MS_MAX: u64 = 1 << (Expiry::BITS - 1);

/// How exactly the file knows what time it is. The store may have come so much further than the
/// file says. The next process begins with the end of that time, so that none comes twice. It may
/// be ahead of the wall clock by that. A restart takes longer, so several do not add up.
const NOTED_EVERY_MS: u64 = 20;

const YEAR_MS: u64 = 365 * 24 * 3_600 * 1_000;

/// A clock, usually the machine's, in the time of a store that may have begun with an earlier
/// process. What the store was off counts as the wall clock says. If the wall clock is behind the
/// time at which the store was last used, or further ahead than lifetimes reach, it was set, and
/// hardly any time has passed. In any case the epoch is such that the wall clock shows the present
/// moment, so that times of the calendar are meant as clients mean them.
#[derive(Debug)]
pub struct StoreClock<C = SystemClock> {
    clock: C,
    file: Arc<MemoryFile>,
    /// How far ahead the wall clock was, if that was too far.
    ahead_ms: Option<u64>,
}

impl StoreClock {
    /// The clock of the store in a file.
    pub fn of(file: &Arc<MemoryFile>) -> StoreClock {
        StoreClock::over(file, SystemClock::start(), SystemClock::at)
    }
}

impl<C: Clock> StoreClock<C> {
    /// The clock of the store in a file. `fresh` is that of a new store. `at` makes one that now
    /// shows the second number of milliseconds since an epoch, which was at the first one since
    /// 1970.
    pub fn over(file: &Arc<MemoryFile>, fresh: C, at: impl FnOnce(u64, u64) -> C) -> StoreClock<C> {
        let now = fresh.now();
        let [made, noted, latest] = [Kept::EpochUnixMs, Kept::NotedEpochUnixMs, Kept::NowMs]
            .map(|number| file.kept(number));
        let (clock, ahead_ms) = match file.state() {
            FileState::New => {
                made.store(now.epoch_unix_ms, Relaxed);
                noted.store(now.epoch_unix_ms, Relaxed);
                latest.store(now.ms, Relaxed);
                (fresh, None)
            }
            FileState::Closed | FileState::Open => {
                let before = match noted.load(Relaxed) {
                    0 => made.load(Relaxed),
                    noted => noted,
                };
                let unix_ms = now.epoch_unix_ms + now.ms;
                let passed_ms = unix_ms.saturating_sub(before);
                let come_to_ms = latest.load(Relaxed) + NOTED_EVERY_MS;
                let is_ahead = passed_ms > WALL_TIME_MS_MAX;
                let ms = match is_ahead {
                    true => come_to_ms,
                    false => passed_ms.max(come_to_ms),
                };
                let then = Moment {
                    ms,
                    epoch_unix_ms: before,
                };
                let epoch = epoch_unix_ms(then, unix_ms);
                noted.store(epoch, Relaxed);
                let ahead_ms = passed_ms.checked_sub(come_to_ms).filter(|_| is_ahead);
                (at(epoch, ms), ahead_ms)
            }
        };
        StoreClock {
            clock,
            file: file.clone(),
            ahead_ms,
        }
    }

    /// A warning that the time for which the store was off does not count, if the wall clock was
    /// too far ahead.
    pub fn warning(&self) -> Option<String> {
        let years = self.ahead_ms? / YEAR_MS;
        (years > 0).then(|| {
            format!(
                "-e {}: the wall clock says that the file was last used {years} years ago, so it \
                 was set meanwhile; lifetimes go on as if no time had passed",
                self.file.path().display()
            )
        })
    }

    /// The next process needs to know how the wall clock went on: it may be set while this one
    /// runs.
    #[cold]
    fn note(&self, now: Moment) {
        self.file.kept(Kept::NowMs).fetch_max(now.ms, Relaxed);
        let noted = self.file.kept(Kept::NotedEpochUnixMs);
        let then = Moment {
            ms: now.ms,
            epoch_unix_ms: noted.load(Relaxed),
        };
        let unix_ms = (self.clock.unix_us() / 1000) as u64;
        noted.store(epoch_unix_ms(then, unix_ms), Relaxed);
    }
}

impl<C: Clock> Clock for StoreClock<C> {
    #[inline]
    fn now(&self) -> Moment {
        let now = self.clock.now();
        // A worker that is a little behind another one changes nothing.
        if now.ms >= self.file.kept(Kept::NowMs).load(Relaxed) + NOTED_EVERY_MS {
            self.note(now);
        }
        now
    }

    fn unix_us(&self) -> u128 {
        self.clock.unix_us()
    }

    fn ns(&self) -> u64 {
        self.clock.ns()
    }

    fn cpu_ns(&self, worker: usize, thread: u32) -> Option<u64> {
        self.clock.cpu_ns(worker, thread)
    }

    fn timeline(&self) -> glimmer_hotset::Timeline {
        self.clock.timeline()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;
    use tempfile::TempDir;

    const HOUR_MS: u64 = 3_600_000;
    const DAY_MS: u64 = 24 * HOUR_MS;
    /// In 2023.
    const TODAY_MS: u64 = 1_700_000_000_000;

    /// A clock that stands still.
    #[derive(Clone, Copy, Debug)]
    struct Still {
        now: Moment,
        unix_ms: u64,
    }

    impl Clock for Still {
        fn now(&self) -> Moment {
            self.now
        }

        fn unix_us(&self) -> u128 {
            u128::from(self.unix_ms) * 1000
        }
    }

    /// A file that one process after the other uses.
    struct Place {
        _folder: TempDir,
        path: PathBuf,
    }

    impl Place {
        fn new() -> Place {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("items");
            Place {
                _folder: folder,
                path,
            }
        }

        /// The clock of a process that begins when the wall clock shows this time.
        fn start(&self, unix_ms: u64) -> StoreClock<Still> {
            let file = MemoryFile::open(&self.path, 1, &[], false).unwrap();
            let at = |epoch_unix_ms, ms| Still {
                now: Moment { ms, epoch_unix_ms },
                unix_ms,
            };
            let lead = Moment::EPOCH_LEAD_MS;
            let clock = StoreClock::over(&file, at(unix_ms.saturating_sub(lead), lead), at);
            file.begin();
            clock
        }
    }

    impl StoreClock<Still> {
        /// Time passes, and the wall clock shows this time then.
        fn run(&mut self, ms: u64, unix_ms: u64) {
            self.clock.now.ms += ms;
            self.clock.unix_ms = unix_ms;
            self.now();
        }

        /// Clients that give a time to live, or a time of the calendar, get what they mean.
        fn is_right(&self) -> bool {
            let now = self.now();
            let ends = |exptime| Expiry::from_memcached(exptime, now).ms() / 1000;
            let unix_s = (self.unix_us() / 1_000_000) as i64;
            let years_s = 8 * YEAR_MS / 1000;
            now.epoch_unix_ms + now.ms == self.clock.unix_ms
                && ends(60) == (now.ms + 60_000) / 1000
                && ends(unix_s + years_s as i64).abs_diff(now.ms / 1000 + years_s) <= 1
        }
    }

    #[test]
    fn time_passes_while_no_process_runs() {
        let place = Place::new();
        let mut clock = place.start(TODAY_MS);
        assert_eq!(clock.now().ms, Moment::EPOCH_LEAD_MS);
        clock.run(DAY_MS, TODAY_MS + DAY_MS);
        drop(clock);
        let clock = place.start(TODAY_MS + DAY_MS + HOUR_MS);
        assert_eq!(clock.now().ms, Moment::EPOCH_LEAD_MS + DAY_MS + HOUR_MS);
        assert!(clock.is_right());
        drop(clock);
        let clock = place.start(TODAY_MS + 10 * YEAR_MS);
        assert_eq!(clock.now().ms, Moment::EPOCH_LEAD_MS + 10 * YEAR_MS);
        assert!(clock.is_right() && clock.warning().is_none());
    }

    /// The store may have come to the end of the interval of which the file knows the beginning.
    #[test]
    fn no_time_of_a_store_comes_twice() {
        let place = Place::new();
        let mut clock = place.start(TODAY_MS + HOUR_MS);
        clock.run(10_000, TODAY_MS + HOUR_MS + 10_000);
        let before = clock.now().ms;
        clock.run(NOTED_EVERY_MS - 1, TODAY_MS + HOUR_MS + 10_019);
        drop(clock);
        // By the wall clock, the store's epoch is yet to come.
        let clock = place.start(TODAY_MS);
        assert_eq!(clock.now().ms, before + NOTED_EVERY_MS);
        assert!(clock.is_right());
        drop(clock);
        let clock = place.start(TODAY_MS + 600_000);
        assert_eq!(clock.now().ms, before + NOTED_EVERY_MS + 600_000);
        assert!(clock.is_right());
    }

    /// A machine without a battery begins in 1970.
    #[test]
    fn a_clock_that_is_set_by_decades_ends_no_lifetime() {
        for begins_ms in [500, 5_000, DAY_MS] {
            let place = Place::new();
            let mut clock = place.start(begins_ms);
            clock.run(HOUR_MS, begins_ms + HOUR_MS);
            let before = clock.now().ms;
            drop(clock);
            let mut clock = place.start(TODAY_MS);
            assert_eq!(clock.now().ms, before + NOTED_EVERY_MS);
            assert!(clock.is_right());
            let warning = clock.warning().expect("the clock was set");
            assert!(warning.contains("53 years ago"), "{warning}");
            clock.run(HOUR_MS, TODAY_MS + HOUR_MS);
            drop(clock);
            let clock = place.start(TODAY_MS + 2 * HOUR_MS);
            assert_eq!(clock.now().ms, before + NOTED_EVERY_MS + 2 * HOUR_MS);
            assert!(clock.is_right() && clock.warning().is_none());
        }
    }

    #[test]
    fn a_clock_that_is_set_while_the_store_runs_is_no_time_that_passes() {
        for (begins_ms, set_to_ms) in [
            (5_000, TODAY_MS),
            (TODAY_MS, TODAY_MS - HOUR_MS),
            (TODAY_MS, TODAY_MS + YEAR_MS),
        ] {
            let place = Place::new();
            let mut clock = place.start(begins_ms);
            clock.run(HOUR_MS, set_to_ms);
            let before = clock.now().ms;
            drop(clock);
            let clock = place.start(set_to_ms + 7_000);
            assert_eq!(clock.now().ms, before + 7_000);
            assert!(clock.is_right() && clock.warning().is_none());
        }
    }

    /// However often the clock goes back and forth, there is room for lifetimes.
    #[test]
    fn the_wall_clock_takes_no_store_to_the_end_of_its_time() {
        let place = Place::new();
        drop(place.start(TODAY_MS));
        for years in [16, 0, 16, 0, 16] {
            let clock = place.start(TODAY_MS + years * YEAR_MS);
            assert!(clock.now().ms <= WALL_TIME_MS_MAX && clock.is_right());
        }
    }

    #[test]
    fn a_file_of_an_earlier_version_goes_on() {
        let place = Place::new();
        let mut clock = place.start(TODAY_MS);
        clock.run(HOUR_MS, TODAY_MS + HOUR_MS);
        clock.file.kept(Kept::NotedEpochUnixMs).store(0, Relaxed);
        drop(clock);
        let clock = place.start(TODAY_MS + 3 * HOUR_MS);
        assert_eq!(clock.now().ms, Moment::EPOCH_LEAD_MS + 3 * HOUR_MS);
        assert!(clock.is_right());
    }
}
