//! Numbers that say how long an item stays.

use crate::integer;
use crate::request::Lifetime;

/// What is wrong with a lifetime.
pub(super) enum BadLifetime {
    NotAnInteger,
    /// Not positive, or too large.
    OutOfRange,
}

/// In which unit, and from when on, a number says how long an item stays.
#[derive(Clone, Copy)]
pub(super) struct Scale {
    /// Milliseconds to the unit.
    pub unit_ms: i64,
    /// It counts from 1970, and not from now.
    pub is_absolute: bool,
}

impl Scale {
    /// The scale of an option of `SET`.
    pub fn of(option: &[u8]) -> Option<Scale> {
        let (unit_ms, is_absolute) = match option {
            b"EX" => (1000, false),
            b"PX" => (1, false),
            b"EXAT" => (1000, true),
            b"PXAT" => (1, true),
            _ => return None,
        };
        Some(Scale {
            unit_ms,
            is_absolute,
        })
    }

    /// The lifetime of a number; one that is over goes at once.
    pub fn lifetime(self, number: &[u8]) -> Result<Lifetime, BadLifetime> {
        let number = integer::signed_64(number).ok_or(BadLifetime::NotAnInteger)?;
        let ms = number
            .checked_mul(self.unit_ms)
            .ok_or(BadLifetime::OutOfRange)?;
        // Redis adds the time of day, which is below this.
        const NOW_MS_MAX: i64 = 1 << 42;
        if !self.is_absolute && ms > i64::MAX - NOW_MS_MAX {
            return Err(BadLifetime::OutOfRange);
        }
        let ms = ms.max(0) as u64;
        Ok(match self.is_absolute {
            true => Lifetime::UntilUnixMs(ms),
            false => Lifetime::Ms(ms),
        })
    }

    /// The lifetime of a number that is positive.
    pub fn positive(self, number: &[u8]) -> Result<Lifetime, BadLifetime> {
        match self.lifetime(number)? {
            Lifetime::Ms(0) | Lifetime::UntilUnixMs(0) => Err(BadLifetime::OutOfRange),
            lifetime => Ok(lifetime),
        }
    }
}
