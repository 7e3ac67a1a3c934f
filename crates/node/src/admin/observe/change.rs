//! What a request asks of its item and what it did, in memcached's words. The protocol of the
//! request makes no difference.

use glimmer_base::{Expiry, Moment};
use glimmer_engine::{Item, Job};
use glimmer_proto::meta::{Command, Options};
use glimmer_proto::outcome::OutcomeKind;
use glimmer_proto::request::Condition;
use glimmer_proto::{Request, StoreMode, Verb};

/// What is kept of an item from before a change.
#[derive(Clone, Copy, Debug)]
pub(super) struct Old {
    pub value_bytes: usize,
    pub cas: u64,
    pub expiry: Expiry,
}

impl Old {
    pub fn of(item: &Item<'_>) -> Old {
        Old {
            value_bytes: item.layout().value_len,
            cas: item.cas(),
            expiry: item.expiry(),
        }
    }
}

/// What a request asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// To read a value.
    Fetch,
    /// To store a value, by this command.
    Store(&'static str),
    /// To delete an item, by this command.
    Delete(&'static str),
    /// To add to a number, or to subtract from it.
    Count,
    /// To look at an item, or to give it another lifetime, without its value.
    Look,
}

impl Asked {
    /// What a request asks. The command of a value that was refused is not known any more.
    pub fn of(request: &Request<'_>) -> Asked {
        match &request.verb {
            Verb::Get | Verb::GetAndTouch { .. } | Verb::GetAndExpire { .. } => Asked::Fetch,
            Verb::Refused { .. } => Asked::Store("set"),
            Verb::Store { mode, .. } => Asked::Store(match mode {
                StoreMode::Set => "set",
                StoreMode::Add => "add",
                StoreMode::Replace => "replace",
                StoreMode::Append | StoreMode::AppendIf(_) => "append",
                StoreMode::Prepend | StoreMode::PrependIf(_) => "prepend",
                StoreMode::Cas(_) => "cas",
            }),
            Verb::Write(write) => Asked::Store(match write.condition {
                Condition::Always => "set",
                Condition::Absent => "add",
                Condition::Present => "replace",
                Condition::Equal => "cas",
            }),
            Verb::Append { .. } => Asked::Store("append"),
            Verb::Overlay { .. } => Asked::Store("set"),
            Verb::Delete
            | Verb::DeleteIf { .. }
            | Verb::DeleteEqual { .. }
            | Verb::DeleteUnchanged { .. }
            | Verb::Take => Asked::Delete("delete"),
            Verb::Increment { .. }
            | Verb::Decrement { .. }
            | Verb::Count { .. }
            | Verb::Add { .. }
            | Verb::AddDecimal { .. } => Asked::Count,
            Verb::Meta { command, .. } => match command {
                Command::Get => Asked::Fetch,
                Command::Store => Asked::Store(stored_by(&request.meta_flags().options())),
                Command::Delete => Asked::Delete("md"),
                Command::Arithmetic => Asked::Count,
                Command::Debug => Asked::Look,
            },
            Verb::Look | Verb::Touch { .. } | Verb::Expire { .. } | Verb::ExpireEqual { .. } => {
                Asked::Look
            }
        }
    }
}

/// Whether the outcome of a request does not tell what it did to its item: whether a number was
/// made or changed, and whether an item was deleted or marked as stale.
pub(super) fn needs_a_look(verb: &Verb<'_>) -> bool {
    match verb {
        Verb::Increment { .. }
        | Verb::Decrement { .. }
        | Verb::Count { .. }
        | Verb::Add { .. }
        | Verb::AddDecimal { .. }
        | Verb::Take => true,
        Verb::Meta { command, .. } => matches!(command, Command::Delete | Command::Arithmetic),
        _ => false,
    }
}

/// Whether the outcome does not tell whether a request has changed anything at all.
pub(super) fn needs_two_looks(request: &Request<'_>) -> bool {
    matches!(Asked::of(request), Asked::Fetch | Asked::Look)
}

/// The name of a request's verb, for programs.
pub(super) fn verb(request: &Request<'_>) -> &'static str {
    match (Asked::of(request), &request.verb) {
        (Asked::Store(command) | Asked::Delete(command), _) => command,
        (_, Verb::Increment { .. }) => "incr",
        (_, Verb::Decrement { .. }) => "decr",
        (_, Verb::Meta { command, .. }) => match command {
            Command::Get => "mg",
            Command::Store => "ms",
            Command::Delete => "md",
            Command::Arithmetic => "ma",
            Command::Debug => "me",
        },
        (Asked::Count, _) => "count",
        (Asked::Fetch, _) => "gat",
        (Asked::Look, _) => "touch",
    }
}

/// The classic command that does what this `ms` does.
fn stored_by(options: &Options) -> &'static str {
    match (options.mode, options.compare) {
        (Some(b'E'), _) => "add",
        (Some(b'A'), _) => "append",
        (Some(b'P'), _) => "prepend",
        (_, Some(_)) => "cas",
        (Some(b'R'), None) => "replace",
        _ => "set",
    }
}

/// The result of a store, in memcached's words. `was_there` says whether the key had an item.
pub(super) fn status(job: &Job<'_>, was_there: bool, outcome: OutcomeKind) -> &'static str {
    match (outcome, &job.request.verb) {
        (OutcomeKind::Stored, _) => STORED,
        (OutcomeKind::Exists, _) => "exists",
        (OutcomeKind::NotFound, _) => "not_found",
        (OutcomeKind::TooLarge, _) => "too_large",
        (OutcomeKind::OutOfMemory, _) => "no_memory",
        // The reply shows the old item, or that there was none.
        (OutcomeKind::Value | OutcomeKind::Miss, Verb::Write(write)) => match write.condition {
            Condition::Absent if was_there => "not_stored",
            Condition::Present if !was_there => "not_stored",
            // The outcome does not tell whether the values were equal.
            Condition::Equal => "not_stored",
            _ => STORED,
        },
        _ => "not_stored",
    }
}

/// The status of a value that was stored.
pub(super) const STORED: &str = "stored";

/// Bytes of the value that a request brings.
pub(super) fn value_bytes(job: &Job<'_>) -> usize {
    match &job.request.verb {
        Verb::Store { value, .. } | Verb::Meta { value, .. } => value.len(),
        Verb::Write(write) => write.value().len(),
        Verb::Append { value } | Verb::Overlay { value, .. } => value.len(),
        _ => 0,
    }
}

/// For how long the item is to stay that a request would store, in seconds; 0 for ever.
pub(super) fn ttl_asked_s(job: &Job<'_>, now: Moment) -> u64 {
    let exptime = match &job.request.verb {
        Verb::Store { exptime, .. } => *exptime,
        Verb::Write(write) => return ttl_s(write.lifetime.expiry(now, Expiry::NEVER), now),
        Verb::Meta { .. } => {
            let options = job.request.meta_flags().options();
            return ttl_s(options.expiry(options.exptime.unwrap_or(0), now), now);
        }
        _ => 0,
    };
    ttl_s(Expiry::from_memcached(exptime, now), now)
}

/// Seconds until an item expires; 0 if it never does.
pub(super) fn ttl_s(expiry: Expiry, now: Moment) -> u64 {
    expiry.ms().saturating_sub(now.ms) / 1000
}
