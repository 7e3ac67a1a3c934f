//! Remembers the last mutation of each client that had to leave the completion table for another.
//!
//! A note is kept for [`NATIVE_CLIENT_IDLE_MS`] at least, as long as the completion table remembers
//! a client that is silent, or until its client comes back. So what a displaced client has sent
//! before is not executed again, whatever arrives late.
//!
//! How many notes there are is what bounds how many clients can be displaced in that time. Those
//! who only take turns therefore leave one part in [`RESERVE`] to clients that displace others
//! because these had more. And a network leaves a part of the rest to other networks.

use super::Origin;
use super::hash::{Keyed, Map};
use glimmer_base::limits::NATIVE_CLIENT_IDLE_MS;

/// Bytes that a note takes.
pub const NOTE_BYTES: usize = 48;
/// The share of the notes that is not for turns: one in this many.
const RESERVE: usize = 8;
/// The notes of turns that a network may have, as a multiple of those left to the others.
const TURNS_TO_LEFT: usize = 7;

/// Why a client was displaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Its network had more than the other's would have.
    HadMore,
    /// Another client of its network came, or one of a network that has as much.
    Turn,
}

/// Notes.
pub struct Displaced {
    /// The notes of the present period, and those of the one before.
    periods: [Period; 2],
    began_ms: u64,
    notes_max: usize,
}

struct Period {
    notes: Map<u64, Note>,
    /// By network: notes of turns.
    turns: Map<u32, u32>,
    all_turns: usize,
}

/// How far a client had come.
#[derive(Clone, Copy)]
pub struct Note {
    /// Its newest mutation.
    pub newest: u32,
    /// Whose turn it was, see [`turn_of`]; zero if it was none.
    turn_of: u32,
}

/// What stands for a network where turns are counted. Networks that have the same share a quota.
fn turn_of(network: u64) -> u32 {
    (network ^ network >> 32) as u32 | 1
}

impl Displaced {
    /// Notes of at most `bytes_max` bytes.
    pub fn new(bytes_max: usize, keyed: Keyed) -> Displaced {
        Displaced {
            periods: [Period::new(keyed), Period::new(keyed)],
            began_ms: 0,
            notes_max: bytes_max / NOTE_BYTES,
        }
    }

    /// Bytes that the notes take.
    pub fn bytes(&self) -> usize {
        self.len() * NOTE_BYTES
    }

    fn len(&self) -> usize {
        self.periods.iter().map(|period| period.notes.len()).sum()
    }

    /// Drops notes that have been kept for long enough.
    pub fn expire(&mut self, now_ms: u64) {
        let passed_ms = now_ms.saturating_sub(self.began_ms);
        if passed_ms >= NATIVE_CLIENT_IDLE_MS {
            let [present, before] = &mut self.periods;
            std::mem::swap(present, before);
            present.clear();
            self.began_ms = now_ms;
        }
        if passed_ms >= 2 * NATIVE_CLIENT_IDLE_MS {
            self.periods[1].clear();
        }
    }

    /// Notes that a client has been displaced. False: there is no room for the note.
    pub fn note(&mut self, origin: &Origin, newest: u32, why: Why) -> bool {
        if self.len() >= self.notes_max {
            return false;
        }
        let turn_of = match why {
            Why::Turn => turn_of(origin.network),
            Why::HadMore => 0,
        };
        if why == Why::Turn {
            let all: usize = self.periods.iter().map(|period| period.all_turns).sum();
            let left = (self.notes_max - self.notes_max / RESERVE).saturating_sub(all);
            let its = self.periods.iter();
            let its = its.filter_map(|period| period.turns.get(&turn_of));
            if its.sum::<u32>() as usize >= TURNS_TO_LEFT * left {
                return false;
            }
        }
        self.put(origin.client, Note { newest, turn_of });
        true
    }

    /// Takes a client's note out: the client is back.
    pub fn take(&mut self, client: u64) -> Option<Note> {
        self.periods
            .iter_mut()
            .find_map(|period| period.take(client))
    }

    /// Puts a note back that was taken out.
    pub fn put(&mut self, client: u64, note: Note) {
        let present = &mut self.periods[0];
        present.notes.insert(client, note);
        if note.turn_of != 0 {
            *present.turns.entry(note.turn_of).or_default() += 1;
            present.all_turns += 1;
        }
    }
}

impl Period {
    fn new(keyed: Keyed) -> Period {
        Period {
            notes: Map::with_hasher(keyed),
            turns: Map::with_hasher(keyed),
            all_turns: 0,
        }
    }

    /// Drops all notes, and their memory.
    fn clear(&mut self) {
        *self = Period::new(*self.notes.hasher());
    }

    fn take(&mut self, client: u64) -> Option<Note> {
        let note = self.notes.remove(&client)?;
        if let Some(turns) = self.turns.get_mut(&note.turn_of) {
            *turns -= 1;
            self.all_turns -= 1;
            if *turns == 0 {
                self.turns.remove(&note.turn_of);
            }
        }
        Some(note)
    }
}
