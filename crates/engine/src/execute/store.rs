//! `set`, `add`, `replace`, `append`, `prepend`, `cas`.

use super::{Context, mutate};
use crate::job::Job;
use crate::observer::ChangeObserver;
use glimmer_base::Expiry;
use glimmer_base::sync::weakened;
use glimmer_proto::{Outcome, Refusal, StoreMode};
use glimmer_store::heap::{History, Marks, NewItem};
use glimmer_store::removals::Tap;
use glimmer_store::table::{Stored, Table, TableWriter};

/// A store.
pub struct Write<'a> {
    pub mode: StoreMode,
    pub set: Set<'a>,
    /// Whether a CAS unique lower than the item's is accepted. The new item is then stale.
    pub takes_stale: bool,
    /// With this expiry, `append` and `prepend` create the item if the key has no item.
    pub create: Option<Expiry>,
}

/// A store without a condition.
#[derive(Clone, Copy)]
pub struct Set<'a> {
    pub flags: u32,
    pub expiry: Expiry,
    pub value: &'a [u8],
    /// The new item's history.
    pub history: History,
}

impl<'a> Set<'a> {
    /// A store that says nothing of the item's history.
    #[inline(always)]
    pub fn new(flags: u32, expiry: Expiry, value: &'a [u8]) -> Set<'a> {
        Set {
            flags,
            expiry,
            value,
            history: History::NEW,
        }
    }
}

/// Stores a value if the mode's condition is met.
pub fn store(
    writer: &mut dyn TableWriter,
    context: &mut Context<'_>,
    job: &Job<'_>,
    write: &Write<'_>,
) -> Outcome {
    let (keyhash, key, now) = (job.keyhash, job.request.key, context.now);
    context.tally.cmd_set.add(1);
    let item = new_item(context, job, write.set);
    match write.mode {
        StoreMode::Set => put(writer, job, &item, context),
        StoreMode::Add if writer.find(keyhash, key, now).is_some() => Outcome::NotStored,
        StoreMode::Add => put(writer, job, &item, context),
        StoreMode::Replace if writer.find(keyhash, key, now).is_none() => Outcome::NotStored,
        StoreMode::Replace => put(writer, job, &item, context),
        StoreMode::Cas(unique) => compare(writer, context, job, unique, item, write.takes_stale),
        StoreMode::Append => join(writer, context, job, write, true, 0),
        StoreMode::Prepend => join(writer, context, job, write, false, 0),
        StoreMode::AppendIf(unique) => join(writer, context, job, write, true, unique),
        StoreMode::PrependIf(unique) => join(writer, context, job, write, false, unique),
    }
}

/// Carries out a `set` that nobody observes. It asks nothing about the old item, so the table need
/// not look for it first: it may write over the one that the pipeline has met.
#[inline(always)]
pub fn set<T: Table>(
    owner: &mut T,
    home: T::HomeBucket,
    context: &Context<'_>,
    job: &Job<'_>,
    set: Set<'_>,
) -> Outcome {
    context.tally.cmd_set.add(1);
    let item = new_item(context, job, set);
    if is_dropped(&item) {
        return acknowledged(&item, 1);
    }
    match owner.put_at((job.keyhash, home), &item, context.now, context.flushes) {
        Stored::Yes(cas) => acknowledged(&item, cas),
        // What others have stored since then counts as stored before.
        refused => {
            let mut writer = owner.enter_at(job.keyhash, home, context.flushes);
            refuse(&mut writer, context, job, refused)
        }
    }
}

/// Carries out a `set` like [`set`] if the observer ignores the key. None if not: nothing has been
/// done.
#[inline(always)]
pub fn set_ignored<T: Table, O: ChangeObserver>(
    (owner, home): (&mut T, T::HomeBucket),
    tap: &Tap<O>,
    context: &Context<'_>,
    job: &Job<'_>,
    set: Set<'_>,
) -> Option<Outcome> {
    let item = new_item(context, job, set);
    let (at, now, flushes) = ((job.keyhash, home), context.now, context.flushes);
    let is_seen = || mutate::is_seen(tap, job.keyhash);
    let stored = match is_dropped(&item) {
        true => Stored::Yes(1),
        false => owner.put_at_unless(at, &item, now, flushes, is_seen)?,
    };
    context.tally.cmd_set.add(1);
    Some(match stored {
        Stored::Yes(cas) => acknowledged(&item, cas),
        // A key that was ignored then need not be ignored now.
        refused => {
            let mut writer = owner.enter_at(job.keyhash, home, flushes);
            let mutation = mutate::begin(tap, &writer, context, job);
            let outcome = refuse(&mut writer, context, job, refused);
            mutation.end(&writer, context, job, outcome.kind());
            outcome
        }
    })
}

/// The item that a request stores.
#[inline(always)]
fn new_item<'a>(context: &Context<'_>, job: &Job<'a>, set: Set<'a>) -> NewItem<'a> {
    NewItem {
        key: job.request.key,
        value: [set.value, &[]],
        flags: set.flags,
        expiry: set.expiry,
        history: context.history(set.history),
    }
}

