//! Where CAS uniques come from.

use super::CAS_MAX;

/// Draws CAS uniques: numbers that are `step` apart. Sequences of one step that begin at different
/// numbers up to it never draw the same, so that no two items of a server have one in common,
/// whichever partitions they are in. After [`CAS_MAX`] it begins again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CasSequence {
    first: u64,
    step: u64,
    next: u64,
}

impl Default for CasSequence {
    fn default() -> Self {
        CasSequence::new(1, 1)
    }
}

impl CasSequence {
    /// The numbers `first`, `first + step` and so on.
    ///
    /// # Panics
    ///
    /// If `first` is not one of 1 to `step`.
    pub fn new(first: u64, step: u64) -> CasSequence {
        assert!((1..=step).contains(&first) && step < CAS_MAX);
        CasSequence {
            first,
            step,
            next: first,
        }
    }

    /// The next CAS unique.
    #[inline(always)]
    pub fn draw(&mut self) -> u64 {
        let cas = self.next;
        self.next = if cas > CAS_MAX - self.step {
            self.first
        } else {
            cas + self.step
        };
        cas
    }

    /// No number above this one has been drawn, unless the sequence has begun again.
    pub fn highest(&self) -> u64 {
        self.next - 1
    }

    /// What is drawn from now on is above this number, if one of the sequence is.
    pub fn go_above(&mut self, cas: u64) {
        if self.next <= cas {
            let steps = (cas - self.first) / self.step + 1;
            let next = self.first.saturating_add(steps.saturating_mul(self.step));
            self.next = if next > CAS_MAX { self.first } else { next };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_goes_above_what_others_have_drawn() {
        for first in 1..=4 {
            let mut sequence = CasSequence::new(first, 4);
            for cas in [0, 1, 7, 8, 9, 1_000_003] {
                sequence.go_above(cas);
                let drawn = sequence.draw();
                assert!(drawn > cas && drawn <= cas.max(9) + 8, "{first}: {drawn}");
                assert_eq!(drawn % 4, first % 4);
                assert!((drawn..drawn + 4).contains(&sequence.highest()));
            }
            sequence.go_above(CAS_MAX);
            assert_eq!(sequence.draw(), first, "it begins again");
        }
    }

    #[test]
    fn sequences_of_one_step_never_meet_and_begin_again_within_bounds() {
        let mut sequences = [1, 2, 3].map(|first| CasSequence::new(first, 3));
        let drawn: Vec<u64> = (0..4)
            .flat_map(|_| sequences.each_mut().map(CasSequence::draw))
            .collect();
        assert_eq!(drawn, (1..=12).collect::<Vec<u64>>());
        for sequence in &mut sequences {
            let class = sequence.first % 3;
            sequence.next += (CAS_MAX / 3 - 8) * 3;
            let drawn: Vec<u64> = (0..12).map(|_| sequence.draw()).collect();
            assert!(drawn.iter().all(|cas| cas % 3 == class), "{drawn:?}");
            assert!(
                drawn.iter().all(|cas| (1..=CAS_MAX).contains(cas)),
                "{drawn:?}"
            );
            assert!(drawn.contains(&sequence.first), "{drawn:?}");
        }
    }
}
