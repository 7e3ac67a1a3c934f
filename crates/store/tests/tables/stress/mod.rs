//! Real threads on one table. Writers overwrite, delete and evict as fast as they can. Others
//! change expiries, remove what has expired, and flush. One receives large values for the writers.
//! Readers check every byte they get.
//!
//! Every value carries its key, its version and a checksum, so a torn, foreign or half-old value
//! cannot pass. A table of the last acknowledged version of each key catches stale ones: what a
//! reader finds must be at least as new as what was acknowledged before it looked. It must also be
//! newer than what a flush took that was asked for before it looked. Every expiry names its key,
//! and nothing that is due is found. Where a table loses nothing, some keys are there from the
//! start and never deleted: a reader that misses one fails.

mod arriving;
mod world;

use arriving::Arriving;
use glimmer_base::Expiry;
use glimmer_store::access::Access;
use glimmer_store::batches::{Batches, Participant};
use glimmer_store::heap::{History, Item, NewItem};
use glimmer_store::table::{
    Announced, Begun, Counts, Headway, Large, LentValue, Stored, UploadFigures,
};
use glimmer_store::table::{Table, TableReader, TableWriter};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::HashMap;
use std::sync::Barrier;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use world::{Found, Key, World, append, value};

pub use world::Race;

const READERS: usize = 2;
const WRITERS: usize = 3;
/// Values that one writer has on their way to their places.
const AWAY_MAX: usize = 2;

/// A thread that writes, in whatever way.
struct Hand<'a, T> {
    owner: T,
    world: &'a World,
    rng: SmallRng,
    /// The next chain that it looks through for what has expired.
    chain: usize,
    /// Values that it has copied before it stored them.
    drafts: u64,
    /// Values that arrive for it.
    mail: Mail,
    /// Values that were stored where they had arrived.
    received: u64,
}

/// The way of values that arrive, to the thread that receives them and back.
struct Mail {
    receiver: Sender<Arriving>,
    home: Sender<Arriving>,
    complete: Receiver<Arriving>,
    /// Values that have not come back.
    away: usize,
    /// The version of each key that its writer has begun last.
    newest: HashMap<u32, u64>,
}

impl Mail {
    fn new(receiver: &Sender<Arriving>) -> Mail {
        let (home, complete) = mpsc::channel();
        Mail {
            receiver: receiver.clone(),
            home,
            complete,
            away: 0,
            newest: HashMap::new(),
        }
    }
}

