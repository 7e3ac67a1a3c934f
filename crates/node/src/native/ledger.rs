//! Which mutations have been executed, so that none is executed twice, and none after a newer one of its key.
//!
//! A client numbers its mutations to one port. Of each client the ledger remembers the last [`NATIVE_MUTATIONS_KEPT`] by number: whether each was
//! executed, and what was answered, so that a retransmission is told the same. A number that comes late although it was not executed, its datagram
//! having been lost or overtaken, is executed unless a newer mutation of the same key has been.
//!
//! The bounds are the promise: a mutation that is older than the last [`NATIVE_MUTATIONS_KEPT`] of its client is refused, and a client that has been
//! silent for [`NATIVE_CLIENT_IDLE_MS`] may be forgotten when another needs its place.

use glimmer_base::Keyhash;
use glimmer_base::limits::{NATIVE_CLIENT_IDLE_MS, NATIVE_MUTATIONS_KEPT};
use std::collections::HashMap;

const KEPT: usize = NATIVE_MUTATIONS_KEPT as usize;

/// Bytes that the ledger keeps of one client.
pub const CLIENT_BYTES: usize = KEPT * size_of::<Entry>() + 128;

/// What was answered to a mutation: status, shape and one number of a reply, which is all that a mutation's reply has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Bytes of the reply.
    bytes: [u8; Answer::BYTES_MAX],
    length: u8,
}

impl Answer {
    /// A status, and a number or a unique, or both.
    pub const BYTES_MAX: usize = 24;

    /// Keeps a reply; one that is no mutation's is too long.
    pub fn of(reply: &[u8]) -> Option<Answer> {
        let mut bytes = [0; Answer::BYTES_MAX];
        bytes.get_mut(..reply.len())?.copy_from_slice(reply);
        Some(Answer {
            bytes,
            length: reply.len() as u8,
        })
    }

    /// The reply.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

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
    answer: Answer,
    state: State,
    /// Part of the keyhash, to know mutations of the same key by.
    key: u32,
}

struct Client {
    id: u64,
    /// The highest number seen.
    newest: u32,
    heard_ms: u64,
    entries: Box<[Entry]>,
}

/// Where a mutation's entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The client's place, and behind it the entry's. One word: it is copied as one, soon after it has been written.
    places: u64,
}

impl Slot {
    fn new(client: u32, entry: usize) -> Slot {
        Slot {
            places: u64::from(client) << 32 | entry as u64,
        }
    }

    fn client(self) -> usize {
        (self.places >> 32) as usize
    }

    fn entry(self) -> usize {
        self.places as u32 as usize
    }
}

/// What is to be done with a mutation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Execute it, and then settle the slot.
    Execute(Slot),
    /// It has been executed, and this was answered.
    Repeat(Answer),
    /// It is about to be executed.
    Pending,
    /// A newer one of its key has been executed.
    Superseded,
    /// It is older than what is remembered.
    Forgotten,
    /// There is no place for another client.
    Full,
}

/// What one worker remembers of the mutations it executed.
pub struct Ledger {
    places: HashMap<u64, u32>,
    clients: Vec<Client>,
    clients_max: usize,
    /// The client that was looked up last.
    last: Option<(u64, u32)>,
}

impl Ledger {
    /// A ledger with places for so many clients.
    pub fn new(clients_max: usize) -> Ledger {
        Ledger {
            places: HashMap::new(),
            clients: Vec::new(),
            clients_max: clients_max.max(1),
            last: None,
        }
    }

    /// Bytes that it holds.
    pub fn bytes(&self) -> usize {
        self.clients.len() * CLIENT_BYTES
    }

