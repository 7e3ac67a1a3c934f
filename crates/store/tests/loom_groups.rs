//! Loom explores the invalidation of a group beside a read, a store and the sweep: every
//! interleaving (up to a bound on preemptions) and every value that a relaxed load may return.
//! `RUSTFLAGS="--cfg loom" cargo test -p glimmer-store --release --test loom_groups`.
#![cfg(loom)]

use glimmer_base::sync::{Arc, explore};
use glimmer_base::{Keyhash, Moment, Seed};
use glimmer_store::access::{Access, Crcw, Crew};
use glimmer_store::batches::{Batches, Participant};
use glimmer_store::evict::FIFO;
use glimmer_store::groups::{GROUPS_DUE, Groups};
use glimmer_store::heap::{Item, NewItem};
use glimmer_store::memory::PagePolicy;
use glimmer_store::mica_cache::{Owner, PartitionConfig};
use glimmer_store::mica_store::{self, StoreConfig};
use glimmer_store::table::{Stored, Table, TableReader, TableWriter};
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

const NOW: Moment = Moment {
    ms: 2_000,
    epoch_unix_ms: 0,
};
const SEED: Seed = Seed(1);
const GROUP: &[u8] = b"g";
const KEY: &[u8] = b"g:1";
const OLD: u8 = 1;
const NEW: u8 = 2;

fn keyhash() -> Keyhash {
    SEED.keyhash(KEY)
}

fn groups() -> Arc<Groups> {
    Arc::new(Groups::new(b':', SEED.into(), None).unwrap())
}

/// A partition of one bucket for a few items.
fn partition<A: Access>(groups: &Arc<Groups>) -> Owner<A> {
    let config = PartitionConfig {
        log_bytes: 8 * 30,
        main_buckets: 1,
        spare_buckets: 0,
        index_follows: false,
        item_bytes_max: 8 * 9,
        offset_bits: 40,
        pages: PagePolicy::Small,
        numa_node: None,
        hasher: SEED.into(),
        ..PartitionConfig::default()
    };
    let mut owner = Owner::new(&config, FIFO).unwrap();
    owner.have_groups(groups);
    owner
}

/// A reader on worker 0. Worker 1 has the table.
struct Looker {
    reader: <Owner<Crew> as Table>::Reader,
    participant: Participant,
}

impl Looker {
    fn of<A: Access>(owner: &mut Owner<A>) -> Looker {
        let (batches, mut participants) = Batches::new(1);
        owner.join(&batches, 1);
        Looker {
            reader: owner.reader().unwrap(),
            participant: participants.remove(0),
        }
    }

    /// What is read: none if the reader would have to ask the writer.
    fn read(&mut self, flushes: u64) -> Option<Option<u8>> {
        let batch = self.participant.begin();
        let read = (self.reader).read(&batch, keyhash(), KEY, NOW, flushes, first_byte);
        read.ok()
    }
}

fn first_byte(item: &Item<'_>) -> u8 {
    let mut value = Vec::new();
    item.value().append_to(&mut value);
    value[0]
}

fn put<A: Access>(owner: &mut Owner<A>, flushes: u64, fill: u8) {
    let value = [fill; 8];
    let item = NewItem::new(KEY, &value);
    let stored = owner.enter(flushes).put(keyhash(), &item, NOW);
    assert!(matches!(stored, Stored::Yes(_)));
}

/// Sweeps the only chain.
fn sweep<A: Access>(owner: &mut Owner<A>) {
    let mut writer = owner.enter(GROUPS_DUE);
    let name = writer.begin_sweep();
    assert_eq!(writer.expire(0, NOW).1, None);
    assert!(writer.has_swept(name));
}

/// A read that begins after an invalidation was acknowledged sees nothing older.
#[test]
fn what_was_invalidated_is_not_read() {
    explore(2, || {
        let groups = groups();
        let mut owner = partition::<Crew>(&groups);
        let mut looker = Looker::of(&mut owner);
        put(&mut owner, 0, OLD);
        let is_acknowledged = Arc::new(AtomicBool::new(false));
        let reading = {
            let is_acknowledged = is_acknowledged.clone();
            thread::spawn(move || {
                if is_acknowledged.load(Ordering::Acquire) {
                    let read = looker.read(GROUPS_DUE);
                    assert!(matches!(read, None | Some(None | Some(NEW))), "{read:?}");
                }
            })
        };
        groups.invalidate(GROUP).unwrap();
        is_acknowledged.store(true, Ordering::Release);
        put(&mut owner, GROUPS_DUE, NEW);
        reading.join().unwrap();
    });
}

/// A read beside the end of the sweep, after which the group is forgotten, sees nothing older. The
/// thread that forgets the group is not the one that has removed the item.
#[test]
fn nothing_older_is_read_while_a_group_is_forgotten() {
    explore(2, || {
        let groups = groups();
        let mut owner = partition::<Crew>(&groups);
        let mut looker = Looker::of(&mut owner);
        put(&mut owner, 0, OLD);
        groups.invalidate(GROUP).unwrap();
        let reading = thread::spawn(move || {
            let read = looker.read(GROUPS_DUE);
            assert!(matches!(read, None | Some(None)), "{read:?}");
        });
        let sweeping = {
            let groups = groups.clone();
            thread::spawn(move || groups.note_swept(1, 2, 1))
        };
        sweep(&mut owner);
        groups.note_swept(0, 2, 1);
        sweeping.join().unwrap();
        reading.join().unwrap();
        assert!(!groups.is_any_known());
    });
}

