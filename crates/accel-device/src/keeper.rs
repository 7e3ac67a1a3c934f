//! The body that a server has of a device with the paper's operations and nothing else: one that is
//! changed in write mode, shares no memory with the server, and knows neither time nor epochs.
//!
//! The order of a change is that of every [body](Body), under the gate of the partition:
//!
//! 1. [`retract`](Body::retract): the device goes into write mode, in which all reads go to the
//!    server, and the key is deleted;
//! 2. the store changes;
//! 3. [`refill`](Body::refill): if the item still qualifies, it is brought in again, and the device
//!    goes back into read mode;
//! 4. the change is acknowledged.
//!
//! Another key's change may end between 1 and 3, and the device answers again. This key's item has
//! been deleted by then.
//!
//! The device knows no time. So an item that expires is not brought in, and while a flush is due
//! later, nothing is answered.
//!
//! A gate is entered before the lock here is taken, and never the other way round.

use crate::allocator::Allocator;
use crate::device::{COUNT_MAX, Device, DeviceCounters, DeviceError, Mode};
use glimmer_base::Keyhash;
use glimmer_base::limits::HOT_COUNTS_RESET_MS;
use glimmer_base::sync::Ordering::{Acquire, Relaxed, Release};
use glimmer_base::sync::{AtomicU32, AtomicU64, Mutex, MutexGuard, lock};
use glimmer_hotset::layout::dimensions::KEY_MAX;
use glimmer_hotset::layout::{HotItem, NEVER_NS, Tally};
use glimmer_hotset::{
    AfterChange, Body, BodyFigures, Credit, Decision, Epoch, Form, Incumbent, Kept, Offer, Pause,
    Policy, Prices, Retracted, SampledRead,
};
use std::collections::HashMap;

/// Places of the filter to a slot.
const PLACES_PER_SLOT: usize = 16;

/// See the module's text. All methods may be called by several threads at once.
#[derive(Debug)]
pub struct Keeper {
    /// How many keys of the device fall into each place: a writer whose key's place has none knows
    /// without the lock that the key is not in the device. A key is counted before it is brought
    /// in, by the holder of its gate, and no more after it was deleted.
    filter: Box<[AtomicU32]>,
    epoch: AtomicU64,
    slots: usize,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    device: Box<dyn Device + Send>,
    policy: Box<dyn Policy>,
    /// None if every slot has room of its own.
    allocator: Option<Allocator>,
    entries: Box<[Option<Entry>]>,
    /// The slot of each key.
    places: HashMap<Keyhash, usize>,
    mode: Mode,
    /// The reasons for which nothing is answered, as bits.
    pauses: u64,
    /// When the counts were last reset, and whether they are to be.
    reset_ms: u64,
    is_reset_due: bool,
    counters: DeviceCounters,
    /// Hits that no key has been given yet.
    unassigned: u64,
    /// Hits that were given to keys which have left before they were credited. Somebody has to be
    /// credited for them, and for the policy they count no more.
    left_over: u64,
    /// Hits of each slot, as the policy is told.
    hits: Box<[u64]>,
}

/// A key in the device.
#[derive(Debug)]
struct Entry {
    keyhash: Keyhash,
    key: Box<[u8]>,
    value_bytes: usize,
    address: Option<usize>,
    /// Hits that wait for credit.
    uncredited: u64,
}

impl Keeper {
    /// The keeper of a device whose slots are all empty, in read mode or in write mode.
    pub fn new(mut device: Box<dyn Device + Send>, policy: Box<dyn Policy>) -> Keeper {
        let capabilities = device.capabilities();
        let slots = capabilities.slots;
        device.switch_mode(Mode::Read);
        let places = (slots * PLACES_PER_SLOT).next_power_of_two();
        Keeper {
            filter: (0..places).map(|_| AtomicU32::new(0)).collect(),
            epoch: AtomicU64::new(0),
            slots,
            state: Mutex::new(State {
                allocator: capabilities.value_memory_bytes.map(Allocator::new),
                device,
                policy,
                entries: (0..slots).map(|_| None).collect(),
                places: HashMap::new(),
                mode: Mode::Read,
                pauses: 0,
                reset_ms: 0,
                is_reset_due: false,
                counters: DeviceCounters::default(),
                unassigned: 0,
                left_over: 0,
                hits: vec![0; slots].into(),
            }),
        }
    }

