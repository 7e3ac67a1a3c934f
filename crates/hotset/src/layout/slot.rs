//! One key with its value, and the protocol between its writer and its readers.
//!
//! # Order
//!
//! A *retract* clears `live` with one atomic operation. It is sequenced before the change of the
//! item in the store, whose own release lets others see the change. So a reader that has seen the
//! change, or an acknowledgement of it, and then reads the slot sees that it is dead.
//!
//! A *write*:
//!
//! 1. replaces the state that it knows by that of the next generation, being written, by a compare
//!    and exchange with acquire ([`begin`](Slot::begin)). One writer at a time succeeds, and it
//!    sees what the last one wrote;
//! 2. runs a release fence, and changes the other words with relaxed stores;
//! 3. clears `writing` with release ([`Writing::publish`]).
//!
//! A *reader*:
//!
//! 1. loads the state with acquire ([`Peek::at`](super::Peek::at)); if it may not be read, that
//!    is a miss;
//! 2. copies what it needs with relaxed loads;
//! 3. runs an acquire fence and loads the state again
//!    ([`Peek::is_unchanged`](super::Peek::is_unchanged)). If it is the same, the hit takes place
//!    here. Otherwise what was copied is thrown away.
//!
//! *Not torn:* if a load of the reader's step 2 saw a store of a writer's step 2, the two fences
//! synchronise, so the reader's last load sees the writer's generation or a later one, which it had
//! not seen at first. *Not stale:* a retract that happened before the reader began is seen by the
//! first load, and one that is seen by the second load makes it unequal, because only a new
//! generation sets `live` again. *Complete:* the first load synchronises with step 3 of the write,
//! and with no later one, as it carries that generation.
//!
//! A reader that is not written in this memory model has to follow the same steps. On x86-64, loads
//! are executed in order, so it needs nothing but volatile loads of the state.

use super::State;
use super::dimensions::{
    BODY_AT, BODY_WORDS, KEY_AT, LINE_AT, LINE_WORDS, SLOT_BYTES, VALUE_AT, body_text,
};
use super::rendered::{HotItem, Rendered};
use glimmer_base::Keyhash;
use glimmer_base::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use glimmer_base::sync::{AtomicU64, Ordering, fence, weakened};

/// The length of the key while the slot belongs to one that has not been written: no key has it.
const NO_KEY: u8 = u8::MAX;

/// One slot. See the module's text. All bytes zero is an empty slot.
#[cfg_attr(not(loom), repr(C, align(64)))]
#[cfg_attr(loom, repr(C))]
#[derive(Debug)]
pub struct Slot {
    /// See [`State`].
    pub(super) state: AtomicU64,
    /// The epoch under which it was filled.
    pub(super) epoch: AtomicU64,
    /// From when on it is not answered, in nanoseconds of CLOCK_MONOTONIC.
    pub(super) deadline_ns: AtomicU64,
    /// The server's hash of the key. It changes only while the slot is being written.
    pub(super) keyhash: AtomicU64,
    /// The item's CAS unique.
    pub(super) cas: AtomicU64,
    /// `u32` flags, `u16` bytes of the value, `u8` bytes of the key, `u8` zero. A slot without a
    /// key has zero here.
    pub(super) shape: AtomicU64,
    /// `u16` bytes of the line of `get`, `u16` bytes of that of `gets`, `u32` sum of the key.
    pub(super) lines: AtomicU64,
    /// `u32` sum of the line of `get`, `u32` sum of that of `gets`.
    pub(super) line_sums: AtomicU64,
    /// `u32` sum of the value, `u32` sum of the body's text.
    pub(super) body_sums: AtomicU64,
    /// Zero.
    pub(super) reserved: AtomicU64,
    /// See [`dimensions`](super::dimensions).
    pub(super) line: [AtomicU64; LINE_WORDS],
    /// See [`dimensions`](super::dimensions).
    pub(super) body: [AtomicU64; BODY_WORDS],
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Slot>() == SLOT_BYTES && SLOT_BYTES == 1792);

