//! What was copied, and what was not and why.

use std::fmt;

use glimmer_notation::{counted, memory};

/// What became of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Copied,
    /// The other server has an item with this key.
    There,
    /// It was deleted, or its time was over, after it was listed.
    Gone,
    /// A client has declared it out of date (`md` with `I`).
    Stale,
    /// The other server takes no value of its length.
    TooLarge,
    /// The other server has no memory for it, and evicts nothing.
    NoMemory,
    /// Its key is too long for a command: more than 187 bytes that base64 makes longer.
    LongKey,
    /// A server has refused it in other words.
    Refused,
}

/// All fates but the first, with what is said of them and whether the copy lacks something then.
const REASONS: [(Fate, &str, bool); 7] = [
    (Fate::There, "TO has an item with this key", false),
    (Fate::Gone, "deleted or expired meanwhile", false),
    (Fate::Stale, "declared out of date by a client", false),
    (Fate::TooLarge, "too large for TO: its -I is smaller", true),
    (Fate::NoMemory, "no memory left in TO", true),
    (Fate::LongKey, "the key is too long for a command", true),
    (Fate::Refused, "refused", true),
];

/// Items and bytes, by what became of them.
#[derive(Debug, Default)]
pub struct Tally {
    counts: [u64; REASONS.len() + 1],
    /// Bytes of values that were copied.
    bytes: u64,
    /// The words of the first refusal.
    refusal: Option<String>,
}

impl Tally {
    /// Counts an item.
    pub fn note(&mut self, fate: Fate) {
        self.counts[fate as usize] += 1;
    }

    /// Counts an item that was copied, whose value has this many bytes.
    pub fn note_copied(&mut self, bytes: usize) {
        self.note(Fate::Copied);
        self.bytes += bytes as u64;
    }

    /// Counts an item that a server has refused with this line.
    pub fn note_refused(&mut self, line: &[u8]) {
        self.note(Fate::Refused);
        let words = || line.escape_ascii().to_string();
        self.refusal.get_or_insert_with(words);
    }

    /// Items with this fate.
    pub fn count(&self, fate: Fate) -> u64 {
        self.counts[fate as usize]
    }

    /// All items that were looked at.
    pub fn all(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Items that the copy lacks and should have.
    pub fn lacking(&self) -> u64 {
        let reasons = REASONS.iter().filter(|(.., lacks)| *lacks);
        reasons.map(|(fate, ..)| self.count(*fate)).sum()
    }
}

impl fmt::Display for Tally {
    /// A line for what was copied, and one for each reason why something was not.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let copied = counted(self.count(Fate::Copied), "item");
        write!(out, "copied: {copied}, {}", memory(self.bytes as f64))?;
        for (fate, reason, _) in REASONS {
            match self.count(fate) {
                0 => {}
                count => write!(out, "\nnot copied: {count}: {reason}")?,
            }
            if let (Fate::Refused, Some(words)) = (fate, &self.refusal) {
                write!(out, ", first with {words}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fate_is_told() {
        for (at, (fate, ..)) in REASONS.iter().enumerate() {
            assert_eq!(*fate as usize, at + 1);
        }
        let mut tally = Tally::default();
        assert_eq!(tally.to_string(), "copied: 0 items, 0 B");
        tally.note_copied(1024);
        tally.note(Fate::There);
        tally.note(Fate::Gone);
        assert_eq!((tally.all(), tally.lacking()), (3, 0));
        tally.note(Fate::TooLarge);
        tally.note_refused(b"SERVER_ERROR a");
        tally.note_refused(b"SERVER_ERROR b");
        assert_eq!((tally.all(), tally.lacking()), (6, 3));
        let lines = "copied: 1 item, 1.0 KiB\n\
                     not copied: 1: TO has an item with this key\n\
                     not copied: 1: deleted or expired meanwhile\n\
                     not copied: 1: too large for TO: its -I is smaller\n\
                     not copied: 2: refused, first with SERVER_ERROR a";
        assert_eq!(tally.to_string(), lines);
    }
}
