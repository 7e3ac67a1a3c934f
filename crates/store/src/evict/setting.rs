//! How a small log and a main log share the memory, as numbers that can be chosen at run time.

/// What becomes of new items, and of live ones that reach the head of their log.
///
/// S3-FIFO, CLOCK and FIFO are values of it, and so is what lies between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// How many new items enter the main log at once, as a percentage of its share of the memory.
    /// With 0 all of them begin in the small log. With 100 each log receives as large a part of
    /// them as it has of the memory, so that every item stays as long as it would in one log.
    pub direct_percent: u8,
    /// Uses that an item of the usual size needs to stay.
    pub uses_needed: u8,
    /// Whether an item that goes round the main log again begins without uses, or with one less.
    pub forgets: bool,
    /// For how many laps of the small log the index remembers an item of the usual size that was
    /// evicted from it.
    pub ghost_laps: u8,
    /// The usual size of an item; none if sizes do not count.
    pub usual: Option<SizeLog>,
}

/// The logarithm of a size in words, in sixteenths of a doubling; never 0, which stands for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeLog(u16);

impl SizeLog {
    const PER_DOUBLING: u32 = 16;

    /// The logarithm as a number that a mean can be taken of.
    pub fn number(self) -> f64 {
        f64::from(self.0)
    }

    /// The logarithm of such a mean.
    pub fn of_number(number: f64) -> SizeLog {
        SizeLog((number.round() as u16).max(1))
    }

    /// The size in words, rounded down.
    pub fn words(self) -> u64 {
        let doublings = f64::from(self.0 - 1) / f64::from(Self::PER_DOUBLING);
        doublings.exp2() as u64
    }

    /// Of a size in words. Between powers of two it is linear.
    #[inline(always)]
    pub fn of(words: u64) -> SizeLog {
        let words = words.max(1);
        let doublings = words.ilog2();
        let rest = (words << (63 - doublings) >> 59) as u32 & (Self::PER_DOUBLING - 1);
        SizeLog((doublings * Self::PER_DOUBLING + rest + 1) as u16)
    }

    /// The least size with a logarithm of at least this.
    fn least_words(self) -> u64 {
        let steps = u32::from(self.0) - 1;
        let (doublings, rest) = (steps / Self::PER_DOUBLING, steps % Self::PER_DOUBLING);
        (u128::from(Self::PER_DOUBLING + rest) << doublings).div_ceil(Self::PER_DOUBLING.into())
            as u64
    }
}

/// Uses are counted up to this number.
pub const USES_MAX: u8 = crate::index::Entry::READS_MAX;

impl Setting {
    /// S3-FIFO: new items leave soon, unless they are read.
    pub const S3_FIFO: Setting = Setting::new(0, 1, false, 9);

    /// A setting in which sizes do not count.
    pub const fn new(
        direct_percent: u8,
        uses_needed: u8,
        forgets: bool,
        ghost_laps: u8,
    ) -> Setting {
        Setting {
            direct_percent,
            uses_needed,
            forgets,
            ghost_laps,
            usual: None,
        }
    }

    /// How often an item could be doubled up to the usual size; negative if it is larger. Whole
    /// doublings count, so that sizes that are nearly the same are the same.
    #[inline(always)]
    pub fn doublings(self, words: u64) -> i32 {
        match self.usual {
            None => 0,
            Some(usual) => {
                let difference = i32::from(usual.0) - i32::from(SizeLog::of(words).0);
                difference / SizeLog::PER_DOUBLING as i32
            }
        }
    }

    /// Uses that an item has when it enters a log: one for each doubling.
    #[inline(always)]
    pub fn first_uses(doublings: i32) -> u8 {
        doublings.clamp(0, USES_MAX.into()) as u8
    }

    /// Items of fewer words begin with uses, and no others.
    pub fn few_words(self) -> u64 {
        match self.usual {
            Some(SizeLog(log)) if u32::from(log) > SizeLog::PER_DOUBLING => {
                SizeLog(log - SizeLog::PER_DOUBLING as u16 + 1).least_words()
            }
            _ => 0,
        }
    }

    /// Whether an item stays that has reached the head of its log. A larger one needs one more use
    /// for each halving down to the usual size, up to as many as are counted.
    #[inline(always)]
    pub fn keeps(self, uses: u8, doublings: i32) -> bool {
        let needed = i32::from(self.uses_needed) - doublings.min(0);
        i32::from(uses) >= needed.min(USES_MAX.into())
    }

