//! Parses the packet of each command.

use super::control::MECHANISM;
use super::header::RequestHeader;
use super::opcode;
use super::{Header, Status};
use crate::control::{Control, Credentials};
use crate::{Create, Form, Request, StoreMode, Verb, credentials};

/// The parts of a packet.
pub(super) struct Packet<'a> {
    pub header: RequestHeader,
    pub extras: &'a [u8],
    pub key: &'a [u8],
    pub value: &'a [u8],
}

/// The request in a packet.
pub(super) enum Asked<'a> {
    Request(Request<'a>),
    Control(Control<'a>),
    /// A command that the parser answers itself.
    Answer,
}

/// Checks the sizes of a packet's parts for its command. The error is the status with which the
/// packet is refused.
#[inline]
pub(super) fn check(header: &RequestHeader) -> Result<(), Status> {
    let (extras, key, value) = (header.extras_bytes, header.key_bytes, header.value_bytes());
    let is_good = match opcode::loud(header.header.opcode) {
        opcode::GET | opcode::GETK | opcode::DELETE => extras == 0 && key > 0 && value == 0,
        opcode::SET | opcode::ADD | opcode::REPLACE => extras == 8 && key > 0,
        opcode::INCREMENT | opcode::DECREMENT => extras == 20 && key > 0 && value == 0,
        opcode::APPEND | opcode::PREPEND => extras == 0 && key > 0,
        opcode::TOUCH | opcode::GAT | opcode::GATK => extras == 4 && key > 0,
        opcode::FLUSH => (extras == 0 || extras == 4) && key == 0 && value == 0,
        opcode::STAT => extras == 0,
        opcode::NOOP | opcode::VERSION | opcode::QUIT | opcode::SASL_LIST_MECHANISMS => {
            header.body_bytes == 0
        }
        opcode::SASL_AUTH | opcode::SASL_STEP => extras == 0 && key > 0,
        _ => return Err(Status::UnknownCommand),
    };
    if is_good {
        Ok(())
    } else {
        Err(Status::InvalidArguments)
    }
}

/// The client's flags, if the command carries a value to be stored.
pub(super) fn stored_flags(header: &RequestHeader, extras: &[u8]) -> Option<u32> {
    match opcode::loud(header.header.opcode) {
        opcode::SET | opcode::ADD | opcode::REPLACE => Some(word(extras, 0)),
        opcode::APPEND | opcode::PREPEND => Some(0),
        _ => None,
    }
}

/// Parses a packet that has passed [`check`].
#[inline]
pub(super) fn read<'a>(packet: &Packet<'a>) -> Asked<'a> {
    let Packet {
        header,
        extras,
        key,
        value,
    } = *packet;
    let cas = header.cas;
    let verb = match opcode::loud(header.header.opcode) {
        opcode::GET | opcode::GETK => Verb::Get,
        opcode::SET | opcode::ADD | opcode::REPLACE => Verb::Store {
            mode: match (opcode::loud(header.header.opcode), cas) {
                (_, 1..) => StoreMode::Cas(cas),
                (opcode::ADD, _) => StoreMode::Add,
                (opcode::REPLACE, _) => StoreMode::Replace,
                _ => StoreMode::Set,
            },
            flags: word(extras, 0),
            exptime: word(extras, 4).into(),
            value,
        },
        opcode::APPEND | opcode::PREPEND => Verb::Store {
            mode: match (opcode::loud(header.header.opcode), cas) {
                (opcode::APPEND, 0) => StoreMode::Append,
                (opcode::APPEND, cas) => StoreMode::AppendIf(cas),
                (_, 0) => StoreMode::Prepend,
                (_, cas) => StoreMode::PrependIf(cas),
            },
            flags: 0,
            exptime: 0,
            value,
        },
        opcode::DELETE if cas == 0 => Verb::Delete,
        opcode::DELETE => Verb::DeleteIf { cas },
        opcode::INCREMENT | opcode::DECREMENT => {
            /// The expiry time that means: do not create an item.
            const NEVER_CREATE: u32 = u32::MAX;
            let (delta, initial, exptime) =
                (double(extras, 0), double(extras, 8), word(extras, 16));
            Verb::Count {
                down: opcode::loud(header.header.opcode) == opcode::DECREMENT,
                delta,
                cas,
                create: (exptime != NEVER_CREATE).then_some(Create { initial, exptime }),
            }
        }
        opcode::TOUCH => Verb::Touch {
            exptime: word(extras, 0).into(),
        },
        opcode::GAT | opcode::GATK => Verb::GetAndTouch {
            exptime: word(extras, 0).into(),
        },
        control => return read_control(control, extras, key, value),
    };
    Asked::Request(Request {
        key,
        verb,
        form: Form::Binary(header.header),
    })
}

fn read_control<'a>(code: u8, extras: &'a [u8], key: &'a [u8], value: &'a [u8]) -> Asked<'a> {
    Asked::Control(match code {
        opcode::NOOP | opcode::VERSION => return Asked::Answer,
        opcode::FLUSH => Control::Flush {
            exptime: match extras {
                [] => 0,
                extras => word(extras, 0).into(),
            },
        },
        opcode::STAT => Control::Stats(key),
        opcode::SASL_LIST_MECHANISMS => Control::Mechanisms,
        opcode::SASL_AUTH if key == MECHANISM => {
            let credentials = credentials::plain(value);
            Control::Login(credentials.map(|(user, password)| Credentials { user, password }))
        }
        // The mechanism has a single step, which is the first message.
        opcode::SASL_AUTH | opcode::SASL_STEP => Control::Login(None),
        _ => Control::Quit,
    })
}

/// Whether a refused store also deletes the item under its key, so that the client does not find an
/// old value.
pub(super) fn drops_old(header: Header) -> bool {
    opcode::loud(header.opcode) == opcode::SET
}

/// Four bytes at a position that [`check`] has found to exist.
#[inline(always)]
fn word(extras: &[u8], at: usize) -> u32 {
    let bytes = extras[at..at + 4].try_into();
    u32::from_be_bytes(bytes.expect("four bytes"))
}

#[inline(always)]
fn double(extras: &[u8], at: usize) -> u64 {
    u64::from(word(extras, at)) << 32 | u64::from(word(extras, at + 4))
}
