//! The one place where requests change items. Every verb runs between [`begin`] and
//! [`Mutation::end`], which call the observer.

use super::Context;
use crate::job::Job;
use crate::observer::ChangeObserver;
use glimmer_proto::Verb;
use glimmer_proto::meta::Command;
use glimmer_proto::outcome::Kind;
use glimmer_store::removals::Tap;
use glimmer_store::table::TableWriter;

/// A request that may change the item of its key, on the partition's writer.
#[must_use = "the observer has to learn of the end"]
pub struct Mutation<'a, O> {
    job: &'a Job<'a>,
    /// The observer, if it is told of this request.
    observer: Option<&'a O>,
}

/// Begins a request. Call this after taking the partition's gate and before touching the item.
#[inline(always)]
pub fn begin<'a, O: ChangeObserver>(tap: &'a Tap<O>, job: &'a Job<'a>) -> Mutation<'a, O> {
    let is_seen = O::SEES_REQUESTS && tap.is_open() && may_change(&job.request.verb);
    let observer = is_seen.then(|| tap.observer());
    if let Some(observer) = observer {
        observer.before(job.keyhash, job.request.key);
    }
    Mutation { job, observer }
}

impl<O: ChangeObserver> Mutation<'_, O> {
    /// Ends the request with this kind of outcome. Its reply has not been sent.
    #[inline(always)]
    pub fn end<W: TableWriter>(self, writer: &W, context: &Context<'_>, kind: Kind) {
        if let Some(observer) = self.observer {
            let (keyhash, key) = (self.job.keyhash, self.job.request.key);
            let item = writer.find(keyhash, key, context.now);
            observer.after(keyhash, key, kind, item.as_ref());
        }
    }
}

/// Whether a verb that runs on the writer may change its item; `me` only reads.
fn may_change(verb: &Verb<'_>) -> bool {
    !matches!(
        verb,
        Verb::Meta {
            command: Command::Debug,
            ..
        }
    )
}
