//! `get` of a large value, which is sent from where it lies.

use super::{Context, Look, View, check_size, show};
use crate::job::{Job, Status};
use crate::outlet::{Offer, Outlet};
use glimmer_base::{Expiry, Moment};
use glimmer_proto::outcome::{Found, ItemState, ItemView};
use glimmer_store::heap::Item;
use glimmer_store::table::{Busy, TableReader};
use std::cell::Cell;

/// Sends a reply with the item, or appends it, as the outlet wants it, where others may be writing:
/// a value that is sent is borrowed meanwhile. None if there is no such item. The read has been
/// counted.
///
/// # Errors
///
/// [`Busy`] if the read met writers again and again. What is in the reply buffer is then worth
/// nothing.
#[cold]
#[inline(never)]
pub fn look_beside_writers(
    reader: &impl TableReader,
    context: &mut Context<'_>,
    job: &Job<'_>,
    out: &mut Vec<u8>,
) -> Result<Option<Look>, Busy> {
    let Some(batch) = &context.batch else {
        return Err(Busy);
    };
    let (keyhash, key) = (job.keyhash, job.request.key);
    let (now, flushes, start) = (context.now, context.flushes, out.len());
    let offer = context.outlet.offer(job.out);
    if offer == Offer::Send {
        let at = Cell::new(None);
        let lent = reader.borrow(batch, keyhash, key, now, flushes, |item| {
            // What an earlier try wrote may be nonsense.
            out.truncate(start);
            at.set(None);
            if let Err(status) = check_size(item.value().len(), job) {
                return Look::Not(status);
            }
            let view = InPlace::of_first(item.whole_bytes(), View(*item), &at);
            match job.request.emit_read(Found::read(view, now), out) {
                true => Look::Shown(item.value().len() as u32),
                false => Look::ForWriter,
            }
        });
        match lent {
            Ok(None) => return Ok(None),
            Ok(Some((look, loan))) => match (look, at.get(), loan.value_bytes()) {
                (Look::Shown(_), Some(at), Some(value)) => {
                    context.outlet.send(job.out, out, at, value);
                    return Ok(Some(look));
                }
                // Words do not lie in memory as bytes do here, so the value is copied.
                (Look::Shown(_), Some(_), None) => {}
                _ => return Ok(Some(look)),
            },
            Err(Busy) => {}
        }
    }
    reader.peek(batch, keyhash, key, now, flushes, |item| {
        out.truncate(start);
        match check_size(item.value().len(), job) {
            Err(status) => Look::Not(status),
            Ok(()) if offer == Offer::Wait => Look::Not(Status::NoRoom),
            Ok(()) => show(item, job, now, out),
        }
    })
}

/// Sends a reply with the item, or appends it, as the outlet wants it. The bytes are the item's
/// value where it lies.
#[cold]
#[inline(never)]
pub fn look(
    (item, value): (Item<'_>, Option<&[u8]>),
    job: &Job<'_>,
    now: Moment,
    outlet: &mut dyn Outlet,
    out: &mut Vec<u8>,
) -> Look {
    if let Err(status) = check_size(item.value().len(), job) {
        return Look::Not(status);
    }
    let value = match outlet.offer(job.out) {
        Offer::Copy => None,
        Offer::Send => value,
        Offer::Wait => return Look::Not(Status::NoRoom),
    };
    let Some(value) = value else {
        return show(&item, job, now, out);
    };
    let at = Cell::new(None);
    let item = InPlace::new(View(item), &at);
    if !job.request.emit_read(Found::read(item, now), out) {
        return Look::ForWriter;
    }
    if let Some(at) = at.get() {
        outlet.send(job.out, out, at, value);
    }
    Look::Shown(value.len() as u32)
}

/// An item whose value is not copied into the reply, or only its last bytes are.
#[derive(Clone, Copy)]
pub struct InPlace<'a> {
    view: View<'a>,
    /// Bytes that are not copied.
    first: usize,
    /// Where in the reply buffer the value belongs, if the reply shows it.
    at: &'a Cell<Option<usize>>,
}

impl<'a> InPlace<'a> {
    /// `at` is set when the reply shows the value.
    pub fn new(view: View<'a>, at: &'a Cell<Option<usize>>) -> InPlace<'a> {
        InPlace::of_first(view.value_bytes(), view, at)
    }

    /// Copies what follows the value's `first` bytes. `at` is set when the reply shows the value.
    pub fn of_first(first: usize, view: View<'a>, at: &'a Cell<Option<usize>>) -> InPlace<'a> {
        InPlace { view, first, at }
    }
}

impl ItemView for InPlace<'_> {
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
        let rest = self.view.value_bytes() - self.first;
        if rest > 0 {
            self.view.append_part(self.first, rest, out);
        }
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
