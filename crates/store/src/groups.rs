//! Groups of keys, and which of them were invalidated.
//!
//! A key's *group* is what precedes the first delimiter in it. To invalidate a group is to store
//! one number, however many items it has: the *event*, which is larger than that of every
//! invalidation before. While a group has an event, each item that is stored under one of its keys
//! carries that number as its birth. An item of the group with another birth, or with none, is
//! older than the event. To every verb it is an item that is not there.
//!
//! # Nothing older is read
//!
//! The event is stored before the invalidation is acknowledged, and a request that begins after
//! that loads it. So a read sees no item that was stored before. A store looks for the event while
//! it holds the partition's gate. If it began before the event was stored, and misses it, it is
//! concurrent with the invalidation, and its item is dead at birth, as if it had been stored
//! before.
//!
//! A store that is made of an older item, as an append is, looks at that item first, and the event
//! may come in between. So its item gets an event as its birth only if the event was there when it
//! passed the gate. Otherwise the item is dead at birth.
//!
//! What makes room for such a store asks again whether the older item is dead. It goes by the
//! events that there were when the request passed the gate. So an item that the request has found
//! stays for as long as the gate is held, or leaves as a live one does.
//!
//! # A group is forgotten once it has been swept
//!
//! A *sweep* visits all chains of a partition, each while it holds the gate, and removes what is
//! dead. When all partitions have been swept since the event, no item of the group has another
//! birth, and the event is given up:
//!
//! - An item that was stored before the sweep passed the gate lay in a chain, where the sweep met
//!   it (or the table says that it moved, and the partition is swept again).
//! - A store that passes the gate after the sweep had begun finds the event, since the sweep had
//!   found it under the same gate. This holds for a request that began long before, too, as the
//!   table itself then knows that there are groups (`FlushCount::know_groups`).
//!
//! The numbers of events never come again, so births that are left on items mean nothing to later
//! events but that the item is older.
//!
//! # What a key costs while groups are known
//!
//! Most keys are of other groups. A filter of 4,096 bits, which lies in the processor's cache, has
//! the bit set of each group that is known, so a key whose group's bit is not set costs neither a
//! hash nor a search. The bit follows from the length and the ends of the name. Names that are made
//! to share one cost those who use them a hash, and change no answer.
//!
//! # Only hashes are kept
//!
//! A group is known by 64 bits of a keyed hash, which nobody can predict. Two groups that share
//! them, with a probability of 2^-64 for each pair (2^-48 at least where native clients know the
//! partition of a key), are invalidated together. That loses items of the second one, and shows no
//! item that is older than an invalidation.

use crate::memory::{MemoryFile, PagePolicy, ZeroedSlice};
use glimmer_base::KeyHasher;
use glimmer_base::limits::{GROUPS_MAX, KEY_BYTES_MAX};
use glimmer_base::sync::Ordering::{self, Acquire, Relaxed, Release};
use glimmer_base::sync::{AtomicU64, Mutex, in_program_order, lock, weakened};
use std::io;

/// Set in the number of flushes that a caller gives with a request while any group is known.
pub const GROUPS_DUE: u64 = 1 << 63;

/// Bytes of the longest name of a group: a delimiter follows it in a key.
pub const GROUP_BYTES_MAX: usize = KEY_BYTES_MAX - 1;

/// Bits of an event: an item has room for as many.
pub(crate) const EVENT_BITS: u32 = 40;
const EVENT_MAX: u64 = (1 << EVENT_BITS) - 1;

/// Bits of the number of a bit in the filter. In the word of an event, the number follows it.
const FILTER_BITS: u32 = if cfg!(any(loom, miri)) { 6 } else { 12 };
const FILTER_WORDS: usize = (1 << FILTER_BITS) / 64;
const _: () = assert!(EVENT_BITS + FILTER_BITS <= u64::BITS);

/// Places for hashes, half of which are never used, so that a search ends soon.
const SLOTS: usize = (2 * GROUPS_MAX).next_power_of_two();
/// Places from the first on in which a hash may be.
const PROBES_MAX: usize = if SLOTS < 64 { SLOTS } else { 64 };

/// The word of the latest event. The words up to the hashes are left free.
const LATEST_AT: usize = 0;
const HASHES_AT: usize = 8;
const EVENTS_AT: usize = HASHES_AT + SLOTS;
const WORDS: usize = EVENTS_AT + SLOTS;

