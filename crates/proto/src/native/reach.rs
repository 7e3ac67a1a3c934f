//! How far back a client may still retransmit mutations.

/// The number of a client's mutations to one port that may still be retransmitted, counting back
/// from the mutation that carries this value. Older ones are never sent again. It is a power of
/// two, encoded as its exponent in one byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reach(u8);

impl Reach {
    /// The client does not say. The server assumes as many as it remembers.
    pub const UNKNOWN: Reach = Reach(0);
    /// Mutation numbers cannot distinguish more.
    const EXPONENT_MAX: u8 = 31;

    /// The smallest reach that covers this many mutations.
    #[inline]
    pub fn over(mutations: usize) -> Reach {
        let exponent = mutations.max(2).next_power_of_two().ilog2();
        match u8::try_from(exponent) {
            Ok(exponent) if exponent <= Reach::EXPONENT_MAX => Reach(exponent),
            _ => Reach::UNKNOWN,
        }
    }

    /// The number of mutations covered; the maximum if it is unknown.
    #[inline]
    pub fn mutations(self) -> u32 {
        match self {
            Reach::UNKNOWN => u32::MAX,
            Reach(exponent) => 1 << exponent,
        }
    }

    /// Decodes the byte of a request. `None` if the byte is invalid.
    #[inline]
    pub(super) fn from_byte(byte: u8) -> Option<Reach> {
        (byte <= Reach::EXPONENT_MAX).then_some(Reach(byte))
    }

    /// The encoded byte.
    #[inline]
    pub fn byte(self) -> u8 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_takes_in_what_it_is_asked_to() {
        let of = |mutations| Reach::over(mutations).mutations();
        assert_eq!(
            [0, 1, 2, 3, 16, 17, 1024].map(of),
            [2, 2, 2, 4, 16, 32, 1024]
        );
        assert_eq!(of(1 << 31), 1 << 31);
        assert_eq!(Reach::over(usize::MAX >> 1), Reach::UNKNOWN);
        assert_eq!(Reach::UNKNOWN.mutations(), u32::MAX);
        for byte in 0..=u8::MAX {
            assert_eq!(
                Reach::from_byte(byte).map(Reach::byte),
                (byte < 32).then_some(byte)
            );
        }
    }
}
