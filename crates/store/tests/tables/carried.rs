//! Requests that are executed with a home from some time before, as the pipeline has them: between
//! the stages the key's entry is replaced or moved, or its item expires or leaves.

use crate::oracle::SEED;
use glimmer_base::{Expiry, Keyhash, Moment};
use glimmer_store::batches::{Batches, Participant};
use glimmer_store::heap::{Item, NewItem};
use glimmer_store::table::{Busy, Counts, Prefetcher, Stored, Table, TableReader, TableWriter};
use std::collections::HashMap;

/// How long an item that expires lasts.
const LIFETIME_MS: u64 = 1_000;
/// Keys that share a tag and, in a table of few buckets, now and then a slot.
const TWINS: usize = 12;
/// Where the numbers of other keys begin.
const OTHERS: u32 = 1 << 30;

type Value = Vec<u8>;

/// A table, and what was stored in it last.
pub struct Stage<T: Table> {
    owner: T,
    reader: Option<T::Reader>,
    participant: Participant,
    model: HashMap<u32, Value>,
    now: Moment,
    flushes: u64,
}

/// The home of a key for which no stage has run.
fn nowhere<T: Table>() -> T::HomeBucket {
    T::HomeBucket::default()
}

fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

fn keyhash(number: u32) -> Keyhash {
    SEED.keyhash(&key(number))
}

/// A value of one key and of no other.
fn value(number: u32, version: u8, bytes: usize) -> Value {
    let word = u64::from(number) << 8 | u64::from(version);
    word.to_le_bytes().into_iter().cycle().take(bytes).collect()
}

fn copy(item: &Item<'_>) -> Value {
    let mut out = Vec::new();
    item.value().append_to(&mut out);
    out
}

impl<T: Table> Stage<T> {
    fn new(mut owner: T) -> Self {
        let (batches, mut participants) = Batches::new(1);
        owner.join(&batches, 0);
        Stage {
            reader: owner.reader(),
            owner,
            participant: participants.remove(0),
            model: HashMap::new(),
            now: Moment {
                ms: 2_000,
                epoch_unix_ms: 0,
            },
            flushes: 0,
        }
    }

    /// The stages before execution: where the key's entry is now.
    fn home(&self, number: u32) -> T::HomeBucket {
        let prefetcher = self.owner.prefetcher();
        let mut home = prefetcher.home(keyhash(number));
        prefetcher.prefetch_bucket(home);
        if prefetcher.prefetch_item(&mut home) {
            prefetcher.prefetch_item_behind(&mut home);
        }
        home
    }

    fn enter(&mut self, home: T::HomeBucket, number: u32) -> T::Writer<'_> {
        self.owner.enter_at(keyhash(number), home, self.flushes)
    }

    /// Stores a value; says whether there was room.
    fn put_for(&mut self, home: T::HomeBucket, number: u32, value: Value, expiry: Expiry) -> bool {
        let (key, now) = (key(number), self.now);
        let item = NewItem {
            expiry,
            ..NewItem::new(&key, &value)
        };
        let at = (keyhash(number), home);
        let stored = self.owner.put_at(at, &item, now, self.flushes);
        match stored {
            Stored::Yes(_) => drop(self.model.insert(number, value)),
            Stored::OutOfMemory => return false,
            Stored::TooLarge => panic!("{} bytes are within the limit", value.len()),
        }
        true
    }

    fn put(&mut self, home: T::HomeBucket, number: u32, value: Value) -> bool {
        self.put_for(home, number, value, Expiry::NEVER)
    }

    /// Stores values of many keys, of `bytes` bytes each.
    pub fn fill(&mut self, numbers: std::ops::Range<u32>, bytes: usize) {
        for number in numbers {
            self.put(nowhere::<T>(), number, value(number, 0, bytes));
        }
    }

    fn remove_at(&mut self, home: T::HomeBucket, number: u32) -> bool {
        let (key, now) = (key(number), self.now);
        self.model.remove(&number);
        self.enter(home, number).remove(keyhash(number), &key, now)
    }

    /// Removes a key.
    pub fn remove(&mut self, number: u32) {
        self.remove_at(nowhere::<T>(), number);
    }

    fn read(&mut self, home: T::HomeBucket, number: u32) -> Option<Value> {
        let (key, now, at) = (key(number), self.now, (keyhash(number), home));
        let writer = self.enter(home, number);
        let found = writer.find(keyhash(number), &key, now);
        let found = found.as_ref().map(copy);
        drop(writer);
        let read = self.owner.read_at(at, &key, now, self.flushes, copy);
        assert_eq!(read, found, "key {number}");
        found
    }

    /// A read beside the writer, where there are such reads.
    fn read_beside(
        &mut self,
        home: T::HomeBucket,
        number: u32,
    ) -> Option<Result<Option<Value>, Busy>> {
        let (key, now, flushes) = (key(number), self.now, self.flushes);
        let (reader, batch) = (self.reader.as_ref()?, self.participant.begin());
        Some(reader.read_at(&batch, home, keyhash(number), &key, now, flushes, copy))
    }

    /// Reads with a home from earlier, in both ways.
    fn check(&mut self, home: T::HomeBucket, number: u32, expected: Option<&Value>) {
        assert_eq!(self.read(home, number).as_ref(), expected, "key {number}");
        if let Some(read) = self.read_beside(home, number) {
            assert_eq!(read.unwrap().as_ref(), expected, "key {number}, beside");
        }
    }

    /// The table's figures.
    pub fn counts(&self) -> Counts {
        self.owner.figures().counts(self.flushes)
    }
}