/// A place that no search goes beyond.
const EMPTY: u64 = 0;
/// A place whose group was forgotten.
const LEFT: u64 = 1;

/// Why a group is not invalidated. Nothing has changed then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GroupError {
    /// The server has no groups.
    #[error("keys have no prefixes: the server was started without --prefix-delimiter")]
    NoGroups,
    /// A name has at least one byte and leaves room for the delimiter.
    #[error("a prefix has 1 to 249 bytes, without the delimiter")]
    Length,
    /// A group's name ends where the first delimiter begins.
    #[error("a prefix ends before the first delimiter in a key")]
    Delimiter,
    /// [`GROUPS_MAX`] groups wait for their sweep.
    #[error("too many prefixes are being invalidated, try again later")]
    Full,
}

const _: () = assert!(GROUP_BYTES_MAX == 249, "the message says so");

/// See the module's text.
pub struct Groups {
    delimiter: u8,
    hasher: KeyHasher,
    words: ZeroedSlice<AtomicU64>,
    /// Which groups may be known.
    filter: [AtomicU64; FILTER_WORDS],
    /// Groups that are known.
    known: AtomicU64,
    /// Up to which event each partition has been swept. Held by the thread that changes the words.
    swept: Mutex<Vec<u64>>,
}

impl Groups {
    /// No group is known, of keys with this delimiter. `hasher` has a secret.
    ///
    /// # Errors
    ///
    /// What the kernel says if it has no memory, or if the file is too short.
    pub fn new(delimiter: u8, hasher: KeyHasher, file: Option<&MemoryFile>) -> io::Result<Groups> {
        let words = match file {
            None => ZeroedSlice::new(WORDS, PagePolicy::Small, None)?,
            Some(file) => file.memory(WORDS, PagePolicy::Small)?,
        };
        let groups = Groups {
            delimiter,
            hasher,
            words,
            filter: std::array::from_fn(|_| AtomicU64::new(0)),
            known: AtomicU64::new(0),
            swept: Mutex::default(),
        };
        groups.go_on();
        Ok(groups)
    }

    /// Goes on from what a file has of an earlier process. That process may have ended between the
    /// store of an event and that of the latest one.
    fn go_on(&self) {
        let (mut known, mut latest) = (0, self.latest());
        for at in self.slots_known() {
            known += 1;
            latest = latest.max(self.event(at));
        }
        self.renew_filter();
        self.known.store(known, Relaxed);
        self.words[LATEST_AT].store(latest, Release);
    }

    /// The places of groups that are known. For the thread that changes them.
    fn slots_known(&self) -> impl Iterator<Item = usize> {
        (0..SLOTS).filter(|&at| self.hash(at).load(Relaxed) > LEFT)
    }

    /// Has the filter have the bits of groups that are known. It had them before, and loses others.
    /// Who misses one of those sees all that happened before the group was forgotten.
    fn renew_filter(&self) {
        let mut filter = [0; FILTER_WORDS];
        for at in self.slots_known() {
            // A damaged file may say anything.
            let bit = (self.event_word(at).load(Relaxed) >> EVENT_BITS) % (1 << FILTER_BITS);
            filter[bit as usize / 64] |= 1 << (bit % 64);
        }
        for (word, bits) in self.filter.iter().zip(filter) {
            word.store(bits, forgetting());
        }
    }

    /// Whether the group of this name may be known.
    #[inline]
    fn may_know(&self, bit: u64) -> bool {
        self.filter[bit as usize / 64].load(Acquire) >> (bit % 64) & 1 != 0
    }

    /// The delimiter.
    pub fn delimiter(&self) -> u8 {
        self.delimiter
    }

    fn hash(&self, at: usize) -> &AtomicU64 {
        &self.words[HASHES_AT + at]
    }

    /// An event, and the number of the group's bit in the filter.
    fn event_word(&self, at: usize) -> &AtomicU64 {
        &self.words[EVENTS_AT + at]
    }

    #[inline]
    fn event(&self, at: usize) -> u64 {
        self.event_word(at).load(Acquire) & EVENT_MAX
    }

