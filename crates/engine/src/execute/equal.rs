//! Changes of an item that has a certain value, as the holder of a lock makes them.

use super::{Context, change, write};
use crate::job::Job;
use glimmer_base::{Expiry, Moment};
use glimmer_proto::request::{Lifetime, Renewal};
use glimmer_proto::{Outcome, Refusal};
use glimmer_store::table::TableWriter;

/// Deletes the item if it has this value.
pub fn delete(
    writer: &mut dyn TableWriter,
    context: &Context<'_>,
    job: &Job<'_>,
    value: &[u8],
) -> Outcome {
    let item = writer.find(job.keyhash, job.request.key, context.now);
    match item.map(|item| item.value().equals(value)) {
        Some(false) => Outcome::Exists,
        _ => change::delete(writer, context, job, 0),
    }
}

/// Deletes the item if its CAS unique, its expiry and its value are these. A change of the expiry
/// leaves the CAS unique as it is, and a server may have no CAS uniques.
pub fn delete_unchanged(
    writer: &mut dyn TableWriter,
    context: &Context<'_>,
    job: &Job<'_>,
    (cas, expiry_ms, value): (u64, u64, &[u8]),
) -> Outcome {
    let item = writer.find(job.keyhash, job.request.key, context.now);
    let is_unchanged = item.map(|item| {
        item.cas() == cas && item.expiry().ms() == expiry_ms && item.value().equals(value)
    });
    match is_unchanged {
        Some(false) => Outcome::Exists,
        _ => change::delete(writer, context, job, 0),
    }
}

/// Gives the item another lifetime if it has this value.
pub fn expire(
    writer: &mut dyn TableWriter,
    context: &Context<'_>,
    job: &Job<'_>,
    value: &[u8],
    (ms, renewal): (i64, Renewal),
) -> Outcome {
    let (keyhash, key, now) = (job.keyhash, job.request.key, context.now);
    context.tally.cmd_touch.add(1);
    let Some(item) = writer.find(keyhash, key, now) else {
        context.tally.touch_misses.add(1);
        return Outcome::NotFound;
    };
    let old = item.expiry();
    if !item.value().equals(value) {
        return Outcome::Exists;
    }
    let ms = match renewal {
        Renewal::Replace => ms,
        _ if old == Expiry::NEVER => return Outcome::NotStored,
        Renewal::ReplaceLimited => ms,
        Renewal::Add => ms.saturating_add(left_ms(old, now)),
    };
    let expiry = Lifetime::Ms(ms.max(0) as u64).expiry(now, old);
    if !write::touch(writer, job, expiry, now) {
        return context.refuse(Refusal::NoMemory);
    }
    context.tally.touch_hits.add(1);
    Outcome::Touched { flags: 0, cas: 0 }
}

/// Milliseconds until an expiry time.
fn left_ms(expiry: Expiry, now: Moment) -> i64 {
    expiry.ms().saturating_sub(now.ms) as i64
}
