//! Which mutations have been executed, so that none is executed twice, and none after a newer one
//! of its key.
//!
//! A client numbers its mutations to one port, and says with each how far back it may yet send
//! another one again: to the oldest that it has no answer to. That far back, and never less than
//! [`NATIVE_MUTATIONS_KEPT_MIN`](glimmer_base::limits::NATIVE_MUTATIONS_KEPT_MIN) nor more than
//! [`NATIVE_MUTATIONS_KEPT`], the completion table remembers of each mutation whether it was
//! executed, and what was answered, so that a retransmission is told the same. A number that comes
//! late although it was not executed is executed unless a newer mutation of the same key has been.
//!
//! # Who gives way
//!
//! The memory is bounded. When another client needs room, the completion table takes the first of
//! these that there is:
//!
//! 1. a client that has been silent for [`NATIVE_CLIENT_IDLE_MS`]: it is forgotten;
//! 2. a client of the network that has the most, if that has more than the newcomer's would have,
//!    or as much: where all have the same, they take turns;
//! 3. a client of the newcomer's own network.
//!
//! Of several clients of a network the one that has been silent longest is displaced. What it had
//! come to stays known (`displaced.rs`), so that nothing it has sent before is executed again; its
//! next mutation brings it back. Those notes are bounded, too. When there is no room for another
//! one, the newcomer is refused.
//!
//! A network that invents clients without end therefore displaces its own, and uses up its own
//! share of the notes. Every step takes a bounded time.

mod displaced;
mod hash;
mod holdings;
mod tables;
#[cfg(test)]
mod tests;
mod window;

use displaced::{Displaced, Why};
use glimmer_base::limits::{
    BATCH_MAX, NATIVE_CLIENT_IDLE_MS, NATIVE_CLIENTS_MAX, NATIVE_MUTATIONS_KEPT, WORKERS_MAX,
};
use glimmer_base::{Keyhash, short};
use glimmer_proto::native::Reach;
use hash::{Keyed, Map};
use holdings::{Holdings, NETWORK_BYTES};
pub use tables::{CompletionTables, HeldTables};
use window::{CompletionWindow, ENTRY_BYTES};

/// Bytes that a client takes beside its mutations and its network.
const CLIENT_BYTES: usize = 160;
/// Bytes that a client takes at most.
const CLIENT_BYTES_MAX: usize =
    CLIENT_BYTES + NETWORK_BYTES + NATIVE_MUTATIONS_KEPT as usize * ENTRY_BYTES;
/// The share of the memory for notes on displaced clients: one part in this many.
const DISPLACED_SHARE: usize = 3;
/// Clients that are looked at to find one that may be forgotten or displaced.
const LOOKS: usize = 16;

/// What was answered to a mutation: status, shape and one number of a reply, which is all that a
/// mutation's reply has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordedReply {
    /// Bytes of the reply.
    bytes: [u8; RecordedReply::BYTES_MAX],
    length: u8,
}

impl RecordedReply {
    /// A status, and a number or a unique, or both.
    pub const BYTES_MAX: usize = 24;

    /// Keeps a reply. False: it is no mutation's, and too long.
    #[inline]
    fn keep(&mut self, reply: &[u8]) -> bool {
        let place = self.bytes.get_mut(..reply.len());
        let fits = place.is_some();
        if let Some(place) = place {
            short::copy(place, reply);
            self.length = reply.len() as u8;
        }
        fits
    }

    /// The reply.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

/// Who sends a mutation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The client's own number.
    pub client: u64,
    /// Where it is, see [`network`](glimmer_transport::address::network).
    pub network: u64,
}

/// A client, or an unused place.
struct Client {
    origin: Origin,
    heard_ms: u64,
    /// The batch in which it last had a mutation. While that is being executed, its slots have to
    /// stay its own.
    batch: u64,
    /// Without entries in an unused place.
    window: CompletionWindow,
}

/// A mutation that is about to be executed: the owner of its partition, the place of its client,
/// and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompletionSlot {
    /// The owner, the place, and behind them the number. One word: it is copied as one, soon after
    /// it has been written.
    word: u64,
}

const _: () = assert!(
    NATIVE_CLIENTS_MAX <= 1 << 16 && WORKERS_MAX <= 1 << 16,
    "a slot's word has 16 bits for each"
);

impl CompletionSlot {
    fn new(client: u32, mutation: u32) -> CompletionSlot {
        CompletionSlot {
            word: u64::from(client) << 32 | u64::from(mutation),
        }
    }

    /// The same, in the table of this owner's partitions.
    pub fn of_owner(self, owner: usize) -> CompletionSlot {
        CompletionSlot {
            word: self.word | (owner as u64) << 48,
        }
    }

    fn owner(self) -> usize {
        (self.word >> 48) as usize
    }

    fn client(self) -> usize {
        usize::from((self.word >> 32) as u16)
    }

    fn mutation(self) -> u32 {
        self.word as u32
    }
}

