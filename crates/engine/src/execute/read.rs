//! `get`: by the partition's writer where it alone reads, optimistically where others may be
//! writing.

mod lend;

use super::absence::missed;
use super::view::View;
use super::{Context, meta, mutate};
use crate::job::{Job, Status};
use crate::observer::ChangeObserver;
use crate::partitions_of::Handle;
use glimmer_base::Moment;
use glimmer_base::limits::LENT_BYTES_MIN;
use glimmer_proto::outcome::{Found, NoItem, Outcome, OutcomeKind};
use glimmer_store::access::Access;
use glimmer_store::heap::Item;
use glimmer_store::removals::Tap;
use glimmer_store::table::{Busy, Table, TableReader, TableWriter};

/// What a read makes of an item that it finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    /// The item is in the reply, with a value of this many bytes.
    Shown(u32),
    /// The item has to change with the answer, which is for its writer.
    ForWriter,
    /// The item is too large to be copied here, or now.
    Not(Status),
    /// The item's value may be lent.
    Large,
}

/// Appends the key's value, or what stands for its absence. Why it has `IS_APART`:
/// [`execute`](super::request::execute).
#[inline(always)]
pub fn get<T: Table, O: ChangeObserver, const IS_APART: bool>(
    handle: &mut Handle<T>,
    home: T::HomeBucket,
    tap: &Tap<O>,
    context: &mut Context<'_>,
    job: &Job<'_>,
    out: &mut Vec<u8>,
) -> Result<OutcomeKind, Status> {
    let (request, start) = (&job.request, out.len());
    if let (Some(reader), Some(batch)) = (&handle.reader, &context.batch) {
        // Each try begins where the last one began: a reply that was made of bytes that changed
        // under it is cut off again.
        let read = reader.read_at(
            batch,
            home,
            job.keyhash,
            request.key,
            context.now,
            context.flushes,
            |item| {
                out.truncate(start);
                match context.lent.lends(item.value().len(), out.len()) {
                    true => Look::Large,
                    false => look(item, job, context.now, out),
                }
            },
        );
        let read = match read {
            Ok(Some(Look::Large)) => lend::look(handle, context, job, out),
            read => read,
        };
        match read {
            Ok(Some(Look::Shown(bytes))) => {
                context.read_bytes = bytes;
                context.tally.get_hits.add(1);
                return Ok(OutcomeKind::Value);
            }
            Ok(Some(Look::ForWriter | Look::Large)) => out.truncate(start),
            Ok(Some(Look::Not(status))) => {
                out.truncate(start);
                return Err(status);
            }
            Ok(None) => {
                out.truncate(start);
                if let Some(reader) = &handle.reader {
                    missed(context, reader.absence(job.keyhash, request.key));
                }
                request.emit::<NoItem>(Outcome::Miss, out);
                return Ok(OutcomeKind::Miss);
            }
            Err(Busy) => {
                out.truncate(start);
                context.tally.optimistic_retries.add(1);
            }
        }
    }
    let owner = handle.owner.as_mut().ok_or(Status::AskOwner)?;
    let (keyhash, now, flushes) = (job.keyhash, context.now, context.flushes);
    let is_found_out_later = !T::Access::SHARED_WRITES && job.size_max >= LENT_BYTES_MIN as u32;
    if job.size_max != Job::ANY_SIZE && !is_found_out_later {
        // Before the read, which would count, and might have the table move the item.
        let writer = owner.enter_at(keyhash, home, flushes);
        check_item(&writer, context, job)?;
    }
    let read = owner.read_at((keyhash, home), request.key, now, flushes, |item| {
        if T::Access::SHARED_WRITES {
            // Another worker may have stored a larger item since.
            return look(item, job, now, out);
        }
        match context.lent.lends(item.value().len(), out.len()) {
            true => Look::Large,
            false => show(item, job, now, out),
        }
    });
    match read {
        Some(Look::Shown(bytes)) => {
            context.read_bytes = bytes;
            context.tally.get_hits.add(1);
            Ok(OutcomeKind::Value)
        }
        Some(Look::Not(status)) => Err(status),
        Some(Look::Large) => match lend::look(handle, context, job, out) {
            Ok(Some(Look::Shown(bytes))) => {
                context.read_bytes = bytes;
                context.tally.get_hits.add(1);
                Ok(OutcomeKind::Value)
            }
            Ok(Some(Look::Not(status))) => Err(status),
            _ => get_as_writer(handle, home, tap, context, job, out),
        },
        Some(Look::ForWriter) => get_as_writer(handle, home, tap, context, job, out),
        None => {
            let writer = owner.enter_at(keyhash, home, flushes);
            missed(context, writer.absence(keyhash, request.key));
            request.emit::<NoItem>(Outcome::Miss, out);
            Ok(OutcomeKind::Miss)
        }
    }
}