    /// Bytes of the server's memory for a device of this number of slots, besides those of the
    /// policy.
    pub const fn bytes(slots: usize) -> usize {
        let entry = size_of::<Option<Entry>>() + KEY_MAX;
        let place = 2 * (size_of::<(Keyhash, usize)>() + 1);
        slots * (entry + place + size_of::<u64>() + 2 * PLACES_PER_SLOT * size_of::<AtomicU32>())
    }

    fn place(&self, keyhash: Keyhash) -> &AtomicU32 {
        &self.filter[keyhash.bucket(self.filter.len())]
    }

    /// What the device has counted.
    fn counters(&self) -> DeviceCounters {
        let mut state = lock(&self.state);
        state.ask_counters();
        let counters = state.counters;
        self.settle(state);
        counters
    }

    /// In write mode: brings a key in that had this slot, or deletes it if that fails.
    fn bring_in(
        &self,
        state: &mut State,
        (keyhash, had): (Keyhash, Option<usize>),
        (item, weight): (&HotItem<'_>, u8),
        epoch: Epoch,
        now_ms: u64,
    ) -> Kept {
        if epoch != self.epoch() || state.device.is_lost() {
            return Kept::Late;
        }
        if !state.qualifies(item) {
            return Kept::Unfit;
        }
        let reserved = state.device.reserve(item.key, weight);
        let Some(Some(slot)) = state.check(reserved) else {
            return Kept::NoRoom;
        };
        self.forget(state, slot);
        let mut address = None;
        if let Some(allocator) = &mut state.allocator {
            address = allocator.allocate(item.value.len());
            if address.is_none() {
                let deleted = state.device.delete(item.key);
                state.check(deleted);
                return Kept::NoRoom;
            }
        }
        self.place(keyhash).fetch_add(1, Relaxed);
        state.places.insert(keyhash, slot);
        state.entries[slot] = Some(Entry {
            keyhash,
            key: item.key.into(),
            value_bytes: item.value.len(),
            address,
            uncredited: 0,
        });
        let written = state.write(slot, address, item);
        if state.check(written).is_none() {
            return Kept::Late;
        }
        if had != Some(slot) {
            let incumbent = Incumbent {
                slot,
                keyhash,
                hits: state.hits[slot],
            };
            state.policy.filled(&incumbent, now_ms);
        }
        Kept::Live
    }

    /// In write mode: deletes the key of a slot, if there is one.
    fn delete(&self, state: &mut State, slot: usize) {
        let Some(entry) = &state.entries[slot] else {
            return;
        };
        let deleted = state.device.delete(&entry.key);
        if let Some(deleted) = state.check(deleted)
            && deleted != Some(slot)
        {
            state
                .device
                .give_up("it does not have a key where it has put it");
        }
        self.forget(state, slot);
    }

    /// The device does not have the key of this slot any more.
    fn forget(&self, state: &mut State, slot: usize) {
        let Some(entry) = state.entries[slot].take() else {
            return;
        };
        if let (Some(allocator), Some(address)) = (&mut state.allocator, entry.address) {
            allocator.free(address);
        }
        state.left_over += entry.uncredited;
        state.places.remove(&entry.keyhash);
        self.place(entry.keyhash).fetch_sub(1, Release);
    }

    /// Looks whether the device has gone while something was done. Then it has no keys.
    fn settle(&self, mut state: MutexGuard<'_, State>) {
        if state.device.is_lost() && state.pauses & Pause::DeviceLost.bit() == 0 {
            state.pauses |= Pause::DeviceLost.bit();
            for slot in 0..self.slots {
                self.forget(&mut state, slot);
            }
        }
    }
}

impl Body for Keeper {
    #[inline]
    fn epoch(&self) -> Epoch {
        Epoch::from_raw(self.epoch.load(Acquire))
    }

    #[inline]
    fn may_have(&self, keyhash: Keyhash) -> bool {
        self.place(keyhash).load(Acquire) != 0
    }

    fn retract(&self, keyhash: Keyhash) -> Option<Retracted> {
        if !self.may_have(keyhash) {
            return None;
        }
        let mut state = lock(&self.state);
        let &slot = state.places.get(&keyhash)?;
        state.enter_write_mode();
        // The policy wants to know by the change how often the key was read.
        state.ask_counters();
        state.assign();
        let note = state.hits[slot];
        self.delete(&mut state, slot);
        // It stays in write mode: the item may be brought in again at once.
        Some(Retracted {
            keyhash,
            slot,
            note,
        })
    }

