//! `get` of a large value, which the table lends to the reply.

use super::{Context, Look, View, check_size, show};
use crate::job::{Job, Status};
use crate::lent::LentPart;
use crate::partitions_of::Handle;
use glimmer_base::{Expiry, Moment};
use glimmer_proto::outcome::{Found, ItemState, ItemView};
use glimmer_store::heap::Item;
use glimmer_store::table::{Busy, Table, TableReader, TableWriter};
use std::cell::Cell;

/// Writes the reply around the item's value and borrows the value, or copies it where it is not to
/// be lent. None if there is no such item any more. The read has been counted.
///
/// # Errors
///
/// [`Busy`] if the read met writers again and again. What is in the reply buffer is then worth
/// nothing.
#[cold]
#[inline(never)]
pub fn look<T: Table>(
    handle: &mut Handle<T>,
    context: &mut Context<'_>,
    job: &Job<'_>,
    out: &mut Vec<u8>,
) -> Result<Option<Look>, Busy> {
    if context.lent.may_lend(job.out) {
        if context.lent.is_full(job.out, out.len()) {
            return Ok(Some(Look::Not(Status::NoRoom)));
        }
        if let Some(look) = lend(handle, context, job, out) {
            return Ok(Some(look));
        }
    }
    copy(handle, context, job, out)
}

/// Lends the value, if it is one that is to be lent. What an attempt that fails has written is
/// taken back.
fn lend<T: Table>(
    handle: &mut Handle<T>,
    context: &mut Context<'_>,
    job: &Job<'_>,
    out: &mut Vec<u8>,
) -> Option<Look> {
    let (keyhash, key, start) = (job.keyhash, job.request.key, out.len());
    let (now, flushes) = (context.now, context.flushes);
    let at = Cell::new(None);
    let mut take = |item: &Item<'_>| {
        // What an earlier try wrote may be nonsense.
        out.truncate(start);
        at.set(None);
        if let Err(status) = check_size(item.value().len(), job.size_max) {
            return Look::Not(status);
        }
        let view = Around {
            view: View(*item),
            lent: item.whole_bytes(),
            at: &at,
        };
        match job.request.emit_read(Found::read(view, now), out) {
            true => Look::Shown(item.value().len() as u32),
            false => Look::ForWriter,
        }
    };
    let lent = match (&handle.reader, &context.batch, &mut handle.owner) {
        (Some(reader), Some(batch), _) => {
            let lent = reader.lend(batch, keyhash, key, now, flushes, take);
            lent.ok().flatten()
        }
        (_, _, Some(owner)) => owner.lend(keyhash, key, now, flushes, &mut take),
        _ => None,
    };
    let Some((look, value)) = lent else {
        out.truncate(start);
        return None;
    };
    if let (Look::Shown(_), Some(at)) = (look, at.get()) {
        let out = job.out;
        context.lent.push(LentPart { out, at, value });
    }
    Some(look)
}

/// Copies the value, if it may be copied here and now.
fn copy<T: Table>(
    handle: &mut Handle<T>,
    context: &Context<'_>,
    job: &Job<'_>,
    out: &mut Vec<u8>,
) -> Result<Option<Look>, Busy> {
    let (keyhash, key, start) = (job.keyhash, job.request.key, out.len());
    let (now, flushes) = (context.now, context.flushes);
    let most = job.size_max.min(job.copy_max);
    let mut take = |item: &Item<'_>| {
        out.truncate(start);
        match check_size(item.value().len(), most) {
            Err(status) => Look::Not(status),
            Ok(()) => show(item, job, now, out),
        }
    };
    match (&handle.reader, &context.batch, &mut handle.owner) {
        (Some(reader), Some(batch), _) => reader.peek(batch, keyhash, key, now, flushes, take),
        (_, _, Some(owner)) => {
            let writer = owner.enter(flushes);
            let item = writer.find(keyhash, key, now);
            Ok(item.map(|item| take(&item)))
        }
        _ => Err(Busy),
    }
}

/// An item of whose value only the last bytes are copied into the reply.
#[derive(Clone, Copy)]
struct Around<'a> {
    view: View<'a>,
    /// Bytes of the value that are not copied.
    lent: usize,
    /// Where in the reply buffer these belong, once the reply shows the value.
    at: &'a Cell<Option<usize>>,
}

impl ItemView for Around<'_> {
    fn flags(&self) -> u32 {
        self.view.flags()
    }

    fn cas(&self) -> u64 {
        self.view.cas()
    }

    fn expiry(&self) -> Expiry {
        self.view.expiry()
    }

    fn value_bytes(&self) -> usize {
        self.view.value_bytes()
    }

    fn append_value(&self, out: &mut Vec<u8>) {
        self.at.set(Some(out.len()));
        let rest = self.view.value_bytes() - self.lent;
        self.view.append_part(self.lent, rest, out);
    }

    fn append_part(&self, from: usize, bytes: usize, out: &mut Vec<u8>) {
        self.view.append_part(from, bytes, out);
    }

    fn heap_bytes(&self) -> usize {
        self.view.heap_bytes()
    }

    fn state(&self) -> ItemState {
        self.view.state()
    }

    fn changes_with_read(&self, now: Moment) -> bool {
        self.view.changes_with_read(now)
    }
}
