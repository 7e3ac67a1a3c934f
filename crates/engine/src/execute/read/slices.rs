//! `get` of a large value, slice by slice: see [`sliced`](crate::sliced).

use super::in_place::InPlace;
use super::{Context, Look, View};
use crate::job::Job;
use crate::partitions_of::Handle;
use crate::sliced::{LentReply, Sliced, SlicedRead};
use glimmer_base::Moment;
use glimmer_base::sync::weakened;
use glimmer_proto::outcome::Found;
use glimmer_store::heap::Item;
use glimmer_store::table::{Table, TableReader, TableWriter};
use std::cell::Cell;

/// Borrows the value, and appends the rest of the reply to an empty buffer. None if there is no
/// such item, or if its value is not to be lent; then nothing is appended.
pub fn lend<T: Table>(
    handle: &mut Handle<T>,
    context: &Context<'_>,
    job: &Job<'_>,
    out: &mut Vec<u8>,
) -> Option<LentReply> {
    let at = Cell::new(None);
    let mut show = |item: &Item<'_>| {
        // What an earlier try wrote may be nonsense.
        out.clear();
        at.set(None);
        let view = InPlace::of_first(item.whole_bytes(), View(*item), &at);
        match job.request.emit_read(Found::read(view, context.now), out) {
            true => Look::Shown(item.value().len() as u32),
            false => Look::ForWriter,
        }
    };
    let (keyhash, key) = (job.keyhash, job.request.key);
    let (now, flushes) = (context.now, context.flushes);
    let lent = match (&handle.reader, &context.batch, &mut handle.owner) {
        (Some(reader), Some(batch), _) => {
            let lent = reader.lend(batch, keyhash, key, now, flushes, show);
            let lent = lent.ok().flatten();
            if lent.is_some() {
                // This is what counts as a read. Whether it finds the item does not matter.
                let _ = reader.read(batch, keyhash, key, now, flushes, |_| ());
            }
            lent
        }
        (_, _, Some(owner)) => {
            let lent = owner.lend(keyhash, key, now, flushes, &mut show);
            if lent.is_some() {
                owner.enter(flushes).read(keyhash, key, now, |_| ());
            }
            lent
        }
        _ => None,
    };
    match (lent, at.get()) {
        (Some((Look::Shown(bytes), value)), Some(at)) => Some(LentReply {
            value,
            at,
            value_bytes: bytes as usize,
        }),
        _ => {
            out.clear();
            None
        }
    }
}

/// Copies the next slice. Only the first one counts as a read of the item.
pub fn advance<T: Table>(
    handle: &mut Handle<T>,
    context: &Context<'_>,
    job: &Job<'_>,
    slice_bytes: usize,
    read: &mut SlicedRead,
) -> Sliced {
    let is_first = read.copied == 0;
    if is_first {
        read.given = context.given.count();
    }
    let (reply_bytes, copied) = (read.reply.len(), read.copied);
    let mut copy = |item: &Item<'_>| {
        // An earlier try may have copied what was being changed.
        read.reply.truncate(reply_bytes);
        read.copied = copied;
        match is_first {
            true => begin(item, job, context.now, slice_bytes, read),
            false => go_on(item, slice_bytes, read),
        }
    };
    let (keyhash, key) = (job.keyhash, job.request.key);
    let (now, flushes) = (context.now, context.flushes);
    let is_copied = match (&handle.reader, &context.batch, &mut handle.owner) {
        (Some(reader), Some(batch), _) => match is_first {
            true => reader.read(batch, keyhash, key, now, flushes, copy),
            false => reader.peek(batch, keyhash, key, now, flushes, copy),
        },
        (_, _, Some(owner)) => {
            let mut writer = owner.enter(flushes);
            Ok(match is_first {
                true => writer.read(keyhash, key, now, copy),
                false => writer.find(keyhash, key, now).map(|item| copy(&item)),
            })
        }
        _ => Ok(None),
    };
    let is_same = is_copied == Ok(Some(true)) && context.given.count() == read.given;
    match is_same {
        false => Sliced::Whole,
        true if read.copied < read.value_bytes => Sliced::More,
        true => {
            read.reply.append(&mut read.tail);
            Sliced::Done
        }
    }
}

/// Writes the reply up to the end of the first slice. Returns whether the item is read in slices.
fn begin(
    item: &Item<'_>,
    job: &Job<'_>,
    now: Moment,
    slice_bytes: usize,
    read: &mut SlicedRead,
) -> bool {
    (read.cas, read.value_bytes) = (item.cas(), item.value().len());
    if read.cas == 0 || read.value_bytes <= slice_bytes {
        return false;
    }
    let at = Cell::new(None);
    let view = InPlace::new(View(*item), &at);
    if !job
        .request
        .emit_read(Found::read(view, now), &mut read.reply)
    {
        return false;
    }
    let Some(at) = at.get() else {
        return false;
    };
    read.tail = read.reply.split_off(at);
    read.reply.reserve_exact(read.value_bytes + read.tail.len());
    copy_slice(item, slice_bytes, read);
    true
}

/// Appends the next slice, if the item is the one that the read began with.
fn go_on(item: &Item<'_>, slice_bytes: usize, read: &mut SlicedRead) -> bool {
    let is_same = (item.cas(), item.value().len()) == (read.cas, read.value_bytes)
        || weakened("slices_of_two_values") && item.value().len() == read.value_bytes;
    if is_same {
        copy_slice(item, slice_bytes, read);
    }
    is_same
}

fn copy_slice(item: &Item<'_>, slice_bytes: usize, read: &mut SlicedRead) {
    let bytes = slice_bytes.min(read.value_bytes - read.copied);
    item.value()
        .part(read.copied, bytes)
        .append_to(&mut read.reply);
    read.copied += bytes;
}
