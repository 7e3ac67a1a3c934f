//! `ms`: the effect of its flags on a store.

use super::super::Context;
use super::super::store::{self, Set, Write};
use super::key_mark;
use crate::job::Job;
use glimmer_proto::meta::{Flags, Options};
use glimmer_proto::{Outcome, StoreMode};
use glimmer_store::heap::History;
use glimmer_store::table::TableWriter;

pub fn store(
    writer: &mut dyn TableWriter,
    context: &mut Context<'_>,
    job: &Job<'_>,
    value: &[u8],
) -> Outcome {
    let flags = job.request.meta_flags();
    let options = flags.options();
    let write = Write {
        mode: mode(&options),
        set: set(context, (flags, &options), value),
        takes_stale: options.set.has(b'I'),
        create: (options.create_exptime).map(|it| options.expiry(it, context.now)),
    };
    store::store(writer, context, job, &write)
}

/// The store that an `ms` asks for, if it has no condition.
pub fn unconditional<'a>(context: &Context<'_>, job: &Job<'a>, value: &'a [u8]) -> Option<Set<'a>> {
    let flags = job.request.meta_flags();
    let options = flags.options();
    (mode(&options) == StoreMode::Set).then(|| set(context, (flags, &options), value))
}

/// What an `ms` with these flags stores.
fn set<'a>(
    context: &Context<'_>,
    (flags, options): (Flags<'_>, &Options),
    value: &'a [u8],
) -> Set<'a> {
    Set {
        flags: options.client_flags,
        expiry: options.expiry(options.exptime.unwrap_or(0), context.now),
        value,
        history: History {
            // For zero, memcached generates a CAS unique.
            cas: options.unique.filter(|&unique| unique != 0),
            marks: key_mark(flags),
            accessed_s: 0,
        },
    }
}

/// The mode of the store that a job asks for.
pub fn store_mode(job: &Job<'_>) -> StoreMode {
    mode(&job.request.meta_flags().options())
}

/// The mode of the store. A CAS unique turns `set` and `replace` into `cas` and does not affect
/// `add`.
fn mode(options: &Options) -> StoreMode {
    match (options.mode.unwrap_or(b'S'), options.compare) {
        (b'E', _) => StoreMode::Add,
        (b'A', None | Some(0)) => StoreMode::Append,
        (b'A', Some(unique)) => StoreMode::AppendIf(unique),
        (b'P', None | Some(0)) => StoreMode::Prepend,
        (b'P', Some(unique)) => StoreMode::PrependIf(unique),
        (_, Some(unique)) => StoreMode::Cas(unique),
        (b'R', None) => StoreMode::Replace,
        (_, None) => StoreMode::Set,
    }
}
