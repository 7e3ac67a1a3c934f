//! One request on its partition: a read and a store without a condition by ways of their own, all
//! other verbs on a writer.

use super::count::{self, Calculation, First};
use super::{Context, change, edit, equal, large, meta, mutate, read, say, store, write};
use crate::Partitions;
use crate::job::{Job, Status, Upload};
use crate::observer::ChangeObserver;
use crate::partitions_of::Place;
use glimmer_base::Expiry;
use glimmer_proto::meta::{Command, base64};
use glimmer_proto::outcome::OutcomeKind;
use glimmer_proto::{Request, StoreMode, Verb};
use glimmer_store::access::Access;
use glimmer_store::heap::History;
use glimmer_store::removals::Tap;
use glimmer_store::table::{Draft, Table, TableWriter};

/// The job with its key as the table knows it.
pub(super) fn decoded<'a>(
    job: &Job<'a>,
    buffer: &'a mut [u8; base64::DECODED_BYTES_MAX],
) -> Job<'a> {
    let key = match job.request.has_base64_key() {
        true => base64::decode(job.request.key, buffer).expect("the parser has decoded it once"),
        false => job.request.key,
    };
    Job {
        request: Request { key, ..job.request },
        ..*job
    }
}

/// Executes a job while an observer looks. Reads are reported here; [`mutate`] reports changes.
#[cold]
#[inline(never)]
pub(super) fn execute_seen<T: Table, O: ChangeObserver>(
    partitions: &mut Partitions<T>,
    tap: &Tap<O>,
    context: &mut Context<'_>,
    job: &Job<'_>,
    out: &mut Vec<u8>,
) -> Result<OutcomeKind, Status> {
    let mut buffer = [0; base64::DECODED_BYTES_MAX];
    let job = &decoded(job, &mut buffer);
    let is_read = matches!(job.request.verb, Verb::Get);
    let place = partitions.prefetch_bucket(job.keyhash, false);
    let handle = partitions.handle(place);
    let value_bytes = is_read.then(|| read::value_bytes(handle, context, job));
    let kind = execute_apart(partitions, place, tap, context, job, out)?;
    if let Some(value_bytes) = value_bytes {
        tap.observer().read(job, value_bytes);
    }
    Ok(kind)
}

/// [`execute`] out of the way of the requests that are many.
#[inline(never)]
pub(super) fn execute_apart<T: Table, O: ChangeObserver>(
    partitions: &mut Partitions<T>,
    place: Place<T::HomeBucket>,
    tap: &Tap<O>,
    context: &mut Context<'_>,
    job: &Job<'_>,
    out: &mut Vec<u8>,
) -> Result<OutcomeKind, Status> {
    let is_large = T::Access::SHARED_WRITES && large::is_large(&job.request.verb);
    let draft = match is_large {
        true => large::draft(partitions, place, context, job)?,
        false => None,
    };
    execute::<T, O, true>(partitions, place, tap, context, (job, draft), out)
}