    /// Looks a mutation up, and enters it if it is to be executed.
    pub fn admit(&mut self, id: u64, mutation: u32, keyhash: Keyhash, now_ms: u64) -> Verdict {
        let Some(place) = self.place(id, mutation, now_ms) else {
            return Verdict::Full;
        };
        let client = &mut self.clients[place as usize];
        client.heard_ms = now_ms;
        let key = (keyhash.0 >> 16) as u32;
        let entry = mutation as usize % KEPT;
        let ahead = mutation.wrapping_sub(client.newest).cast_signed();
        if ahead > 0 {
            for passed in 1..=(ahead as u32).min(NATIVE_MUTATIONS_KEPT) {
                let number = client.newest.wrapping_add(passed);
                client.entries[number as usize % KEPT] = Entry::default();
            }
            // Of a leap beyond all that is kept, everything is cleared, whatever the numbers.
            client.newest = mutation;
        } else {
            let behind = ahead.unsigned_abs();
            if behind >= NATIVE_MUTATIONS_KEPT {
                return Verdict::Forgotten;
            }
            match client.entries[entry].state {
                State::Executed => return Verdict::Repeat(client.entries[entry].answer),
                State::Pending => return Verdict::Pending,
                State::NotExecuted => {}
            }
            let is_newer = |back: u32| {
                let number = client.newest.wrapping_sub(back);
                let entry = &client.entries[number as usize % KEPT];
                entry.state != State::NotExecuted && entry.key == key
            };
            if (0..behind).any(is_newer) {
                return Verdict::Superseded;
            }
        }
        client.entries[entry] = Entry {
            state: State::Pending,
            key,
            ..Entry::default()
        };
        Verdict::Execute(Slot::new(place, entry))
    }

    /// A mutation has been executed, and this is its answer; none: it was not executed after all.
    pub fn settle(&mut self, slot: Slot, answer: Option<Answer>) {
        let entry = &mut self.clients[slot.client()].entries[slot.entry()];
        match answer {
            Some(answer) => (entry.state, entry.answer) = (State::Executed, answer),
            None => *entry = Entry::default(),
        }
    }

    fn place(&mut self, id: u64, mutation: u32, now_ms: u64) -> Option<u32> {
        if let Some((last, place)) = self.last
            && last == id
        {
            return Some(place);
        }
        let place = match self.places.get(&id) {
            Some(&place) => place,
            None => self.enter(id, mutation, now_ms)?,
        };
        self.last = Some((id, place));
        Some(place)
    }

