//! Changes of a part of a value, or of the number that it is.

use super::view::View;
use super::write::put;
use super::{Context, say, store};
use crate::job::Job;
use glimmer_base::Expiry;
use glimmer_proto::decimal::{self, Decimal};
use glimmer_proto::outcome::{Found, OutcomeKind};
use glimmer_proto::{Outcome, Refusal, StoreMode};
use glimmer_store::heap::History;
use glimmer_store::table::TableWriter;

/// Appends to the item's value. An item that is not there has none. What is too large leaves the
/// item as it was.
pub fn append(
    writer: &mut dyn TableWriter,
    context: &mut Context<'_>,
    job: &Job<'_>,
    value: &[u8],
) -> Outcome {
    let (keyhash, key, now) = (job.keyhash, job.request.key, context.now);
    let old_bytes = writer.find(keyhash, key, now).map(|it| it.value().len());
    let write = store::Write {
        mode: StoreMode::Append,
        set: store::Set::new(0, Expiry::NEVER, value),
        takes_stale: false,
        create: Some(Expiry::NEVER),
    };
    match (store::store(writer, context, job, &write), old_bytes) {
        (Outcome::NotStored, Some(_)) if writer.find(keyhash, key, now).is_some() => {
            Outcome::TooLarge
        }
        // The item was evicted to make room for its new version.
        (Outcome::NotStored, _) => context.refuse(Refusal::NoMemory),
        (outcome, _) => outcome,
    }
}

/// Writes bytes over the item's value from a position on. What is too large leaves the item as it
/// was.
pub fn overlay(
    writer: &mut dyn TableWriter,
    context: &mut Context<'_>,
    job: &Job<'_>,
    (from, bytes): (usize, &[u8]),
) -> Outcome {
    let (keyhash, key, now) = (job.keyhash, job.request.key, context.now);
    let mut value = Vec::new();
    let (mut flags, mut expiry, mut history) = (0, Expiry::NEVER, History::NEW);
    if let Some(item) = writer.find(keyhash, key, now) {
        item.value().append_to(&mut value);
        (flags, expiry) = (item.flags(), item.expiry());
        history.marks = item.history().marks;
    }
    if bytes.is_empty() {
        return Outcome::Stored {
            cas: 0,
            value_bytes: value.len(),
        };
    }
    context.tally.cmd_set.add(1);
    // The parser has seen to it that the end is within the limit of items.
    let end = from + bytes.len();
    if value.len() < end {
        value.resize(end, 0);
    }
    value[from..end].copy_from_slice(bytes);
    // A draft holds the bytes that came with a request. This value was made here.
    writer.bring(None);
    put(writer, context, job, &value, (flags, expiry, history))
}

/// Adds to a decimal fraction; an item that is not there holds zero. Flags and expiry stay. The
/// reply shows the new value.
pub fn add_decimal(
    writer: &mut dyn TableWriter,
    context: &mut Context<'_>,
    job: &Job<'_>,
    number: &[u8],
    out: &mut Vec<u8>,
) -> OutcomeKind {
    let (keyhash, key, now) = (job.keyhash, job.request.key, context.now);
    let (mut flags, mut expiry, mut history) = (0, Expiry::NEVER, History::NEW);
    let mut old = Some(Decimal::ZERO);
    if let Some(item) = writer.find(keyhash, key, now) {
        let mut text = Vec::new();
        item.value()
            .part(0, decimal::TEXT_BYTES_MAX + 1)
            .append_to(&mut text);
        old = Decimal::read(&text);
        (flags, expiry) = (item.flags(), item.expiry());
        history.marks = item.history().marks;
    }
    let (Some(old), Some(delta)) = (old, Decimal::read(number)) else {
        return say(&job.request, Outcome::NotANumber, out);
    };
    let Some(sum) = old.checked_add(delta) else {
        return say(&job.request, Outcome::Overflow, out);
    };
    let text = sum.to_string();
    let stored = put(
        writer,
        context,
        job,
        text.as_bytes(),
        (flags, expiry, history),
    );
    match (stored, writer.find(keyhash, key, now)) {
        (Outcome::Stored { .. }, Some(item)) => {
            let found = Found::read(View(item), now);
            job.request.emit(Outcome::Value(found), out);
            OutcomeKind::Value
        }
        (Outcome::Stored { .. }, None) => say(&job.request, Outcome::OutOfMemory, out),
        (failure, _) => say(&job.request, failure, out),
    }
}
