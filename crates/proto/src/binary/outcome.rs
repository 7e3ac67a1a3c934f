//! Writes outcomes as replies of the binary protocol.

use super::{Header, Status, emit, opcode};
use crate::Request;
use crate::outcome::{Emit, ItemView, Outcome};

impl Emit for Header {
    #[inline(always)]
    fn emit<I: ItemView>(&self, request: &Request<'_>, outcome: Outcome<I>, out: &mut Vec<u8>) {
        let header = *self;
        let status = match outcome {
            Outcome::Value(found) => {
                let item = found.item;
                let (flags, value_bytes) = (item.flags(), item.value_bytes());
                emit::item_head(out, header, request.key, flags, value_bytes, item.cas());
                return item.append_value(out);
            }
            Outcome::Miss if header.is_quiet() => return,
            Outcome::Miss => return emit::miss(out, header, request.key),
            Outcome::Stored { .. } | Outcome::Deleted | Outcome::Counted(_)
                if header.is_quiet() =>
            {
                return;
            }
            Outcome::Stored { cas, .. } => return emit::success(out, header, cas),
            Outcome::Deleted => return emit::success(out, header, 0),
            Outcome::Touched { flags, cas } => {
                return emit::item_head(out, header, &[], flags, 0, cas);
            }
            Outcome::Counted(counted) => {
                return emit::number(out, header, counted.number, counted.cas);
            }
            Outcome::NotStored => not_stored(header),
            Outcome::Exists => Status::KeyExists,
            Outcome::NotFound => Status::KeyNotFound,
            Outcome::NotANumber | Outcome::Overflow => Status::NonNumeric,
            Outcome::TooLarge => Status::TooLarge,
            Outcome::OutOfMemory => Status::OutOfMemory,
        };
        emit::error(out, header, status);
    }
}

/// The status for a condition that was not met.
fn not_stored(header: Header) -> Status {
    match opcode::loud(header.opcode) {
        opcode::ADD => Status::KeyExists,
        opcode::REPLACE => Status::KeyNotFound,
        _ => Status::NotStored,
    }
}
