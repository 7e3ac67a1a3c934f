//! How much one request may do to find room.

/// What may still be done, in units of about ten nanoseconds on the machines that this was measured
/// on. Whatever is done is paid for, the last thing also if it costs more than is left: so every
/// request gets somewhere, and none takes much longer than it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    left: usize,
}

impl Effort {
    /// This many units.
    pub fn new(units: usize) -> Effort {
        Effort { left: units }
    }

    /// Pays for something that is done.
    pub fn spend(&mut self, units: usize) {
        self.left = self.left.saturating_sub(units);
    }

    /// Units that are left.
    pub fn left(self) -> usize {
        self.left
    }

    /// Whether nothing more may be begun.
    pub fn is_spent(self) -> bool {
        self.left == 0
    }
}

/// Looking at an item, and leaving it where it is.
pub const PASSING: usize = 1;

/// Freeing an item that has expired, where it is come by.
pub const DROPPING: usize = 12;

/// Sliding an item of this many words: its entry is looked up, and the words are copied.
pub fn sliding(words: usize) -> usize {
    8 + words / 8
}
