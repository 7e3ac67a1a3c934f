//! `set`, `add`, `replace`, `append`, `prepend`, `cas`.

use super::{Context, answer};
use crate::job::Job;
use glimmer_base::Expiry;
use glimmer_proto::StoreMode;
use glimmer_proto::text::lines;
use glimmer_store::heap::{History, NewItem};
use glimmer_store::partition::Stored;
use glimmer_store::table::TableWriter;

/// Stores a value if the mode's condition holds.
#[inline(always)]
pub fn store<W: TableWriter>(
    writer: &mut W,
    context: &mut Context<'_>,
    job: &Job<'_>,
    (mode, flags, exptime, value): (StoreMode, u32, i64, &[u8]),
    out: &mut Vec<u8>,
) {
    let (keyhash, key, now) = (job.keyhash, job.request.key, context.now);
    context.tally.cmd_set.add(1);
    let item = NewItem {
        key,
        value: [value, &[]],
        flags,
        expiry: Expiry::from_memcached(exptime, now),
        history: History::NEW,
    };
    let line = match mode {
        StoreMode::Set => put(writer, job, &item, context),
        StoreMode::Add if writer.find(keyhash, key, now).is_some() => lines::NOT_STORED,
        StoreMode::Add => put(writer, job, &item, context),
        StoreMode::Replace if writer.find(keyhash, key, now).is_none() => lines::NOT_STORED,
        StoreMode::Replace => put(writer, job, &item, context),
        StoreMode::Cas(unique) => {
            let tally = context.tally;
            match writer.find(keyhash, key, now).map(|item| item.cas()) {
                None => {
                    tally.cas_misses.add(1);
                    lines::NOT_FOUND
                }
                Some(current) if current != unique => {
                    tally.cas_badval.add(1);
                    lines::EXISTS
                }
                Some(_) => {
                    tally.cas_hits.add(1);
                    put(writer, job, &item, context)
                }
            }
        }
        StoreMode::Append | StoreMode::Prepend => join(writer, context, job, mode, value),
    };
    answer::line(out, &job.request, line);
}

/// Stores an item. One that is too large takes the old one with it, so that no stale value survives
/// the client's wish to replace it; memcached does so too. One for which a table that evicts nothing
/// has no room leaves the old one, unlike in memcached: such a table loses nothing.
#[inline(always)]
fn put<W: TableWriter>(
    writer: &mut W,
    job: &Job<'_>,
    item: &NewItem<'_>,
    context: &Context<'_>,
) -> &'static str {
    match writer.put(job.keyhash, item, context.now) {
        Stored::Yes(_) => lines::STORED,
        Stored::TooLarge => {
            writer.remove(job.keyhash, item.key, context.now);
            lines::TOO_LARGE
        }
        Stored::OutOfMemory => lines::NO_MEMORY_STORING,
    }
}

/// Puts a value behind or before the one that is there. Flags and expiry stay; a result that is too
/// large leaves the item as it was.
fn join<W: TableWriter>(
    writer: &mut W,
    context: &mut Context<'_>,
    job: &Job<'_>,
    mode: StoreMode,
    more: &[u8],
) -> &'static str {
    let (keyhash, key, now) = (job.keyhash, job.request.key, context.now);
    let Some(old_item) = writer.find(keyhash, key, now) else {
        return lines::NOT_STORED;
    };
    // The old value is copied out: its place in the log may be what has to make room.
    context.value.clear();
    old_item.value().append_to(context.value);
    let old: &[u8] = context.value;
    let value = if mode == StoreMode::Append {
        [old, more]
    } else {
        [more, old]
    };
    let item = NewItem {
        key,
        value,
        flags: old_item.flags(),
        expiry: old_item.expiry(),
        history: History::NEW,
    };
    match writer.put(keyhash, &item, now) {
        Stored::Yes(_) => lines::STORED,
        Stored::TooLarge => lines::NOT_STORED,
        Stored::OutOfMemory => lines::NO_MEMORY_STORING,
    }
}
