//! Size classes: powers of two.

use std::ops::Range;

/// A class of values whose sizes differ by less than a factor of two (Minos, §5.2). Class `i` of 1
/// to 31 has the sizes from `2^(i-1)` up to, but not including, `2^i` bytes. The first one also has
/// the empty value, and the last one every larger value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SizeClass(u8);

impl SizeClass {
    /// Number of classes.
    pub const COUNT: usize = 31;

    /// The class of a value of this many bytes.
    #[inline(always)]
    pub fn of(bytes: u32) -> SizeClass {
        let bits = u32::BITS - bytes.leading_zeros();
        SizeClass(bits.clamp(1, SizeClass::COUNT as u32) as u8 - 1)
    }

    /// The class at a place in an array of all classes.
    ///
    /// # Panics
    ///
    /// If there are not as many.
    pub fn at(place: usize) -> SizeClass {
        assert!(place < SizeClass::COUNT);
        SizeClass(place as u8)
    }

    /// Its place in an array of all classes, from 0 on.
    #[inline(always)]
    pub fn place(self) -> usize {
        usize::from(self.0)
    }

    /// The sizes that it has. Those of all classes together are all sizes but `u32::MAX`.
    pub fn sizes(self) -> Range<u32> {
        let low = if self.0 == 0 { 0 } else { 1 << self.0 };
        let high = match self.place() + 1 {
            SizeClass::COUNT => u32::MAX,
            bits => 1 << bits,
        };
        low..high
    }

    /// Every class, from the smallest sizes to the largest.
    pub fn all() -> impl DoubleEndedIterator<Item = SizeClass> {
        (0..SizeClass::COUNT).map(SizeClass::at)
    }
}