/// Where the fields lie, in bytes from the beginning of a slot.
#[cfg(not(loom))]
pub mod offsets {
    use super::{BODY_AT, KEY_AT, LINE_AT, Slot, VALUE_AT};
    use std::mem::offset_of;

    macro_rules! offsets {
        ($($(#[$doc:meta])* $name:ident = $value:expr;)+) => {
            $($(#[$doc])* pub const $name: usize = $value;)+
            /// All of them with their names.
            pub const ALL: &[(&str, usize)] = &[$((stringify!($name), $name)),+];
        };
    }

    offsets! {
        /// `u64`, see [`State`](crate::layout::State).
        STATE = offset_of!(Slot, state);
        /// `u64`.
        EPOCH = offset_of!(Slot, epoch);
        /// `u64`.
        DEADLINE_NS = offset_of!(Slot, deadline_ns);
        /// `u64`.
        KEYHASH = offset_of!(Slot, keyhash);
        /// `u64`.
        CAS = offset_of!(Slot, cas);
        /// `u32`.
        FLAGS = offset_of!(Slot, shape);
        /// `u16`.
        VALUE_BYTES = offset_of!(Slot, shape) + 4;
        /// `u8`.
        KEY_BYTES = offset_of!(Slot, shape) + 6;
        /// `u16`.
        GET_LINE_BYTES = offset_of!(Slot, lines);
        /// `u16`.
        GETS_LINE_BYTES = offset_of!(Slot, lines) + 2;
        /// `u32`.
        SUM_KEY = offset_of!(Slot, lines) + 4;
        /// `u32`.
        SUM_GET_LINE = offset_of!(Slot, line_sums);
        /// `u32`.
        SUM_GETS_LINE = offset_of!(Slot, line_sums) + 4;
        /// `u32`.
        SUM_VALUE = offset_of!(Slot, body_sums);
        /// `u32`.
        SUM_BODY = offset_of!(Slot, body_sums) + 4;
        /// `VALUE `.
        LINE = offset_of!(Slot, line) + LINE_AT;
        /// The key, within the line.
        KEY = offset_of!(Slot, line) + KEY_AT;
        /// The line end before the value.
        BODY = offset_of!(Slot, body) + BODY_AT;
        /// The value, within the body.
        VALUE = offset_of!(Slot, body) + VALUE_AT;
    }
}

impl Default for Slot {
    fn default() -> Slot {
        let zero = || AtomicU64::new(0);
        Slot {
            state: zero(),
            epoch: zero(),
            deadline_ns: zero(),
            keyhash: zero(),
            cas: zero(),
            shape: zero(),
            lines: zero(),
            line_sums: zero(),
            body_sums: zero(),
            reserved: zero(),
            line: std::array::from_fn(|_| zero()),
            body: std::array::from_fn(|_| zero()),
        }
    }
}

impl Slot {
    /// The state now.
    #[inline(always)]
    pub fn state(&self) -> State {
        State::from_raw(self.state.load(Acquire))
    }

    /// The hash of the key that the slot belongs to, whatever its state. A slot without a key has
    /// some hash, too.
    #[inline(always)]
    pub fn keyhash(&self) -> Keyhash {
        Keyhash(self.keyhash.load(Acquire))
    }

    /// Whether the slot belongs to a key, as far as can be seen while others write.
    pub fn is_taken(&self) -> bool {
        self.shape.load(Relaxed) != 0
    }

    /// Kills the slot, and returns its state from now on.
    #[inline]
    pub fn retract(&self) -> State {
        State::from_raw(self.state.fetch_and(!State::LIVE, AcqRel)).retracted()
    }

    /// Begins to write a slot that is still in this state. `None` if it is not, or if somebody else
    /// is writing it.
    #[inline]
    pub fn begin(&self, from: State) -> Option<Writing<'_>> {
        if from.is_being_written() {
            return None;
        }
        let next = from.next_write().raw();
        let begun = self
            .state
            .compare_exchange(from.raw(), next, Acquire, Relaxed);
        begun.ok()?;
        if !weakened("slot_release_fence") {
            fence(Release);
        }
        Some(Writing(self))
    }
}

/// The right to write a slot. Dropped without [`publish`](Writing::publish), it leaves a slot that
/// is dead.
#[derive(Debug)]
#[must_use = "dropped, it leaves a dead slot"]
pub struct Writing<'a>(&'a Slot);

impl Writing<'_> {
    /// The hash of the key that the slot belongs to.
    pub fn owner(&self) -> Option<Keyhash> {
        self.0.is_taken().then(|| self.0.keyhash())
    }

    /// Takes the slot away from its key.
    pub fn clear_owner(&self) {
        self.0.shape.store(0, Relaxed);
    }

    /// Gives the slot to a key whose item comes later.
    pub fn set_owner(&self, keyhash: Keyhash) {
        // Release: a writer of the key that had the slot before may read this hash, and then it
        // relies on the slot not being its key's.
        self.0.keyhash.store(keyhash.0, Release);
        self.0.shape.store(shape(0, 0, NO_KEY), Relaxed);
    }

    /// Writes an item that qualifies, filled under this epoch.
    pub fn write(&self, epoch: u64, item: &HotItem<'_>) {
        let rendered = Rendered::of(item);
        let slot = self.0;
        slot.epoch.store(epoch, Relaxed);
        slot.deadline_ns.store(item.deadline_ns, Relaxed);
        slot.cas.store(item.cas, Relaxed);
        let shape = shape(item.flags, item.value.len() as u16, item.key.len() as u8);
        slot.shape.store(shape, Relaxed);
        let [get, gets] = [rendered.get_line_bytes, rendered.gets_line_bytes].map(u16::to_ne_bytes);
        let lines = u32::from_ne_bytes([get[0], get[1], gets[0], gets[1]]);
        slot.lines.store(pair(lines, rendered.sum_key), Relaxed);
        let line_sums = pair(rendered.sum_get_line, rendered.sum_gets_line);
        slot.line_sums.store(line_sums, Relaxed);
        slot.body_sums
            .store(pair(rendered.sum_value, rendered.sum_body), Relaxed);
        let line_bytes = LINE_AT + usize::from(rendered.gets_line_bytes);
        copy_in(&slot.line, &rendered.line[..line_bytes.next_multiple_of(8)]);
        let body_bytes = body_text(item.value.len()).end;
        copy_in(&slot.body, &rendered.body[..body_bytes.next_multiple_of(8)]);
    }

    /// Ends the write with a slot that is dead, and returns its state.
    pub fn abandon(self) -> State {
        let before = self.end(!(State::WRITING | State::LIVE), Release);
        State::from_raw(before & !(State::WRITING | State::LIVE))
    }

    /// Makes the slot live, unless it has been retracted since the write began.
    #[inline]
    pub fn publish(self) -> State {
        let weak = weakened("slot_publish_release");
        let order = if weak { Relaxed } else { Release };
        let before = self.end(!State::WRITING, order);
        State::from_raw(before & !State::WRITING)
    }

    fn end(self, kept: u64, order: Ordering) -> u64 {
        let before = self.0.state.fetch_and(kept, order);
        std::mem::forget(self);
        before
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.0
            .state
            .fetch_and(!(State::WRITING | State::LIVE), Release);
    }
}

/// Two 32-bit fields in a word, in their order in memory.
fn pair(first: u32, second: u32) -> u64 {
    let ([a, b, c, d], [e, f, g, h]) = (first.to_ne_bytes(), second.to_ne_bytes());
    u64::from_ne_bytes([a, b, c, d, e, f, g, h])
}

fn shape(flags: u32, value_bytes: u16, key_bytes: u8) -> u64 {
    let [a, b] = value_bytes.to_ne_bytes();
    pair(flags, u32::from_ne_bytes([a, b, key_bytes, 0]))
}

/// Stores bytes, a whole number of words.
fn copy_in(words: &[AtomicU64], bytes: &[u8]) {
    for (word, bytes) in words.iter().zip(bytes.chunks_exact(8)) {
        let bytes = bytes.try_into().expect("eight bytes");
        word.store(u64::from_ne_bytes(bytes), Relaxed);
    }
}