impl<T: Table> Hand<'_, T> {
    /// Stores, deletes and overwrites its own keys. Each key has one writer, so that its versions
    /// rise. Under CRCW neighbours in bucket and log belong to different ones. Returns how many
    /// values it has copied before it stored them, and how many were received in place.
    fn write(mut self, mine: impl Fn(u32) -> bool) -> (u64, u64) {
        let mut buffer = Vec::new();
        for _ in 0..self.world.race.operations {
            let n = self.rng.random_range(0..self.world.race.keys);
            // Where it is the only one that may write, it also does what others do elsewhere.
            if !T::Access::SHARED_WRITES && self.rng.random_bool(0.2) {
                match self.rng.random_bool(0.5) {
                    true => self.touch_one(),
                    false => self.expire_one(),
                }
            }
            if mine(n) {
                self.world.count_operation();
                self.write_one(n, &mut buffer);
            }
        }
        self.await_uploads(0);
        (self.drafts, self.received)
    }

    /// Waits until at most this many values are on their way.
    fn await_uploads(&mut self, most: usize) {
        while self.mail.away > most {
            let arriving = (self.mail.complete.recv()).expect("the receiver outlives the writers");
            self.mail.away -= 1;
            self.store_upload(arriving);
        }
    }

    /// Announces a value, which is received while this thread goes on. Says whether it is.
    fn begin_upload(&mut self, n: u32, version: u64, value: &[u8]) -> bool {
        let Key { bytes, keyhash } = self.world.key(n);
        let announced = Announced {
            key: bytes,
            keyhash: *keyhash,
            value_bytes: value.len(),
            part: 1,
            now: self.world.now(),
        };
        let mut headway = Headway::new(0);
        let begun = loop {
            // Room is made a little at a time, while other threads store.
            headway.items_left = 16;
            let (home, flushes) = (T::HomeBucket::default(), self.world.flushes());
            let begun = (self.owner).begin_upload(home, flushes, &announced, &mut headway);
            if !matches!(begun, Begun::Again) {
                break begun;
            }
        };
        let Begun::Yes(upload) = begun else {
            self.await_uploads(self.mail.away.saturating_sub(1));
            return false;
        };
        let arriving = Arriving {
            n,
            version,
            upload: Some(upload),
            value: value.to_vec(),
            home: self.mail.home.clone(),
        };
        (self.mail.receiver.send(arriving)).expect("the receiver outlives the writers");
        self.mail.away += 1;
        true
    }

    /// Stores a value that is complete, unless its key has been given a later one.
    fn store_upload(&mut self, arriving: Arriving) {
        let Arriving {
            n, version, upload, ..
        } = arriving;
        let Some(upload) = upload.filter(|_| self.mail.newest.get(&n) == Some(&version)) else {
            return;
        };
        let (world, now) = (self.world, self.world.now());
        let Key { bytes, keyhash } = world.key(n);
        let mut stored = None;
        let mut writer = self.owner.enter(world.flushes());
        writer.with_upload(upload, &mut |writer, value| {
            let item = NewItem {
                flags: n,
                ..NewItem::new(bytes, value)
            };
            stored = Some(writer.put(*keyhash, &item, now));
        });
        drop(writer);
        if let Some(Stored::Yes(_)) = stored {
            world.acknowledge(n, version);
            self.received += 1;
        }
    }

    fn write_one(&mut self, n: u32, buffer: &mut Vec<u8>) {
        self.await_uploads(AWAY_MAX);
        while let Ok(arriving) = self.mail.complete.try_recv() {
            self.mail.away -= 1;
            self.store_upload(arriving);
        }
        let (world, rng) = (self.world, &mut self.rng);
        let (race, now, flushes) = (&world.race, world.now(), world.flushes());
        let Key { bytes, keyhash } = world.key(n);
        if n >= race.kept && rng.random_bool(0.1) {
            let mut writer = self.owner.enter(flushes);
            writer.remove(*keyhash, bytes, now);
            return;
        }
        if rng.random_bool(0.2) {
            return self.append_to_one(n, buffer);
        }
        let version = world.next_version(n);
        let filling = match rng.random_bool(0.05) {
            true => rng.random_range(0..race.filling_max),
            false => rng.random_range(0..race.filling_max.min(40)),
        };
        value(n, version, filling, buffer);
        self.mail.newest.insert(n, version);
        if rng.random_bool(0.5) && self.begin_upload(n, version, buffer) {
            return;
        }
        let rng = &mut self.rng;
        // Only a value in one part can be drafted.
        let cut = match rng.random_bool(0.5) {
            true => buffer.len(),
            false => rng.random_range(0..=buffer.len()),
        };
        let item = NewItem {
            key: bytes,
            value: [&buffer[..cut], &buffer[cut..]],
            flags: n,
            expiry: match n >= race.kept && rng.random_bool(0.2) {
                true => world.expiry(n, now, rng.random()),
                false => Expiry::NEVER,
            },
            history: History::NEW,
        };
        let draft = if cut == buffer.len() {
            let large = Large {
                key: bytes,
                keyhash: *keyhash,
                value: buffer,
                now,
            };
            (self.owner).draft(T::HomeBucket::default(), flushes, &large, |_| true)
        } else {
            None
        };
        self.drafts += u64::from(draft.is_some());
        let mut writer = self.owner.enter(flushes);
        writer.bring(draft);
        let stored = writer.put(*keyhash, &item, now);
        writer.bring(None);
        drop(writer);
        match stored {
            Stored::Yes(_) => world.acknowledge(n, version),
            Stored::OutOfMemory => {}
            Stored::TooLarge => panic!("{filling} bytes are within the limit"),
        }
    }

    /// Appends to the value of a key, if it has one. The version stays.
    fn append_to_one(&mut self, n: u32, buffer: &mut Vec<u8>) {
        let (world, rng) = (self.world, &mut self.rng);
        let (now, flushes) = (world.now(), world.flushes());
        let Key { bytes, keyhash } = world.key(n);
        let mut writer = self.owner.enter(flushes);
        buffer.clear();
        let Some(item) = writer.find(*keyhash, bytes, now) else {
            return;
        };
        item.value().append_to(buffer);
        let (old, expiry) = (buffer.len(), item.expiry());
        if !append(rng.random_range(0..100), world.race.filling_max, buffer) {
            return;
        }
        let item = NewItem {
            key: bytes,
            value: [&[], &buffer[old..]],
            flags: n,
            expiry,
            history: History::NEW,
        };
        let stored = writer.extend(*keyhash, &item, now);
        assert!(!matches!(stored, Some(Stored::TooLarge)), "{old} bytes");
    }

    /// Gives a key another expiry, or none.
    fn touch_one(&mut self) {
        let (world, rng) = (self.world, &mut self.rng);
        let (now, flushes) = (world.now(), world.flushes());
        let n = rng.random_range(0..world.race.keys);
        let expiry = match n >= world.race.kept && rng.random_bool(0.5) {
            true => world.expiry(n, now, rng.random()),
            false => Expiry::NEVER,
        };
        let mut writer = self.owner.enter(flushes);
        let Key { bytes, keyhash } = world.key(n);
        writer.touch(*keyhash, bytes, expiry, now);
    }

    /// Removes what has expired from one chain.
    fn expire_one(&mut self) {
        let (now, flushes) = (self.world.now(), self.world.flushes());
        let (_, next) = self.owner.enter(flushes).expire(self.chain, now);
        self.chain = next.unwrap_or(0);
    }

    /// Does the same thing as often as a writer stores, and ends with the writers. Without that
    /// measure it would be done before there are items, or hardly ever, as the threads take turns.
    fn repeat(mut self, one: impl Fn(&mut Self)) {
        let mut done = 0;
        while !self.world.is_done() {
            if done < self.world.operations() / WRITERS as u64 {
                one(&mut self);
                done += 1;
            } else {
                thread::yield_now();
            }
        }
    }
}