    /// The group of a key, if it has one.
    #[inline]
    pub fn name_of<'k>(&self, key: &'k [u8]) -> Option<&'k [u8]> {
        let end = position(key, self.delimiter)?;
        (end > 0).then(|| &key[..end])
    }

    #[inline]
    fn hash_of(&self, name: &[u8]) -> u64 {
        let hash = self.hasher.keyhash(name).0;
        // The two numbers that mean something else.
        hash.max(LEFT + 1)
    }

    /// Whether any group is known.
    #[inline]
    pub fn is_any_known(&self) -> bool {
        self.known.load(Acquire) != 0
    }

    /// Groups that are known.
    pub fn known(&self) -> u64 {
        self.known.load(Relaxed)
    }

    /// The latest event, of any group.
    pub fn latest(&self) -> u64 {
        self.words[LATEST_AT].load(Acquire)
    }

    /// The event of a key's group, or zero if it has none.
    #[inline]
    pub fn event_of(&self, key: &[u8]) -> u64 {
        match self.name_of(key) {
            Some(name) if self.may_know(filter_bit(name)) => self.find(self.hash_of(name)),
            _ => 0,
        }
    }

    /// The event of the group with this hash, or zero.
    #[inline]
    fn find(&self, hash: u64) -> u64 {
        for nth in 0..PROBES_MAX {
            let at = slot(hash, nth);
            let found = self.hash(at).load(Acquire);
            if found == hash {
                let event = self.event(at);
                // The place may have gone to another group between the two loads.
                return match self.hash(at).load(Relaxed) == hash {
                    true => event,
                    false => self.find_again(hash),
                };
            }
            if found == EMPTY {
                break;
            }
        }
        0
    }

    #[cold]
    #[inline(never)]
    fn find_again(&self, hash: u64) -> u64 {
        self.find(hash)
    }

    /// Whether an item with this key and birth, if there is one, is older than the last event of
    /// its group.
    #[inline]
    pub(crate) fn is_dead(&self, key: &[u8], birth: impl FnOnce() -> Option<u64>) -> bool {
        let event = self.event_of(key);
        event != 0 && birth().is_some_and(|birth| birth != event)
    }

    /// Whether that was so when `latest` was the latest event. If the group has had an event since,
    /// the answer is no.
    pub(crate) fn was_dead(&self, key: &[u8], birth: u64, latest: u64) -> bool {
        let event = self.event_of(key);
        event != 0 && event <= latest && birth != event
    }

    /// Whether a name can be a group's.
    ///
    /// # Errors
    ///
    /// Why not.
    pub fn check(&self, name: &[u8]) -> Result<(), GroupError> {
        if name.is_empty() || name.len() > GROUP_BYTES_MAX {
            return Err(GroupError::Length);
        }
        match name.contains(&self.delimiter) {
            true => Err(GroupError::Delimiter),
            false => Ok(()),
        }
    }

    /// Makes every item of a group older that is stored now. The caller has callers give
    /// [`GROUPS_DUE`] with requests that begin from now on, and acknowledges the invalidation then.
    ///
    /// # Errors
    ///
    /// [`GroupError`].
    pub fn invalidate(&self, name: &[u8]) -> Result<(), GroupError> {
        self.check(name)?;
        let _changing = lock(&self.swept);
        let (hash, event) = (self.hash_of(name), self.latest() + 1);
        if event > EVENT_MAX {
            return Err(GroupError::Full);
        }
        let bit = filter_bit(name);
        let word = event | bit << EVENT_BITS;
        match self.slot_of(hash) {
            Some(at) => self.event_word(at).store(word, Release),
            None => {
                let at = self.free_slot(hash).ok_or(GroupError::Full)?;
                self.filter[bit as usize / 64].fetch_or(1 << (bit % 64), Release);
                // Who finds it sees that the group that had the place before has left it.
                let ordering = match weakened("group_event_release") {
                    true => Relaxed,
                    false => Release,
                };
                self.event_word(at).store(word, ordering);
                in_program_order();
                self.hash(at).store(hash, Release);
                self.known.fetch_add(1, Release);
            }
        }
        // A sweep that sees it sees all of the above.
        self.words[LATEST_AT].fetch_add(1, Release);
        Ok(())
    }

    fn slot_of(&self, hash: u64) -> Option<usize> {
        (0..PROBES_MAX)
            .map(|nth| slot(hash, nth))
            .take_while(|&at| self.hash(at).load(Relaxed) != EMPTY)
            .find(|&at| self.hash(at).load(Relaxed) == hash)
    }

    /// A place for the hash, if there is one.
    fn free_slot(&self, hash: u64) -> Option<usize> {
        if self.known() >= GROUPS_MAX as u64 {
            return None;
        }
        (0..PROBES_MAX)
            .map(|nth| slot(hash, nth))
            .find(|&at| self.hash(at).load(Relaxed) <= LEFT)
    }

    /// Whether a partition has to be swept: there was an event since it was.
    pub fn wants_sweep(&self, partition: usize) -> bool {
        let swept = lock(&self.swept);
        self.is_any_known() && swept.get(partition).copied().unwrap_or(0) < self.latest()
    }

    /// A partition, of this many, has been swept since this event. Forgets groups whose events all
    /// partitions have been swept since.
    pub fn note_swept(&self, partition: usize, partitions: usize, event: u64) {
        let mut swept = lock(&self.swept);
        swept.resize(partitions, 0);
        swept[partition] = swept[partition].max(event);
        let all = swept.iter().copied().min().unwrap_or(0);
        let known = self.known();
        for at in self.slots_known() {
            if self.event(at) <= all {
                self.forget(at);
            }
        }
        if self.known() != known {
            self.renew_filter();
        }
    }

    fn forget(&self, at: usize) {
        self.hash(at).store(LEFT, forgetting());
        self.known.fetch_sub(1, Release);
        // No hash lies beyond an empty place that a search would come to by these.
        let mut at = at;
        while self.hash((at + 1) % SLOTS).load(Relaxed) == EMPTY
            && self.hash(at).load(Relaxed) == LEFT
        {
            self.hash(at).store(EMPTY, forgetting());
            at = (at + SLOTS - 1) % SLOTS;
        }
    }
}

