//! `ma`.

use super::super::count::{self, Calculation, Failure};
use super::super::{Context, answer};
use super::{changed_expiry, created_expiry, key_mark, ttl_s};
use crate::job::Job;
use glimmer_base::{Expiry, Moment};
use glimmer_proto::meta::{Flags, Options, emit};
use glimmer_store::heap::History;
use glimmer_store::table::TableWriter;

/// What there is to tell about a number.
struct Result {
    number: u64,
    cas: u64,
    /// The expiry that the item had before.
    expiry: Expiry,
    is_new: bool,
}

pub fn arithmetic<W: TableWriter>(
    writer: &mut W,
    context: &Context<'_>,
    job: &Job<'_>,
    flags: Flags<'_>,
    out: &mut Vec<u8>,
) {
    let (options, now) = (flags.options(), context.now);
    let calculation = Calculation {
        down: matches!(options.mode, Some(b'D' | b'-')),
        delta: options.delta,
        compare: options.compare.unwrap_or(0),
        cas: options.unique,
        expiry: changed_expiry(b'T', &options, false, now),
    };
    let result = match count::calculate(writer, context, job, &calculation) {
        Ok(counted) => Ok(Result {
            number: counted.number,
            cas: counted.cas,
            expiry: counted.expiry,
            is_new: false,
        }),
        Err(Failure::NotFound) if options.create_exptime.is_some() => {
            let expiry = created_expiry(flags, &options, now);
            let history = History {
                cas: options.unique,
                marks: key_mark(flags),
                accessed_s: 0,
            };
            count::create(writer, context, job, options.initial, expiry, history).map(|cas| {
                Result {
                    number: options.initial,
                    cas,
                    expiry: Expiry::NEVER,
                    is_new: true,
                }
            })
        }
        Err(failure) => Err(failure),
    };
    match result {
        Ok(_) if options.set.has(b'q') => {}
        Ok(result) => tell(out, job.request.key, (flags, &options), &result, now),
        Err(Failure::NotFound) => {
            count::missed(context, &calculation);
            emit::code(out, "NF");
            emit::repeat(out, flags, job.request.key);
        }
        Err(Failure::Exists) => {
            emit::code(out, "EX");
            emit::repeat(out, flags, job.request.key);
        }
        Err(failure) => answer::no_number(out, &job.request, failure),
    }
}

/// Appends the reply, the flags in their order: a `t` in front of `T` shows the time that was left before.
fn tell(
    out: &mut Vec<u8>,
    key: &[u8],
    (flags, options): (Flags<'_>, &Options),
    result: &Result,
    now: Moment,
) {
    let mut digits = itoa::Buffer::new();
    let digits = digits.format(result.number).as_bytes();
    let shows_value = options.set.has(b'v');
    if shows_value {
        emit::value_head(out, flags, key.len(), digits.len());
    } else {
        emit::code(out, "HD");
    }
    let mut expiry = result.expiry;
    for (flag, token) in flags.iter() {
        match flag {
            b'T' | b'N' => {
                expiry = changed_expiry(flag, options, result.is_new, now).unwrap_or(expiry);
            }
            b't' => emit::ttl(out, ttl_s(expiry, now)),
            b'c' => emit::number(out, flag, result.cas),
            b'O' => emit::echo(out, flag, token),
            b'k' => emit::key(out, key, flags.base64_key),
            _ => {}
        }
    }
    emit::line_end(out);
    if shows_value {
        out.extend_from_slice(digits);
        emit::line_end(out);
    }
}