/// What is to be done with a mutation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Execute it, and then settle the slot.
    Execute(CompletionSlot),
    /// It has been executed, and this was answered.
    Repeat(RecordedReply),
    /// It is about to be executed.
    Pending,
    /// A newer one of its key has been executed.
    Superseded,
    /// It is older than what is remembered, or another one had its number.
    Forgotten,
    /// There is no room for as many mutations as this client has under way.
    Full,
    /// There is no room for another client.
    TooManyWriters,
}

/// What is remembered of the mutations that were executed on one owner's partitions.
pub struct CompletionTable {
    /// By client: its place.
    places: Map<u64, u32>,
    clients: Vec<Client>,
    /// Unused places.
    free: Vec<u32>,
    /// What each network has of the bytes.
    holdings: Holdings,
    displaced: Displaced,
    /// Bytes of the clients.
    bytes: usize,
    bytes_max: usize,
    /// The place that is looked at next for a client that has been silent.
    hand: usize,
    batch: u64,
    /// The client that was looked up last.
    last: Option<(u64, u32)>,
}

impl CompletionTable {
    /// A completion table of at most `bytes_max` bytes, but with room for one client at least.
    pub fn new(bytes_max: usize, hash_key: [u64; 2]) -> CompletionTable {
        let keyed = Keyed(hash_key);
        let displaced_bytes_max = bytes_max / DISPLACED_SHARE;
        CompletionTable {
            places: Map::with_hasher(keyed),
            clients: Vec::new(),
            free: Vec::new(),
            holdings: Holdings::new(keyed),
            displaced: Displaced::new(displaced_bytes_max, keyed),
            bytes: 0,
            bytes_max: (bytes_max - displaced_bytes_max).max(CLIENT_BYTES_MAX),
            hand: 0,
            batch: 0,
            last: None,
        }
    }

    /// Bytes that it holds.
    pub fn bytes(&self) -> usize {
        self.bytes + self.displaced.bytes()
    }

    /// A new batch begins: the slots of those before it have been settled.
    pub fn begin_batch(&mut self) {
        self.batch += 1;
    }

    /// Drops notes that are no longer needed.
    pub fn expire(&mut self, now_ms: u64) {
        self.displaced.expire(now_ms);
    }

    /// Looks a mutation up, and enters it if it is to be executed.
    pub fn admit(
        &mut self,
        origin: Origin,
        (mutation, reach): (u32, Reach),
        keyhash: Keyhash,
        now_ms: u64,
    ) -> Verdict {
        let entries = CompletionWindow::entries_for(reach);
        let place = match self.place(origin, mutation, entries, now_ms) {
            Ok(place) => place,
            Err(refusal) => return refusal,
        };
        let client = &mut self.clients[place as usize];
        client.heard_ms = now_ms;
        client.batch = self.batch;
        if client.window.len() < entries && !self.grow(place, entries, now_ms) {
            return Verdict::Full;
        }
        let key = (keyhash.0 >> 16) as u32;
        match self.clients[place as usize].window.admit(mutation, key) {
            Ok(()) => Verdict::Execute(CompletionSlot::new(place, mutation)),
            Err(verdict) => verdict,
        }
    }

    /// A mutation has been executed, and this is its answer; none: it was not executed after all.
    #[inline]
    pub fn settle(&mut self, slot: CompletionSlot, answer: Option<&[u8]>) {
        let client = &mut self.clients[slot.client()];
        client.window.settle(slot.mutation(), answer);
    }

    #[inline]
    fn place(
        &mut self,
        origin: Origin,
        mutation: u32,
        entries: usize,
        now_ms: u64,
    ) -> Result<u32, Verdict> {
        if let Some((last, place)) = self.last
            && last == origin.client
        {
            return Ok(place);
        }
        let place = match self.places.get(&origin.client) {
            Some(&place) => place,
            None => self.enter(origin, mutation, entries, now_ms)?,
        };
        self.last = Some((origin.client, place));
        Ok(place)
    }

    #[cold]
    fn enter(
        &mut self,
        origin: Origin,
        mutation: u32,
        entries: usize,
        now_ms: u64,
    ) -> Result<u32, Verdict> {
        self.displaced.expire(now_ms);
        // Its note makes room for one on the client that gives way for it.
        let note = self.displaced.take(origin.client);
        let window = match note.map(|note| note.newest) {
            Some(newest) if newest.wrapping_sub(mutation).cast_signed() >= 0 => {
                Err(Verdict::Forgotten)
            }
            Some(newest) => Ok(CompletionWindow::behind(newest, entries)),
            None => Ok(CompletionWindow::before(mutation, entries)),
        };
        let bytes = CLIENT_BYTES + entries * ENTRY_BYTES;
        let window = window.and_then(|window| {
            while self.places.len() >= NATIVE_CLIENTS_MAX
                || self.bytes + bytes + self.holdings.bytes_to_join(origin.network) > self.bytes_max
            {
                self.make_way(origin.network, bytes, None, now_ms)
                    .ok_or(Verdict::TooManyWriters)?;
            }
            Ok(window)
        });
        let window = match (window, note) {
            (Ok(window), _) => window,
            (Err(refusal), note) => {
                if let Some(note) = note {
                    self.displaced.put(origin.client, note);
                }
                return Err(refusal);
            }
        };
        let newcomer = Client {
            origin,
            heard_ms: now_ms,
            batch: self.batch,
            window,
        };
        let place = match self.free.pop() {
            Some(place) => {
                self.clients[place as usize] = newcomer;
                place
            }
            None => {
                self.clients.push(newcomer);
                self.clients.len() as u32 - 1
            }
        };
        self.bytes += self.holdings.bytes_to_join(origin.network) + bytes;
        self.holdings.join(origin.network, place, bytes);
        self.places.insert(origin.client, place);
        Ok(place)
    }