impl std::fmt::Debug for Groups {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut all = f.debug_struct("Groups");
        all.field("delimiter", &char::from(self.delimiter))
            .field("known", &self.known());
        all.finish_non_exhaustive()
    }
}

/// How a group is forgotten: who finds it gone sees that its items are.
fn forgetting() -> Ordering {
    match weakened("group_forgotten_release") {
        true => Relaxed,
        false => Release,
    }
}

#[inline]
fn slot(hash: u64, nth: usize) -> usize {
    // The upper bits, as lower ones are the tags of keys.
    ((hash >> 20) as usize).wrapping_add(nth) % SLOTS
}

/// The number of a name's bit in the filter.
#[inline]
fn filter_bit(name: &[u8]) -> u64 {
    let (first, last) = ends(name);
    let mixed = (first ^ last.rotate_left(29)).wrapping_add(name.len() as u64);
    mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - FILTER_BITS)
}

/// The first and the last bytes of a name, eight each if it has as many.
#[inline]
fn ends(name: &[u8]) -> (u64, u64) {
    match (name.first_chunk::<8>(), name.last_chunk::<8>()) {
        (Some(first), Some(last)) => (u64::from_le_bytes(*first), u64::from_le_bytes(*last)),
        _ => match (name.first_chunk::<4>(), name.last_chunk::<4>()) {
            (Some(first), Some(last)) => (
                u64::from(u32::from_le_bytes(*first)),
                u64::from(u32::from_le_bytes(*last)),
            ),
            _ => {
                let [first, middle, last] = [0, name.len() / 2, name.len() - 1];
                let first = u64::from(name[first]) << 8 | u64::from(name[middle]);
                (first, u64::from(name[last]))
            }
        },
    }
}

