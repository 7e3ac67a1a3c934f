//! The meta commands.
//!
//! | file | idea |
//! | --- | --- |
//! | `reply` | the parts of a reply that show an item |
//! | `get` | `mg` that changes the item, or asks what only its writer knows |
//! | `store` | `ms`: what its flags make of a store |
//! | `delete` | `md`: remove, empty, or mark as stale |
//! | `arithmetic` | `ma` |
//! | `debug` | `me` |

mod arithmetic;
mod debug;
mod delete;
mod get;
mod reply;
mod store;

pub use get::get;
pub use reply::{no_value, read_value, stored};

use super::Context;
use crate::job::Job;
use glimmer_base::{Expiry, Moment};
use glimmer_proto::meta::{Command, Flags, Options};
use glimmer_store::heap::Marks;
use glimmer_store::table::TableWriter;

/// Executes a meta command on the partition's writer.
pub fn execute<W: TableWriter>(
    writer: &mut W,
    context: &mut Context<'_>,
    job: &Job<'_>,
    (command, flags, value): (Command, Flags<'_>, &[u8]),
    out: &mut Vec<u8>,
) {
    match command {
        Command::Get => get(writer, context, job, out),
        Command::Store => store::store(writer, context, job, (flags, value), out),
        Command::Delete => delete::delete(writer, context, job, flags, out),
        Command::Arithmetic => arithmetic::arithmetic(writer, context, job, flags, out),
        Command::Debug => debug::debug(writer, context, job, flags, out),
    }
}

/// The mark of an item whose key came with these flags.
fn key_mark(flags: Flags<'_>) -> Marks {
    if flags.base64_key {
        Marks::BINARY_KEY
    } else {
        Marks::NONE
    }
}

/// The expiry that a command's `T` and `N` give to an item that it makes: the later of the two in the line counts.
fn created_expiry(flags: Flags<'_>, options: &Options, now: Moment) -> Expiry {
    let mut expiry = Expiry::NEVER;
    for (flag, _) in flags.iter() {
        if let Some(new) = changed_expiry(flag, options, true, now) {
            expiry = new;
        }
    }
    expiry
}

/// The expiry that this flag gives to the item, if it gives any. `N` gives it to an item that was made by the same command.
fn changed_expiry(flag: u8, options: &Options, is_new: bool, now: Moment) -> Option<Expiry> {
    let exptime = match flag {
        b'T' => options.exptime,
        b'N' if is_new => options.create_exptime,
        _ => None,
    };
    exptime.map(|exptime| Expiry::from_memcached(exptime.into(), now))
}

/// Whole seconds that are left, counted as memcached's clock shows them: a second that has begun counts.
fn ttl_s(expiry: Expiry, now: Moment) -> Option<u64> {
    (expiry != Expiry::NEVER).then(|| expiry.ms().saturating_sub(now.ms).div_ceil(1000))
}

/// The second of this moment, as an item keeps it.
fn second(now: Moment) -> u32 {
    (now.ms / 1000) as u32
}
