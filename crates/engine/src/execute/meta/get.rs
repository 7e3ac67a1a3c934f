//! Executes an `mg` that changes the item, or asks for something that only the item's writer knows.

use super::super::view::{Made, View, second};
use super::super::{Context, absence, say};
use super::{changed_expiry, created_expiry, key_mark};
use crate::job::Job;
use glimmer_base::{Expiry, Moment};
use glimmer_proto::meta::flags::MILLISECONDS;
use glimmer_proto::meta::{Flags, Options};
use glimmer_proto::outcome::{Details, Found, OutcomeKind};
use glimmer_proto::{Outcome, Refusal};
use glimmer_store::heap::{History, Item, Marks, NewItem};
use glimmer_store::table::Stored;
use glimmer_store::table::{Absence, TableWriter};

/// The changes that an `mg` makes to the item.
struct After {
    expiry_before: Expiry,
    expiry: Expiry,
    history: History,
    changed: bool,
}

/// What the table knows about an item in addition to the item's own data.
#[derive(Clone, Copy)]
struct Known {
    was_read: bool,
    stored_s: Option<u32>,
}

/// Executes an `mg` on the partition's writer.
pub fn get(
    writer: &mut dyn TableWriter,
    context: &mut Context<'_>,
    job: &Job<'_>,
    out: &mut Vec<u8>,
) -> OutcomeKind {
    let flags = job.request.meta_flags();
    let (keyhash, key, now) = (job.keyhash, job.request.key, context.now);
    let (options, start) = (flags.options(), out.len());
    let known = Known {
        was_read: options.set.has(b'h') && writer.was_read(keyhash, key, now),
        stored_s: match options.set.has(b'l') {
            true => writer.stored_s(keyhash, key, now),
            false => None,
        },
    };
    let mut read_bytes = 0;
    let mut shown = |item: &Item<'_>| {
        read_bytes = item.value().len();
        show(out, job, (flags, &options), item, known, now)
    };
    let after = if options.set.has(b'u') {
        writer.find(keyhash, key, now).map(|item| shown(&item))
    } else {
        writer.take(keyhash, key, now, shown)
    };
    context.read_bytes = read_bytes as u32;
    let was_there = after.is_some();
    let absence = match was_there {
        true => Absence::Other,
        false => writer.absence(keyhash, key),
    };
    if let Some(after) = after
        && after.changed
        && !writer.amend(keyhash, key, after.expiry, after.history, now)
    {
        // A table that does not evict has no room for a time that is yet to come. Marks need no
        // room.
        if after.expiry == after.expiry_before {
            let history = History {
                accessed_s: 0,
                ..after.history
            };
            writer.amend(keyhash, key, after.expiry, history, now);
        } else if !after.expiry.is_due(now) || !writer.remove(keyhash, key, now) {
            out.truncate(start);
            return say(&job.request, context.refuse(Refusal::NoMemory), out);
        }
    }
    let found = was_there
        || options.create_exptime.is_some() && create(writer, context, job, (flags, &options), out);
    let tally = context.tally;
    match (found, options.exptime.is_some()) {
        (true, true) => {
            tally.cmd_touch.add(1);
            tally.touch_hits.add(1);
        }
        (true, false) => tally.get_hits.add(1),
        // As in memcached, nothing was touched where nothing is.
        (false, _) => absence::missed(context, absence),
    }
    match found {
        true => OutcomeKind::Value,
        false => say(&job.request, Outcome::Miss, out),
    }
}

/// Appends the reply to a hit and returns the changes to the item. The order of the flags matters:
/// an `R` after `T` compares with the new expiry.
fn show(
    out: &mut Vec<u8>,
    job: &Job<'_>,
    (flags, options): (Flags<'_>, &Options),
    item: &Item<'_>,
    known: Known,
    now: Moment,
) -> After {
    let old = item.history();
    let (mut expiry, mut wins) = (item.expiry(), false);
    for (flag, _) in flags.iter() {
        match flag {
            b'T' => expiry = changed_expiry(flag, options, false, now).unwrap_or(expiry),
            b'R' => wins |= !old.marks.has(Marks::WON) && is_due_for_recache(expiry, options, now),
            _ => {}
        }
    }
    wins |= old.marks.has(Marks::STALE) && !old.marks.has(Marks::WON);
    let found = Found {
        item: View(*item),
        now,
        details: Details {
            is_new: false,
            wins,
            was_fetched: known.was_read || old.marks.has(Marks::FETCHED),
            idle_s: idle_s(&old, known.stored_s, now),
        },
    };
    job.request.emit(Outcome::Value(found), out);
    let history = after(&old, options, wins, now);
    After {
        expiry_before: item.expiry(),
        expiry,
        history,
        changed: expiry != item.expiry() || history != old,
    }
}

/// The item's history after an `mg`. Unless the request has `u`, the item counts as read. The time
/// is stored only for items for which a client has asked for it.
fn after(old: &History, options: &Options, wins: bool, now: Moment) -> History {
    let mut new = *old;
    if wins {
        new.marks = new.marks.with(Marks::WON);
    }
    if !options.set.has(b'u') {
        new.marks = new.marks.with(Marks::FETCHED);
        if options.set.has(b'l') || old.accessed_s != 0 {
            new.accessed_s = second(now);
        }
    }
    new
}

/// Seconds since the last access or, if that time is not stored, since the item was written, as far
/// as that is known.
pub fn idle_s(history: &History, stored_s: Option<u32>, now: Moment) -> u64 {
    let since = match history.accessed_s {
        0 => stored_s,
        accessed_s => Some(accessed_s),
    };
    since.map_or(0, |since| second(now).saturating_sub(since).into())
}

/// Whether the time that is left is less than the client asks for. Both are in whole seconds, as
/// `t` shows them, or in milliseconds (`m`).
fn is_due_for_recache(expiry: Expiry, options: &Options, now: Moment) -> bool {
    let left_ms = expiry.ms().saturating_sub(now.ms);
    let left_ms = match options.set.has(MILLISECONDS) {
        false => left_ms.next_multiple_of(1000),
        true => left_ms,
    };
    let recache = options.recache_exptime.unwrap_or(0);
    let due = options.expiry(recache, now);
    expiry != Expiry::NEVER && now.ms.saturating_add(left_ms) < due.ms()
}

/// Creates an empty item if the key has no item, and tells the client to fill it. Returns whether
/// it did.
fn create(
    writer: &mut dyn TableWriter,
    context: &Context<'_>,
    job: &Job<'_>,
    (flags, options): (Flags<'_>, &Options),
    out: &mut Vec<u8>,
) -> bool {
    let (key, now) = (job.request.key, context.now);
    // The client that creates the item has fetched it.
    let fetched = match options.set.has(b'u') {
        true => Marks::NONE,
        false => Marks::FETCHED,
    };
    let item = NewItem {
        key,
        value: [&[], &[]],
        flags: 0,
        expiry: created_expiry(flags, options, now),
        history: context.history(History {
            cas: options.unique,
            marks: Marks::WON.with(fetched).with(key_mark(flags)),
            accessed_s: 0,
        }),
    };
    let cas = match writer.put(job.keyhash, &item, now) {
        Stored::Yes(cas) => cas,
        Stored::OutOfMemory => {
            context.refuse(Refusal::NoMemory);
            return false;
        }
        Stored::TooLarge => return false,
    };
    let made = Made {
        cas,
        has_binary_key: flags.base64_key,
    };
    let found = Found {
        item: made,
        now,
        details: Details {
            is_new: true,
            wins: true,
            ..Details::default()
        },
    };
    job.request.emit(Outcome::Value(found), out);
    true
}
