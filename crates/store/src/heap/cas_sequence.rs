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
}

#[cfg(test)]
mod tests {
    use super::*;

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
