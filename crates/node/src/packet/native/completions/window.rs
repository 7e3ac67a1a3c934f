//! The last mutations of one client, by number.

use super::{RecordedReply, Verdict};
use glimmer_base::limits::{NATIVE_MUTATIONS_KEPT, NATIVE_MUTATIONS_KEPT_MIN};
use glimmer_proto::native::Reach;

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    NotExecuted,
    Pending,
    Executed,
}

/// What is remembered of one mutation.
#[derive(Clone, Copy, Default)]
struct Entry {
    answer: RecordedReply,
    state: State,
    /// Part of the keyhash, to know mutations of the same key by.
    key: u32,
}

/// Bytes that one mutation takes.
pub const ENTRY_BYTES: usize = size_of::<Entry>();

/// What became of the newest mutations: of as many as the client may send again, and of some more.
pub struct CompletionWindow {
    /// The highest number seen.
    newest: u32,
    /// The outcomes of this many numbers are known: the newest, and those before it.
    known: u32,
    /// By number, modulo how many there are; a power of two.
    entries: Box<[Entry]>,
}

impl CompletionWindow {
    /// As many entries as a client needs that reaches back so far.
    pub fn entries_for(reach: Reach) -> usize {
        let range = NATIVE_MUTATIONS_KEPT_MIN..=NATIVE_MUTATIONS_KEPT;
        reach.mutations().clamp(*range.start(), *range.end()) as usize
    }

    /// A window with this many entries, before a client's first mutation: nothing before that has
    /// been executed.
    pub fn before(mutation: u32, entries: usize) -> CompletionWindow {
        CompletionWindow {
            newest: mutation.wrapping_sub(1),
            known: entries as u32,
            entries: vec![Entry::default(); entries].into_boxed_slice(),
        }
    }

    /// A window with this many entries, for a client that has been here before. The outcomes of
    /// its mutation `newest` and of those before it are not known.
    pub fn behind(newest: u32, entries: usize) -> CompletionWindow {
        CompletionWindow {
            newest,
            known: 0,
            ..CompletionWindow::before(newest, entries)
        }
    }

    /// The highest number seen.
    pub fn newest(&self) -> u32 {
        self.newest
    }

    /// A window of no client.
    pub fn none() -> CompletionWindow {
        CompletionWindow::before(0, 0)
    }

    /// Its entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Gives it more entries. What it has left out before stays unknown.
    pub fn grow(&mut self, entries: usize) {
        let mut grown = CompletionWindow {
            newest: self.newest,
            known: self.known,
            entries: vec![Entry::default(); entries].into_boxed_slice(),
        };
        for back in 0..self.known {
            let number = self.newest.wrapping_sub(back);
            *grown.entry(number) = *self.entry(number);
        }
        *self = grown;
    }

    /// Enters a mutation that is to be executed; or tells why it is not.
    pub fn admit(&mut self, mutation: u32, key: u32) -> Result<(), Verdict> {
        let ahead = mutation.wrapping_sub(self.newest).cast_signed();
        if ahead > 0 {
            self.advance(mutation, ahead as u32);
        } else {
            let behind = ahead.unsigned_abs();
            if behind >= self.known {
                return Err(Verdict::Forgotten);
            }
            let entry = self.entry(mutation);
            match entry.state {
                // Two processes that share a client's number: that of this one has not been
                // executed, as far as is known.
                State::Executed if entry.key != key => return Err(Verdict::Forgotten),
                State::Executed => return Err(Verdict::Repeat(entry.answer)),
                State::Pending => return Err(Verdict::Pending),
                State::NotExecuted => {}
            }
            let newest = self.newest;
            let mut is_newer = |back| {
                let entry = self.entry(newest.wrapping_sub(back));
                entry.state != State::NotExecuted && entry.key == key
            };
            if (0..behind).any(&mut is_newer) {
                return Err(Verdict::Superseded);
            }
        }
        *self.entry(mutation) = Entry {
            state: State::Pending,
            key,
            ..Entry::default()
        };
        Ok(())
    }

    /// A mutation has been executed, and this is its answer; none: it was not executed after all.
    /// One that newer ones have driven out is forgotten already.
    pub fn settle(&mut self, mutation: u32, answer: Option<&[u8]>) {
        if self.newest.wrapping_sub(mutation) >= self.known {
            return;
        }
        let entry = self.entry(mutation);
        match answer {
            Some(answer) if entry.answer.keep(answer) => entry.state = State::Executed,
            _ => *entry = Entry::default(),
        }
    }

    /// Moves to a newer mutation. Of those in between nothing has been executed.
    fn advance(&mut self, mutation: u32, ahead: u32) {
        let entries = self.entries.len() as u32;
        // Of a leap beyond all that is kept, everything is cleared, whatever the numbers.
        for passed in 1..=ahead.min(entries) {
            let number = self.newest.wrapping_add(passed);
            *self.entry(number) = Entry::default();
        }
        self.newest = mutation;
        self.known = self.known.saturating_add(ahead).min(entries);
    }

    #[inline]
    fn entry(&mut self, mutation: u32) -> &mut Entry {
        let mask = self.entries.len() - 1;
        &mut self.entries[mutation as usize & mask]
    }
}
