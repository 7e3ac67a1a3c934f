//! `ma`.

use super::super::Context;
use super::super::count::{self, Calculation, First};
use super::{changed_expiry, created_expiry, key_mark};
use crate::job::Job;
use glimmer_proto::Outcome;
use glimmer_store::heap::History;
use glimmer_store::table::TableWriter;

pub fn arithmetic(writer: &mut dyn TableWriter, context: &Context<'_>, job: &Job<'_>) -> Outcome {
    let flags = job.request.meta_flags();
    let (options, now) = (flags.options(), context.now);
    let calculation = Calculation {
        down: matches!(options.mode, Some(b'D' | b'-')),
        delta: options.delta,
        compare: options.compare.unwrap_or(0),
        cas: options.unique,
        expiry: changed_expiry(b'T', &options, false, now),
    };
    let first = options.create_exptime.map(|_| First {
        number: options.initial,
        expiry: created_expiry(flags, &options, now),
        history: History {
            cas: options.unique,
            marks: key_mark(flags),
            accessed_s: 0,
        },
    });
    count::count(writer, context, job, &calculation, first)
}