/// The entry is replaced by a later one of the same key, by none, and by those of other keys with
/// the same tag. `others` keys come before it, so that it is behind a bucket that they fill.
pub fn replaced<T: Table>(table: T, others: u32) {
    let mut stage = Stage::new(table);
    let mine = 1;
    // What an empty entry names is then a value of this key that is there no more.
    stage.put(nowhere::<T>(), mine, value(mine, 9, 8));
    stage.remove(mine);
    stage.fill(OTHERS..OTHERS + others, 8);
    let tag = keyhash(mine).tag();
    let twins: Vec<u32> = (2..)
        .filter(|&number| keyhash(number).tag() == tag)
        .take(TWINS)
        .collect();
    stage.put(nowhere::<T>(), mine, value(mine, 0, 8));
    let home = stage.home(mine);
    for bytes in [8, 40, 3] {
        let next = value(mine, 1, bytes);
        stage.put(nowhere::<T>(), mine, next.clone());
        stage.check(home, mine, Some(&next));
    }
    for twin in twins {
        let home = stage.home(mine);
        stage.remove(mine);
        stage.check(home, mine, None);
        let other = value(twin, 0, 8);
        stage.put(nowhere::<T>(), twin, other.clone());
        stage.check(home, mine, None);
        assert!(!stage.remove_at(home, mine));
        let own = value(mine, 2, 8);
        stage.put(home, mine, own.clone());
        stage.check(home, mine, Some(&own));
        stage.check(nowhere::<T>(), twin, Some(&other));
        // The next twin finds no other one.
        stage.remove(twin);
        assert_eq!(stage.counts().items, 1 + u64::from(others));
    }
}

/// The item expires between the stages.
pub fn expired<T: Table>(table: T) {
    let mut stage = Stage::new(table);
    let expiry = Expiry::at_ms(stage.now.ms + LIFETIME_MS);
    let mortal = value(1, 0, 8);
    stage.put_for(nowhere::<T>(), 1, mortal.clone(), expiry);
    let home = stage.home(1);
    stage.check(home, 1, Some(&mortal));
    stage.now.ms += LIFETIME_MS + 1_000;
    stage.check(home, 1, None);
    assert!(!stage.remove_at(home, 1));
    stage.put(home, 1, value(1, 1, 8));
    stage.check(nowhere::<T>(), 1, Some(&value(1, 1, 8)));
    assert_eq!(stage.counts().items, 1);
}

/// Everything is flushed between the stages, and a reader learns of it before the writer.
pub fn flushed<T: Table>(table: T) {
    let mut stage = Stage::new(table);
    stage.fill(0..200, 8);
    let homes: Vec<_> = (0..200).map(|number| stage.home(number)).collect();
    stage.flushes += 1;
    let read = stage.read_beside(homes[0], 0);
    assert!(
        read.is_none_or(|read| read == Err(Busy)),
        "the writer has to be asked"
    );
    for (number, &home) in (0..).zip(&homes) {
        stage.check(home, number, None);
    }
    for (number, &home) in (0..).zip(&homes) {
        let next = value(number, 1, 8);
        stage.put(home, number, next.clone());
        stage.check(nowhere::<T>(), number, Some(&next));
    }
    assert_eq!(stage.counts().items, 200);
}

/// What happens between the stages of some requests.
pub struct Between<T: Table> {
    /// The requests are for as many keys, and their values have as many bytes.
    pub keys: u32,
    /// See [`keys`](Self::keys).
    pub bytes: usize,
    /// Whether the table keeps what it has taken.
    pub loses_nothing: bool,
    /// What happens.
    pub happens: fn(&mut Stage<T>),
    /// Shows that it has happened, by the figures and by the number of keys whose homes differ.
    pub shows: fn(&Counts, usize),
}

/// Requests see a table in which something has happened between the stages as those do for which no
/// stage has run.
pub fn see<T: Table<HomeBucket: PartialEq>>(table: T, between: &Between<T>) {
    let mut stage = Stage::new(table);
    stage.fill(0..between.keys, between.bytes);
    let homes: Vec<_> = (0..between.keys).map(|number| stage.home(number)).collect();
    (between.happens)(&mut stage);
    let changed = |(number, home): (u32, &T::HomeBucket)| stage.home(number) != *home;
    let moved = (0..).zip(&homes).filter(|&it| changed(it)).count();
    println!("{moved} homes differ, {:?}", stage.counts());
    (between.shows)(&stage.counts(), moved);
    for (number, &home) in (0..).zip(&homes) {
        let found = stage.read(nowhere::<T>(), number);
        let stored = stage.model.get(&number);
        assert!(found.is_none() || found.as_ref() == stored, "key {number}");
        assert!(
            !between.loses_nothing || found.as_ref() == stored,
            "key {number}"
        );
        stage.check(home, number, found.as_ref());
    }
    for (number, &home) in (0..).zip(&homes) {
        let next = value(number, 1, between.bytes);
        if stage.put(home, number, next.clone()) {
            stage.check(nowhere::<T>(), number, Some(&next));
        }
    }
    if between.loses_nothing {
        assert_eq!(stage.counts().items, stage.model.len() as u64);
        for (number, stored) in stage.model.clone() {
            stage.check(nowhere::<T>(), number, Some(&stored));
        }
    }
}
