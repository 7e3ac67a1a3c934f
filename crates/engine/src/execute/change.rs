//! `delete`, `touch`, `gat`.

use super::{Context, answer, read};
use crate::job::Job;
use glimmer_base::Expiry;
use glimmer_proto::Form;
use glimmer_proto::binary::Status;
use glimmer_store::table::TableWriter;

/// Removes the item; if `compare` is not zero, only one with this CAS unique.
pub fn delete<W: TableWriter>(
    writer: &mut W,
    context: &Context<'_>,
    job: &Job<'_>,
    compare: u64,
    out: &mut Vec<u8>,
) {
    let (keyhash, key, now) = (job.keyhash, job.request.key, context.now);
    if compare != 0
        && let Some(item) = writer.find(keyhash, key, now)
        && item.cas() != compare
    {
        return answer::deleted(out, &job.request, Err(Status::KeyExists));
    }
    let outcome = if writer.remove(keyhash, key, now) {
        context.tally.delete_hits.add(1);
        Ok(())
    } else {
        context.tally.delete_misses.add(1);
        Err(Status::KeyNotFound)
    };
    answer::deleted(out, &job.request, outcome);
}

pub fn touch<W: TableWriter>(
    writer: &mut W,
    context: &Context<'_>,
    job: &Job<'_>,
    exptime: i64,
    out: &mut Vec<u8>,
) {
    // Only the binary protocol shows anything of the item.
    let shown = match job.request.form {
        Form::Binary(_) => writer
            .find(job.keyhash, job.request.key, context.now)
            .map(|item| (item.flags(), item.cas())),
        _ => None,
    };
    match touched(writer, context, job, exptime) {
        Ok(found) => {
            answer::touched(out, &job.request, found.then(|| shown.unwrap_or_default()));
        }
        Err(NoMemory) => answer::no_memory(out, &job.request),
    }
}

pub fn get_and_touch<W: TableWriter>(
    writer: &mut W,
    context: &Context<'_>,
    job: &Job<'_>,
    exptime: i64,
    out: &mut Vec<u8>,
) {
    let start = out.len();
    // The value is read first: a new expiry in the past takes effect after this answer.
    let found = writer
        .read(job.keyhash, job.request.key, context.now, |item| {
            answer::value(out, &job.request, item, context)
        })
        .is_some();
    if touched(writer, context, job, exptime).is_err() {
        out.truncate(start);
        answer::no_memory(out, &job.request);
    }
    // It counts as a touch, and not as a get.
    if !found {
        let absence = writer.absence(job.keyhash, job.request.key);
        read::absent(context, absence);
        answer::no_value(out, &job.request);
    }
}

/// A table that evicts nothing has no room for the item's expiry time.
struct NoMemory;

/// Changes when the item expires; says whether there is one.
fn touched<W: TableWriter>(
    writer: &mut W,
    context: &Context<'_>,
    job: &Job<'_>,
    exptime: i64,
) -> Result<bool, NoMemory> {
    let (keyhash, key, now) = (job.keyhash, job.request.key, context.now);
    let expiry = Expiry::from_memcached(exptime, now);
    context.tally.cmd_touch.add(1);
    if writer.touch(keyhash, key, expiry, now) {
        context.tally.touch_hits.add(1);
        return Ok(true);
    }
    if writer.find(keyhash, key, now).is_some() {
        context.tally.store_no_memory.add(1);
        return Err(NoMemory);
    }
    context.tally.touch_misses.add(1);
    Ok(false)
}
