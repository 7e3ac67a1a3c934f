//! Outcomes in the words of the request's protocol.

use super::Context;
use super::count::Failure;
use super::meta;
use glimmer_proto::binary::{self, Status};
use glimmer_proto::native::reply::{self, Long, Status as Native};
use glimmer_proto::text::{self, lines};
use glimmer_proto::{Form, Refusal, Request, StoreMode, Verb, native};
use glimmer_store::heap::Item;

/// Whether a read is told all there is to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// It is.
    All,
    /// The item has to change with the answer, which is for its writer: what was appended counts for nothing.
    ByWriter,
}

/// What became of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// The item is there, with this CAS unique.
    Yes(u64),
    /// The mode's condition did not hold.
    No,
    /// The item has another CAS unique.
    Exists,
    /// There is no item whose CAS unique could be compared.
    NotFound,
    /// The item is larger than the limit.
    TooLarge,
    /// There is no memory for the item.
    OutOfMemory,
}

/// Appends the item that a read found.
#[inline(always)]
pub fn value(
    out: &mut Vec<u8>,
    request: &Request<'_>,
    item: &Item<'_>,
    context: &Context<'_>,
) -> Told {
    let value = item.value();
    match request.form {
        Form::Text { cas, last, .. } => {
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
        Form::Binary(header) => {
            binary::emit::item_head(
                out,
                header,
                request.key,
                item.flags(),
                value.len(),
                item.cas(),
            );
            value.append_to(out);
        }
        Form::Meta(flags) => return meta::read_value(out, request.key, flags, item, context.now),
        Form::Native(form) => {
            let cas = form.shows_cas.then(|| item.cas());
            let flags = item.flags();
            let bytes = reply::found_head_bytes(flags, cas) + value.len();
            if bytes > form.extent.short_bytes_max as usize {
                native_long(out, form, item, bytes);
            } else {
                reply::found_head(out, flags, cas, value.len());
                value.append_to(out);
            }
        }
    }
    Told::All
}

/// Appends what is wanted of a reply that is longer than a datagram.
#[cold]
fn native_long(out: &mut Vec<u8>, form: native::Form, item: &Item<'_>, bytes: usize) {
    let (first, end) = Long::range(form.extent.long, bytes);
    out.reserve(Long::HEAD_BYTES + end - first + size_of::<u64>());
    Long::write_head(out, bytes, item.cas());
    if first == end {
        return;
    }
    let value = item.value();
    let cas = form.shows_cas.then(|| item.cas());
    let head_bytes = bytes - value.len();
    if first == 0 {
        reply::head_of_found(out, item.flags(), cas, value.len());
    }
    let from = first.saturating_sub(head_bytes);
    value.part(from, end - head_bytes - from).append_to(out);
}

/// Appends what a read that found nothing is answered with.
#[inline(always)]
pub fn no_value(out: &mut Vec<u8>, request: &Request<'_>) {
    match request.form {
        Form::Text { last: true, .. } => text::emit::line(out, lines::END),
        Form::Text { .. } => {}
        Form::Binary(header) if header.is_quiet() => {}
        Form::Binary(header) => binary::emit::miss(out, header, request.key),
        Form::Meta(flags) => meta::no_value(out, request.key, flags),
        Form::Native(_) => reply::status(out, Native::NotFound),
    }
}

/// Appends what became of a store. `value_bytes` is the length of the value that the item has now, or would have got.
#[inline(always)]
pub fn stored(out: &mut Vec<u8>, request: &Request<'_>, stored: Stored, value_bytes: usize) {
    match request.form {
        Form::Text { quiet: true, .. } => {}
        Form::Text { .. } => text::emit::line(
            out,
            match stored {
                Stored::Yes(_) => lines::STORED,
                Stored::No => lines::NOT_STORED,
                Stored::Exists => lines::EXISTS,
                Stored::NotFound => lines::NOT_FOUND,
                Stored::TooLarge => lines::TOO_LARGE,
                Stored::OutOfMemory => lines::NO_MEMORY_STORING,
            },
        ),
        Form::Binary(header) => binary_stored(out, header, stored),
        Form::Meta(flags) => meta::stored(out, request.key, flags, stored, value_bytes),
        Form::Native(form) => native_stored(out, request, form, stored),
    }
}

fn native_stored(out: &mut Vec<u8>, request: &Request<'_>, form: native::Form, stored: Stored) {
    let status = match (stored, request.verb) {
        (Stored::Yes(cas), _) => return reply::stored(out, form.shows_cas.then_some(cas)),
        (
            Stored::No,
            Verb::Store {
                mode: StoreMode::Add,
                ..
            },
        )
        | (Stored::Exists, _) => Native::Exists,
        (Stored::No | Stored::NotFound, _) => Native::NotFound,
        (Stored::TooLarge, _) => Native::TooLarge,
        (Stored::OutOfMemory, _) => Native::OutOfMemory,
    };
    reply::status(out, status);
}

fn binary_stored(out: &mut Vec<u8>, header: binary::Header, stored: Stored) {
    use binary::opcode;
    let status = match (stored, opcode::loud(header.opcode)) {
        (Stored::Yes(_), _) if header.is_quiet() => return,
        (Stored::Yes(cas), _) => return binary::emit::success(out, header, cas),
        (Stored::No, opcode::ADD) | (Stored::Exists, _) => Status::KeyExists,
        (Stored::No, opcode::REPLACE) | (Stored::NotFound, _) => Status::KeyNotFound,
        (Stored::No, _) => Status::NotStored,
        (Stored::TooLarge, _) => Status::TooLarge,
        (Stored::OutOfMemory, _) => Status::OutOfMemory,
    };
    binary::emit::error(out, header, status);
}

/// Appends what became of a `delete`: whether there was an item, or an error of the binary protocol.
pub fn deleted(out: &mut Vec<u8>, request: &Request<'_>, outcome: Result<(), Status>) {
    match (request.form, outcome) {
        (Form::Binary(header), Ok(())) if header.is_quiet() => {}
        (Form::Binary(header), Ok(())) => binary::emit::success(out, header, 0),
        (Form::Binary(header), Err(status)) => binary::emit::error(out, header, status),
        (Form::Native(_), outcome) => reply::status(
            out,
            match outcome {
                Ok(()) => Native::Deleted,
                Err(Status::KeyExists) => Native::Exists,
                Err(_) => Native::NotFound,
            },
        ),
        (_, Ok(())) => line(out, request, lines::DELETED),
        (_, Err(_)) => line(out, request, lines::NOT_FOUND),
    }
}

/// Appends what became of a `touch`; of an item that was found, flags and CAS unique.
pub fn touched(out: &mut Vec<u8>, request: &Request<'_>, found: Option<(u32, u64)>) {
    match (request.form, found) {
        (Form::Binary(header), Some((flags, cas))) => {
            binary::emit::item_head(out, header, &[], flags, 0, cas);
        }
        (Form::Binary(header), None) => binary::emit::miss(out, header, request.key),
        (Form::Native(_), Some(_)) => reply::status(out, Native::Touched),
        (Form::Native(_), None) => reply::status(out, Native::NotFound),
        (_, Some(_)) => line(out, request, lines::TOUCHED),
        (_, None) => line(out, request, lines::NOT_FOUND),
    }
}

/// Appends the number that `incr` or `decr` has come to, with the item's new CAS unique.
#[inline]
pub fn number(out: &mut Vec<u8>, request: &Request<'_>, number: u64, cas: u64) {
    match request.form {
        Form::Text { quiet: true, .. } | Form::Meta(_) => {}
        Form::Text { .. } => text::emit::number(out, number),
        Form::Binary(header) if header.is_quiet() => {}
        Form::Binary(header) => binary::emit::number(out, header, number, cas),
        Form::Native(form) => reply::counted(out, number, form.shows_cas.then_some(cas)),
    }
}

/// Appends why `incr` or `decr` has come to nothing.
pub fn no_number(out: &mut Vec<u8>, request: &Request<'_>, failure: Failure) {
    if let Form::Binary(header) = request.form {
        let status = match failure {
            Failure::NotFound => Status::KeyNotFound,
            Failure::Exists => Status::KeyExists,
            Failure::NotANumber => Status::NonNumeric,
            Failure::NoMemory => Status::OutOfMemory,
        };
        return binary::emit::error(out, header, status);
    }
    if let Form::Native(_) = request.form {
        let status = match failure {
            Failure::NotFound => Native::NotFound,
            Failure::Exists => Native::Exists,
            Failure::NotANumber => Native::NotANumber,
            Failure::NoMemory => Native::OutOfMemory,
        };
        return reply::status(out, status);
    }
    let text = match failure {
        Failure::NotFound => lines::NOT_FOUND,
        Failure::Exists => lines::EXISTS,
        Failure::NotANumber => lines::NON_NUMERIC,
        Failure::NoMemory => lines::NO_MEMORY,
    };
    line(out, request, text);
}

/// Appends that there is no memory for what an item is to carry.
#[cold]
pub fn no_memory(out: &mut Vec<u8>, request: &Request<'_>) {
    match request.form {
        Form::Binary(header) => binary::emit::error(out, header, Status::OutOfMemory),
        _ => line(out, request, lines::NO_MEMORY),
    }
}

/// Appends why a value was not received.
pub fn refused(out: &mut Vec<u8>, request: &Request<'_>, reason: Refusal) {
    match (request.form, reason) {
        (Form::Binary(header), Refusal::TooLarge) => {
            binary::emit::error(out, header, Status::TooLarge);
        }
        (Form::Binary(header), Refusal::NoMemory) => {
            binary::emit::error(out, header, Status::OutOfMemory);
        }
        (Form::Native(_), Refusal::TooLarge) => reply::status(out, Native::TooLarge),
        (Form::Native(_), Refusal::NoMemory) => reply::status(out, Native::OutOfMemory),
        _ => line(out, request, reason.line()),
    }
}

/// Appends a line of the text protocol, unless the client wants no answer.
#[inline(always)]
fn line(out: &mut Vec<u8>, request: &Request<'_>, line: &'static str) {
    if !matches!(request.form, Form::Text { quiet: true, .. }) {
        text::emit::line(out, line);
    }
}