    #[cold]
    fn grow(&mut self, place: u32, entries: usize, now_ms: u64) -> bool {
        let client = &self.clients[place as usize];
        let network = client.origin.network;
        let bytes = (entries - client.window.len()) * ENTRY_BYTES;
        while self.bytes + bytes > self.bytes_max {
            let kept = Some(place);
            if self.make_way(network, bytes, kept, now_ms).is_none() {
                return false;
            }
        }
        self.bytes += bytes;
        self.holdings.grow(network, bytes);
        self.clients[place as usize].window.grow(entries);
        true
    }

    /// Has a client give up its place for one of `network` that needs `bytes`, but not the one at
    /// `kept`. None: none may.
    fn make_way(
        &mut self,
        network: u64,
        bytes: usize,
        kept: Option<u32>,
        now_ms: u64,
    ) -> Option<()> {
        if self.forget_silent(kept, now_ms) {
            return Some(());
        }
        let (place, why) = self.choose(network, bytes, kept)?;
        let Client { origin, window, .. } = &self.clients[place as usize];
        if !self.displaced.note(origin, window.newest(), why) {
            return None;
        }
        self.forget(place);
        Some(())
    }

    /// Forgets a client that has been silent for long enough, if one is found soon.
    fn forget_silent(&mut self, kept: Option<u32>, now_ms: u64) -> bool {
        for _ in 0..LOOKS.min(self.clients.len()) {
            let place = self.hand % self.clients.len();
            self.hand = place + 1;
            let client = &self.clients[place];
            let is_silent = now_ms.saturating_sub(client.heard_ms) >= NATIVE_CLIENT_IDLE_MS;
            if client.window.len() > 0 && is_silent && Some(place as u32) != kept {
                self.forget(place as u32);
                return true;
            }
        }
        false
    }

    /// The client that is to be displaced, and why.
    fn choose(&mut self, network: u64, bytes: usize, kept: Option<u32>) -> Option<(u32, Why)> {
        let joins = self.holdings.bytes_to_join(network);
        let wanted = self.holdings.bytes_of(network) + joins + bytes;
        // More than one is only looked at if clients of the first have mutations in this batch.
        for rank in 0..LOOKS {
            let Some((heavy, holds)) = self.holdings.heaviest(rank) else {
                break;
            };
            if heavy == network || holds < wanted {
                break;
            }
            if let Some(place) = self.longest_silent(heavy, kept) {
                let why = match holds > wanted {
                    true => Why::HadMore,
                    false => Why::Turn,
                };
                return Some((place, why));
            }
        }
        let place = self.longest_silent(network, kept)?;
        Some((place, Why::Turn))
    }

    /// Of the next few clients of a network that may be displaced, the one that has been silent
    /// longest. The rest of them have their turn later.
    fn longest_silent(&mut self, network: u64, kept: Option<u32>) -> Option<u32> {
        let mut place = self.holdings.first(network)?;
        let (mut found, mut looks) = (None, 0);
        for _ in 0..LOOKS + BATCH_MAX {
            let client = &self.clients[place as usize];
            if client.batch != self.batch && Some(place) != kept {
                looks += 1;
                let is_longer = |&(heard_ms, _): &(u64, u32)| client.heard_ms < heard_ms;
                if found.as_ref().is_none_or(is_longer) {
                    found = Some((client.heard_ms, place));
                }
            }
            place = self.holdings.next(place);
            if looks == LOOKS || Some(place) == self.holdings.first(network) {
                break;
            }
        }
        self.holdings.set_first(network, place);
        found.map(|(_, place)| place)
    }

    fn forget(&mut self, place: u32) {
        let client = &mut self.clients[place as usize];
        let bytes = CLIENT_BYTES + client.window.len() * ENTRY_BYTES;
        client.window = CompletionWindow::none();
        let Origin { client, network } = client.origin;
        self.holdings.leave(network, place, bytes);
        self.bytes -= bytes + self.holdings.bytes_to_join(network);
        self.places.remove(&client);
        self.free.push(place);
        self.last = None;
    }
}
