//! Groups of keys that are invalidated. No item is read that is older than the last invalidation of
//! its group, and nothing else is lost by one.

use crate::oracle::SEED;
use glimmer_base::{Expiry, Keyhash, Moment};
use glimmer_store::access::Access;
use glimmer_store::batches::{Batches, Participant};
use glimmer_store::groups::{GROUPS_DUE, Groups};
use glimmer_store::heap::{History, Item, Marks, NewItem};
use glimmer_store::table::{
    Announced, Begun, Busy, Headway, Large, Stored, Table, TableReader, TableWriter,
};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::HashMap;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex};
use std::thread;

const NOW: Moment = Moment {
    ms: 2_000,
    epoch_unix_ms: 0,
};
/// Groups that are invalidated. Keys of one more stay, and so do those of none.
const GROUPS: u32 = 4;
const KEYS: u32 = 40;
/// Invalidations of a race.
const EVENTS_MIN: u64 = if cfg!(miri) { 2 } else { 12 };

/// A key by its number, and which group it has.
fn key(number: u32) -> (Vec<u8>, u32) {
    let group = number % (GROUPS + 2);
    let key = match group {
        0..=GROUPS => format!("group {group}:{number}:x"),
        _ => format!("{number}"),
    };
    (key.into(), group)
}

fn name(group: u32) -> Vec<u8> {
    format!("group {group}").into()
}

/// A value says when it was stored, and is as long as the test wants it.
fn value(at: u64, len: usize) -> Vec<u8> {
    let mut value = at.to_le_bytes().to_vec();
    value.resize(len.max(8), at as u8);
    value
}

fn stored_at(item: &Item<'_>) -> u64 {
    let mut value = Vec::new();
    item.value().append_to(&mut value);
    told_by(&value)
}

/// When a value was stored, as it says itself.
fn told_by(value: &[u8]) -> u64 {
    let (head, rest) = value.split_at(8);
    let at = u64::from_le_bytes(head.try_into().unwrap());
    assert!(rest.iter().all(|&byte| byte == at as u8), "a torn value");
    at
}

/// What an engine does about groups beside the table.
struct Clock {
    groups: Arc<Groups>,
    due: AtomicU64,
    changing: Mutex<()>,
}

impl Clock {
    fn new() -> Clock {
        Clock {
            groups: Arc::new(Groups::new(b':', SEED.into(), None).unwrap()),
            due: AtomicU64::new(0),
            changing: Mutex::new(()),
        }
    }

    fn due(&self) -> u64 {
        self.due.load(SeqCst)
    }

    fn invalidate(&self, group: u32) {
        let _changing = self.changing.lock().unwrap();
        self.groups.invalidate(&name(group)).unwrap();
        self.due.store(GROUPS_DUE, SeqCst);
    }

    fn note_swept(&self, event: u64) {
        let _changing = self.changing.lock().unwrap();
        self.groups.note_swept(0, 1, event);
        if !self.groups.is_any_known() {
            self.due.store(0, SeqCst);
        }
    }

    /// Sweeps some chains. `sweep` is where it stands, the event, and the table's name for it.
    fn sweep<T: Table>(&self, table: &mut T, sweep: &mut Option<(usize, u64, u64)>) {
        if sweep.is_none() && !self.groups.wants_sweep(0) {
            return;
        }
        let event = self.groups.latest();
        let mut writer = table.enter(self.due() | GROUPS_DUE);
        let (chain, event, number) = sweep.unwrap_or_else(|| (0, event, writer.begin_sweep()));
        let next = writer.expire(chain, NOW).1;
        *sweep = next.map(|chain| (chain, event, number));
        if next.is_none() {
            let is_swept = writer.has_swept(number);
            drop(writer);
            if is_swept {
                self.note_swept(event);
            }
        }
    }
}

/// What a plain map knows of a key.
#[derive(Clone, Copy)]
struct Known {
    at: u64,
    len: usize,
}