    fn refill(
        &self,
        retracted: Retracted,
        epoch: Epoch,
        item: Option<&HotItem<'_>>,
        now_ms: u64,
    ) -> Kept {
        let mut state = lock(&self.state);
        let incumbent = Incumbent {
            slot: retracted.slot,
            keyhash: retracted.keyhash,
            hits: retracted.note,
        };
        let kept = match (state.policy.changed(&incumbent, now_ms), item) {
            (AfterChange::Evict, _) => Kept::Evicted,
            (AfterChange::Refill, None) => Kept::Unfit,
            (AfterChange::Refill, Some(item)) => {
                // Another key's change may have ended meanwhile.
                state.enter_write_mode();
                let key = (retracted.keyhash, Some(retracted.slot));
                self.bring_in(&mut state, key, (item, COUNT_MAX), epoch, now_ms)
            }
        };
        state.leave_write_mode();
        self.settle(state);
        kept
    }

    fn evict(&self, keyhash: Keyhash) -> bool {
        let deleted = self.retract(keyhash);
        if deleted.is_some() {
            let mut state = lock(&self.state);
            state.leave_write_mode();
            self.settle(state);
        }
        deleted.is_some()
    }

    fn fill(&self, offer: &Offer, epoch: Epoch, item: Option<&HotItem<'_>>, now_ms: u64) -> Kept {
        let mut state = lock(&self.state);
        let Some(item) = item.filter(|item| state.qualifies(item)) else {
            state.policy.refused(offer.keyhash, now_ms);
            return Kept::Unfit;
        };
        if state.places.contains_key(&offer.keyhash) || state.pauses != 0 {
            return Kept::Late;
        }
        let reads = state.policy.reads(offer.weight);
        let weight = reads.min(COUNT_MAX.into()) as u8;
        state.enter_write_mode();
        let is_time = now_ms.saturating_sub(state.reset_ms) >= HOT_COUNTS_RESET_MS;
        if state.is_reset_due || is_time {
            (state.is_reset_due, state.reset_ms) = (false, now_ms);
            let reset = state.device.reset_counts();
            state.check(reset);
        }
        let key = (offer.keyhash, None);
        let kept = self.bring_in(&mut state, key, (item, weight), epoch, now_ms);
        state.leave_write_mode();
        self.settle(state);
        kept
    }

    /// The device's keys are deleted first. Until a flush that is due later is carried out, nothing
    /// is answered.
    fn flush(&self, flush: &mut dyn FnMut() -> Option<u64>) {
        let mut state = lock(&self.state);
        state.enter_write_mode();
        for slot in 0..self.slots {
            self.delete(&mut state, slot);
        }
        let is_pending = flush().is_some();
        // Whoever has looked an item up before the flush was counted comes too late.
        self.epoch.fetch_add(1, Release);
        state.set_pause(Pause::FlushPending, is_pending);
        state.leave_write_mode();
        self.settle(state);
    }

    /// When it returns, what was being looked up has been answered.
    fn pause(&self, reason: Pause, is_paused: bool) {
        let mut state = lock(&self.state);
        state.set_pause(reason, is_paused);
        match state.pauses {
            0 => state.leave_write_mode(),
            _ => state.enter_write_mode(),
        }
        self.settle(state);
    }

    fn sample_every(&self) -> u32 {
        lock(&self.state).policy.sample_every()
    }

    fn sampled(
        &self,
        reads: &mut dyn Iterator<Item = SampledRead<'_>>,
        now_ms: u64,
        offer: &mut dyn FnMut(Offer),
    ) {
        let mut state = lock(&self.state);
        for read in reads {
            state.policy.read(&read, now_ms);
        }
        while let Some(decision) = state.policy.poll() {
            match decision {
                Decision::Offer(wanted) if state.pauses == 0 => offer(wanted),
                Decision::Offer(_) => {}
                Decision::ResetCounts => state.is_reset_due = true,
            }
        }
    }

    fn priced(&self, prices: Prices) {
        lock(&self.state).policy.priced(prices);
    }

    fn hits(&self) -> u64 {
        self.counters().hits
    }

