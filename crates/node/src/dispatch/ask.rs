//! What the plan is asked about a request.

use glimmer_dispatch::Ask;
use glimmer_engine::{Done, Job};
use glimmer_proto::Verb;

/// The question to the plan for a verb.
#[inline]
pub(crate) fn ask(verb: &Verb<'_>) -> Ask {
    match verb {
        verb if verb.is_read() => Ask::Read,
        Verb::Store { value, .. } | Verb::Meta { value, .. } => Ask::Write {
            bytes: value.len() as u32,
        },
        Verb::Write(write) => Ask::Write {
            bytes: write.value().len() as u32,
        },
        Verb::Append { value } | Verb::Overlay { value, .. } => Ask::Write {
            bytes: value.len() as u32,
        },
        _ => Ask::Write { bytes: 0 },
    }
}

/// Bytes of the value that an executed job has read or written.
#[inline]
pub(crate) fn value_bytes(job: &Job<'_>, done: &Done) -> u32 {
    match ask(&job.request.verb) {
        Ask::Read => done.read_bytes,
        // A value that was in place is not in the job.
        Ask::Write { bytes } => bytes.max(done.read_bytes),
    }
}