/// Random operations beside a plain map. Some values are received where they lie, some have a CAS
/// unique of the client's, flags, or an expiry. Where the table `loses_nothing`, what the map has
/// is there.
pub fn beside_a_map<T: Table>(mut table: T, value_max: usize, loses_nothing: bool) {
    let seed = glimmer_seeds::seed();
    let mut rng = SmallRng::seed_from_u64(seed);
    let clock = Clock::new();
    table.have_groups(&clock.groups);
    let mut map: HashMap<u32, Known> = HashMap::new();
    let (mut sweep, mut at, mut hits, mut forgotten) = (None, 0, 0, 0);
    let steps = if cfg!(miri) { 300 } else { 6_000 };
    for step in 0..steps {
        let number = rng.random_range(0..KEYS);
        let (bytes, group) = key(number);
        let (keyhash, due) = (SEED.keyhash(&bytes), clock.due());
        let len = match rng.random_bool(0.1) {
            true => rng.random_range(8..=value_max),
            false => rng.random_range(8..60),
        };
        let mut item = NewItem {
            flags: [0, 1, 253, 254, 255, u32::MAX][rng.random_range(0..6)],
            expiry: match rng.random_bool(0.3) {
                true => Expiry::at_ms(1 << 39),
                false => Expiry::NEVER,
            },
            history: History {
                cas: rng.random_bool(0.2).then(|| rng.random_range(1..1 << 50)),
                ..History::NEW
            },
            ..NewItem::new(&bytes, &[])
        };
        match rng.random_range(0..100) {
            0..30 => {
                at += 1;
                let new = value(at, len);
                item.value[0] = &new;
                if put(&mut table, &mut rng, (keyhash, due), &item) {
                    map.insert(number, Known { at, len: new.len() });
                }
            }
            30..40 => {
                let more = vec![map.get(&number).map_or(0, |known| known.at as u8); len % 30];
                item.value[1] = &more;
                let stored = table.enter(due).extend(keyhash, &item, NOW);
                match (stored, map.get_mut(&number)) {
                    (Some(Stored::Yes(_)), known) => {
                        known.expect("an item that is there").len += more.len();
                    }
                    (Some(_), _) => {}
                    (None, known) => assert!(!(loses_nothing && known.is_some()), "{number}"),
                }
            }
            40..45 => {
                let removed = table.enter(due).remove(keyhash, &bytes, NOW);
                let known = map.remove(&number).is_some();
                assert!(removed == known || known && !loses_nothing, "{number}");
            }
            45..50 => {
                let touched = table.enter(due).touch(keyhash, &bytes, item.expiry, NOW);
                assert!(!touched || map.contains_key(&number), "{number}");
            }
            50..53 => {
                let history = History {
                    cas: Some(7),
                    marks: Marks::STALE,
                    ..History::NEW
                };
                let mut writer = table.enter(due);
                let amended = writer.amend(keyhash, &bytes, item.expiry, history, NOW);
                assert!(!amended || map.contains_key(&number), "{number}");
            }
            53..56 if group < GROUPS => {
                clock.invalidate(group);
                map.retain(|&other, _| key(other).1 != group);
            }
            56..75 => {
                let before = clock.groups.known();
                clock.sweep(&mut table, &mut sweep);
                forgotten += before.saturating_sub(clock.groups.known());
            }
            75..77 => {
                let mut chain = Some(0);
                while let Some(number) = chain {
                    let writer = table.enter(due);
                    chain = writer.list(number, NOW, &mut |item, _| {
                        let mut bytes = [0; 256];
                        let listed = item.key(&mut bytes);
                        let of = (0..KEYS).find(|&number| key(number).0 == listed);
                        assert_eq!(stored_at(item), map[&of.unwrap()].at, "in a listing");
                    });
                }
            }
            _ => {
                let take = |item: &Item<'_>| (stored_at(item), item.value().len());
                let read = match rng.random_bool(0.5) {
                    true => {
                        let place = (keyhash, T::HomeBucket::default());
                        table.read_at(place, &bytes, NOW, due, take)
                    }
                    false => table.enter(due).read(keyhash, &bytes, NOW, take),
                };
                match (read, map.get(&number)) {
                    (Some((at, len)), Some(known)) => {
                        assert_eq!((at, len), (known.at, known.len), "step {step}");
                        hits += 1;
                    }
                    (Some((at, _)), None) => panic!("step {step}: {number} is of {at}"),
                    (None, known) => {
                        assert!(!(loses_nothing && known.is_some()), "step {step}: {number}");
                        map.remove(&number);
                    }
                }
            }
        }
    }
    println!(
        "{}: {hits} hits, {forgotten} groups were swept",
        T::Access::NAME
    );
    assert!(
        cfg!(miri) || hits > 200 && forgotten > 5,
        "{hits}, {forgotten}"
    );
}

