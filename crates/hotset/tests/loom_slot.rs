//! Loom explores a slot and the shadow directory with a store of one item, whose owner follows the
//! protocol of [`Guard`]. See the documentation there.
#![cfg(loom)]

use glimmer_base::Keyhash;
use glimmer_base::sync::{explore, weakened};
use glimmer_hotset::layout::{HotItem, NEVER_NS, Piece, Tally};
use glimmer_hotset::{Filled, Guard, Memory, Reader, Request};
use loom::sync::atomic::AtomicU64;
use loom::sync::atomic::Ordering::{Acquire, Release};
use loom::sync::{Arc, Mutex};
use loom::thread;

const A: (&[u8], Keyhash) = (b"a", Keyhash(0x11));
const B: (&[u8], Keyhash) = (b"b", Keyhash(0x22));

/// A partition with one item per key: its value is a digit, and zero is no item. Readers load it
/// without the gate, as optimistic readers of the store do.
struct Store {
    gates: [Mutex<()>; 2],
    values: [AtomicU64; 2],
    flushes: AtomicU64,
    guard: Guard,
}

impl Store {
    /// An accelerator of one slot.
    fn new() -> Arc<Store> {
        Arc::new(Store {
            gates: [Mutex::new(()), Mutex::new(())],
            values: [AtomicU64::new(1), AtomicU64::new(1)],
            flushes: AtomicU64::new(0),
            guard: Guard::new(Arc::new(Memory::new(1, 1, 0))),
        })
    }

    fn reader(&self) -> Reader {
        Reader::new(self.guard.memory().clone(), 0)
    }
}

fn place((key, _): (&[u8], Keyhash)) -> usize {
    usize::from(key[0] - b'a')
}

