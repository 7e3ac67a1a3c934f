//! `md`: deletes an item, empties it, or marks it as stale.

use super::super::Context;
use crate::job::Job;
use glimmer_base::Expiry;
use glimmer_proto::meta::Options;
use glimmer_proto::{Outcome, Refusal};
use glimmer_store::heap::{History, Item, Marks, NewItem};
use glimmer_store::table::Stored;
use glimmer_store::table::TableWriter;

pub fn delete(writer: &mut dyn TableWriter, context: &mut Context<'_>, job: &Job<'_>) -> Outcome {
    let options = job.request.meta_flags().options();
    let outcome = deleted(writer, context, job, &options);
    match outcome {
        // An item that is only marked still exists.
        Outcome::Deleted if options.set.has(b'I') => {}
        Outcome::Deleted => context.tally.delete_hits.add(1),
        _ => context.tally.delete_misses.add(1),
    }
    outcome
}

fn deleted(
    writer: &mut dyn TableWriter,
    context: &mut Context<'_>,
    job: &Job<'_>,
    options: &Options,
) -> Outcome {
    let (keyhash, key, now) = (job.keyhash, job.request.key, context.now);
    let Some(item) = writer.find(keyhash, key, now) else {
        return Outcome::NotFound;
    };
    if options.compare.is_some_and(|unique| unique != item.cas()) {
        return Outcome::Exists;
    }
    let (empties, marks_stale) = (options.set.has(b'x'), options.set.has(b'I'));
    if !empties && !marks_stale {
        writer.remove(keyhash, key, now);
        return Outcome::Deleted;
    }
    // Rewriting the item loses those reads that left no mark on it.
    let fetched = match !empties && writer.was_read(keyhash, key, now) {
        true => Marks::FETCHED,
        false => Marks::NONE,
    };
    let (flags, expiry) = kept(&item, options, empties, context);
    let history = item.history();
    let new = NewItem {
        key,
        value: [&[], &[]],
        flags,
        expiry,
        history: History {
            // An emptied item keeps its CAS unique; a stale one gets a new one.
            cas: context.unique(options.unique.or(history.cas.filter(|_| !marks_stale))),
            marks: marks(history.marks, empties, marks_stale).with(fetched),
            accessed_s: if empties { 0 } else { history.accessed_s },
        },
    };
    let stored = match empties {
        true => Some(writer.put(keyhash, &new, now)),
        false => writer.extend(keyhash, &new, now),
    };
    match stored {
        Some(Stored::Yes(_)) => Outcome::Deleted,
        // One that ends at once takes no memory.
        Some(Stored::OutOfMemory) if expiry.is_due(now) && writer.remove(keyhash, key, now) => {
            Outcome::Deleted
        }
        Some(Stored::OutOfMemory) => {
            context.refuse(Refusal::NoMemory);
            Outcome::NotStored
        }
        Some(Stored::TooLarge) => Outcome::NotStored,
        None => Outcome::NotFound,
    }
}

/// The client flags and the expiry of the item afterwards. An emptied item has those of the
/// request; others keep theirs, unless the request has a `T`.
fn kept(item: &Item<'_>, options: &Options, empties: bool, context: &Context<'_>) -> (u32, Expiry) {
    let asked = options
        .exptime
        .map(|exptime| options.expiry(exptime, context.now));
    if empties {
        (options.client_flags, asked.unwrap_or(Expiry::NEVER))
    } else {
        (item.flags(), asked.unwrap_or(item.expiry()))
    }
}

/// The item's marks afterwards. The next reader may win the right to recache a stale item.
fn marks(old: Marks, empties: bool, marks_stale: bool) -> Marks {
    let kept = if empties {
        old.only(Marks::BINARY_KEY)
    } else {
        old
    };
    if marks_stale {
        kept.with(Marks::STALE).without(Marks::WON)
    } else {
        kept
    }
}