    /// For how many laps of the small log an item is remembered that was evicted from it. For one
    /// that is larger than usual they are half as many for each halving down to that.
    #[inline(always)]
    pub fn laps_remembered(self, doublings: i32) -> u8 {
        self.ghost_laps >> (-doublings).clamp(0, 7)
    }

    /// The uses of an item that goes round the main log again. Very small items lose none in most
    /// laps: for each doubling beyond those that [`first_uses`](Self::first_uses) counts, half as
    /// often. `draw` is a random number. Unless `ages`, only a setting that forgets takes uses.
    #[inline(always)]
    pub fn uses_after_lap(self, uses: u8, doublings: i32, (draw, ages): (u32, bool)) -> u8 {
        let rare = (doublings - i32::from(USES_MAX)).clamp(0, 16);
        match draw & ((1 << rare) - 1) {
            0 if self.forgets => 0,
            0 if ages => uses.saturating_sub(1),
            _ => uses,
        }
    }

    /// The setting as one word.
    pub fn packed(self) -> u64 {
        let usual = self.usual.map_or(0, |SizeLog(log)| log);
        u64::from(self.direct_percent)
            | u64::from(self.uses_needed) << 8
            | u64::from(self.forgets) << 16
            | u64::from(self.ghost_laps) << 24
            | u64::from(usual) << 32
    }

    /// The setting of a word.
    #[inline(always)]
    pub fn unpacked(word: u64) -> Setting {
        Setting {
            direct_percent: word as u8,
            uses_needed: (word >> 8) as u8,
            forgets: word >> 16 & 1 != 0,
            ghost_laps: (word >> 24) as u8,
            usual: match (word >> 32) as u16 {
                0 => None,
                log => Some(SizeLog(log)),
            },
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_a_word() {
        let setting = Setting::new(78, 2, true, 9);
        for usual in [None, Some(SizeLog::of(1)), Some(SizeLog::of(u64::MAX))] {
            let setting = Setting { usual, ..setting };
            assert_eq!(Setting::unpacked(setting.packed()), setting);
        }
    }

    #[test]
    fn a_size_comes_back_from_its_logarithm() {
        for words in [1, 2, 9, 1_000, 1 << 40] {
            let back = SizeLog::of(words).words();
            assert!(
                back <= words && words <= back + back / 10 + 1,
                "{words}, {back}"
            );
        }
    }

    #[test]
    fn only_whole_doublings_count() {
        let usual = Some(SizeLog::of(1_000));
        let setting = Setting {
            usual,
            ..Setting::S3_FIFO
        };
        let doublings = [1, 62, 124, 251, 520, 1_000, 1_900, 2_100, 16_100]
            .map(|words| setting.doublings(words));
        assert_eq!(doublings, [9, 4, 3, 2, 0, 0, 0, -1, -4]);
        assert_eq!(
            doublings.map(Setting::first_uses),
            [3, 3, 3, 2, 0, 0, 0, 0, 0]
        );
        for usual in [1, 2, 3, 17, 40, 1_000, u64::MAX] {
            let usual = Some(SizeLog::of(usual));
            let setting = Setting { usual, ..setting };
            for words in (1..2_000).chain([1 << 62, u64::MAX]) {
                let uses = Setting::first_uses(setting.doublings(words));
                assert_eq!(words < setting.few_words(), uses > 0, "{words}, {usual:?}");
            }
        }
        assert!(setting.keeps(1, 0) && !setting.keeps(0, 0));
        assert!(setting.keeps(2, -1) && !setting.keeps(1, -1));
        assert!(
            setting.keeps(3, -9) && !setting.keeps(2, -2),
            "what is read often stays"
        );
        let remembered = [1, 0, -1, -2, -4].map(|it| setting.laps_remembered(it));
        assert_eq!(remembered, [9, 9, 4, 2, 0]);
        assert_eq!(Setting::S3_FIFO.doublings(1), 0);
        // Nine doublings: one lap in 64.
        let kept = (0..64).filter(|&draw| setting.uses_after_lap(3, 9, (draw, true)) == 3);
        assert_eq!(kept.count(), 63);
        assert_eq!(setting.uses_after_lap(3, 3, (1, true)), 2);
        assert_eq!(setting.uses_after_lap(3, 3, (1, false)), 3);
    }
}
