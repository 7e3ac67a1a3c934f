//! Where a lap of the main log is to end, so that the index gets the memory that lies after it.
//!
//! The items there leave as items do, at the head. So that no single store pays for that, the head
//! runs ahead of need by a *lead* that grows with every append, from nothing to all that lies
//! between the goal and the end of the lap before. This is arithmetic on positions alone, in words.

use crate::index::chained::BUCKET_WORDS;

/// A goal gives the index at most this part of what is left of the lap.
const MOST_PART: u64 = 4;
/// Less than this is not worth a goal: a main bucket and a spare one.
const LEAST_WORDS: u64 = 2 * BUCKET_WORDS as u64;

/// See the module's text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Goal {
    /// Where the tail was when this was decided.
    from: u64,
    /// By how much the head ran ahead then.
    lead: u64,
    /// Where the lap is to end.
    to: u64,
    /// Where the lap before ends.
    end: u64,
}

impl Goal {
    /// The goal of a lap in which the index wants `wanted` words. The tail is at `tail`, the lap
    /// before ends at `end`, and the log keeps `kept` words. None if the one before, if there is
    /// one, stays: a goal gives at least twice what the one before gives.
    pub fn new(
        before: Option<Goal>,
        (tail, end): (u64, u64),
        wanted: u64,
        kept: u64,
    ) -> Option<Goal> {
        let given = before.map_or(0, |goal| goal.end - goal.to);
        let most = ((end - tail) / MOST_PART).min(end.saturating_sub(kept));
        let more = wanted.max(LEAST_WORDS).min(most.max(given));
        (more >= (2 * given).max(LEAST_WORDS)).then(|| Goal {
            from: tail,
            lead: before.map_or(0, |goal| goal.lead_at(tail)),
            to: end - more,
            end,
        })
    }

    /// Where the lap is to end.
    pub fn position(&self) -> u64 {
        self.to
    }

    /// By how many words the head has to be ahead of need when the tail is at `tail`.
    pub fn lead_at(&self, tail: u64) -> u64 {
        let wanted = self.end - self.to - self.lead;
        let passed = tail.min(self.to) - self.from;
        self.lead
            + (u128::from(wanted) * u128::from(passed) / u128::from(self.to - self.from)) as u64
    }
}

#[cfg(all(test, not(any(loom, miri))))]
mod tests {
    use super::*;
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};

    /// A lap beside a plain list of the items of the lap before. Goals come at random.
    fn lap(seed: u64) -> u64 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let item_max = rng.random_range(2..200);
        let end = rng.random_range(2_000..200_000);
        let kept = rng.random_range(0..end);
        // Where the items of the lap before end, the oldest first.
        let mut items = std::collections::VecDeque::new();
        let mut at = 0;
        while at < end {
            at = end.min(at + rng.random_range(1..=item_max));
            items.push_back(at);
        }
        let (mut tail, mut head, mut goal, mut goals) = (0, 0, None::<Goal>, 0);
        let limit = |goal: Option<Goal>| goal.map_or(end, |goal| goal.position());
        loop {
            let words = rng.random_range(1..=item_max);
            if tail + words > limit(goal) {
                break;
            }
            let lead = goal.map_or(0, |goal| goal.lead_at(tail));
            let mut passed = 0;
            while head < end && head < tail + words + lead {
                passed += items[0] - head;
                head = items.pop_front().unwrap();
            }
            // Some appends were served by what an earlier one passed.
            assert!(
                passed <= 2 * words + 2 * item_max,
                "{seed}: {passed} words for {words}"
            );
            tail += words;
            if rng.random_bool(0.01) {
                let wanted = rng.random_range(0..end / 2);
                if let Some(new) = Goal::new(goal, (tail, end), wanted, kept) {
                    let lead = goal.map_or(0, |goal| goal.lead_at(tail));
                    assert_eq!(new.lead_at(tail), lead, "{seed}: a goal is no leap");
                    assert!(new.to > tail && new.to >= kept.min(end), "{seed}: {new:?}");
                    assert!(
                        new.to < limit(goal),
                        "{seed}: a goal is nearer than the one before"
                    );
                    (goal, goals) = (Some(new), goals + 1);
                }
            }
        }
        if let Some(goal) = goal {
            assert_eq!(goal.lead_at(goal.to), end - goal.to, "{seed}");
            // The lap ends at most an item before the goal.
            let missing = end.saturating_sub(head);
            assert!(
                missing <= 3 * item_max,
                "{seed}: {missing} words live after the goal"
            );
        }
        goals
    }

    #[test]
    fn nothing_lives_after_a_goal_and_no_append_pays_for_all() {
        let first = rand::random();
        println!("seeds from {first}");
        let goals: u64 = (0..2_000)
            .map(|nth| lap(u64::wrapping_add(first, nth)))
            .sum();
        assert!(goals > 2_000, "{goals} goals");
    }
}