fn with_item<R>(
    (key, _): (&[u8], Keyhash),
    value: u64,
    use_it: impl FnOnce(&HotItem<'_>) -> R,
) -> R {
    let value = [b'0' + value as u8];
    use_it(&HotItem {
        key,
        value: &value,
        // A later item has a shorter line.
        flags: 10u32.pow(9 - u32::from(value[0] - b'0')),
        cas: u64::from(value[0] - b'0'),
        deadline_ns: NEVER_NS,
    })
}

/// Changes an item as the engine does.
fn write(store: &Store, key: (&[u8], Keyhash), value: u64) {
    let epoch = store.guard.epoch();
    let early = weakened("asked_under_gate").then(|| store.guard.may_have(key.1));
    let gate = store.gates[place(key)].lock().unwrap();
    let item = &store.values[place(key)];
    if !early.unwrap_or_else(|| store.guard.may_have(key.1)) {
        return item.store(value, Release);
    }
    let late = weakened("retract_before_change");
    let token = if late {
        None
    } else {
        store.guard.retract(key.1)
    };
    item.store(value, Release);
    let token = if late {
        store.guard.retract(key.1)
    } else {
        token
    };
    if let Some(token) = token {
        with_item(key, value, |item| store.guard.refill(token, epoch, item));
    }
    drop(gate);
}

/// Fills a slot with what the store has, as the engine does.
fn fill(store: &Store, key: (&[u8], Keyhash)) -> Option<Filled> {
    let late = weakened("epoch_before_flushes");
    let epoch = store.guard.epoch();
    let due = store.flushes.load(Acquire);
    let epoch = if late { store.guard.epoch() } else { epoch };
    let gate = (!weakened("fill_under_gate")).then(|| store.gates[place(key)].lock().unwrap());
    let value = store.values[place(key)].load(Acquire);
    // Values below five are from before the first flush.
    let is_there = value != 0 && (due == 0 || value >= 5);
    let filled = is_there.then(|| {
        with_item(key, value, |item| {
            store.guard.fill(epoch, key.1, item, 1, |_| 0)
        })
    });
    drop(gate);
    filled
}

/// Evicts an item as the store does.
fn evict(store: &Store, key: (&[u8], Keyhash)) {
    let _gate = store.gates[place(key)].lock().unwrap();
    let late = weakened("evict_synchronously");
    if !late {
        store.guard.evict(key.1);
    }
    store.values[place(key)].store(0, Release);
    if late {
        store.guard.evict(key.1);
    }
}

/// What the accelerator answers: the value as a digit. The CAS has to be of the same item.
fn read(reader: &Reader, (key, _): (&[u8], Keyhash)) -> Option<u64> {
    let hit = reader.find(key, 0).ok()?;
    let mut value = [0];
    let peek = hit.peek();
    let cas = peek.cas();
    if peek.bytes(Piece::Value) == 1 {
        peek.copy(Piece::Value, &mut value);
    }
    hit.finish(Tally::HitBinary).then(|| {
        let value = u64::from(value[0] - b'0');
        assert_eq!(value, cas, "a torn reply");
        value
    })
}

#[test]
fn a_refilled_item_is_not_torn() {
    explore(3, || {
        let store = Store::new();
        fill(&store, A);
        let writer = {
            let store = store.clone();
            thread::spawn(move || write(&store, A, 2))
        };
        let reader = store.reader();
        if let Some(value) = read(&reader, A) {
            assert!([1, 2].contains(&value));
        }
        writer.join().unwrap();
        assert_eq!(read(&reader, A), Some(2));
    });
}

#[test]
fn a_reply_in_text_is_not_torn() {
    explore(2, || {
        let store = Store::new();
        fill(&store, A);
        let writer = {
            let store = store.clone();
            thread::spawn(move || write(&store, A, 2))
        };
        let request = Request::parse(b"get a\r\n").unwrap();
        let mut reply = Vec::new();
        let answered = store.reader().answer(&request, 0, 64, &mut reply);
        let whole = [1, 2].map(|value| {
            with_item(A, value, |item| {
                let digit = item.value[0] as char;
                format!("VALUE a {} 1\r\n{digit}\r\nEND\r\n", item.flags)
            })
        });
        match answered {
            Ok(()) => assert!(whole.iter().any(|one| one.as_bytes() == reply)),
            Err(_) => assert!(reply.is_empty()),
        }
        writer.join().unwrap();
    });
}

#[test]
fn after_a_change_is_seen_no_older_value_is_answered() {
    explore(3, || {
        let store = Store::new();
        fill(&store, A);
        let writer = {
            let store = store.clone();
            thread::spawn(move || write(&store, A, 2))
        };
        let seen = store.values[0].load(Acquire);
        if let Some(value) = read(&store.reader(), A) {
            assert!(value >= seen, "{value} after {seen}");
        }
        writer.join().unwrap();
    });
}

#[test]
fn a_fill_beside_a_change_leaves_nothing_stale() {
    explore(3, || {
        let store = Store::new();
        let filler = {
            let store = store.clone();
            thread::spawn(move || {
                fill(&store, A);
            })
        };
        write(&store, A, 2);
        assert_ne!(read(&store.reader(), A), Some(1));
        filler.join().unwrap();
        assert_ne!(read(&store.reader(), A), Some(1));
    });
}

#[test]
fn after_an_eviction_is_seen_nothing_is_answered() {
    explore(3, || {
        let store = Store::new();
        fill(&store, A);
        let evicting = {
            let store = store.clone();
            thread::spawn(move || evict(&store, A))
        };
        if store.values[0].load(Acquire) == 0 {
            assert_eq!(read(&store.reader(), A), None);
        }
        evicting.join().unwrap();
        assert_eq!(store.guard.slot_of(A.1), None);
    });
}

#[test]
fn a_fill_beside_a_flush_leaves_nothing_that_was_flushed() {
    explore(3, || {
        let store = Store::new();
        fill(&store, A);
        let filler = {
            let store = store.clone();
            thread::spawn(move || {
                fill(&store, A);
            })
        };
        store.guard.flush(None, || store.flushes.store(1, Release));
        assert_eq!(read(&store.reader(), A), None);
        filler.join().unwrap();
        assert_eq!(read(&store.reader(), A), None);
    });
}

#[test]
fn after_a_flush_is_seen_nothing_that_was_flushed_is_answered() {
    explore(3, || {
        let store = Store::new();
        fill(&store, A);
        let flusher = {
            let store = store.clone();
            thread::spawn(move || store.guard.flush(None, || store.flushes.store(1, Release)))
        };
        if store.flushes.load(Acquire) == 1 {
            assert_eq!(read(&store.reader(), A), None);
        }
        flusher.join().unwrap();
    });
}

#[test]
fn a_key_that_loses_its_slot_while_it_is_written_leaves_nothing_stale() {
    explore(3, || {
        let store = Store::new();
        fill(&store, A);
        let other = {
            let store = store.clone();
            thread::spawn(move || {
                fill(&store, B);
            })
        };
        write(&store, A, 2);
        assert_ne!(read(&store.reader(), A), Some(1));
        // Every change that follows is followed by the accelerator, too.
        write(&store, A, 3);
        let value = read(&store.reader(), A);
        assert!([None, Some(3)].contains(&value), "{value:?}");
        other.join().unwrap();
        let value = read(&store.reader(), A);
        assert!([None, Some(3)].contains(&value), "{value:?}");
        write(&store, B, 4);
        let value = read(&store.reader(), B);
        assert!([None, Some(4)].contains(&value), "{value:?}");
    });
}

#[test]
fn two_keys_that_want_one_slot_do_not_both_get_it() {
    explore(3, || {
        let store = Store::new();
        let other = {
            let store = store.clone();
            thread::spawn(move || {
                fill(&store, B);
            })
        };
        fill(&store, A);
        other.join().unwrap();
        let reader = store.reader();
        assert!(read(&reader, A).is_none() || read(&reader, B).is_none());
        assert!(store.guard.slot_of(A.1).is_none() || store.guard.slot_of(B.1).is_none());
    });
}
