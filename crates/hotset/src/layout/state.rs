//! One word that says whether a slot may be answered from.

/// The state of a slot.
///
/// ```text
///  63                              2     1        0
/// +---------------------------------+---------+------+
/// |            generation           | writing | live |
/// +---------------------------------+---------+------+
/// ```
///
/// A slot is answered from if it is live and not being written. The generation grows with every
/// write, so that a reader notices one that began and ended during its copy. It is not repeated: at
/// a billion writes a second, 62 bits last for a century.
///
/// A write sets `live` together with `writing` and clears `writing` alone. A retract
/// meanwhile clears `live`, and the write then ends with a slot that is dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State(u64);

impl State {
    /// The bit of a slot that has not been retracted.
    pub const LIVE: u64 = 1;
    /// The bit of a slot that is being written.
    pub const WRITING: u64 = 2;
    const GENERATION: u64 = 4;

    /// A state from its word.
    #[inline(always)]
    pub const fn from_raw(raw: u64) -> State {
        State(raw)
    }

    /// The word.
    #[inline(always)]
    pub const fn raw(self) -> u64 {
        self.0
    }

    /// Whether a reader may answer from the slot.
    #[inline(always)]
    pub const fn may_be_read(self) -> bool {
        self.0 & (State::LIVE | State::WRITING) == State::LIVE
    }

    /// Whether somebody writes the slot.
    #[inline(always)]
    pub const fn is_being_written(self) -> bool {
        self.0 & State::WRITING != 0
    }

    /// The number of writes that have begun.
    pub const fn generation(self) -> u64 {
        self.0 / State::GENERATION
    }

    /// The same state after a retract.
    #[inline(always)]
    pub const fn retracted(self) -> State {
        State(self.0 & !State::LIVE)
    }

    /// The state during the next write.
    #[inline(always)]
    pub const fn next_write(self) -> State {
        let generation = self.0 & !(State::LIVE | State::WRITING);
        State(generation.wrapping_add(State::GENERATION) | State::LIVE | State::WRITING)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_read_only_between_two_writes() {
        let empty = State::from_raw(0);
        assert!(!empty.may_be_read() && !empty.is_being_written());
        let writing = empty.next_write();
        assert!(!writing.may_be_read() && writing.is_being_written());
        assert_eq!(writing.generation(), 1);
        let live = State::from_raw(writing.raw() & !State::WRITING);
        assert!(live.may_be_read());
        assert!(!live.retracted().may_be_read());
        assert_eq!(live.retracted().generation(), 1);
    }

    #[test]
    fn a_write_that_is_retracted_ends_dead() {
        let writing = State::from_raw(0).next_write().retracted();
        let ended = State::from_raw(writing.raw() & !State::WRITING);
        assert!(!ended.may_be_read() && ended.generation() == 1);
    }

    #[test]
    fn the_last_generation_is_followed_by_the_first() {
        let last = State::from_raw(u64::MAX);
        assert_eq!(
            (last.next_write().generation(), last.next_write().raw() & 3),
            (0, 3)
        );
    }
}
