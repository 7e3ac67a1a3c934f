//! How far back a client may yet send a mutation again.

/// So many of a client's mutations to one port, the one that says so and those before it, may be sent again; none that is older will be. A power of two,
/// written as its exponent: a byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reach(u8);

impl Reach {
    /// The client does not say: as many as the server remembers.
    pub const UNKNOWN: Reach = Reach(0);
    /// More cannot be told apart by their numbers.
    const EXPONENT_MAX: u8 = 31;

    /// The least that takes in so many mutations.
    #[inline]
    pub fn over(mutations: usize) -> Reach {
        let exponent = mutations.max(2).next_power_of_two().ilog2();
        match u8::try_from(exponent) {
            Ok(exponent) if exponent <= Reach::EXPONENT_MAX => Reach(exponent),
            _ => Reach::UNKNOWN,
        }
    }

    /// How many mutations it takes in; of one that is unknown, as many as there can be.
    #[inline]
    pub fn mutations(self) -> u32 {
        match self {
            Reach::UNKNOWN => u32::MAX,
            Reach(exponent) => 1 << exponent,
        }
    }

    /// From the byte of a request; none if no client writes it.
    #[inline]
    pub(super) fn from_byte(byte: u8) -> Option<Reach> {
        (byte <= Reach::EXPONENT_MAX).then_some(Reach(byte))
    }

    /// The byte of a request.
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