/// An append beside the invalidation does not bring the old item back.
#[test]
fn what_an_item_is_made_of_is_not_read_either() {
    explore(2, || {
        let groups = groups();
        let mut owner = partition::<Crew>(&groups);
        put(&mut owner, 0, OLD);
        // With an item behind it, the old one does not grow where it lies.
        let behind = NewItem::new(b"b", b"");
        owner.enter(0).put(SEED.keyhash(b"b"), &behind, NOW);
        // The table looks at groups, but not for this one's sake.
        groups.invalidate(b"h").unwrap();
        drop(owner.enter(GROUPS_DUE));
        let invalidating = {
            let groups = groups.clone();
            thread::spawn(move || groups.invalidate(GROUP).unwrap())
        };
        let more = NewItem {
            value: [&[], &[NEW; 8]],
            ..NewItem::new(KEY, &[])
        };
        let stored = owner.enter(GROUPS_DUE).extend(keyhash(), &more, NOW);
        assert!(matches!(stored, None | Some(Stored::Yes(_))), "{stored:?}");
        invalidating.join().unwrap();
        let place = (keyhash(), Default::default());
        let found = owner.read_at(place, KEY, NOW, GROUPS_DUE, first_byte);
        assert_eq!(found, None, "an older value was read");
    });
}

/// In store mode an item that is to grow stays where it is, whatever is invalidated meanwhile: a
/// store that has found it is not made of nothing.
#[test]
fn an_item_that_grows_is_there_to_the_end() {
    explore(2, || {
        let groups = groups();
        let config = StoreConfig {
            bytes: 65 * 8,
            roots: Some(1),
            spare_percent: 0,
            item_bytes_max: 8 * 8,
            pages: PagePolicy::Small,
            hasher: SEED.into(),
            ..StoreConfig::default()
        };
        let mut owner = mica_store::Owner::<Crew>::new(&config).unwrap();
        owner.have_groups(&groups);
        // With an item behind it, the old one does not grow where it lies.
        for key in [KEY, b"b"] {
            let item = NewItem::new(key, &[OLD; 8]);
            let stored = owner.enter(0).put(SEED.keyhash(key), &item, NOW);
            assert!(matches!(stored, Stored::Yes(_)));
        }
        // The table looks at groups, but not for this one's sake.
        groups.invalidate(b"h").unwrap();
        drop(owner.enter(GROUPS_DUE));
        let invalidating = {
            let groups = groups.clone();
            thread::spawn(move || groups.invalidate(GROUP).unwrap())
        };
        let more = NewItem {
            value: [&[], &[NEW; 8]],
            ..NewItem::new(KEY, &[])
        };
        let stored = owner.enter(GROUPS_DUE).extend(keyhash(), &more, NOW);
        assert!(matches!(stored, None | Some(Stored::Yes(_))), "{stored:?}");
        let left = owner.figures().counts(GROUPS_DUE).expired_reclaimed;
        assert!(stored.is_none() || left == 0, "it left before it was read");
        invalidating.join().unwrap();
        let place = (keyhash(), Default::default());
        let found = owner.read_at(place, KEY, NOW, GROUPS_DUE, first_byte);
        assert_eq!(found, None, "an older value was read");
    });
}

/// A store of a batch that began before the invalidation may count as before it or as after it. It
/// does not count as before, and then, once the group is forgotten, as after.
#[test]
fn an_item_that_was_gone_is_not_there_again_after_the_sweep() {
    explore(2, || {
        let groups = groups();
        let mut owner = partition::<Crcw>(&groups);
        let mut looker = Looker::of(&mut owner);
        let mut other = owner.share(2).unwrap();
        let is_stored = Arc::new(AtomicBool::new(false));
        let storing = {
            let is_stored = is_stored.clone();
            thread::spawn(move || {
                put(&mut other, 0, NEW);
                is_stored.store(true, Ordering::Release);
            })
        };
        groups.invalidate(GROUP).unwrap();
        sweep(&mut owner);
        let is_stored = is_stored.load(Ordering::Acquire);
        let was_gone = is_stored && looker.read(GROUPS_DUE) == Some(None);
        groups.note_swept(0, 1, 1);
        storing.join().unwrap();
        let place = (keyhash(), Default::default());
        let found = owner.read_at(place, KEY, NOW, 0, first_byte);
        assert!(!(was_gone && found.is_some()), "an item came back");
    });
}

/// A group whose first place is that of [`GROUP`].
const SUCCESSOR: &[u8] = b"s16";

/// A reader that finds a group's place does not take the event of a later group for its own.
#[test]
fn a_group_in_the_place_of_another_has_its_own_event() {
    explore(2, || {
        let groups = groups();
        let mut owner = partition::<Crew>(&groups);
        groups.invalidate(GROUP).unwrap();
        let mut looker = Looker::of(&mut owner);
        put(&mut owner, GROUPS_DUE, NEW);
        let taking = {
            let groups = groups.clone();
            thread::spawn(move || {
                groups.note_swept(0, 1, 1);
                groups.invalidate(SUCCESSOR).unwrap();
            })
        };
        let read = looker.read(GROUPS_DUE);
        assert_eq!(read, Some(Some(NEW)), "nothing newer was invalidated");
        taking.join().unwrap();
    });
}
