//! Stores of large values where several workers may write: the value is copied to the table before
//! the request takes the partition's lock ([`Table::draft`]).

use super::{Context, meta};
use crate::Partitions;
use crate::job::{Job, Status};
use crate::partitions_of::Place;
use glimmer_base::limits::DRAFT_BYTES_MIN;
use glimmer_proto::meta::Command;
use glimmer_proto::request::Condition;
use glimmer_proto::{StoreMode, Verb};
use glimmer_store::table::{Draft, Large, Table, TableWriter};

/// Whether a request brings a large value.
#[inline(always)]
pub fn is_large(verb: &Verb<'_>) -> bool {
    match verb {
        Verb::Store { value, .. } | Verb::Meta { value, .. } => value.len() >= DRAFT_BYTES_MIN,
        Verb::Write(_) | Verb::Append { .. } | Verb::Overlay { .. } => {
            value_of(verb).len() >= DRAFT_BYTES_MIN
        }
        _ => false,
    }
}

#[inline(never)]
fn value_of<'a>(verb: &Verb<'a>) -> &'a [u8] {
    match *verb {
        Verb::Store { value, .. } | Verb::Meta { value, .. } => value,
        Verb::Write(write) => write.value(),
        Verb::Append { value } | Verb::Overlay { value, .. } => value,
        _ => &[],
    }
}

/// Copies the value of a large store to the table.
#[cold]
#[inline(never)]
pub fn draft<T: Table>(
    partitions: &mut Partitions<T>,
    place: Place<T::HomeBucket>,
    context: &Context<'_>,
    job: &Job<'_>,
) -> Result<Option<Draft>, Status> {
    let owner = partitions.owner(place).ok_or(Status::AskOwner)?;
    let large = Large {
        key: job.request.key,
        keyhash: job.keyhash,
        value: value_of(&job.request.verb),
        now: context.now,
    };
    let will_store = |writer: &T::Writer<'_>| will_store(writer, context, job);
    Ok(owner.draft(place.home, context.flushes, &large, will_store))
}

/// Whether a store makes a value of its own and the one that is there, instead of storing its own
/// as a whole.
pub fn joins_values(job: &Job<'_>) -> bool {
    let mode = match job.request.verb {
        Verb::Append { .. } | Verb::Overlay { .. } => return true,
        Verb::Store { mode, .. } => mode,
        Verb::Meta {
            command: Command::Store,
            ..
        } => meta::store_mode(job),
        _ => return false,
    };
    use StoreMode::{Append, AppendIf, Prepend, PrependIf};
    matches!(mode, Append | Prepend | AppendIf(_) | PrependIf(_))
}

/// Whether the request would store its value as a whole if it were executed now. It is a guess:
/// what the request does is decided when it is executed.
fn will_store(writer: &dyn TableWriter, context: &Context<'_>, job: &Job<'_>) -> bool {
    let old = || writer.find(job.keyhash, job.request.key, context.now);
    let mode = match job.request.verb {
        Verb::Store { mode, .. } => mode,
        Verb::Meta {
            command: Command::Store,
            ..
        } => meta::store_mode(job),
        Verb::Write(write) => match write.condition {
            Condition::Equal => {
                let expected = write.expected().unwrap_or_default();
                return old().is_some_and(|item| item.value().equals(expected));
            }
            Condition::Always => StoreMode::Set,
            Condition::Absent => StoreMode::Add,
            Condition::Present => StoreMode::Replace,
        },
        _ => return false,
    };
    match mode {
        StoreMode::Set => true,
        StoreMode::Add => old().is_none(),
        StoreMode::Replace => old().is_some(),
        // One that takes lower uniques too may also store its value when this says no.
        StoreMode::Cas(unique) => old().is_some_and(|item| item.cas() == unique),
        // The old value is copied as well, from where it lies.
        StoreMode::Append
        | StoreMode::Prepend
        | StoreMode::AppendIf(_)
        | StoreMode::PrependIf(_) => false,
    }
}
