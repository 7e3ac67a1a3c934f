//! What happened to an item: it is looked at before a request and after it, and what was asked
//! explains the difference. So it does not matter in which protocol that was, or whether the client
//! wanted an answer.

use glimmer_base::{Expiry, Moment};
use glimmer_engine::{Done, Engine, Glimpse, Job, Status};
use glimmer_proto::meta::{Command, Options};
use glimmer_proto::request::Condition;
use glimmer_proto::{Form, Refusal, Request, StoreMode, Verb};

/// What was asked, as far as watchers are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Fetch,
    /// By this command.
    Store(&'static str),
    /// By this command.
    Delete(&'static str),
    /// To add to a number, or to subtract from it.
    Count,
    /// To store a value that was not received, for this reason.
    Refused(&'static str),
    Other,
}

/// What one request did.
#[derive(Clone, Debug)]
pub(crate) struct Sight {
    pub key: Box<[u8]>,
    pub asked: Asked,
    /// The item before.
    pub before: Option<Glimpse>,
    /// The item after.
    pub after: Option<Glimpse>,
    /// For how long a stored item is to stay, in seconds; 0 for ever.
    pub ttl_s: u64,
    /// Bytes of the value that was sent.
    pub value_bytes: usize,
    /// The client's descriptor.
    pub fd: i32,
}

/// Executes a batch as [`Engine::run`] does, one job at a time, and says what each did.
#[cold]
pub(crate) fn run(
    engine: &mut dyn Engine,
    now: Moment,
    jobs: &[Job<'_>],
    outs: &mut [Vec<u8>],
    done: &mut [Done],
    fd_of: impl Fn(&Job<'_>) -> i32,
) -> Vec<Sight> {
    let mut sights = Vec::with_capacity(jobs.len());
    for index in 0..jobs.len() {
        let job = &jobs[index];
        let is_halted =
            |other: usize| jobs[other].out == job.out && done[other].status != Status::Done;
        if (0..index).any(is_halted) {
            done[index] = Done {
                status: Status::Skipped,
                kind: None,
                end: outs[job.out as usize].len(),
            };
            continue;
        }
        let before = engine.glimpse(now, job);
        let this = index..index + 1;
        engine.run(now, &jobs[this.clone()], outs, &mut done[this]);
        if done[index].status == Status::Done {
            let asked = asked(&job.request);
            let after = engine.glimpse(now, job);
            sights.push(Sight {
                key: job.request.with_key(|key| Box::from(key)),
                asked,
                before,
                after,
                ttl_s: match (asked, after) {
                    // What is joined to an item stays for as long as that.
                    (Asked::Store("append" | "prepend"), Some(after)) => ttl_s(after.expiry, now),
                    (_, Some(after)) if matches!(job.request.verb, Verb::Write(_)) => {
                        ttl_s(after.expiry, now)
                    }
                    _ => ttl_s(expiry(&job.request, now), now),
                },
                value_bytes: value_bytes(&job.request),
                fd: fd_of(job),
            });
        }
    }
    sights
}

fn asked(request: &Request<'_>) -> Asked {
    match &request.verb {
        Verb::Get | Verb::GetAndTouch { .. } => Asked::Fetch,
        Verb::Store { mode, .. } => Asked::Store(match mode {
            StoreMode::Set => "set",
            StoreMode::Add => "add",
            StoreMode::Replace => "replace",
            StoreMode::Append | StoreMode::AppendIf(_) => "append",
            StoreMode::Prepend | StoreMode::PrependIf(_) => "prepend",
            StoreMode::Cas(_) => "cas",
        }),
        Verb::Delete | Verb::DeleteIf { .. } => Asked::Delete("delete"),
        Verb::Meta { command, .. } => match command {
            Command::Get => Asked::Fetch,
            Command::Store => Asked::Store(stored_by(&options(request))),
            Command::Delete => Asked::Delete("md"),
            Command::Arithmetic => Asked::Count,
            Command::Debug => Asked::Other,
        },
        Verb::Write(write) => Asked::Store(match write.condition {
            Condition::Always => "set",
            Condition::Absent => "add",
            Condition::Present => "replace",
        }),
        Verb::Increment { .. } | Verb::Decrement { .. } | Verb::Count { .. } | Verb::Add { .. } => {
            Asked::Count
        }
        Verb::Refused { reason } => Asked::Refused(match reason {
            Refusal::TooLarge => "too_large",
            Refusal::NoMemory => "no_memory",
        }),
        _ => Asked::Other,
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

fn options(request: &Request<'_>) -> Options {
    match request.form {
        Form::Meta(flags) => flags.options(),
        _ => Options::default(),
    }
}

fn value_bytes(request: &Request<'_>) -> usize {
    match &request.verb {
        Verb::Store { value, .. } | Verb::Meta { value, .. } => value.len(),
        Verb::Write(write) => write.value.len(),
        _ => 0,
    }
}

fn expiry(request: &Request<'_>, now: Moment) -> Expiry {
    let exptime = match request.verb {
        Verb::Store { exptime, .. } => exptime,
        Verb::Meta {
            command: Command::Store,
            ..
        } => options(request).exptime.unwrap_or(0).into(),
        _ => return Expiry::NEVER,
    };
    Expiry::from_memcached(exptime, now)
}

fn ttl_s(expiry: Expiry, now: Moment) -> u64 {
    expiry.ms().saturating_sub(now.ms) / 1000
}
