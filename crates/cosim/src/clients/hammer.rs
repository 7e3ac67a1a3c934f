//! Some clients change keys while others read them. Nobody may be told a value that is older than
//! one whose change was acknowledged before the read began.

use super::{Reads, Writer};
use anyhow::{Result, ensure};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

/// Keys that are read. All of them are hot, so all come to be in the circuit.
pub const KEYS: usize = 8;
/// Of these, the first ones change. The others are answered by the circuit most of the time.
const CHANGING: usize = 4;
/// A key that is never stored.
const ABSENT: usize = KEYS;
/// Threads that read, and threads that change.
const READERS: usize = 3;
const WRITERS: usize = 2;
/// One change of this many is a delete.
const DELETES: u64 = 8;
/// Time between two changes of a writer.
const PAUSE: Duration = Duration::from_millis(3);

/// What is known of a key that one thread changes.
#[derive(Debug, Default)]
struct Told {
    /// The highest version that was sent.
    sent: AtomicU64,
    /// The lowest version that a read may be told that begins now.
    least: AtomicU64,
    /// Odd from the moment when a delete is sent until the next store is acknowledged.
    absences: AtomicU64,
}

/// What was done.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hammered {
    /// Reads that were answered, all of them rightly.
    pub reads: u64,
    /// Changes that were acknowledged.
    pub changes: u64,
}

/// What all threads share.
struct Rig<F> {
    told: [Told; KEYS],
    reads: AtomicU64,
    changes: AtomicU64,
    is_over: AtomicBool,
    goes_on: F,
}

/// Hammers the server while `goes_on` says so, given what was done.
///
/// # Errors
///
/// If an answer was outdated, wrong or lost.
pub fn hammer(goes_on: impl Fn(Hammered) -> bool + Sync) -> Result<Hammered> {
    let rig = &Rig {
        told: Default::default(),
        reads: AtomicU64::new(0),
        changes: AtomicU64::new(0),
        is_over: AtomicBool::new(false),
        goes_on,
    };
    let mut writer = Writer::new()?;
    for (key, told) in rig.told.iter().enumerate() {
        writer.set(key, 1)?;
        told.sent.store(1, SeqCst);
        told.least.store(1, SeqCst);
    }
    thread::scope(|scope| {
        let writers = (0..WRITERS).map(|part| scope.spawn(move || rig.last(|| rig.change(part))));
        let writers: Vec<_> = writers.collect();
        let readers = (0..READERS).map(|first| scope.spawn(move || rig.last(|| rig.read(first))));
        let readers: Vec<_> = readers.collect();
        writers.into_iter().chain(readers).try_for_each(|thread| {
            let ended = thread.join();
            ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    })?;
    Ok(rig.done())
}

impl<F: Fn(Hammered) -> bool + Sync> Rig<F> {
    fn done(&self) -> Hammered {
        Hammered {
            reads: self.reads.load(SeqCst),
            changes: self.changes.load(SeqCst),
        }
    }

    /// Does something until its end, which is the end for all others as well.
    fn last(&self, work: impl FnOnce() -> Result<()>) -> Result<()> {
        let result = work();
        self.is_over.store(true, SeqCst);
        result
    }

    /// Changes the keys of one writer.
    fn change(&self, part: usize) -> Result<()> {
        let mut writer = Writer::new()?;
        let keys = (0..CHANGING).filter(|key| key % WRITERS == part);
        let mut version = 1;
        for key in keys.cycle() {
            if self.is_over.load(SeqCst) {
                break;
            }
            let told = &self.told[key];
            version += 1;
            if version % DELETES == 0 {
                told.absences.fetch_add(1, SeqCst);
                writer.delete(key)?;
                // What was stored before is gone.
                told.least.store(version, SeqCst);
                version += 1;
            }
            told.sent.store(version, SeqCst);
            writer.set(key, version)?;
            told.least.store(version, SeqCst);
            let absences = told.absences.load(SeqCst);
            told.absences.store(absences.next_multiple_of(2), SeqCst);
            self.changes.fetch_add(1, SeqCst);
            thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Reads all keys, beginning with this one.
    fn read(&self, first: usize) -> Result<()> {
        let mut client = Reads::new()?;
        while !self.is_over.load(SeqCst) && (self.goes_on)(self.done()) {
            for key in 0..KEYS {
                self.read_one(&mut client, (first + key) % KEYS)?;
                self.reads.fetch_add(1, SeqCst);
            }
            let found = client.get(ABSENT)?;
            ensure!(found.is_none(), "a key was found that was never stored");
            self.reads.fetch_add(1, SeqCst);
        }
        Ok(())
    }

    fn read_one(&self, client: &mut Reads, key: usize) -> Result<()> {
        let told = &self.told[key];
        let absences = told.absences.load(SeqCst);
        let least = told.least.load(SeqCst);
        let found = client.get(key)?;
        let most = told.sent.load(SeqCst);
        match found {
            Some(version) => ensure!(
                (least..=most).contains(&version),
                "a read of key {key} was told of {version}, which is not from {least} to {most}"
            ),
            None => ensure!(
                absences % 2 == 1 || told.absences.load(SeqCst) != absences,
                "key {key} was not found, although it was there all the time"
            ),
        }
        Ok(())
    }
}