/// Where a byte is first, eight bytes at a time: most keys have one within their first words.
#[inline]
fn position(key: &[u8], byte: u8) -> Option<usize> {
    const LOW: u64 = 0x0101_0101_0101_0101;
    let all = LOW * u64::from(byte);
    let (words, rest) = key.as_chunks::<8>();
    for (nth, word) in words.iter().enumerate() {
        let differs = u64::from_le_bytes(*word) ^ all;
        let zero = differs.wrapping_sub(LOW) & !differs & (LOW << 7);
        if zero != 0 {
            return Some(8 * nth + zero.trailing_zeros() as usize / 8);
        }
    }
    let at = rest.iter().position(|&other| other == byte)?;
    Some(8 * words.len() + at)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use glimmer_base::Seed;

    fn groups() -> Groups {
        Groups::new(b':', Seed(7).into(), None).unwrap()
    }

    #[test]
    fn the_first_delimiter_is_found() {
        for len in 0..40 {
            for at in 0..len {
                for second in [at, len - 1] {
                    let mut key = vec![b'x'; len];
                    key[at] = b':';
                    key[second] = b':';
                    assert_eq!(position(&key, b':'), Some(at), "{len} {at}");
                }
            }
            assert_eq!(position(&vec![b';'; len], b':'), None);
            assert_eq!(position(&vec![0xBA; len], b':'), None);
        }
        let groups = groups();
        assert_eq!(groups.name_of(b"user:1:x"), Some(&b"user"[..]));
        assert_eq!(groups.name_of(b":1"), None);
        assert_eq!(groups.name_of(b"user"), None);
    }

    #[test]
    fn names_that_no_key_begins_with_are_refused() {
        let groups = groups();
        assert_eq!(groups.check(b""), Err(GroupError::Length));
        assert_eq!(groups.check(&[b'a'; 250]), Err(GroupError::Length));
        assert_eq!(groups.check(&[b'a'; 249]), Ok(()));
        assert_eq!(groups.check(b"user:"), Err(GroupError::Delimiter));
        assert_eq!(groups.invalidate(b"a:b"), Err(GroupError::Delimiter));
        assert!(!groups.is_any_known());
    }

    #[test]
    fn a_group_is_forgotten_when_all_partitions_were_swept() {
        let groups = groups();
        assert_eq!(groups.event_of(b"a:1"), 0);
        groups.invalidate(b"a").unwrap();
        groups.invalidate(b"b").unwrap();
        assert_eq!([groups.event_of(b"a:1"), groups.event_of(b"b:1")], [1, 2]);
        assert!(groups.is_dead(b"a:1", || Some(0)) && groups.is_dead(b"a:1", || Some(2)));
        assert!(!groups.is_dead(b"a:1", || Some(1)) && !groups.is_dead(b"c:1", || Some(0)));
        groups.note_swept(0, 2, 2);
        assert_eq!(groups.known(), 2);
        assert!(groups.wants_sweep(1) && !groups.wants_sweep(0));
        groups.note_swept(1, 2, 1);
        assert_eq!([groups.event_of(b"a:1"), groups.event_of(b"b:1")], [0, 2]);
        groups.invalidate(b"a").unwrap();
        assert_eq!(groups.event_of(b"a:1"), 3, "no event comes again");
        for partition in 0..2 {
            groups.note_swept(partition, 2, 3);
        }
        assert!(!groups.is_any_known() && !groups.wants_sweep(0));
        assert!((0..SLOTS).all(|at| groups.hash(at).load(Relaxed) == EMPTY));
    }

    #[test]
    fn a_full_table_takes_known_groups_only_and_has_room_after_a_sweep() {
        let groups = groups();
        let name = |number: usize| format!("group {number}");
        for number in 0..GROUPS_MAX {
            assert_eq!(
                groups.invalidate(name(number).as_bytes()),
                Ok(()),
                "{number}"
            );
        }
        assert_eq!(groups.invalidate(b"one more"), Err(GroupError::Full));
        assert_eq!(groups.invalidate(name(1).as_bytes()), Ok(()));
        groups.note_swept(0, 1, GROUPS_MAX as u64);
        assert_eq!(groups.known(), 1);
        assert_eq!(groups.event_of(b"group 1:x"), GROUPS_MAX as u64 + 1);
        assert_eq!(groups.invalidate(b"one more"), Ok(()));
    }

    /// Groups come and go in any order; what is known is found.
    #[test]
    fn what_is_known_is_found_whatever_else_was_forgotten() {
        let groups = groups();
        let mut oracle = std::collections::BTreeMap::new();
        let mut random = 1u64;
        let steps = if cfg!(miri) { 200 } else { 20_000u64 };
        for step in 0..steps {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let name = format!("{}", (random >> 40) % 3_000);
            if groups.invalidate(name.as_bytes()).is_ok() {
                oracle.insert(name, groups.latest());
            }
            if step % 700 == 699 {
                let event = groups.latest().saturating_sub(300);
                groups.note_swept(0, 1, event);
                oracle.retain(|_, at| *at > event);
            }
        }
        assert_eq!(groups.known(), oracle.len() as u64);
        for number in 0..3_000 {
            let name = format!("{number}");
            let event = oracle.get(&name).copied().unwrap_or(0);
            assert_eq!(groups.event_of(format!("{name}:x").as_bytes()), event);
        }
    }
}
