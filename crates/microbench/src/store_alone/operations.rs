//! Operations on our own tables, as the engine's pipeline executes them.

use glimmer_base::{Expiry, Keyhash, Moment};
use glimmer_engine::{Execute, Partitions, Place};
use glimmer_store::{
    batches::Batch,
    heap::{History, Item, NewItem},
    table::{Busy, Table, TableReader},
};

use super::{
    items::{self, key, value},
    rig::Tally,
    stream::Operation,
};

const NOW: Moment = Moment {
    ms: Moment::EPOCH_LEAD_MS,
    epoch_unix_ms: 0,
};

/// The operations of a batch, and what has become of the reads among them.
pub struct Operations<'a, const K: usize, const V: usize> {
    reading: Option<Batch<'a>>,
    /// What is stored is of this version.
    version: u32,
    /// Whether an item that a read does not find is stored.
    fills: bool,
    found: u64,
    missed: u64,
    wrong: u64,
}

impl<'a, const K: usize, const V: usize> Operations<'a, K, V> {
    /// None yet. `reading` is what reads beside writers are a part of.
    #[inline(always)]
    pub fn new(reading: Option<Batch<'a>>, version: u32, fills: bool) -> Self {
        Operations {
            reading,
            version,
            fills,
            found: 0,
            missed: 0,
            wrong: 0,
        }
    }

    /// Counts them.
    #[inline(always)]
    pub fn add_to(&self, tally: &mut Tally) {
        tally.reads += self.found + self.missed;
        tally.found += self.found;
        tally.wrong += self.wrong;
    }
}

impl<T: Table, const K: usize, const V: usize> Execute<Partitions<T>, (Keyhash, Operation)>
    for Operations<'_, K, V>
{
    #[inline(always)]
    fn execute(
        &mut self,
        partitions: &mut Partitions<T>,
        _: usize,
        place: Place<T::HomeBucket>,
        &(keyhash, operation): &(Keyhash, Operation),
    ) {
        let number = operation.number();
        if operation.writes() {
            put::<T, K, V>(partitions, place, keyhash, number, self.version);
            return;
        }
        match get::<T, K, V>(partitions, &self.reading, place, keyhash, number) {
            Some(value) => {
                self.found += 1;
                if !items::is_value(&value, number) {
                    self.wrong = one_more(self.wrong);
                }
            }
            None => {
                self.missed = one_more(self.missed);
                if self.fills {
                    refill::<T, K, V>(partitions, number, self.version);
                }
            }
        }
    }
}

/// Reads again what a writer has kept from being read. The engine would pass such a read to the
/// owner; here it is retried.
#[cold]
#[inline(never)]
fn read_again<R: TableReader, const K: usize, const V: usize>(
    reader: &R,
    batch: &Batch<'_>,
    keyhash: Keyhash,
    number: u32,
) -> Option<[u8; V]> {
    let key = key::<K>(number);
    let bytes = |item: &Item<'_>| item.value().array().unwrap_or([0xFF; V]);
    loop {
        if let Ok(read) = reader.read(batch, keyhash, &key, NOW, 0, bytes) {
            return read;
        }
    }
}

/// Counts what is rare. By value, so that the counts can stay in registers.
#[cold]
#[inline(never)]
fn one_more(count: u64) -> u64 {
    count + 1
}

/// Stores an item that a read did not find.
#[cold]
#[inline(never)]
fn refill<T: Table, const K: usize, const V: usize>(
    partitions: &mut Partitions<T>,
    number: u32,
    version: u32,
) {
    let keyhash = items::keyhash::<K>(number);
    let place = partitions.prefetch_bucket(keyhash, false);
    put::<T, K, V>(partitions, place, keyhash, number, version);
}

#[inline(always)]
fn put<T: Table, const K: usize, const V: usize>(
    partitions: &mut Partitions<T>,
    place: Place<T::HomeBucket>,
    keyhash: Keyhash,
    number: u32,
    version: u32,
) {
    let (key, value) = (key::<K>(number), value::<V>(number, version));
    let item = NewItem {
        key: &key,
        value: [&value, &[]],
        flags: 0,
        expiry: Expiry::NEVER,
        history: History::NEW,
    };
    let owner = partitions
        .owner(place)
        .expect("lists hold only writes that a worker may do");
    owner.put_at((keyhash, place.home), &item, NOW, 0);
}

/// Reads the value as the engine does: concurrently with the writer if the access mode has readers,
/// otherwise as the owner.
#[inline(always)]
fn get<T: Table, const K: usize, const V: usize>(
    partitions: &mut Partitions<T>,
    reading: &Option<Batch<'_>>,
    place: Place<T::HomeBucket>,
    keyhash: Keyhash,
    number: u32,
) -> Option<[u8; V]> {
    let key = key::<K>(number);
    // A value of a different length is not one of our values, and counts as wrong.
    let bytes = |item: &Item<'_>| item.value().array().unwrap_or([0xFF; V]);
    if let (Some(reader), Some(batch)) = (partitions.reader(place), reading) {
        return match reader.read_at(batch, place.home, keyhash, &key, NOW, 0, bytes) {
            Ok(read) => read,
            Err(Busy) => read_again::<T::Reader, K, V>(reader, batch, keyhash, number),
        };
    }
    let owner = partitions
        .owner(place)
        .expect("lists hold only reads that a worker may do");
    owner.read_at((keyhash, place.home), &key, NOW, 0, |item| bytes(item))
}