/// Large values whose group is invalidated while they arrive. Each is stored, with every field that
/// an item may have, as there is memory enough.
pub fn invalidated_while_received<T: Table>(mut table: T) {
    let clock = Clock::new();
    table.have_groups(&clock.groups);
    let (bytes, group) = key(0);
    let (keyhash, home) = (SEED.keyhash(&bytes), T::HomeBucket::default());
    let len = if cfg!(miri) { 200 } else { 20_000 };
    for value_bytes in len..len + 8 {
        let announced = Announced {
            key: &bytes,
            keyhash,
            value_bytes,
            part: 1,
            now: NOW,
        };
        let headway = &mut Headway::new(u64::MAX);
        let begun = table.begin_upload(home, clock.due(), &announced, headway);
        let Begun::Yes(upload) = begun else {
            panic!("there is memory");
        };
        upload.write(0, &vec![1; value_bytes]);
        clock.invalidate(group);
        let mut stored = None;
        table
            .enter(clock.due())
            .with_upload(upload, &mut |writer, value| {
                let item = NewItem {
                    flags: u32::MAX,
                    expiry: Expiry::at_ms(1 << 39),
                    history: History {
                        cas: Some(1 << 45),
                        ..History::NEW
                    },
                    ..NewItem::new(&bytes, value)
                };
                stored = Some(writer.put(keyhash, &item, NOW));
            });
        assert!(matches!(stored, Some(Stored::Yes(_))), "{stored:?}");
        let take = |item: &Item<'_>| (item.value().len(), item.flags());
        let read = table.enter(clock.due()).read(keyhash, &bytes, NOW, take);
        assert_eq!(read, Some((value_bytes, u32::MAX)));
    }
}

/// Stores an item in one of several ways. Says whether it is there.
fn put<T: Table>(
    table: &mut T,
    rng: &mut SmallRng,
    (keyhash, due): (Keyhash, u64),
    item: &NewItem<'_>,
) -> bool {
    let (value, home) = (item.value[0], T::HomeBucket::default());
    let stored = match rng.random_range(0..4) {
        0 => table.put_at((keyhash, home), item, NOW, due),
        1 => {
            let announced = Announced {
                key: item.key,
                keyhash,
                value_bytes: value.len(),
                part: 1,
                now: NOW,
            };
            let headway = &mut Headway::new(u64::MAX);
            let Begun::Yes(upload) = table.begin_upload(home, due, &announced, headway) else {
                return put(table, rng, (keyhash, due), item);
            };
            upload.write(0, value);
            let mut stored = None;
            table.enter(due).with_upload(upload, &mut |writer, value| {
                let item = NewItem {
                    value: [value, &[]],
                    ..*item
                };
                stored = Some(writer.put(keyhash, &item, NOW));
            });
            stored.unwrap()
        }
        2 => {
            let large = Large {
                key: item.key,
                keyhash,
                value,
                now: NOW,
            };
            let draft = table.draft(home, due, &large, |_| true);
            let mut writer = table.enter(due);
            writer.bring(draft);
            let stored = writer.put(keyhash, item, NOW);
            writer.bring(None);
            stored
        }
        _ => table.enter(due).put(keyhash, item, NOW),
    };
    matches!(stored, Stored::Yes(_))
}

/// What threads know of the keys.
struct World {
    clock: Clock,
    /// Whether the table neither evicts an item nor refuses to store one.
    loses_nothing: bool,
    /// When each key was last stored, as its only writer has been told.
    stored: Vec<AtomicU64>,
    /// Up to when what was stored is gone, as the invalidator has been told.
    gone: Vec<AtomicU64>,
    is_done: AtomicBool,
    hits: AtomicU64,
}

impl World {
    fn is_done(&self) -> bool {
        self.is_done.load(SeqCst)
    }

    /// Invalidates groups, and then tells readers.
    fn invalidate(&self, mut rng: SmallRng) {
        while !self.is_done() {
            let group = rng.random_range(0..GROUPS);
            let numbers = (0..KEYS).filter(|&number| key(number).1 == group);
            let stored: Vec<_> = numbers
                .map(|number| (number as usize, self.stored[number as usize].load(SeqCst)))
                .collect();
            self.clock.invalidate(group);
            for (number, at) in stored {
                self.gone[number].fetch_max(at, SeqCst);
            }
            for _ in 0..rng.random_range(0..20) {
                thread::yield_now();
            }
        }
    }

    /// Checks what a read of a key finds, by the time at which that was stored.
    fn check(&self, number: u32, read: impl FnOnce() -> Result<Option<u64>, Busy>) {
        let gone = self.gone[number as usize].load(SeqCst);
        let stored = self.stored[number as usize].load(SeqCst);
        match read() {
            Ok(Some(at)) => {
                assert!(at > gone, "key {number}: {at} was read, {gone} is gone");
                assert!(
                    at >= stored,
                    "key {number}: {at} was read, {stored} was stored"
                );
                self.hits.fetch_add(1, SeqCst);
            }
            Ok(None) => {
                let stays = key(number).1 >= GROUPS && stored > 0;
                assert!(!self.loses_nothing || !stays, "key {number} is lost");
            }
            Err(Busy) => {}
        }
    }