/// Asks for a flush as often as the race wants one.
fn flush(world: &World, every: u64) {
    let mut due = every;
    while !world.is_done() {
        if world.operations() >= due {
            world.flush();
            due += every;
        }
        thread::yield_now();
    }
}

/// Reads until the writers are done. Returns how often it found an item.
fn read<T: Table>(
    reader: &T::Reader,
    mut participant: Participant,
    world: &World,
    mut rng: SmallRng,
) -> u64 {
    let (mut buffer, mut hits) = (Vec::new(), 0);
    while !world.is_done() {
        let n = rng.random_range(0..world.race.keys);
        let Key { bytes, keyhash } = world.key(n);
        let before = world.before(n);
        let take = |item: &Item<'_>| {
            buffer.clear();
            item.value().append_to(&mut buffer);
            (item.flags(), item.expiry())
        };
        let batch = participant.begin();
        let found = match world.race.lends() && rng.random_bool(0.5) {
            true => {
                let lent = reader.lend(&batch, *keyhash, bytes, before.now, before.flushes, take);
                drop(batch);
                lent.map(|lent| lent.map(|(taken, value)| see_later(taken, &*value, &mut buffer)))
            }
            false => reader.read(&batch, *keyhash, bytes, before.now, before.flushes, take),
        };
        let may_miss = n >= world.race.kept || !matches!(found, Ok(None));
        assert!(may_miss, "key {n} is absent");
        if let Ok(Some((flags, expiry))) = found {
            let found = Found {
                value: &buffer,
                flags,
                expiry,
            };
            world.check(n, &before, &found);
            hits += 1;
        }
        if cfg!(miri) {
            thread::yield_now();
        }
    }
    hits
}

/// Reads a value that is lent again, after others have had time to write.
fn see_later<T>(taken: T, value: &dyn LentValue, buffer: &mut [u8]) -> T {
    for _ in 0..3 {
        thread::yield_now();
    }
    // What a writer has changed does not have the checksum of what was read.
    let mut copy = |bytes: &[u8]| buffer[..bytes.len()].copy_from_slice(bytes);
    let whole = 0..value.bytes();
    // Not if a writer uses it now. Then this waits.
    let is_there = value.try_with(whole.clone(), &mut copy) || value.with(whole, &mut copy);
    assert!(is_there, "copies have all memory");
    taken
}

