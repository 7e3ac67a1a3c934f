//! `delete`, `incr`, `decr`, `touch`, `gat`.

use super::{Context, answer};
use crate::job::Job;
use glimmer_base::Expiry;
use glimmer_base::counter::Counter;
use glimmer_proto::text::{lines, number};
use glimmer_store::heap::{History, NewItem};
use glimmer_store::partition::Stored;
use glimmer_store::table::TableWriter;
use std::io::Write;

pub fn delete<W: TableWriter>(
    writer: &mut W,
    context: &Context<'_>,
    job: &Job<'_>,
    out: &mut Vec<u8>,
) {
    let line = if writer.remove(job.keyhash, job.request.key, context.now) {
        context.tally.delete_hits.add(1);
        lines::DELETED
    } else {
        context.tally.delete_misses.add(1);
        lines::NOT_FOUND
    };
    answer::line(out, &job.request, line);
}

pub fn touch<W: TableWriter>(
    writer: &mut W,
    context: &Context<'_>,
    job: &Job<'_>,
    exptime: i64,
    out: &mut Vec<u8>,
) {
    let line = if touched(writer, context, job, exptime) {
        lines::TOUCHED
    } else {
        lines::NOT_FOUND
    };
    answer::line(out, &job.request, line);
}

pub fn get_and_touch<W: TableWriter>(
    writer: &mut W,
    context: &Context<'_>,
    job: &Job<'_>,
    exptime: i64,
    out: &mut Vec<u8>,
) {
    // The value is read first: a new expiry in the past takes effect after this answer.
    let found = writer
        .read(job.keyhash, job.request.key, context.now, |item| {
            answer::value(out, &job.request, item)
        })
        .is_some();
    touched(writer, context, job, exptime);
    if found {
        context.tally.get_hits.add(1);
    } else {
        context.tally.get_misses.add(1);
        answer::no_value(out, &job.request);
    }
}

fn touched<W: TableWriter>(
    writer: &mut W,
    context: &Context<'_>,
    job: &Job<'_>,
    exptime: i64,
) -> bool {
    let expiry = Expiry::from_memcached(exptime, context.now);
    let found = writer.touch(job.keyhash, job.request.key, expiry, context.now);
    context.tally.cmd_touch.add(1);
    if found {
        context.tally.touch_hits.add(1)
    } else {
        context.tally.touch_misses.add(1)
    }
    found
}

/// `incr` or `decr`, whose figures are `hits` and `misses`.
pub fn arithmetic<W: TableWriter>(
    writer: &mut W,
    context: &Context<'_>,
    job: &Job<'_>,
    calculation: impl FnOnce(u64) -> u64,
    (hits, misses): (&Counter, &Counter),
    out: &mut Vec<u8>,
) {
    let outcome = calculate(writer, context, job, calculation);
    match outcome {
        Outcome::NotFound => misses.add(1),
        _ => hits.add(1),
    }
    outcome.answer(job, out);
}

/// What a calculation on an item came to.
enum Outcome {
    NotFound,
    Number(u64),
    NotANumber,
    TooLarge,
}

impl Outcome {
    fn answer(&self, job: &Job<'_>, out: &mut Vec<u8>) {
        match *self {
            Outcome::NotFound => answer::line(out, &job.request, lines::NOT_FOUND),
            Outcome::Number(number) => answer::number(out, &job.request, number),
            Outcome::NotANumber => answer::line(out, &job.request, lines::NON_NUMERIC),
            Outcome::TooLarge => answer::line(out, &job.request, lines::NO_MEMORY),
        }
    }
}

/// Replaces an item's number. As memcached does, a result that is shorter than what was there is
/// filled up with spaces, and flags and expiry stay.
fn calculate<W: TableWriter>(
    writer: &mut W,
    context: &Context<'_>,
    job: &Job<'_>,
    calculation: impl FnOnce(u64) -> u64,
) -> Outcome {
    let (keyhash, key) = (job.keyhash, job.request.key);
    let Some(item) = writer.find(keyhash, key, context.now) else {
        return Outcome::NotFound;
    };
    let mut old = [0; 32];
    let Some(old) = item.value().short_bytes(&mut old) else {
        return Outcome::NotANumber;
    };
    let Some(number) = number::unsigned_64(old).map(calculation) else {
        return Outcome::NotANumber;
    };
    let mut new = [b' '; 24];
    let room = new.len();
    let mut rest = &mut new[..];
    write!(rest, "{number}").expect("20 digits fit into 24 bytes");
    let digits = room - rest.len();
    let value = &new[..digits.max(old.len())];
    let new_item = NewItem {
        key,
        value: [value, &[]],
        flags: item.flags(),
        expiry: item.expiry(),
        history: History::NEW,
    };
    match writer.put(keyhash, &new_item, context.now) {
        Stored::Yes(_) => Outcome::Number(number),
        Stored::TooLarge | Stored::OutOfMemory => Outcome::TooLarge,
    }
}