/// Stores an item.
#[inline(always)]
fn put(
    writer: &mut dyn TableWriter,
    job: &Job<'_>,
    item: &NewItem<'_>,
    context: &Context<'_>,
) -> Outcome {
    if is_dropped(item) {
        return acknowledged(item, 1);
    }
    match writer.put(job.keyhash, item, context.now) {
        Stored::Yes(cas) => acknowledged(item, cas),
        refused => refuse(writer, context, job, refused),
    }
}

/// Whether an item is acknowledged and not stored: a bug that is planted for the simulator.
#[inline(always)]
fn is_dropped(item: &NewItem<'_>) -> bool {
    weakened("set_only_acknowledged") && item.value[0].len() % 8 == 3
}

#[inline(always)]
fn acknowledged(item: &NewItem<'_>, cas: u64) -> Outcome {
    Outcome::Stored {
        cas,
        value_bytes: item.value[0].len(),
    }
}

/// What follows a store that the table has refused. As in memcached, an item that is too large also
/// deletes the old one, so that no stale value remains. If a table that does not evict has no room,
/// the old item stays, unlike in memcached: such a table loses nothing.
#[cold]
#[inline(never)]
fn refuse(
    writer: &mut dyn TableWriter,
    context: &Context<'_>,
    job: &Job<'_>,
    refused: Stored,
) -> Outcome {
    if refused != Stored::TooLarge {
        return context.refuse(Refusal::NoMemory);
    }
    writer.remove(job.keyhash, job.request.key, context.now);
    context.refuse(Refusal::TooLarge)
}

/// Replaces an item with this CAS unique. If a stale unique is accepted, the item keeps its expiry,
/// and the client that won the right to recache it keeps that right.
fn compare(
    writer: &mut dyn TableWriter,
    context: &Context<'_>,
    job: &Job<'_>,
    unique: u64,
    item: NewItem<'_>,
    takes_stale: bool,
) -> Outcome {
    let tally = context.tally;
    let Some(old) = writer.find(job.keyhash, item.key, context.now) else {
        tally.cas_misses.add(1);
        return Outcome::NotFound;
    };
    // Zero matches no item, even if a client has assigned it to one.
    let matches = unique != 0 && (old.cas() == unique || weakened("cas_not_compared"));
    let is_stale = takes_stale && unique != 0 && unique < old.cas();
    if !matches && !is_stale {
        tally.cas_badval.add(1);
        return Outcome::Exists;
    }
    tally.cas_hits.add(1);
    if matches {
        return put(writer, job, &item, context);
    }
    let marks = Marks::STALE.with(old.marks().only(Marks::WON));
    let stale = NewItem {
        expiry: old.expiry(),
        history: History {
            marks: item.history.marks.with(marks),
            ..item.history
        },
        ..item
    };
    put(writer, job, &stale, context)
}

/// Appends or prepends a value, if the item has the CAS unique or `unique` is zero. Flags and
/// expiry stay. If the result is too large, the item does not change.
fn join(
    writer: &mut dyn TableWriter,
    context: &mut Context<'_>,
    job: &Job<'_>,
    write: &Write<'_>,
    append: bool,
    unique: u64,
) -> Outcome {
    let (keyhash, key, now) = (job.keyhash, job.request.key, context.now);
    let more = write.set.value;
    let Some(old_item) = writer.find(keyhash, key, now) else {
        let Some(expiry) = write.create else {
            return Outcome::NotStored;
        };
        let item = NewItem {
            key,
            value: [more, &[]],
            flags: write.set.flags,
            expiry,
            history: context.history(write.set.history),
        };
        return put(writer, job, &item, context);
    };
    if unique != 0 && old_item.cas() != unique {
        return Outcome::Exists;
    }
    let unique_wanted = context.unique(write.set.history.cas);
    let old_bytes = old_item.value().len();
    let key_mark = old_item.marks().only(Marks::BINARY_KEY);
    let item = NewItem {
        key,
        value: if append { [&[], more] } else { [more, &[]] },
        flags: old_item.flags(),
        expiry: old_item.expiry(),
        history: History {
            cas: unique_wanted,
            marks: write.set.history.marks.with(key_mark),
            ..write.set.history
        },
    };
    match writer.extend(keyhash, &item, now) {
        Some(Stored::Yes(cas)) => Outcome::Stored {
            cas,
            value_bytes: old_bytes + more.len(),
        },
        Some(Stored::TooLarge) => {
            context.tally.store_too_large.add(1);
            Outcome::NotStored
        }
        Some(Stored::OutOfMemory) => context.refuse(Refusal::NoMemory),
        // The item was evicted to make room for its new version.
        None => Outcome::NotStored,
    }
}
