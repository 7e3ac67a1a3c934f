//! What each command makes of its packet.

use super::control::MECHANISM;
use super::header::RequestHeader;
use super::opcode;
use super::{Header, Status};
use crate::control::{Control, Credentials};
use crate::{Create, Form, Request, StoreMode, Verb, credentials};

/// A packet in its parts.
pub(super) struct Packet<'a> {
    pub header: RequestHeader,
    pub extras: &'a [u8],
    pub key: &'a [u8],
    pub value: &'a [u8],
}

/// What a packet asks for.
pub(super) enum Asked<'a> {
    Request(Request<'a>),
    Control(Control<'a>),
    /// Something that the parser answers by itself.
    Answer,
}

/// Whether a packet of this command may have parts of these sizes; the status with which it is refused if not.
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

/// Whether the command carries a value that is to be stored, and the client's flags for it.
pub(super) fn stored_flags(header: &RequestHeader, extras: &[u8]) -> Option<u32> {
    match opcode::loud(header.header.opcode) {
        opcode::SET | opcode::ADD | opcode::REPLACE => Some(word(extras, 0)),
        opcode::APPEND | opcode::PREPEND => Some(0),
        _ => None,
    }
}

/// What a packet asks for that has been [`check`]ed.
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
            /// An expiry time that means: do not make an item where there is none.
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
        // The mechanism has one step, which came with the first message.
        opcode::SASL_AUTH | opcode::SASL_STEP => Control::Login(None),
        _ => Control::Quit,
    })
}

/// The item under the key of a store that was refused, if the client is to find nothing there any more.
pub(super) fn drops_old(header: Header) -> bool {
    opcode::loud(header.opcode) == opcode::SET
}

/// Four bytes at a place that [`check`] has found to be there.
#[inline(always)]
fn word(extras: &[u8], at: usize) -> u32 {
    let bytes = extras[at..at + 4].try_into();
    u32::from_be_bytes(bytes.expect("four bytes"))
}

#[inline(always)]
fn double(extras: &[u8], at: usize) -> u64 {
    u64::from(word(extras, at)) << 32 | u64::from(word(extras, at + 4))
}
