//! Verbs of protocols that have other conditions, lifetimes and numbers than memcached's.

use super::count::{DIGITS_MAX, write_digits};
use super::view::View;
use super::{Context, absence, change, say};
use crate::job::Job;
use glimmer_base::{Expiry, Moment};
use glimmer_proto::integer;
use glimmer_proto::outcome::{Counted, Found, OutcomeKind};
use glimmer_proto::request::{AddRule, Condition, ExpireWhen, Lifetime, Write};
use glimmer_proto::{Outcome, Refusal, Request};
use glimmer_store::heap::{History, Item, NewItem};
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
    // When it expires, and whether it has the value that it has to have.
    let look = |item: &Item<'_>| {
        let is_equal = |expected| item.value().equals(expected);
        (item.expiry(), write.expected().is_some_and(is_equal))
    };
    let old = match write.shows_old {
        false => writer.find(keyhash, key, now).map(|item| look(&item)),
        true => read(writer, context, job, look, out),
    };
    let holds = match write.condition {
        Condition::Always => true,
        Condition::Absent => old.is_none(),
        Condition::Present => old.is_some(),
        Condition::Equal => old.is_some_and(|(_, is_equal)| is_equal),
    };
    let outcome = if holds {
        let kept = old.map_or(Expiry::NEVER, |(expiry, _)| expiry);
        let expiry = write.lifetime.expiry(now, kept);
        let value = write.value();
        match expiry.is_due(now) {
            false => put(
                writer,
                context,
                job,
                value,
                (write.flags(), expiry, History::NEW),
            ),
            true => {
                writer.remove(keyhash, key, now);
                Outcome::Stored {
                    cas: 0,
                    value_bytes: value.len(),
                }
            }
        }
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

/// Reads the value and gives the item another lifetime, which takes effect after this reply.
pub fn get_and_expire(
    writer: &mut dyn TableWriter,
    context: &mut Context<'_>,
    job: &Job<'_>,
    lifetime: Lifetime,
    out: &mut Vec<u8>,
) -> OutcomeKind {
    let start = out.len();
    let Some(old) = read(writer, context, job, |item| item.expiry(), out) else {
        return say(&job.request, Outcome::Miss, out);
    };
    let now = context.now;
    let expiry = lifetime.expiry(now, old);
    if expiry != old && !touch(writer, job, expiry, now) {
        out.truncate(start);
        return say(&job.request, context.refuse(Refusal::NoMemory), out);
    }
    OutcomeKind::Value
}

/// Reads the value and deletes the item.
pub fn take(
    writer: &mut dyn TableWriter,
    context: &mut Context<'_>,
    job: &Job<'_>,
    out: &mut Vec<u8>,
) -> OutcomeKind {
    if read(writer, context, job, |_| (), out).is_none() {
        return say(&job.request, Outcome::Miss, out);
    }
    change::delete(writer, context, job, 0);
    OutcomeKind::Value
}

/// Shows the item without counting a read.
pub fn look(
    writer: &dyn TableWriter,
    context: &Context<'_>,
    job: &Job<'_>,
    out: &mut Vec<u8>,
) -> OutcomeKind {
    let now = context.now;
    let Some(item) = writer.find(job.keyhash, job.request.key, now) else {
        return say(&job.request, Outcome::Miss, out);
    };
    let found = Found::read(View(item), now);
    job.request.emit(Outcome::Value(found), out);
    OutcomeKind::Value
}

/// Appends the item to the reply, and counts that as a read. Returns what `look` makes of it.
fn read<R>(
    writer: &mut dyn TableWriter,
    context: &mut Context<'_>,
    job: &Job<'_>,
    look: impl FnOnce(&Item<'_>) -> R,
    out: &mut Vec<u8>,
) -> Option<R> {
    let (now, mut read_bytes) = (context.now, 0);
    let old = writer.take(job.keyhash, job.request.key, now, |item| {
        read_bytes = item.value().len() as u32;
        let found = Found::read(View(*item), now);
        job.request.emit(Outcome::Value(found), out);
        look(item)
    });
    context.read_bytes = read_bytes;
    match old {
        Some(_) => context.tally.get_hits.add(1),
        None => absence::missed(context, writer.absence(job.keyhash, job.request.key)),
    }
    old
}

/// Gives the item another lifetime, if the condition holds. One that is to stay for ever and does
/// so already is not changed.
pub fn expire(
    writer: &mut dyn TableWriter,
    context: &Context<'_>,
    job: &Job<'_>,
    (lifetime, when): (Lifetime, ExpireWhen),
) -> Outcome {
    let (keyhash, key, now) = (job.keyhash, job.request.key, context.now);
    let Some(old) = writer.find(keyhash, key, now).map(|item| item.expiry()) else {
        context.tally.cmd_touch.add(1);
        context.tally.touch_misses.add(1);
        return Outcome::NotFound;
    };
    let expiry = lifetime.expiry(now, old);
    let is_unlimited = old == Expiry::NEVER;
    let latest = |expiry: Expiry| match expiry {
        Expiry::NEVER => u64::MAX,
        expiry => expiry.ms(),
    };
    let holds = match when {
        ExpireWhen::Always => true,
        ExpireWhen::Unlimited => is_unlimited,
        ExpireWhen::Limited => !is_unlimited,
        ExpireWhen::Later => latest(expiry) > latest(old),
        ExpireWhen::Earlier => latest(expiry) < latest(old),
        ExpireWhen::LimitedAndEarlier => !is_unlimited && latest(expiry) < latest(old),
    };
    if !holds || expiry == old && lifetime == Lifetime::Unlimited {
        return Outcome::NotStored;
    }
    context.tally.cmd_touch.add(1);
    if !touch(writer, job, expiry, now) {
        return context.refuse(Refusal::NoMemory);
    }
    context.tally.touch_hits.add(1);
    Outcome::Touched { flags: 0, cas: 0 }
}

/// Gives the key's item another expiry time. One that is past removes it. Says whether that was
/// done: there may be no room for the time.
pub fn touch(writer: &mut dyn TableWriter, job: &Job<'_>, expiry: Expiry, now: Moment) -> bool {
    let (keyhash, key) = (job.keyhash, job.request.key);
    match expiry.is_due(now) {
        true => writer.remove(keyhash, key, now),
        false => writer.touch(keyhash, key, expiry, now),
    }
}

/// Adds to a signed number; an item that is not there holds zero, unless the rule has it stay away.
/// Flags stay, and so does the expiry unless the rule says otherwise. What is
/// [counted](Counted::expiry) then shows the new one.
pub fn add(
    writer: &mut dyn TableWriter,
    context: &Context<'_>,
    job: &Job<'_>,
    (delta, rule): (i64, AddRule),
) -> Outcome {
    let (keyhash, key, now) = (job.keyhash, job.request.key, context.now);
    let tally = context.tally;
    let (mut flags, mut expiry, mut history) = (0, Expiry::NEVER, History::NEW);
    let mut number = 0;
    let is_new = match writer.find(keyhash, key, now) {
        None if rule == AddRule::IfPresent => {
            tally.incr_misses.add(1);
            return Outcome::NotFound;
        }
        None => true,
        Some(item) => {
            (flags, expiry) = (item.flags(), item.expiry());
            history.marks = item.history().marks;
            let restarts = matches!(rule, AddRule::RestartsIfUnlimited { .. });
            if !restarts || expiry != Expiry::NEVER {
                let mut bytes = [0; 32];
                let value = item.value().short_bytes(&mut bytes);
                let Some(value) = value.and_then(integer::signed_64) else {
                    return Outcome::NotANumber;
                };
                number = value;
            }
            false
        }
    };
    let is_unlimited = expiry == Expiry::NEVER;
    let is_first = number == 0;
    let Some(number) = number.checked_add(delta) else {
        return Outcome::Overflow;
    };
    expiry = match rule {
        AddRule::ExpiresIfFirst { ms } if is_first => Lifetime::Ms(ms.max(0) as u64),
        AddRule::ExpiresIfUnlimited { ms } | AddRule::RestartsIfUnlimited { ms }
            if is_unlimited =>
        {
            Lifetime::Ms(ms.max(0) as u64)
        }
        _ => Lifetime::Kept,
    }
    .expiry(now, expiry);
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

/// Stores a value with these flags, expiry and history. What is refused leaves the item as it was.
pub fn put(
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
