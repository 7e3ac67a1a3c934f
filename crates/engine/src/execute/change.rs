//! `delete`, `touch`, `gat`.

use super::{Context, answer};
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
    let found = touched(writer, context, job, exptime);
    answer::touched(out, &job.request, found.then(|| shown.unwrap_or_default()));
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
            answer::value(out, &job.request, item, context)
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
