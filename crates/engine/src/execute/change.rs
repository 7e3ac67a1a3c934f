//! `delete`, `touch`, `gat`.

use super::view::View;
use super::{Context, absence, say};
use crate::job::Job;
use glimmer_base::Expiry;
use glimmer_proto::outcome::{Found, OutcomeKind};
use glimmer_proto::{Outcome, Refusal};
use glimmer_store::table::TableWriter;

/// Deletes the item. If `compare` is not zero, only an item with this CAS unique.
pub fn delete(
    writer: &mut dyn TableWriter,
    context: &Context<'_>,
    job: &Job<'_>,
    compare: u64,
) -> Outcome {
    let (keyhash, key, now) = (job.keyhash, job.request.key, context.now);
    if compare != 0
        && let Some(item) = writer.find(keyhash, key, now)
        && item.cas() != compare
    {
        return Outcome::Exists;
    }
    if writer.remove(keyhash, key, now) {
        context.tally.delete_hits.add(1);
        Outcome::Deleted
    } else {
        context.tally.delete_misses.add(1);
        Outcome::NotFound
    }
}

pub fn touch(
    writer: &mut dyn TableWriter,
    context: &Context<'_>,
    job: &Job<'_>,
    exptime: i64,
) -> Outcome {
    let shown = match job.request.shows_touched() {
        true => writer
            .find(job.keyhash, job.request.key, context.now)
            .map(|item| (item.flags(), item.cas())),
        false => None,
    };
    match touched(writer, context, job, exptime) {
        Ok(true) => {
            let (flags, cas) = shown.unwrap_or_default();
            Outcome::Touched { flags, cas }
        }
        Ok(false) => Outcome::NotFound,
        Err(refusal) => refusal,
    }
}

pub fn get_and_touch(
    writer: &mut dyn TableWriter,
    context: &mut Context<'_>,
    job: &Job<'_>,
    exptime: i64,
    out: &mut Vec<u8>,
) -> OutcomeKind {
    let start = out.len();
    let mut read_bytes = 0;
    // The value is read first: an expiry time in the past takes effect after this reply.
    let found = writer
        .take(job.keyhash, job.request.key, context.now, |item| {
            read_bytes = item.value().len();
            let found = Found::read(View(*item), context.now);
            job.request.emit(Outcome::Value(found), out);
        })
        .is_some();
    context.read_bytes = read_bytes as u32;
    // It counts as a touch and not as a get.
    if let Err(refusal) = touched(writer, context, job, exptime) {
        out.truncate(start);
        return say(&job.request, refusal, out);
    }
    if !found {
        let absence = writer.absence(job.keyhash, job.request.key);
        absence::absent(context, absence);
        return say(&job.request, Outcome::Miss, out);
    }
    OutcomeKind::Value
}

/// Sets the item's expiry time. Returns whether there was an item. A table that does not evict may
/// have no room for a time that is yet to come.
fn touched(
    writer: &mut dyn TableWriter,
    context: &Context<'_>,
    job: &Job<'_>,
    exptime: i64,
) -> Result<bool, Outcome> {
    let (keyhash, key, now) = (job.keyhash, job.request.key, context.now);
    let expiry = Expiry::from_memcached(exptime, now);
    context.tally.cmd_touch.add(1);
    let is_done = writer.touch(keyhash, key, expiry, now)
        // One that is past takes no memory.
        || expiry.is_due(now) && writer.remove(keyhash, key, now);
    if is_done {
        context.tally.touch_hits.add(1);
        return Ok(true);
    }
    if writer.find(keyhash, key, now).is_some() {
        return Err(context.refuse(Refusal::NoMemory));
    }
    context.tally.touch_misses.add(1);
    Ok(false)
}