/// A read whose item has to change with the answer.
#[cold]
#[inline(never)]
fn get_as_writer<T: Table, O: ChangeObserver>(
    handle: &mut Handle<T>,
    home: T::HomeBucket,
    tap: &Tap<O>,
    context: &mut Context<'_>,
    job: &Job<'_>,
    out: &mut Vec<u8>,
) -> Result<OutcomeKind, Status> {
    let owner = handle.owner.as_mut().ok_or(Status::AskOwner)?;
    let mut writer = owner.enter_at(job.keyhash, home, context.flushes);
    let mutation = mutate::begin(tap, &writer, context, job);
    let kind = meta::get(&mut writer, context, job, out);
    mutation.end(&writer, context, job, kind);
    Ok(kind)
}

/// Appends an item to the reply, unless the read has to change it.
#[inline(always)]
fn look(item: &Item<'_>, job: &Job<'_>, now: Moment, out: &mut Vec<u8>) -> Look {
    if let Err(status) = check_size(item.value().len(), job.size_max) {
        return Look::Not(status);
    }
    show(item, job, now, out)
}

/// [`look`] at an item of which the size does not matter.
#[inline(always)]
fn show(item: &Item<'_>, job: &Job<'_>, now: Moment, out: &mut Vec<u8>) -> Look {
    let found = Found::read(View(*item), now);
    match job.request.emit_read(found, out) {
        true => Look::Shown(item.value().len() as u32),
        false => Look::ForWriter,
    }
}

/// Bytes of the value that a job is about to read, for an observer. `None` if the key has no item,
/// or if this worker cannot look at it now.
#[cold]
pub fn value_bytes<T: Table>(
    handle: &mut Handle<T>,
    context: &Context<'_>,
    job: &Job<'_>,
) -> Option<usize> {
    let (keyhash, key) = (job.keyhash, job.request.key);
    let (now, flushes) = (context.now, context.flushes);
    let look = |item: &Item<'_>| item.layout().value_len;
    match (&mut handle.owner, &handle.reader, &context.batch) {
        (Some(owner), ..) => owner
            .enter(flushes)
            .find(keyhash, key, now)
            .as_ref()
            .map(look),
        (None, Some(reader), Some(batch)) => reader
            .read(batch, keyhash, key, now, flushes, look)
            .ok()
            .flatten(),
        _ => None,
    }
}

/// Looks at the job's item on its writer, which counts as no read. Fails if the value is too large
/// to be copied here.
pub fn check_item(
    writer: &dyn TableWriter,
    context: &mut Context<'_>,
    job: &Job<'_>,
) -> Result<(), Status> {
    let item = writer.find(job.keyhash, job.request.key, context.now);
    let bytes = item.map_or(0, |item| item.value().len());
    context.read_bytes = bytes as u32;
    check_size(bytes, job.size_max.min(job.copy_max))
}

/// Whether a value of this many bytes is read here; if not, what to report.
#[inline(always)]
fn check_size(value_bytes: usize, most: u32) -> Result<(), Status> {
    // An item is never as long as four bytes can say.
    let bytes = value_bytes as u32;
    match bytes > most {
        true => Err(Status::Elsewhere { bytes }),
        false => Ok(()),
    }
}
