//! Where CAS uniques come from.

use super::CAS_MAX;
use crate::memory::Record;
use glimmer_base::sync::Ordering::Relaxed;
use glimmer_base::sync::{in_program_order, weakened};

/// Draws CAS uniques: numbers that are `step` apart. Sequences of one step that begin at different
/// numbers up to it never draw the same, so that no two items of a server have one in common,
/// whichever partitions they are in. After [`CAS_MAX`] it begins again.
///
/// Where a [record](Record) keeps a bound, no number above it is drawn before the bound is raised,
/// so that the sequence of the next process goes on above all that were drawn.
#[derive(Clone)]
pub struct CasSequence {
    first: u64,
    step: u64,
    next: u64,
    /// The largest number that is drawn without looking further.
    last: u64,
    record: Option<Record>,
}

/// Numbers by which the bound is raised, in steps.
const DRAWN_PER_BOUND: u64 = 1 << 20;

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
            last: CAS_MAX - step,
            record: None,
        }
    }

    /// Goes on above the bound that a record keeps, which is zero at first.
    pub fn keep_in(&mut self, record: &Record) {
        if !weakened("unique_drawn_twice") {
            self.go_above(record.cas_bound().load(Relaxed));
        }
        self.record = Some(record.clone());
        self.last = 0;
    }

    /// Takes the place of another sequence: draws what `to` draws, from where the other one is on.
    pub fn change_to(&mut self, to: &CasSequence) {
        let highest = self.highest();
        (self.first, self.step, self.next) = (to.first, to.step, to.first);
        if self.record.is_none() {
            self.last = CAS_MAX - self.step;
        }
        self.go_above(highest);
    }

    /// The next CAS unique.
    #[inline(always)]
    pub fn draw(&mut self) -> u64 {
        let cas = self.next;
        if cas > self.last {
            return self.draw_beyond();
        }
        self.next = cas + self.step;
        cas
    }

    #[cold]
    #[inline(never)]
    fn draw_beyond(&mut self) -> u64 {
        let (cas, end) = (self.next, CAS_MAX - self.step);
        self.next = if cas > end {
            self.first
        } else {
            cas + self.step
        };
        if let Some(record) = &self.record {
            let bound = (self.next + DRAWN_PER_BOUND * self.step).min(end);
            record.cas_bound().store(bound, Relaxed);
            self.last = bound;
            in_program_order();
        }
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
                assert!(drawn > cas && drawn <= cas.max(9) + 12, "{first}: {drawn}");
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