/// Executes a job. If there is a draft for it, that is brought, and given up if it is not stored.
///
/// `IS_APART` gives each of the two callers a copy of its own. The closures of a read are called
/// from one place then, and so are compiled into it; with two places, the compiler calls them.
#[inline(always)]
pub(super) fn execute<T: Table, O: ChangeObserver, const IS_APART: bool>(
    partitions: &mut Partitions<T>,
    place: Place<T::HomeBucket>,
    tap: &Tap<O>,
    context: &mut Context<'_>,
    (job, draft): (&Job<'_>, Option<Draft>),
    out: &mut Vec<u8>,
) -> Result<OutcomeKind, Status> {
    if matches!(job.request.verb, Verb::Get) {
        let handle = partitions.handle(place);
        return read::get::<T, O, IS_APART>(handle, place.home, tap, context, job, out);
    }
    let owner = partitions.owner(place).ok_or(Status::AskOwner)?;
    match job.request.verb {
        Verb::Store {
            mode: StoreMode::Set,
            flags,
            exptime,
            value,
        } if draft.is_none() => {
            let expiry = Expiry::from_memcached(exptime, context.now);
            let set = store::Set::new(flags, expiry, value);
            if !(O::SEES_REQUESTS && tap.is_open()) {
                let outcome = store::set(owner, place.home, context, job, set);
                job.request.emit(outcome, out);
                return Ok(outcome.kind());
            }
            if let Some(kind) = set_ignored((owner, place.home), tap, context, job, (set, out)) {
                return Ok(kind);
            }
        }
        Verb::Meta {
            command: Command::Store,
            value,
        } if draft.is_none() => {
            let at = (&mut *owner, place.home);
            if let Some(kind) = meta_set(at, tap, context, job, (value, out)) {
                return Ok(kind);
            }
        }
        _ => {}
    }
    let mut writer = owner.enter_at(job.keyhash, place.home, context.flushes);
    let has_draft = draft.is_some();
    if has_draft {
        writer.bring(draft);
    }
    let is_limited = job.size_max.min(job.copy_max) != Job::ANY_SIZE;
    let checked = match is_limited && shows_value(&job.request.verb) {
        true => read::check_item(&writer, context, job),
        false => Ok(()),
    };
    let executed = checked.map(|()| {
        let mutation = mutate::begin(tap, &writer, context, job);
        let kind = carry_out(&mut writer, context, job, out);
        mutation.end(&writer, context, job, kind);
        kind
    });
    if has_draft {
        // Another request may have its value at the same address.
        writer.bring(None);
    }
    executed
}

/// Executes a job whose value lies in the table already, and is empty in the job. This worker may
/// write the partition.
#[cold]
#[inline(never)]
pub(super) fn store_upload<T: Table, O: ChangeObserver>(
    (partitions, place): (&mut Partitions<T>, Place<T::HomeBucket>),
    tap: &Tap<O>,
    context: &mut Context<'_>,
    (job, upload): (&Job<'_>, Upload),
    out: &mut Vec<u8>,
) -> OutcomeKind {
    let mut buffer = [0; base64::DECODED_BYTES_MAX];
    let job = &decoded(job, &mut buffer);
    if large::joins_values(job) {
        // The new value lies where the old one goes on, and not here.
        let mut value = Vec::new();
        upload.copy_to(0..upload.bytes(), &mut value);
        drop(upload);
        let job = with_value(job, &value);
        let kind = execute_apart(partitions, place, tap, context, &job, out);
        return kind.expect("this worker may write the partition");
    }
    let owner = (partitions.owner(place)).expect("this worker may write the partition");
    let mut writer = owner.enter_at(job.keyhash, place.home, context.flushes);
    let mut kind = None;
    writer.with_upload(upload, &mut |writer, value| {
        let job = with_value(job, value);
        let mutation = mutate::begin(tap, writer, context, &job);
        let done = carry_out(writer, context, &job, out);
        mutation.end(writer, context, &job, done);
        kind = Some(done);
    });
    kind.expect("the request is executed")
}

fn with_value<'b>(job: &Job<'b>, value: &'b [u8]) -> Job<'b> {
    Job {
        request: job.request.with_value(value),
        ..*job
    }
}

/// Executes a `set` if the observer ignores its key. None if not: nothing has been done.
#[cold]
#[inline(never)]
fn set_ignored<T: Table, O: ChangeObserver>(
    at: (&mut T, T::HomeBucket),
    tap: &Tap<O>,
    context: &Context<'_>,
    job: &Job<'_>,
    (set, out): (store::Set<'_>, &mut Vec<u8>),
) -> Option<OutcomeKind> {
    let outcome = store::set_ignored(at, tap, context, job, set)?;
    job.request.emit(outcome, out);
    Some(outcome.kind())
}

/// Executes an `ms` without a condition, if the observer ignores its key. None if not: nothing has
/// been done.
#[inline(never)]
fn meta_set<T: Table, O: ChangeObserver>(
    (owner, home): (&mut T, T::HomeBucket),
    tap: &Tap<O>,
    context: &Context<'_>,
    job: &Job<'_>,
    (value, out): (&[u8], &mut Vec<u8>),
) -> Option<OutcomeKind> {
    let set = meta::unconditional(context, job, value)?;
    let outcome = match O::SEES_REQUESTS && tap.is_open() {
        true => store::set_ignored((owner, home), tap, context, job, set)?,
        false => store::set(owner, home, context, job, set),
    };
    Some(say(&job.request, outcome, out))
}

/// Whether a verb that is executed on the writer copies the item's value into the reply.
fn shows_value(verb: &Verb<'_>) -> bool {
    let command = match verb {
        Verb::GetAndTouch { .. } | Verb::GetAndExpire { .. } | Verb::Take => return true,
        Verb::Write(write) => return write.shows_old,
        Verb::Meta { command, .. } => *command,
        _ => return false,
    };
    command == Command::Get
}

/// Executes a request that is neither a read nor a `set` that nobody observes, which are the most
/// frequent ones: out of their way.
#[inline(never)]
fn carry_out(
    writer: &mut dyn TableWriter,
    context: &mut Context<'_>,
    job: &Job<'_>,
    out: &mut Vec<u8>,
) -> OutcomeKind {
    let plain = Calculation::plain;
    let outcome = match job.request.verb {
        Verb::Store {
            mode,
            flags,
            exptime,
            value,
        } => {
            let write = store::Write {
                mode,
                set: store::Set::new(flags, Expiry::from_memcached(exptime, context.now), value),
                takes_stale: false,
                create: None,
            };
            store::store(writer, context, job, &write)
        }
        Verb::Get => return meta::get(writer, context, job, out),
        Verb::Look => return write::look(writer, context, job, out),
        Verb::GetAndTouch { exptime } => {
            return change::get_and_touch(writer, context, job, exptime, out);
        }
        Verb::Meta { command, value } => {
            return meta::execute(writer, context, job, (command, value), out);
        }
        Verb::Delete => change::delete(writer, context, job, 0),
        Verb::DeleteIf { cas } => change::delete(writer, context, job, cas),
        Verb::Increment { delta } => count::count(writer, context, job, &plain(false, delta), None),
        Verb::Decrement { delta } => count::count(writer, context, job, &plain(true, delta), None),
        Verb::Count {
            down,
            delta,
            cas,
            create,
        } => {
            let calculation = Calculation {
                compare: cas,
                ..plain(down, delta)
            };
            let first = create.map(|create| First {
                number: create.initial,
                expiry: Expiry::from_memcached(create.exptime.into(), context.now),
                history: History::NEW,
            });
            count::count(writer, context, job, &calculation, first)
        }
        Verb::Write(value) => return write::write(writer, context, job, &value, out),
        Verb::GetAndExpire { lifetime } => {
            return write::get_and_expire(writer, context, job, lifetime, out);
        }
        Verb::Take => return write::take(writer, context, job, out),
        Verb::AddDecimal { number } => {
            return edit::add_decimal(writer, context, job, number, out);
        }
        Verb::Append { value } => edit::append(writer, context, job, value),
        Verb::Overlay { from, value } => {
            edit::overlay(writer, context, job, (from as usize, value))
        }
        Verb::DeleteEqual { value } => equal::delete(writer, context, job, value),
        Verb::DeleteUnchanged {
            cas,
            expiry_ms,
            value,
        } => equal::delete_unchanged(writer, context, job, (cas, expiry_ms, value)),
        Verb::ExpireEqual { value, ms, renewal } => {
            equal::expire(writer, context, job, value, (ms, renewal))
        }
        Verb::Expire { lifetime, when } => write::expire(writer, context, job, (lifetime, when)),
        Verb::Add { delta, rule } => write::add(writer, context, job, (delta, rule)),
        Verb::Touch { exptime } => change::touch(writer, context, job, exptime),
        Verb::Refused { reason } => {
            writer.remove(job.keyhash, job.request.key, context.now);
            context.refuse(reason)
        }
    };
    say(&job.request, outcome, out)
}
