//! Writes outcomes as replies of the native protocol.

use super::reply::{self, Long, Status};
use super::{Extent, Form};
use crate::outcome::{Emit, ItemView, Outcome};
use crate::{Request, StoreMode, Verb};

impl Emit for Form {
    #[inline(always)]
    fn emit<I: ItemView>(&self, request: &Request<'_>, outcome: Outcome<I>, out: &mut Vec<u8>) {
        let status = match outcome {
            Outcome::Value(found) => return value(out, *self, found.item),
            Outcome::Stored { cas, .. } => {
                return reply::stored(out, self.shows_cas.then_some(cas));
            }
            Outcome::Counted(counted) => {
                let cas = self.shows_cas.then_some(counted.cas);
                return reply::counted(out, counted.number, cas);
            }
            Outcome::NotStored => not_stored(request),
            Outcome::Exists => Status::Exists,
            Outcome::Miss | Outcome::NotFound => Status::NotFound,
            Outcome::Deleted => Status::Deleted,
            Outcome::Touched { .. } => Status::Touched,
            Outcome::NotANumber | Outcome::Overflow => Status::NotANumber,
            Outcome::TooLarge => Status::TooLarge,
            Outcome::OutOfMemory => Status::OutOfMemory,
        };
        reply::status(out, status);
    }
}

#[inline(always)]
fn value<I: ItemView>(out: &mut Vec<u8>, form: Form, item: I) {
    let cas = form.shows_cas.then(|| item.cas());
    let (flags, value_bytes) = (item.flags(), item.value_bytes());
    let bytes = reply::found_head_bytes(flags, cas) + value_bytes;
    if bytes > form.extent.short_bytes_max as usize {
        long(out, form.extent, item, cas, bytes);
    } else {
        reply::found_head(out, flags, cas, value_bytes);
        item.append_value(out);
    }
}

/// Appends the requested part of a reply that is longer than a datagram.
#[cold]
fn long<I: ItemView>(out: &mut Vec<u8>, extent: Extent, item: I, cas: Option<u64>, bytes: usize) {
    let (first, end) = Long::range(extent.long, bytes);
    out.reserve(Long::HEAD_BYTES + end - first + size_of::<u64>());
    Long::write_head(out, bytes, item.cas());
    if first == end {
        return;
    }
    let value_bytes = item.value_bytes();
    let head_bytes = bytes - value_bytes;
    if first == 0 {
        reply::head_of_found(out, item.flags(), cas, value_bytes);
    }
    let from = first.saturating_sub(head_bytes);
    item.append_part(from, end - head_bytes - from, out);
}

/// The status for a condition that was not met.
fn not_stored(request: &Request<'_>) -> Status {
    match request.verb {
        Verb::Store {
            mode: StoreMode::Add,
            ..
        } => Status::Exists,
        _ => Status::NotFound,
    }
}