/// Puts the keys there that a reader must always find.
fn keep<T: Table>(owner: &mut T, world: &World) {
    for n in 0..world.race.kept {
        let (Key { bytes, keyhash }, mut buffer) = (world.key(n), Vec::new());
        value(n, 0, 10, &mut buffer);
        let item = NewItem {
            key: bytes,
            value: [&buffer, &[]],
            flags: n,
            expiry: Expiry::NEVER,
            history: History::NEW,
        };
        let stored = owner.enter(0).put(*keyhash, &item, world.now());
        assert!(matches!(stored, Stored::Yes(_)));
    }
}

/// Runs a race on a table, with as many writers as the access mode allows. Returns the table's
/// figures at the end.
pub fn run<T: Table>(mut owner: T, race: Race) -> Counts {
    assert!(
        race.kept == 0 || race.flush_every.is_none(),
        "a flush would take what is kept"
    );
    let seed = glimmer_seeds::seed();
    let (batches, participants) = Batches::new(READERS);
    owner.join(&batches, READERS);
    let (reader, figures) = (owner.reader().unwrap(), owner.figures());
    let (receiver, values) = mpsc::channel();
    let world = &World::new(race);
    keep(&mut owner, world);
    let rng = |thread: u64| SmallRng::seed_from_u64(seed ^ thread);
    let hand = |owner, thread| Hand {
        owner,
        world,
        rng: rng(thread),
        chain: 0,
        drafts: 0,
        mail: Mail::new(&receiver),
        received: 0,
    };
    let share = |worker: usize| {
        let share = owner.share(READERS + worker);
        share.expect("all may write")
    };
    let others = match T::Access::SHARED_WRITES {
        true => (1..WRITERS).map(share).collect(),
        false => Vec::new(),
    };
    // Touches and removes what has expired, beside the writers.
    let beside = T::Access::SHARED_WRITES.then(|| (share(WRITERS), share(WRITERS + 1)));
    let owners: Vec<T> = others.into_iter().chain([owner]).collect();
    let parts = owners.len() as u32;
    // On a busy machine the writers could be done before a reader has begun.
    let begin = &Barrier::new(READERS + owners.len());
    let hits: u64 = thread::scope(|scope| {
        let receiving = scope.spawn(move || arriving::receive(&values, world, seed ^ 300));
        let readers: Vec<_> = (participants.into_iter().enumerate())
            .map(|(id, participant)| {
                let (reader, rng) = (reader.clone(), rng(100 + id as u64));
                scope.spawn(move || {
                    begin.wait();
                    read::<T>(&reader, participant, world, rng)
                })
            })
            .collect();
        let mut helpers = Vec::new();
        if let Some(every) = race.flush_every {
            helpers.push(scope.spawn(move || flush(world, every)));
        }
        if let Some((touching, expiring)) = beside {
            let (touching, expiring) = (hand(touching, 200), hand(expiring, 201));
            helpers.push(scope.spawn(|| touching.repeat(Hand::touch_one)));
            helpers.push(scope.spawn(|| expiring.repeat(Hand::expire_one)));
        }
        let writers: Vec<_> = (0..parts)
            .zip(owners)
            .map(|(id, owner)| {
                let hand = hand(owner, u64::from(id));
                scope.spawn(move || {
                    begin.wait();
                    hand.write(|n| n % parts == id)
                })
            })
            .collect();
        let outcomes: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        world.finish();
        assert!(outcomes.iter().all(Result::is_ok), "a writer failed");
        // One writer alone may meet a full table each time.
        let sums = |sum: (u64, u64), of: (u64, u64)| (sum.0 + of.0, sum.1 + of.1);
        let (drafts, received) = outcomes.into_iter().flatten().fold((0, 0), sums);
        println!("{drafts} values were copied ahead, {received} received in place");
        assert!(received > 0 || !race.has_large_values());
        assert!(
            !T::Access::SHARED_WRITES
                || !race.has_large_values()
                || !race.copies_ahead
                || drafts > 0,
            "large values were copied ahead"
        );
        receiving.join().unwrap();
        helpers
            .into_iter()
            .for_each(|helper| helper.join().unwrap());
        readers
            .into_iter()
            .map(|reader| reader.join().unwrap())
            .sum()
    });
    assert_eq!(figures.uploads(), UploadFigures::default());
    let counts = figures.counts(world.flushes());
    println!(
        "{}: {hits} hits, {} flushes, {counts:?}",
        T::Access::NAME,
        world.flushes()
    );
    assert!(hits > 0 || race.is_short());
    counts
}
