//! `get` of a large value, which is sent from where it lies.

use super::{Look, View, check_size, show};
use crate::job::{Job, Status};
use crate::outlet::{Offer, Outlet};
use glimmer_base::{Expiry, Moment};
use glimmer_proto::outcome::{Found, ItemState, ItemView};
use glimmer_store::heap::Item;
use std::cell::Cell;

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

/// An item whose value is not copied into the reply.
#[derive(Clone, Copy)]
pub struct InPlace<'a> {
    view: View<'a>,
    /// Where in the reply buffer the value belongs, if the reply shows it.
    at: &'a Cell<Option<usize>>,
}

impl<'a> InPlace<'a> {
    /// `at` is set when the reply shows the value.
    pub fn new(view: View<'a>, at: &'a Cell<Option<usize>>) -> InPlace<'a> {
        InPlace { view, at }
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
