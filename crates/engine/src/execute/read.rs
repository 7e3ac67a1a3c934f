//! `get`: by the partition's writer where it alone reads, optimistically where others may be
//! writing.

use super::{Context, answer};
use crate::job::Job;
use crate::partitions_of::Handle;
use glimmer_store::partition::Busy;
use glimmer_store::table::{Table, TableReader, TableWriter};

/// Appends the key's value, or what stands for its absence.
#[inline(always)]
pub fn get<T: Table>(
    handle: &mut Handle<T>,
    context: &mut Context<'_>,
    job: &Job<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Busy> {
    let (request, start) = (&job.request, out.len());
    let found = match (&handle.reader, &mut handle.owner) {
        (Some(reader), owner) => {
            // Each try begins where the last one began: a reply that was made of bytes that changed
            // under it is cut off again.
            let read = reader.read(
                job.keyhash,
                request.key,
                context.now,
                context.flushes,
                |item| {
                    out.truncate(start);
                    answer::value(out, request, item);
                },
            );
            match (read, owner) {
                (Ok(Some(())), _) => true,
                (Ok(None), _) => {
                    out.truncate(start);
                    false
                }
                (Err(Busy), owner) => {
                    out.truncate(start);
                    context.tally.optimistic_retries.add(1);
                    let mut writer = owner.as_mut().ok_or(Busy)?.enter(context.flushes);
                    writer
                        .read(job.keyhash, request.key, context.now, |item| {
                            answer::value(out, request, item)
                        })
                        .is_some()
                }
            }
        }
        (None, Some(owner)) => {
            let mut writer = owner.enter(context.flushes);
            writer
                .read(job.keyhash, request.key, context.now, |item| {
                    answer::value(out, request, item)
                })
                .is_some()
        }
        (None, None) => return Err(Busy),
    };
    if found {
        context.tally.get_hits.add(1);
    } else {
        context.tally.get_misses.add(1);
        answer::no_value(out, request);
    }
    Ok(())
}
