//! Executes the meta commands.
//!
//! | file | idea |
//! | --- | --- |
//! | `get` | `mg` that changes the item, or asks what only its writer knows |
//! | `store` | `ms`: the effect of its flags on a store |
//! | `delete` | `md`: deletes an item, empties it, or marks it as stale |
//! | `arithmetic` | `ma` |
//! | `debug` | `me` |

mod arithmetic;
mod debug;
mod delete;
mod get;
mod store;

pub use get::get;
pub use store::{store_mode, unconditional};

use super::{Context, say};
use crate::job::Job;
use glimmer_base::{Expiry, Moment};
use glimmer_proto::meta::{Command, Flags, Options};
use glimmer_proto::outcome::OutcomeKind;
use glimmer_store::heap::Marks;
use glimmer_store::table::TableWriter;

/// Executes a meta command on the partition's writer.
pub fn execute(
    writer: &mut dyn TableWriter,
    context: &mut Context<'_>,
    job: &Job<'_>,
    (command, value): (Command, &[u8]),
    out: &mut Vec<u8>,
) -> OutcomeKind {
    let outcome = match command {
        Command::Get => return get(writer, context, job, out),
        Command::Store => store::store(writer, context, job, value),
        Command::Delete => delete::delete(writer, context, job),
        Command::Arithmetic => arithmetic::arithmetic(writer, context, job),
        Command::Debug => return debug::debug(writer, context, job, out),
    };
    say(&job.request, outcome, out)
}

/// The mark of an item whose key was given with these flags.
fn key_mark(flags: Flags<'_>) -> Marks {
    if flags.base64_key {
        Marks::BINARY_KEY
    } else {
        Marks::NONE
    }
}

/// The expiry of an item that a command with `T` and `N` creates: the later flag in the line
/// counts.
fn created_expiry(flags: Flags<'_>, options: &Options, now: Moment) -> Expiry {
    let mut expiry = Expiry::NEVER;
    for (flag, _) in flags.iter() {
        if let Some(new) = changed_expiry(flag, options, true, now) {
            expiry = new;
        }
    }
    expiry
}

/// The item's new expiry by this flag, if it sets one. `N` sets it only for an item that the same
/// command created.
fn changed_expiry(flag: u8, options: &Options, is_new: bool, now: Moment) -> Option<Expiry> {
    let exptime = match flag {
        b'T' => options.exptime,
        b'N' if is_new => options.create_exptime,
        _ => None,
    };
    exptime.map(|exptime| options.expiry(exptime, now))
}
