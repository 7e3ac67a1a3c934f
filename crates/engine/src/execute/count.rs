//! `incr` and `decr`, in every protocol.

use super::{Context, answer};
use crate::job::Job;
use glimmer_base::Expiry;
use glimmer_base::counter::Counter;
use glimmer_proto::Create;
use glimmer_proto::text::number;
use glimmer_store::heap::{History, Marks, NewItem};
use glimmer_store::partition::Stored;
use glimmer_store::table::TableWriter;
use std::io::Write;

/// A calculation on an item.
#[derive(Clone, Copy)]
pub struct Calculation {
    /// Subtract, stopping at zero, instead of adding, wrapping at 2^64.
    pub down: bool,
    /// What to add or subtract.
    pub delta: u64,
    /// The CAS unique that the item must have, if this is not zero.
    pub compare: u64,
    /// The CAS unique that it is to get.
    pub cas: Option<u64>,
    /// The expiry that it is to get.
    pub expiry: Option<Expiry>,
}

/// A calculation that was carried out.
#[derive(Clone, Copy)]
pub struct Counted {
    pub number: u64,
    /// The item's new CAS unique.
    pub cas: u64,
    /// The expiry that it had before.
    pub expiry: Expiry,
}

/// Why a calculation came to nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    NotFound,
    /// The item has another CAS unique.
    Exists,
    NotANumber,
    /// The number has outgrown its item, and there is no memory for a larger one.
    NoMemory,
}

impl Calculation {
    /// Adds or subtracts, and nothing else.
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

/// Calculates and answers; makes the item where there is none, if that is wanted.
pub fn count<W: TableWriter>(
    writer: &mut W,
    context: &Context<'_>,
    job: &Job<'_>,
    calculation: &Calculation,
    created: Option<Create>,
    out: &mut Vec<u8>,
) {
    let counted = match (calculate(writer, context, job, calculation), created) {
        (Err(Failure::NotFound), Some(Create { initial, exptime })) => {
            let expiry = Expiry::from_memcached(exptime.into(), context.now);
            create(writer, context, job, initial, expiry, History::NEW).map(|cas| (initial, cas))
        }
        (Ok(counted), _) => Ok((counted.number, counted.cas)),
        (Err(failure), _) => Err(failure),
    };
    match counted {
        Ok((number, cas)) => answer::number(out, &job.request, number, cas),
        Err(failure) => {
            if failure == Failure::NotFound {
                missed(context, calculation);
            }
            answer::no_number(out, &job.request, failure);
        }
    }
}

/// Replaces an item's number. As memcached does, a result that is shorter than what was there is
/// filled up with spaces, and flags and expiry stay; so does what the meta commands have left on the item, unless it grows.
pub fn calculate<W: TableWriter>(
    writer: &mut W,
    context: &Context<'_>,
    job: &Job<'_>,
    calculation: &Calculation,
) -> Result<Counted, Failure> {
    let (keyhash, key) = (job.keyhash, job.request.key);
    let Some(item) = writer.find(keyhash, key, context.now) else {
        return Err(Failure::NotFound);
    };
    // In memcached's order: what holds nothing is no number whatever its CAS unique.
    if item.value().is_empty() {
        return Err(Failure::NotANumber);
    }
    if calculation.compare != 0 && calculation.compare != item.cas() {
        return Err(Failure::Exists);
    }
    let mut old = [0; 32];
    let Some(old) = item.value().short_bytes(&mut old) else {
        return Err(Failure::NotANumber);
    };
    let Some(number) = number::unsigned_64(old).map(|number| calculation.of(number)) else {
        return Err(Failure::NotANumber);
    };
    let (hits, _) = figures(context, calculation.down);
    hits.add(1);
    let mut new = [b' '; 24];
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
    match writer.put(keyhash, &new_item, context.now) {
        Stored::Yes(cas) => Ok(Counted {
            number,
            cas,
            expiry,
        }),
        Stored::TooLarge | Stored::OutOfMemory => Err(Failure::NoMemory),
    }
}

/// Makes an item that holds a number; returns its CAS unique.
pub fn create<W: TableWriter>(
    writer: &mut W,
    context: &Context<'_>,
    job: &Job<'_>,
    number: u64,
    expiry: Expiry,
    history: History,
) -> Result<u64, Failure> {
    let mut value = [0; 24];
    let digits = write_digits(&mut value, number);
    let item = NewItem {
        key: job.request.key,
        value: [&value[..digits], &[]],
        flags: 0,
        expiry,
        history: context.history(history),
    };
    match writer.put(job.keyhash, &item, context.now) {
        Stored::Yes(cas) => Ok(cas),
        Stored::TooLarge | Stored::OutOfMemory => Err(Failure::NoMemory),
    }
}

/// Counts a calculation that found no item and made none.
pub fn missed(context: &Context<'_>, calculation: &Calculation) {
    let (_, misses) = figures(context, calculation.down);
    misses.add(1);
}

fn figures<'c>(context: &'c Context<'_>, down: bool) -> (&'c Counter, &'c Counter) {
    let tally = context.tally;
    if down {
        (&tally.decr_hits, &tally.decr_misses)
    } else {
        (&tally.incr_hits, &tally.incr_misses)
    }
}

/// Writes a number to the front of the buffer; returns how many digits it has.
fn write_digits(buffer: &mut [u8; 24], number: u64) -> usize {
    let room = buffer.len();
    let mut rest = &mut buffer[..];
    write!(rest, "{number}").expect("20 digits fit into 24 bytes");
    room - rest.len()
}
