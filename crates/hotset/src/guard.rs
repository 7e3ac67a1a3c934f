//! The guard: it keeps the slots coherent with the store, by the order in which both change.
//!
//! Everybody who changes an item, fills a slot or evicts holds the gate of the item's partition
//! (its write lock, where several threads may write) and goes through here. The order of a change
//! is:
//!
//! 1. load the [`epoch`](Guard::epoch), then the number of flushes that are due; once per batch of
//!    requests is enough;
//! 2. enter the gate; if the key [has no slot](Guard::may_have), leave out 3 and 5;
//! 3. [`retract`](Guard::retract): the slot is dead;
//! 4. change the store;
//! 5. [`refill`](Guard::refill), if the item still qualifies: the slot is live again;
//! 6. leave the gate, and acknowledge.
//!
//! Dead before the change: otherwise one client would see the new value in the store, and another
//! one afterwards the old value in the accelerator. Live before the acknowledgement is not needed;
//! a slot that stays dead costs hits and nothing else.
//!
//! A fill is the same without a change: epoch, flushes, gate, look the item up,
//! [`fill`](Guard::fill). Under the gate, no change of the item can fall between the look-up and
//! the fill. With the epoch loaded first, an item that a flush removes is filled under an epoch
//! that the flush ends: see [`flush`](Guard::flush).
//!
//! An item that is evicted is retracted before its place in the store is given up, also under the
//! gate ([`evict`](Guard::evict)). Otherwise a client would be told of a miss, and another one
//! afterwards of a hit.

use crate::directory::Directory;
use crate::hash;
use crate::layout::{HotItem, NEVER_NS, Peek, Refused, State, Writing};
use crate::memory::Memory;
use crate::pause::Pause;
use glimmer_base::Keyhash;
use glimmer_base::sync::{Arc, Mutex, lock, weakened};

/// See the module's text. All methods may be called by several threads at once.
#[derive(Debug)]
pub struct Guard {
    memory: Arc<Memory>,
    directory: Directory,
    /// Held during a flush, so that flushes do not mix.
    flushing: Mutex<()>,
}

/// A number that every flush raises: an item that was looked up in one epoch is not answered in a
/// later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Epoch(u64);

impl Epoch {
    /// An epoch from its number.
    #[inline(always)]
    pub fn from_raw(raw: u64) -> Epoch {
        Epoch(raw)
    }

    /// The number.
    #[inline(always)]
    pub fn raw(self) -> u64 {
        self.0
    }
}

/// The right to refill a slot that was retracted.
#[derive(Clone, Copy, Debug)]
pub struct Token {
    pub(crate) slot: usize,
    pub(crate) state: State,
    pub(crate) keyhash: Keyhash,
}

impl Token {
    /// The slot.
    pub fn slot(&self) -> usize {
        self.slot
    }

    /// The hash of the key.
    pub fn keyhash(&self) -> Keyhash {
        self.keyhash
    }
}

/// What became of an item that was offered to the accelerator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filled {
    /// It is live in this slot.
    Live(usize),
    /// It does not qualify.
    Unfit(Refused),
    /// Both of its slots belong to keys of at least the same weight.
    Outweighed,
    /// The slot is being written, or has another key by now.
    Busy,
    /// The shadow directory has no place for its key.
    NoEntry,
}

impl Guard {
    /// The guard of memory whose slots are all empty.
    pub fn new(memory: Arc<Memory>) -> Guard {
        Guard {
            directory: Directory::new(memory.slots().len()),
            memory,
            flushing: Mutex::new(()),
        }
    }

    /// The memory.
    pub fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    /// The epoch for what is filled from now on. To be loaded before the number of flushes that are
    /// due.
    #[inline(always)]
    pub fn epoch(&self) -> Epoch {
        Epoch(self.memory.control().epoch())
    }

    /// Whether a key may have a slot. If not, [`retract`](Guard::retract) would find none, and need
    /// not be called. Under the gate of the key's partition.
    #[inline(always)]
    pub fn may_have(&self, keyhash: Keyhash) -> bool {
        self.directory.may_have(keyhash)
    }

