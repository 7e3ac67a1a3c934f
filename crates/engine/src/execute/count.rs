//! `incr` and `decr` of every protocol.

use super::Context;
use crate::job::Job;
use glimmer_base::Expiry;
use glimmer_base::counter::Counter;
use glimmer_proto::outcome::Counted;
use glimmer_proto::text::number;
use glimmer_proto::{Outcome, Refusal};
use glimmer_store::heap::{History, Marks, NewItem};
use glimmer_store::table::Stored;
use glimmer_store::table::TableWriter;
use std::fmt::Display;
use std::io::Write;

/// A calculation on an item.
#[derive(Clone, Copy)]
pub struct Calculation {
    /// Subtract, stopping at zero, instead of adding, wrapping at 2^64.
    pub down: bool,
    /// The number to add or subtract.
    pub delta: u64,
    /// The CAS unique that the item must have, unless it is zero.
    pub compare: u64,
    /// The item's new CAS unique.
    pub cas: Option<u64>,
    /// The item's new expiry.
    pub expiry: Option<Expiry>,
}

/// The item to create if the key has no item.
#[derive(Clone, Copy)]
pub struct First {
    /// Its number.
    pub number: u64,
    pub expiry: Expiry,
    pub history: History,
}

impl Calculation {
    /// Adds or subtracts without further conditions or changes.
    pub fn plain(down: bool, delta: u64) -> Calculation {
        Calculation {
            down,
            delta,
            compare: 0,
            cas: None,
            expiry: None,
        }
    }

    fn of(&self, number: u64) -> u64 {
        if self.down {
            number.saturating_sub(self.delta)
        } else {
            number.wrapping_add(self.delta)
        }
    }
}

/// Adds to or subtracts from the item's number. If there is no item, creates it on request.
pub fn count(
    writer: &mut dyn TableWriter,
    context: &Context<'_>,
    job: &Job<'_>,
    calculation: &Calculation,
    first: Option<First>,
) -> Outcome {
    let counted = match (calculate(writer, context, job, calculation), first) {
        (Err(Outcome::NotFound), Some(first)) => create(writer, context, job, &first),
        (counted, _) => counted,
    };
    match counted {
        Ok(counted) => Outcome::Counted(counted),
        Err(failure) => {
            if matches!(failure, Outcome::NotFound) {
                let (_, misses) = figures(context, calculation.down);
                misses.add(1);
            }
            failure
        }
    }
}

/// Replaces an item's number. As in memcached, a shorter result is padded with spaces, and flags
/// and expiry stay. The item's state for meta commands stays as well, unless the item grows.
fn calculate(
    writer: &mut dyn TableWriter,
    context: &Context<'_>,
    job: &Job<'_>,
    calculation: &Calculation,
) -> Result<Counted, Outcome> {
    let (keyhash, key) = (job.keyhash, job.request.key);
    let Some(item) = writer.find(keyhash, key, context.now) else {
        return Err(Outcome::NotFound);
    };
    // In memcached's order: an empty value is not a number, whatever its CAS unique.
    if item.value().is_empty() {
        return Err(Outcome::NotANumber);
    }
    if calculation.compare != 0 && calculation.compare != item.cas() {
        return Err(Outcome::Exists);
    }
    let mut old = [0; 32];
    let Some(old) = item.value().short_bytes(&mut old) else {
        return Err(Outcome::NotANumber);
    };
    let Some(number) = number::unsigned_64(old).map(|number| calculation.of(number)) else {
        return Err(Outcome::NotANumber);
    };
    let (hits, _) = figures(context, calculation.down);
    hits.add(1);
    let mut new = [b' '; DIGITS_MAX];
    let digits = write_digits(&mut new, number);
    let (expiry, history) = (item.expiry(), item.history());
    let marks = if digits > old.len() {
        history.marks.only(Marks::BINARY_KEY)
    } else if writer.was_read(keyhash, key, context.now) {
        history.marks.with(Marks::FETCHED)
    } else {
        history.marks
    };
    let new_item = NewItem {
        key,
        value: [&new[..digits.max(old.len())], &[]],
        flags: item.flags(),
        expiry: calculation.expiry.unwrap_or(expiry),
        history: History {
            cas: context.unique(calculation.cas),
            marks,
            ..history
        },
    };
    let mut stored = writer.put(keyhash, &new_item, context.now);
    if stored == Stored::OutOfMemory && new_item.expiry.is_due(context.now) {
        // There is no room for the expiry time or for a longer number. An item that is gone at once
        // needs neither.
        let unexpired = NewItem {
            value: [old, &[]],
            expiry,
            ..new_item
        };
        stored = writer.put(keyhash, &unexpired, context.now);
        if matches!(stored, Stored::Yes(_)) {
            writer.remove(keyhash, key, context.now);
        }
    }
    match stored {
        Stored::Yes(cas) => Ok(Counted {
            number,
            cas,
            expiry,
            is_new: false,
            now: context.now,
        }),
        Stored::OutOfMemory => Err(context.refuse(Refusal::NoMemory)),
        Stored::TooLarge => Err(Outcome::OutOfMemory),
    }
}

/// Creates an item with a number.
fn create(
    writer: &mut dyn TableWriter,
    context: &Context<'_>,
    job: &Job<'_>,
    first: &First,
) -> Result<Counted, Outcome> {
    let mut value = [0; DIGITS_MAX];
    let digits = write_digits(&mut value, first.number);
    let item = NewItem {
        key: job.request.key,
        value: [&value[..digits], &[]],
        flags: 0,
        expiry: first.expiry,
        history: context.history(first.history),
    };
    match writer.put(job.keyhash, &item, context.now) {
        Stored::Yes(cas) => Ok(Counted {
            number: first.number,
            cas,
            expiry: Expiry::NEVER,
            is_new: true,
            now: context.now,
        }),
        Stored::OutOfMemory => Err(context.refuse(Refusal::NoMemory)),
        Stored::TooLarge => Err(Outcome::OutOfMemory),
    }
}

fn figures<'c>(context: &'c Context<'_>, down: bool) -> (&'c Counter, &'c Counter) {
    let tally = context.tally;
    if down {
        (&tally.decr_hits, &tally.decr_misses)
    } else {
        (&tally.incr_hits, &tally.incr_misses)
    }
}

/// Room for the digits and the sign of a number of 64 bits.
pub const DIGITS_MAX: usize = 24;

/// Writes a number to the front of the buffer. Returns the number of digits.
pub fn write_digits(buffer: &mut [u8; DIGITS_MAX], number: impl Display) -> usize {
    let mut rest = &mut buffer[..];
    write!(rest, "{number}").expect("a number of 64 bits has 20 digits and signs at most");
    DIGITS_MAX - rest.len()
}
