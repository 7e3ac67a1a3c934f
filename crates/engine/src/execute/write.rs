//! Verbs of protocols that have other conditions, lifetimes and numbers than memcached's.

use super::count::{DIGITS_MAX, write_digits};
use super::view::View;
use super::{Context, say};
use crate::job::Job;
use glimmer_base::Expiry;
use glimmer_proto::integer;
use glimmer_proto::outcome::{Counted, Found, OutcomeKind};
use glimmer_proto::request::{Condition, Lifetime, Write};
use glimmer_proto::{Outcome, Refusal, Request};
use glimmer_store::heap::{History, NewItem};
use glimmer_store::table::Stored;
use glimmer_store::table::TableWriter;

/// Stores a value on a condition. What is refused leaves the item as it was. The reply shows the
/// item that was there before, if that is wanted.
pub fn write(
    writer: &mut dyn TableWriter,
    context: &mut Context<'_>,
    job: &Job<'_>,
    write: &Write<'_>,
    out: &mut Vec<u8>,
) -> OutcomeKind {
    let (keyhash, key, now) = (job.keyhash, job.request.key, context.now);
    context.tally.cmd_set.add(1);
    let start = out.len();
    let old = match write.shows_old {
        false => writer.find(keyhash, key, now).map(|item| item.expiry()),
        true => writer.take(keyhash, key, now, |item| {
            job.request
                .emit(Outcome::Value(Found::read(View(*item), now)), out);
            item.expiry()
        }),
    };
    let holds = match write.condition {
        Condition::Always => true,
        Condition::Absent => old.is_none(),
        Condition::Present => old.is_some(),
    };
    let outcome = if holds {
        let expiry = write.lifetime.expiry(now, old.unwrap_or(Expiry::NEVER));
        put(writer, context, job, write.value, (0, expiry, History::NEW))
    } else {
        Outcome::NotStored
    };
    match outcome {
        Outcome::TooLarge | Outcome::OutOfMemory => {
            out.truncate(start);
            say(&job.request, outcome, out)
        }
        _ if !write.shows_old => say(&job.request, outcome, out),
        _ if old.is_some() => OutcomeKind::Value,
        _ => say(&job.request, Outcome::Miss, out),
    }
}

/// Gives the item another lifetime. One that is to stay for ever and does so already is not
/// changed.
pub fn expire(
    writer: &mut dyn TableWriter,
    context: &Context<'_>,
    job: &Job<'_>,
    lifetime: Lifetime,
) -> Outcome {
    let (keyhash, key, now) = (job.keyhash, job.request.key, context.now);
    let Some(old) = writer.find(keyhash, key, now).map(|item| item.expiry()) else {
        context.tally.cmd_touch.add(1);
        context.tally.touch_misses.add(1);
        return Outcome::NotFound;
    };
    let expiry = lifetime.expiry(now, old);
    if expiry == old && lifetime == Lifetime::Unlimited {
        return Outcome::NotStored;
    }
    context.tally.cmd_touch.add(1);
    if !writer.touch(keyhash, key, expiry, now) {
        return context.refuse(Refusal::NoMemory);
    }
    context.tally.touch_hits.add(1);
    Outcome::Touched { flags: 0, cas: 0 }
}

/// Adds to a signed number; an item that is not there holds zero. Flags and expiry stay.
pub fn add(
    writer: &mut dyn TableWriter,
    context: &Context<'_>,
    job: &Job<'_>,
    delta: i64,
) -> Outcome {
    let (keyhash, key, now) = (job.keyhash, job.request.key, context.now);
    let tally = context.tally;
    let (mut flags, mut expiry, mut history) = (0, Expiry::NEVER, History::NEW);
    let mut number = 0;
    let is_new = match writer.find(keyhash, key, now) {
        None => true,
        Some(item) => {
            let mut bytes = [0; 32];
            let value = item
                .value()
                .short_bytes(&mut bytes)
                .and_then(integer::signed_64);
            let Some(value) = value else {
                return Outcome::NotANumber;
            };
            (number, flags, expiry) = (value, item.flags(), item.expiry());
            history.marks = item.history().marks;
            false
        }
    };
    let Some(number) = number.checked_add(delta) else {
        return Outcome::Overflow;
    };
    match (is_new, delta < 0) {
        (true, _) => {}
        (false, false) => tally.incr_hits.add(1),
        (false, true) => tally.decr_hits.add(1),
    }
    let mut digits = [0; DIGITS_MAX];
    let used = write_digits(&mut digits, number);
    match put(
        writer,
        context,
        job,
        &digits[..used],
        (flags, expiry, history),
    ) {
        Outcome::Stored { cas, .. } => Outcome::Counted(Counted {
            number: number as u64,
            cas,
            expiry,
            is_new,
            now,
        }),
        failure => failure,
    }
}

fn put(
    writer: &mut dyn TableWriter,
    context: &Context<'_>,
    job: &Job<'_>,
    value: &[u8],
    (flags, expiry, history): (u32, Expiry, History),
) -> Outcome {
    let Request { key, .. } = job.request;
    let item = NewItem {
        key,
        value: [value, &[]],
        flags,
        expiry,
        history: context.history(history),
    };
    match writer.put(job.keyhash, &item, context.now) {
        Stored::Yes(cas) => Outcome::Stored {
            cas,
            value_bytes: value.len(),
        },
        Stored::TooLarge => context.refuse(Refusal::TooLarge),
        Stored::OutOfMemory => context.refuse(Refusal::NoMemory),
    }
}