    /// The device does not say which keys were hit, so every key gets an equal part.
    fn harvest(
        &self,
        now_ms: u64,
        is_mine: &dyn Fn(Keyhash) -> bool,
        credit: &mut dyn FnMut(Credit),
    ) {
        let mut state = lock(&self.state);
        state.ask_counters();
        state.assign();
        let State {
            entries, policy, ..
        } = &mut *state;
        for entry in entries.iter_mut().flatten() {
            if entry.uncredited == 0 || !is_mine(entry.keyhash) {
                continue;
            }
            let new = std::mem::take(&mut entry.uncredited);
            policy.credit(entry.keyhash, new, now_ms);
            credit(Credit {
                keyhash: entry.keyhash,
                key: Some(entry.key.clone()),
                hits: new,
                value_bytes: entry.value_bytes,
            });
        }
        self.settle(state);
    }

    /// The device answers binary requests alone, and does not say why it passes others on.
    fn figures(&self, now_ms: u64) -> BodyFigures {
        let counters = self.counters();
        let event = |&tally: &Tally| match tally {
            Tally::HitBinary => (tally, counters.hits),
            Tally::Miss => (tally, counters.misses),
            _ => (tally, 0),
        };
        let state = lock(&self.state);
        BodyFigures {
            slots: self.slots,
            live: match state.pauses {
                0 => state.places.len(),
                _ => 0,
            },
            hits: counters.hits,
            events: Tally::all().iter().map(event).collect(),
            quarantined: state.policy.quarantined(now_ms),
            paused: Pause::among(state.pauses).collect(),
            own: vec![
                ("cycles", counters.cycles),
                ("bypassed_write_mode", counters.bypassed),
                ("defer_high_water", counters.defer_high_water),
            ],
        }
    }

    fn may_answer(&self, form: Form) -> bool {
        matches!(form, Form::Binary { .. })
    }
}

impl State {
    fn enter_write_mode(&mut self) {
        if self.mode == Mode::Read {
            self.device.switch_mode(Mode::Write);
            self.mode = Mode::Write;
        }
    }

    fn leave_write_mode(&mut self) {
        if self.mode == Mode::Write && self.pauses == 0 {
            self.device.switch_mode(Mode::Read);
            self.mode = Mode::Read;
        }
    }

    fn set_pause(&mut self, reason: Pause, is_paused: bool) {
        match is_paused {
            true => self.pauses |= reason.bit(),
            false => self.pauses &= !reason.bit(),
        }
    }

    /// Gives the device up if it has refused an operation, because none of them may fail.
    fn check<T>(&mut self, result: Result<T, DeviceError>) -> Option<T> {
        result
            .inspect_err(|error| {
                self.device
                    .give_up(&format!("it refuses an operation: {error:?}"));
            })
            .ok()
    }

    /// Whether an item may be brought in. An item that expires may not: the device knows no time.
    fn qualifies(&self, item: &HotItem<'_>) -> bool {
        let capabilities = self.device.capabilities();
        item.check().is_ok()
            && item.deadline_ns == NEVER_NS
            && item.key.len() <= capabilities.key_bytes_max
            && item.value.len() <= capabilities.value_bytes_max
    }

    fn write(
        &mut self,
        slot: usize,
        address: Option<usize>,
        item: &HotItem<'_>,
    ) -> Result<(), DeviceError> {
        if let Some(address) = address {
            self.device.associate_address(slot, address)?;
        }
        self.device
            .associate_length_and_flags(slot, item.value.len(), item.flags)?;
        self.device.associate_cas(slot, item.cas)?;
        self.device.write_value(slot, item.value)
    }

    fn ask_counters(&mut self) {
        if let Some(counters) = self.device.counters() {
            self.unassigned += counters.hits.saturating_sub(self.counters.hits);
            self.counters = counters;
        }
    }

    /// Divides the hits that no key has been given among all keys.
    fn assign(&mut self) {
        let keys = self.places.len() as u64;
        if keys == 0 {
            return;
        }
        let mut new = parts(std::mem::take(&mut self.unassigned), keys);
        let mut left_over = parts(std::mem::take(&mut self.left_over), keys);
        for (entry, hits) in self.entries.iter_mut().zip(&mut self.hits) {
            let Some(entry) = entry else { continue };
            let new = new.next().unwrap_or_default();
            *hits += new;
            entry.uncredited += new + left_over.next().unwrap_or_default();
        }
    }
}

/// Divides hits among this many keys, as evenly as that goes.
fn parts(hits: u64, keys: u64) -> impl Iterator<Item = u64> {
    (0..keys).map(move |nth| hits / keys + u64::from(nth < hits % keys))
}
