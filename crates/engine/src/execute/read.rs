//! `get`: by the partition's writer where it alone reads, optimistically where others may be
//! writing.

use super::answer::{self, Told};
use super::{Context, meta};
use crate::job::Job;
use crate::partitions_of::Handle;
use glimmer_store::table::{Absence, Busy, Table, TableReader, TableWriter};

/// Appends the key's value, or what stands for its absence.
#[inline(always)]
pub fn get<T: Table>(
    handle: &mut Handle<T>,
    place: T::Place,
    context: &mut Context<'_>,
    job: &Job<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Busy> {
    let (request, start) = (&job.request, out.len());
    if let (Some(reader), Some(batch)) = (&handle.reader, &context.batch) {
        // Each try begins where the last one began: a reply that was made of bytes that changed
        // under it is cut off again.
        let read = reader.read(
            batch,
            job.keyhash,
            request.key,
            context.now,
            context.flushes,
            |item| {
                out.truncate(start);
                answer::value(out, request, item, context)
            },
        );
        match read {
            Ok(Some(Told::All)) => {
                context.tally.get_hits.add(1);
                return Ok(());
            }
            Ok(Some(Told::ByWriter)) => out.truncate(start),
            Ok(None) => {
                out.truncate(start);
                missed(context, reader.absence(job.keyhash, request.key));
                answer::no_value(out, request);
                return Ok(());
            }
            Err(Busy) => {
                out.truncate(start);
                context.tally.optimistic_retries.add(1);
            }
        }
    }
    let owner = handle.owner.as_mut().ok_or(Busy)?;
    let mut writer = owner.enter(context.flushes);
    let (keyhash, now) = (job.keyhash, context.now);
    let read = writer.read_at(place, keyhash, request.key, now, |item| {
        answer::value(out, request, item, context)
    });
    match read {
        Some(Told::All) => context.tally.get_hits.add(1),
        Some(Told::ByWriter) => {
            out.truncate(start);
            meta::get(&mut writer, context, job, out);
        }
        None => {
            missed(context, writer.absence(job.keyhash, request.key));
            answer::no_value(out, request);
        }
    }
    Ok(())
}

/// Counts a read that found nothing.
#[inline(always)]
pub fn missed(context: &Context<'_>, absence: Absence) {
    context.tally.get_misses.add(1);
    absent(context, absence);
}

/// Counts why something was not there.
#[inline(always)]
pub fn absent(context: &Context<'_>, absence: Absence) {
    match absence {
        Absence::Expired => context.tally.get_expired.add(1),
        Absence::Flushed => context.tally.get_flushed.add(1),
        Absence::Other => {}
    }
}
