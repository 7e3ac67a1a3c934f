//! `me`: information about an item for people.

use super::super::view::View;
use super::super::{Context, say};
use super::get::idle_s;
use crate::job::Job;
use glimmer_proto::Outcome;
use glimmer_proto::outcome::{Details, Found, OutcomeKind};
use glimmer_store::heap::Marks;
use glimmer_store::table::TableWriter;

pub fn debug(
    writer: &mut dyn TableWriter,
    context: &Context<'_>,
    job: &Job<'_>,
    out: &mut Vec<u8>,
) -> OutcomeKind {
    let (keyhash, key, now) = (job.keyhash, job.request.key, context.now);
    context.tally.cmd_meta.add(1);
    let was_read = writer.was_read(keyhash, key, now);
    let stored_s = writer.stored_s(keyhash, key, now);
    let Some(item) = writer.find(keyhash, key, now) else {
        return say(&job.request, Outcome::Miss, out);
    };
    let history = item.history();
    let found = Found {
        item: View(item),
        now,
        details: Details {
            was_fetched: was_read || history.marks.has(Marks::FETCHED),
            idle_s: idle_s(&history, stored_s, now),
            ..Details::default()
        },
    };
    job.request.emit(Outcome::Value(found), out);
    OutcomeKind::Value
}
