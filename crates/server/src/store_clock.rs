//! The time in a store that lies in a file: it goes on from one process to the next.

use crate::snapshot::epoch_unix_ms;
use glimmer_base::{Expiry, Moment};
use glimmer_node::{Clock, SystemClock};
use glimmer_notation::counted;
use glimmer_store::memory::{FileState, Kept, MemoryFile};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// A start refuses a store whose time is from here on, 26 years after its epoch. An [`Expiry`]
/// holds 34 years, and a later one counts as never.
pub const STORE_TIME_MS_MAX: u64 = 3 << (Expiry::BITS - 2);

/// The wall clock takes the time of a store no further than this, 17 years after its epoch, or a
/// year further than it has come. What is left is for lifetimes, and for the time that processes
/// run.
const WALL_TIME_MS_MAX: u64 = 1 << (Expiry::BITS - 1);

/// How exactly the file knows what time it is. The store may have come so much further than the
/// file says. The next process begins with the end of that time, so that none comes twice. It may
/// be ahead of the wall clock by that. A restart takes longer, so several do not add up.
const NOTED_EVERY_MS: u64 = 20;

const YEAR_MS: u64 = 365 * 24 * 3_600 * 1_000;

/// A clock, usually the machine's, in the time of a store that may have begun with an earlier
/// process. The wall clock says for how long the store was off. If it is behind the
/// time at which the store was last used, or more than 17 years ahead, it was set, and hardly any
/// time has passed. In any case the epoch is such that the wall clock shows the present moment, so
/// that times of the calendar are meant as clients mean them.
#[derive(Debug)]
pub struct StoreClock<C = SystemClock> {
    clock: C,
    file: Arc<MemoryFile>,
    /// When to note the time again. Never, before the file is that of this process.
    note_at_ms: AtomicU64,
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
                let is_ahead = passed_ms > WALL_TIME_MS_MAX.max(come_to_ms + YEAR_MS);
                let ms = match is_ahead {
                    true => come_to_ms,
                    false => passed_ms.max(come_to_ms),
                };
                let then = Moment {
                    ms,
                    epoch_unix_ms: before,
                };
                let ahead_ms = is_ahead.then(|| passed_ms - come_to_ms);
                (at(epoch_unix_ms(then, unix_ms), ms), ahead_ms)
            }
        };
        StoreClock {
            clock,
            file: file.clone(),
            note_at_ms: AtomicU64::new(u64::MAX),
            ahead_ms,
        }
    }

    /// The store goes on with the time of this clock, and the file is open. A start that fails
    /// before leaves the time as it was.
    pub fn begin(&self) {
        self.file.begin();
        let now = self.clock.now();
        self.note_epoch(now.epoch_unix_ms);
        self.note(now);
    }

    /// A warning that the time for which the store was off does not count, if the wall clock was
    /// too far ahead.
    pub fn warning(&self) -> Option<String> {
        let years = counted(self.ahead_ms? / YEAR_MS, "year");
        Some(format!(
            "-e {}: the wall clock says that the file was last used {years} ago; that counts as a \
             clock that was set meanwhile, and lifetimes go on as if no time had passed",
            self.file.path().display()
        ))
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
        self.note_epoch(epoch_unix_ms(then, unix_ms));
        (self.note_at_ms).store(now.ms + NOTED_EVERY_MS, Relaxed);
    }

    /// Zero is what an earlier version has left there.
    fn note_epoch(&self, unix_ms: u64) {
        let noted = self.file.kept(Kept::NotedEpochUnixMs);
        noted.store(unix_ms.max(1), Relaxed);
    }
}

impl<C: Clock> Clock for StoreClock<C> {
    #[inline]
    fn now(&self) -> Moment {
        let now = self.clock.now();
        // A worker that is a little behind another one changes nothing.
        if now.ms >= self.note_at_ms.load(Relaxed) {
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
            let clock = self.fail(unix_ms);
            clock.begin();
            clock
        }

        /// The clock of a process that starts then, and ends before it serves.
        fn fail(&self, unix_ms: u64) -> StoreClock<Still> {
            let file = MemoryFile::open(&self.path, 1, &[], false).unwrap();
            let at = |epoch_unix_ms, ms| Still {
                now: Moment { ms, epoch_unix_ms },
                unix_ms,
            };
            let lead = Moment::EPOCH_LEAD_MS;
            StoreClock::over(&file, at(unix_ms.saturating_sub(lead), lead), at)
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

    /// A store may have run for longer than the wall clock alone takes it.
    #[test]
    fn time_passes_for_an_old_store_too() {
        let place = Place::new();
        let mut clock = place.start(TODAY_MS);
        let ran_ms = 20 * YEAR_MS;
        clock.run(ran_ms, TODAY_MS + ran_ms);
        let before = clock.now().ms;
        drop(clock);
        let clock = place.start(TODAY_MS + ran_ms + DAY_MS);
        assert_eq!(clock.now().ms, before + DAY_MS);
        assert!(clock.warning().is_none());
        drop(clock);
        let clock = place.start(TODAY_MS + ran_ms + 2 * YEAR_MS);
        assert_eq!(clock.now().ms, before + DAY_MS + NOTED_EVERY_MS);
        let warning = clock.warning().expect("no more than a year counts");
        assert!(warning.contains("1 year ago"), "{warning}");
    }

    #[test]
    fn a_start_that_fails_leaves_the_time_as_it_was() {
        let place = Place::new();
        let mut clock = place.start(TODAY_MS);
        clock.run(2 * HOUR_MS, TODAY_MS + 2 * HOUR_MS);
        let before = clock.now().ms;
        drop(clock);
        let mut clock = place.fail(TODAY_MS + HOUR_MS);
        clock.run(DAY_MS, TODAY_MS + HOUR_MS + DAY_MS);
        drop(clock);
        let clock = place.start(TODAY_MS + 2 * HOUR_MS + 600_000);
        assert_eq!(clock.now().ms, before + 600_000);
        drop(clock);
        assert!(place.fail(TODAY_MS + 40 * YEAR_MS).warning().is_some());
        let clock = place.start(TODAY_MS + 40 * YEAR_MS);
        assert!(clock.warning().is_some() && clock.is_right());
    }

    /// Such an epoch is before 1970. The file of an earlier version has no epoch either.
    #[test]
    fn a_clock_that_shows_less_than_the_stores_time_is_noted() {
        let place = Place::new();
        let mut clock = place.start(TODAY_MS);
        clock.run(DAY_MS, TODAY_MS + DAY_MS);
        let before = clock.now().ms;
        drop(clock);
        let mut clock = place.start(5_000);
        clock.run(HOUR_MS, 5_000 + HOUR_MS);
        drop(clock);
        let clock = place.start(TODAY_MS + 5 * YEAR_MS);
        assert_eq!(clock.now().ms, before + HOUR_MS + 2 * NOTED_EVERY_MS);
        assert!(clock.is_right() && clock.warning().is_some());
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