    /// Kills the slot of a key before its item is changed. `None` if the key has no slot, after two
    /// loads in almost every case. Under the gate of the key's partition.
    #[inline(always)]
    pub fn retract(&self, keyhash: Keyhash) -> Option<Token> {
        let slot = self.directory.find(keyhash, self.memory.slots())?;
        self.retract_slot(slot, keyhash)
    }

    #[inline(never)]
    fn retract_slot(&self, slot: usize, keyhash: Keyhash) -> Option<Token> {
        let state = self.memory.slots()[slot].retract();
        // A slot that is being written belongs to another key from now on.
        (!state.is_being_written()).then_some(Token {
            slot,
            state,
            keyhash,
        })
    }

    /// Makes the slot of a token live again with what the item has become. The caller has held the
    /// gate since the [`retract`](Guard::retract), and the epoch is from before that.
    pub fn refill(&self, token: Token, epoch: Epoch, item: &HotItem<'_>) -> Filled {
        if let Err(refused) = item.check() {
            return Filled::Unfit(refused);
        }
        match self.resume_write(token) {
            Some(writing) => publish(writing, token.slot, epoch, item),
            None => Filled::Busy,
        }
    }

    /// Begins to write the slot of a token. `None` if it has another key by now.
    fn resume_write(&self, token: Token) -> Option<Writing<'_>> {
        let writing = self.memory.slots()[token.slot].begin(token.state)?;
        // Somebody may have given the slot to another key before it was retracted here, and that
        // key's entry in the directory leads to it.
        let is_ours = weakened("refill_owner_check") || writing.owner() == Some(token.keyhash);
        is_ours.then_some(writing)
    }

    /// Kills the slot of a key and gives it up, before the item leaves the store without a request,
    /// or because the key is no longer wanted. Under the gate of the key's partition.
    #[inline(always)]
    pub fn evict(&self, keyhash: Keyhash) -> bool {
        let Some(token) = self.retract(keyhash) else {
            return false;
        };
        if let Some(writing) = self.resume_write(token) {
            self.directory.remove(keyhash, token.slot);
            writing.clear_owner();
        }
        true
    }

    /// Brings an item into a slot: the one that its key has, or else the one that
    /// [`reserve`](Guard::reserve) gives it. Under the gate of the key's partition, where the item
    /// was looked up after the epoch and the number of due flushes were loaded.
    pub fn fill(
        &self,
        epoch: Epoch,
        keyhash: Keyhash,
        item: &HotItem<'_>,
        weight: u32,
        standing: impl Fn(usize) -> u32,
    ) -> Filled {
        if let Err(refused) = item.check() {
            return Filled::Unfit(refused);
        }
        let token = match self.retract(keyhash) {
            Some(token) => Ok(token),
            None => self.reserve(keyhash, item.key, weight, standing),
        };
        match token {
            Ok(token) => self.refill(token, epoch, item),
            Err(refused) => refused,
        }
    }

    /// Gives a slot to a key that has none: an empty one of its two, the primary one first, or else
    /// the one of lower weight, if that is below the weight of the key (§IV-A2). `standing` is the
    /// weight of the key in a slot. The slot is dead until it is refilled. Under the gate of the
    /// key's partition.
    ///
    /// # Errors
    ///
    /// Why the key gets none.
    pub fn reserve(
        &self,
        keyhash: Keyhash,
        key: &[u8],
        weight: u32,
        standing: impl Fn(usize) -> u32,
    ) -> Result<Token, Filled> {
        let place = self.place(key, weight, standing);
        let (slot, state) = place.ok_or(Filled::Outweighed)?;
        let writing = self.memory.slots()[slot].begin(state).ok_or(Filled::Busy)?;
        if let Some(former) = writing.owner() {
            self.directory.remove(former, slot);
        }
        writing.set_owner(keyhash);
        if !self.directory.insert(keyhash, slot) {
            writing.clear_owner();
            return Err(Filled::NoEntry);
        }
        Ok(Token {
            slot,
            state: writing.abandon(),
            keyhash,
        })
    }

    /// Whether a key of this weight would get a slot now.
    pub fn would_place(&self, key: &[u8], weight: u32, standing: impl Fn(usize) -> u32) -> bool {
        self.place(key, weight, standing).is_some()
    }

    /// The slot for a key that has none, with its state.
    fn place(
        &self,
        key: &[u8],
        weight: u32,
        standing: impl Fn(usize) -> u32,
    ) -> Option<(usize, State)> {
        let slots = self.memory.slots();
        let choices = hash::places(hash::hash(self.memory.control().seed(), key), slots.len());
        // The state is loaded first: if the slot gets another key meanwhile, the write that follows
        // does not begin.
        let [primary, secondary] = choices.map(|slot| (slot, slots[slot].state()));
        for choice in [primary, secondary] {
            if !slots[choice.0].is_taken() {
                return Some(choice);
            }
        }
        let [first, second] = choices.map(standing);
        let (choice, standing) = if second < first {
            (secondary, second)
        } else {
            (primary, first)
        };
        (standing < weight).then_some(choice)
    }

    /// Carries out a flush: one epoch ends, `flush` makes the items of the store disappear, and
    /// another epoch ends. A delayed flush is scheduled by `flush`, for `at_ns` in nanoseconds of
    /// CLOCK_MONOTONIC; it replaces one that was scheduled before. When it comes due, call this
    /// again with `None` and what carries it out.
    ///
    /// The first epoch ends what was filled before the flush. The second one ends what was filled
    /// during it: somebody may have loaded the epoch after the first change and the number of due
    /// flushes before the flush was counted.
    pub fn flush<R>(&self, at_ns: Option<u64>, flush: impl FnOnce() -> R) -> R {
        let control = self.memory.control();
        let flushing = lock(&self.flushing);
        let at_ns = at_ns.unwrap_or(NEVER_NS);
        if !weakened("flush_first_epoch") {
            control.next_epoch();
        }
        control.set_flush_at_ns(at_ns.min(control.flush_at_ns()));
        let result = flush();
        if !weakened("flush_second_epoch") {
            control.next_epoch();
        }
        control.set_flush_at_ns(at_ns);
        drop(flushing);
        result
    }

    /// Answers nothing for this reason, until it is taken back. What is in the slots stays exact
    /// meanwhile.
    pub fn pause(&self, reason: Pause) {
        self.memory.control().pause(reason.bit());
    }

    /// Takes a reason back.
    pub fn resume(&self, reason: Pause) {
        self.memory.control().resume(reason.bit());
    }

    /// The reasons for which nothing is answered.
    pub fn pauses(&self) -> impl Iterator<Item = Pause> {
        Pause::among(self.memory.control().paused())
    }

    /// The number of slots that are answered from at this time of CLOCK_MONOTONIC in nanoseconds.
    pub fn live(&self, now_ns: u64) -> usize {
        let control = self.memory.control();
        if control.paused() != 0 || now_ns >= control.flush_at_ns() {
            return 0;
        }
        let peeks = self.memory.slots().iter().filter_map(Peek::at);
        let is_live =
            |peek: &Peek<'_>| peek.epoch() == control.epoch() && now_ns < peek.deadline_ns();
        peeks.filter(is_live).count()
    }

    /// Whether a slot is live, and was filled after the last flush was ordered, as a hint.
    pub fn is_current(&self, slot: usize) -> bool {
        let peek = Peek::at(&self.memory.slots()[slot]);
        peek.is_some_and(|peek| peek.epoch() == self.memory.control().epoch())
    }

    /// The slot that a key has, as a hint.
    pub fn slot_of(&self, keyhash: Keyhash) -> Option<usize> {
        self.directory.find(keyhash, self.memory.slots())
    }
}

fn publish(writing: Writing<'_>, slot: usize, epoch: Epoch, item: &HotItem<'_>) -> Filled {
    writing.write(epoch.0, item);
    if writing.publish().may_be_read() {
        Filled::Live(slot)
    } else {
        Filled::Busy
    }
}
