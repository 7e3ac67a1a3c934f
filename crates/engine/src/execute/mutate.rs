//! The one place where requests change items.

use super::Context;
use crate::job::Job;
use crate::observer::ChangeObserver;
use glimmer_proto::Verb;
use glimmer_proto::meta::Command;
use glimmer_proto::outcome::Kind;
use glimmer_store::removals::Tap;
use glimmer_store::table::TableWriter;

/// Has a verb change the item of its key on the partition's writer, between two calls of the
/// observer. `verb` appends the reply, and says which it is.
#[inline(always)]
pub fn mutate<W: TableWriter, O: ChangeObserver>(
    writer: &mut W,
    tap: &Tap<O>,
    context: &mut Context<'_>,
    job: &Job<'_>,
    out: &mut Vec<u8>,
    verb: impl FnOnce(&mut W, &mut Context<'_>, &Job<'_>, &mut Vec<u8>) -> Kind,
) {
    let is_seen = O::SEES_REQUESTS && tap.is_open() && may_change(&job.request.verb);
    let (keyhash, key) = (job.keyhash, job.request.key);
    if is_seen {
        tap.observer().before(keyhash, key);
    }
    let outcome = verb(writer, context, job, out);
    if is_seen {
        let item = writer.find(keyhash, key, context.now);
        tap.observer().after(keyhash, key, outcome, item.as_ref());
    }
}

/// Whether a verb that is executed on the writer may change its item; `me` only looks.
fn may_change(verb: &Verb<'_>) -> bool {
    !matches!(
        verb,
        Verb::Meta {
            command: Command::Debug,
            ..
        }
    )
}
