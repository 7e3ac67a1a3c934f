//! How the observer learns of requests that change items. Every verb that may change its key's item
//! is carried out between [`begin`] and [`Mutation::end`], which call the observer. A store without
//! a condition goes another way if the observer is not told of it: see [`is_seen`].

use super::Context;
use crate::job::Job;
use crate::observer::ChangeObserver;
use glimmer_base::Keyhash;
use glimmer_proto::Verb;
use glimmer_proto::meta::Command;
use glimmer_proto::outcome::OutcomeKind;
use glimmer_store::removals::Tap;
use glimmer_store::table::TableWriter;

/// A request that may change the item of its key, on the partition's writer.
#[must_use = "the observer has to learn of the end"]
pub struct Mutation<'a, O: ChangeObserver> {
    /// The observer, if it is told of this request, and what it keeps until the end.
    seen: Option<(&'a O, O::Before)>,
}

/// Whether the observer is told of a change of this key's item. Ask after taking the partition's
/// gate.
#[inline(always)]
pub fn is_seen<O: ChangeObserver>(tap: &Tap<O>, keyhash: Keyhash) -> bool {
    O::SEES_REQUESTS && tap.is_open() && !tap.observer().ignores(keyhash)
}

/// Begins a request. Call this after taking the partition's gate and before touching the item.
#[inline(always)]
pub fn begin<'a, O: ChangeObserver>(
    tap: &'a Tap<O>,
    writer: &dyn TableWriter,
    context: &Context<'_>,
    job: &Job<'_>,
) -> Mutation<'a, O> {
    let is_seen = is_seen(tap, job.keyhash) && may_change(&job.request.verb);
    Mutation {
        seen: is_seen.then(|| {
            let observer = tap.observer();
            (observer, tell_before(observer, writer, context, job))
        }),
    }
}

impl<O: ChangeObserver> Mutation<'_, O> {
    /// Ends the request with this kind of outcome. Its reply has not been sent.
    #[inline(always)]
    pub fn end(
        self,
        writer: &dyn TableWriter,
        context: &Context<'_>,
        job: &Job<'_>,
        kind: OutcomeKind,
    ) {
        if let Some((observer, before)) = self.seen {
            tell_after(observer, writer, context, job, (before, kind));
        }
    }
}

#[cold]
fn tell_before<O: ChangeObserver>(
    observer: &O,
    writer: &dyn TableWriter,
    context: &Context<'_>,
    job: &Job<'_>,
) -> O::Before {
    observer.before(context.now, context.epoch, job, || {
        writer.find(job.keyhash, job.request.key, context.now)
    })
}

#[cold]
fn tell_after<O: ChangeObserver>(
    observer: &O,
    writer: &dyn TableWriter,
    context: &Context<'_>,
    job: &Job<'_>,
    (before, kind): (O::Before, OutcomeKind),
) {
    observer.after(context.now, job, before, kind, || {
        writer.find(job.keyhash, job.request.key, context.now)
    });
}

/// Whether a verb that runs on the writer may change its item; `me` and `Look` only read.
fn may_change(verb: &Verb<'_>) -> bool {
    !matches!(
        verb,
        Verb::Look
            | Verb::Meta {
                command: Command::Debug,
                ..
            }
    )
}