    #[cold]
    fn enter(&mut self, id: u64, mutation: u32, now_ms: u64) -> Option<u32> {
        let newcomer = |entries| Client {
            id,
            // The newest is the one before, so that this one is ahead of it.
            newest: mutation.wrapping_sub(1),
            heard_ms: now_ms,
            entries,
        };
        let place = if self.clients.len() < self.clients_max {
            let entries = vec![Entry::default(); KEPT].into_boxed_slice();
            self.clients.push(newcomer(entries));
            self.clients.len() - 1
        } else {
            let clients = self.clients.iter().enumerate();
            let (place, silent) = clients.min_by_key(|(_, client)| client.heard_ms)?;
            if now_ms.saturating_sub(silent.heard_ms) < NATIVE_CLIENT_IDLE_MS {
                return None;
            }
            self.places.remove(&silent.id);
            let mut entries = std::mem::take(&mut self.clients[place].entries);
            entries.fill(Entry::default());
            self.clients[place] = newcomer(entries);
            self.last = None;
            place
        };
        self.places.insert(id, place as u32);
        Some(place as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: u64 = 77;

    fn execute(ledger: &mut Ledger, mutation: u32, key: u64) {
        match ledger.admit(CLIENT, mutation, hash(key), 0) {
            Verdict::Execute(slot) => {
                ledger.settle(slot, Answer::of(&mutation.to_le_bytes()));
            }
            other => panic!("mutation {mutation}: {other:?}"),
        }
    }

    fn hash(key: u64) -> Keyhash {
        Keyhash(key << 16)
    }

    #[test]
    fn what_was_executed_is_answered_again() {
        let mut ledger = Ledger::new(4);
        for mutation in [u32::MAX - 1, u32::MAX, 0, 1] {
            execute(&mut ledger, mutation, 5);
        }
        for mutation in [u32::MAX - 1, u32::MAX, 0, 1] {
            let verdict = ledger.admit(CLIENT, mutation, hash(5), 0);
            let answer = Answer::of(&mutation.to_le_bytes()).unwrap();
            assert_eq!(verdict, Verdict::Repeat(answer));
        }
        // Another client's numbers are its own.
        assert!(matches!(
            ledger.admit(CLIENT + 1, 0, hash(5), 0),
            Verdict::Execute(_)
        ));
    }

    #[test]
    fn what_comes_late_is_executed_unless_its_key_has_changed_since() {
        let mut ledger = Ledger::new(4);
        execute(&mut ledger, 10, 1);
        execute(&mut ledger, 14, 2);
        execute(&mut ledger, 12, 1);
        assert_eq!(
            ledger.admit(CLIENT, 11, hash(1), 0),
            Verdict::Superseded,
            "12 is newer"
        );
        execute(&mut ledger, 13, 1);
        execute(&mut ledger, 11, 3);
        // A number before the first one that was heard of.
        execute(&mut ledger, 9, 4);
        assert_eq!(ledger.admit(CLIENT, 8, hash(1), 0), Verdict::Superseded);
    }

    #[test]
    fn what_is_about_to_be_executed_is_not_begun_again() {
        let mut ledger = Ledger::new(4);
        let Verdict::Execute(slot) = ledger.admit(CLIENT, 3, hash(1), 0) else {
            panic!("it is new");
        };
        assert_eq!(ledger.admit(CLIENT, 3, hash(1), 0), Verdict::Pending);
        ledger.settle(slot, None);
        execute(&mut ledger, 3, 1);
    }

    #[test]
    fn what_is_too_old_is_refused_not_executed() {
        let mut ledger = Ledger::new(4);
        execute(&mut ledger, 0, 1);
        execute(&mut ledger, NATIVE_MUTATIONS_KEPT - 1, 2);
        assert!(matches!(
            ledger.admit(CLIENT, 0, hash(1), 0),
            Verdict::Repeat(_)
        ));
        execute(&mut ledger, NATIVE_MUTATIONS_KEPT, 3);
        assert_eq!(ledger.admit(CLIENT, 0, hash(1), 0), Verdict::Forgotten);
        // A leap leaves nothing of what was before.
        execute(&mut ledger, 10 * NATIVE_MUTATIONS_KEPT + 5, 4);
        for back in 1..NATIVE_MUTATIONS_KEPT {
            execute(
                &mut ledger,
                10 * NATIVE_MUTATIONS_KEPT + 5 - back,
                100 + u64::from(back),
            );
        }
    }

    #[test]
    fn only_a_silent_client_gives_its_place_away() {
        let mut ledger = Ledger::new(2);
        let admit =
            |ledger: &mut Ledger, client, now_ms| match ledger.admit(client, 1, hash(1), now_ms) {
                Verdict::Execute(slot) => {
                    ledger.settle(slot, Answer::of(&[1]));
                    true
                }
                Verdict::Repeat(_) => true,
                Verdict::Full => false,
                other => panic!("{other:?}"),
            };
        assert!(admit(&mut ledger, 1, 0) && admit(&mut ledger, 2, 1));
        let bytes = ledger.bytes();
        assert!(!admit(&mut ledger, 3, NATIVE_CLIENT_IDLE_MS - 1));
        assert!(admit(&mut ledger, 1, NATIVE_CLIENT_IDLE_MS - 1));
        assert!(admit(&mut ledger, 3, NATIVE_CLIENT_IDLE_MS + 1));
        assert!(!admit(&mut ledger, 2, NATIVE_CLIENT_IDLE_MS + 1));
        assert_eq!(ledger.bytes(), bytes);
    }
}