    fn write<T: Table>(&self, mut table: T, mut rng: SmallRng, (me, of): (u32, u32), len: usize) {
        let mut sweep = None;
        let operations = if cfg!(miri) { 100 } else { 1_000 };
        for at in 1u64.. {
            if at > operations && self.clock.groups.latest() >= EVENTS_MIN {
                break;
            }
            if at.is_multiple_of(50) {
                thread::yield_now();
            }
            let number = rng.random_range(0..KEYS / of) * of + me;
            let (bytes, _) = key(number);
            let keyhash = SEED.keyhash(&bytes);
            let new = value(at, rng.random_range(8..len));
            let item = NewItem::new(&bytes, &new);
            let due = self.clock.due();
            let chance = rng.random_range(0..100);
            let stored = self.stored[number as usize].load(SeqCst);
            if chance < 40 {
                if put(&mut table, &mut rng, (keyhash, due), &item) {
                    self.stored[number as usize].store(at, SeqCst);
                }
            } else if chance < 60 {
                // What is appended goes with the item, alive or dead.
                let more = NewItem {
                    value: [&[], &vec![stored as u8; len / 4]],
                    ..NewItem::new(&bytes, &[])
                };
                table.enter(due).extend(keyhash, &more, NOW);
            } else {
                self.check(number, || {
                    let place = (keyhash, T::HomeBucket::default());
                    let due = self.clock.due();
                    Ok(table.read_at(place, &bytes, NOW, due, stored_at))
                });
            }
            if me == 0 && rng.random_bool(0.5) {
                self.clock.sweep(&mut table, &mut sweep);
            }
        }
    }

    fn read<T: Table>(&self, reader: &T::Reader, mut participant: Participant, mut rng: SmallRng) {
        while !self.is_done() {
            let number = rng.random_range(0..KEYS);
            let (bytes, _) = key(number);
            let batch = participant.begin();
            let keyhash = SEED.keyhash(&bytes);
            // What is torn may run over the end of a value.
            let take = |item: &Item<'_>| {
                let mut value = Vec::new();
                item.value().append_to(&mut value);
                value
            };
            self.check(number, || {
                let read = reader.read(&batch, keyhash, &bytes, NOW, self.clock.due(), take);
                drop(batch);
                Ok(read?.map(|value| told_by(&value)))
            });
        }
    }
}

/// Threads that write, read, sweep and invalidate, as many as the access mode lets.
pub fn raced<T: Table>(mut table: T, value_max: usize, loses_nothing: bool) {
    let seed = glimmer_seeds::seed();
    let rng = |thread: u64| SmallRng::seed_from_u64(seed ^ thread);
    let numbers = || (0..KEYS).map(|_| AtomicU64::new(0)).collect();
    let world = &World {
        clock: Clock::new(),
        loses_nothing,
        stored: numbers(),
        gone: numbers(),
        is_done: AtomicBool::new(false),
        hits: AtomicU64::new(0),
    };
    table.have_groups(&world.clock.groups);
    let (batches, mut participants) = Batches::new(1);
    table.join(&batches, 1);
    let reader = table.reader().zip(participants.pop());
    let second = table.share(2);
    let writers = 1 + u32::from(second.is_some());
    let tables = [Some(table), second].into_iter().flatten();
    thread::scope(|scope| {
        scope.spawn(move || world.invalidate(rng(1)));
        if let Some((reader, participant)) = reader {
            scope.spawn(move || world.read::<T>(&reader, participant, rng(2)));
        }
        let writing: Vec<_> = (0..)
            .zip(tables)
            .map(|(me, table)| {
                let rng = rng(10 + u64::from(me));
                scope.spawn(move || world.write(table, rng, (me, writers), value_max))
            })
            .collect();
        let outcomes: Vec<_> = writing.into_iter().map(|writer| writer.join()).collect();
        world.is_done.store(true, SeqCst);
        assert!(outcomes.iter().all(Result::is_ok), "a writer failed");
    });
    let hits = world.hits.load(SeqCst);
    let events = world.clock.groups.latest();
    println!("{}: {hits} hits, {events} invalidations", T::Access::NAME);
    assert!(cfg!(miri) || hits > 100, "{hits} hits");
}
