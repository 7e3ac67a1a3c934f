//! Outcomes in the words of the request's protocol.

use glimmer_proto::{Form, Request, text};
use glimmer_store::heap::Item;

/// Appends the item that a read found.
#[inline(always)]
pub fn value(out: &mut Vec<u8>, request: &Request<'_>, item: &Item<'_>) {
    match request.form {
        Form::Text { cas, last, .. } => {
            let value = item.value();
            text::emit::value_head(
                out,
                request.key,
                item.flags(),
                value.len(),
                cas.then(|| item.cas()),
            );
            value.append_to(out);
            text::emit::value_tail(out, last);
        }
    }
}

/// Appends what a read that found nothing is answered with.
#[inline(always)]
pub fn no_value(out: &mut Vec<u8>, request: &Request<'_>) {
    match request.form {
        Form::Text { last: true, .. } => text::emit::line(out, text::lines::END),
        Form::Text { .. } => {}
    }
}

/// Appends a line, unless the client wants no answer.
#[inline(always)]
pub fn line(out: &mut Vec<u8>, request: &Request<'_>, line: &'static str) {
    match request.form {
        Form::Text { quiet: true, .. } => {}
        Form::Text { .. } => text::emit::line(out, line),
    }
}

/// Appends the number that `incr` or `decr` has come to.
#[inline(always)]
pub fn number(out: &mut Vec<u8>, request: &Request<'_>, number: u64) {
    match request.form {
        Form::Text { quiet: true, .. } => {}
        Form::Text { .. } => text::emit::number(out, number),
    }
}
