//! One request.
//!
//! ```text
//!      0       1       2       3       4               8                              16
//!     +-------+-------+-------+-------+---------------+-------------------------------+
//!     |opcode | flags |key_len| reach |   value_len   |            keyhash            |
//!     +-------+-------+-------+-------+---------------+-------------------------------+
//!  16 |   extras, by opcode   |  key  |  value  |
//!     +-----------------------+-------+---------+
//! ```
//!
//! The reach ([`Reach`]) is zero unless the request is a mutation.
//!
//! | opcode | extras |
//! | --- | --- |
//! | `GET`, `NOOP` | none |
//! | `READ` | `u32` position of the first byte of the reply that is wanted |
//! | `PUT`, `ADD`, `REPLACE` | `u32` mutation, `u32` expiry, `u32` client flags |
//! | `CAS` | the same, and `u64` unique |
//! | `DELETE` | `u32` mutation |
//! | `INCREMENT`, `DECREMENT` | `u32` mutation, `u64` delta |
//! | `TOUCH` | `u32` mutation, `u32` expiry |
//!
//! With bit 1 of the flags, the expiry counts milliseconds.

use super::{Form, Reach, u32_at, u64_at};
use crate::{Request, StoreMode, Verb};
use glimmer_base::limits::KEY_BYTES_MAX;
use glimmer_base::short;
use glimmer_base::sync::weakened;
use glimmer_base::{Expiry, Keyhash};

/// Length in bytes of a request without extras, key and value.
pub const RECORD_BYTES: usize = 16;
/// Length in bytes of the longest extras.
pub const EXTRAS_BYTES_MAX: usize = 20;

/// The flag that asks for the item's CAS unique.
const SHOW_CAS: u8 = 1;
/// The flag that has the expiry count milliseconds.
const IN_MS: u8 = 2;
/// Position of the reach in an encoded request.
const REACH_AT: usize = 3;
/// Keys of at most this many bytes are written without a call.
const KEY_BYTES_SHORT: usize = 32;

/// The operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Opcode {
    /// Do nothing. Answered with [`super::Status::Alive`].
    Noop = 0x00,
    /// Read the value.
    Get = 0x01,
    /// Read a long reply to a `GET` from some byte on.
    Read = 0x02,
    /// Store a value.
    Put = 0x10,
    /// Store a value if there is no item.
    Add = 0x11,
    /// Store a value if there is an item.
    Replace = 0x12,
    /// Store a value if the item has this CAS unique.
    Cas = 0x13,
    /// Delete the item.
    Delete = 0x14,
    /// Add to a decimal number, wrapping at 2^64.
    Increment = 0x15,
    /// Subtract from a decimal number, stopping at zero.
    Decrement = 0x16,
    /// Set the expiry time.
    Touch = 0x17,
}

impl Opcode {
    /// Every opcode.
    pub const ALL: [Opcode; 11] = [
        Opcode::Noop,
        Opcode::Get,
        Opcode::Read,
        Opcode::Put,
        Opcode::Add,
        Opcode::Replace,
        Opcode::Cas,
        Opcode::Delete,
        Opcode::Increment,
        Opcode::Decrement,
        Opcode::Touch,
    ];

    #[inline]
    fn from_byte(byte: u8) -> Option<Opcode> {
        Some(match byte {
            0x00 => Opcode::Noop,
            0x01 => Opcode::Get,
            0x02 => Opcode::Read,
            0x10 => Opcode::Put,
            0x11 => Opcode::Add,
            0x12 => Opcode::Replace,
            0x13 => Opcode::Cas,
            0x14 => Opcode::Delete,
            0x15 => Opcode::Increment,
            0x16 => Opcode::Decrement,
            0x17 => Opcode::Touch,
            _ => return None,
        })
    }

    /// Length of its extras in bytes.
    #[inline]
    pub fn extras_bytes(self) -> usize {
        match self {
            Opcode::Noop | Opcode::Get => 0,
            Opcode::Read | Opcode::Delete => 4,
            Opcode::Put | Opcode::Add | Opcode::Replace => 12,
            Opcode::Cas => EXTRAS_BYTES_MAX,
            Opcode::Increment | Opcode::Decrement => 12,
            Opcode::Touch => 8,
        }
    }

    /// Whether it changes the store, so that it must not be executed twice.
    #[inline]
    pub fn is_mutation(self) -> bool {
        self as u8 >= Opcode::Put as u8
    }

    fn has_value(self) -> bool {
        matches!(
            self,
            Opcode::Put | Opcode::Add | Opcode::Replace | Opcode::Cas
        )
    }

    fn has_expiry(self) -> bool {
        self.has_value() || self == Opcode::Touch
    }
}

/// When an item is to expire, as a request says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exptime {
    number: u32,
    in_ms: bool,
}

impl Exptime {
    /// The item stays until it is evicted or deleted.
    pub const NEVER: Exptime = Exptime::memcached(0);

    /// memcached's expiry time: 0 means never, up to 30 days counts seconds from now, and larger
    /// values are seconds since 1970.
    pub const fn memcached(number: u32) -> Exptime {
        Exptime {
            number,
            in_ms: false,
        }
    }

    /// This many milliseconds from now, which is up to 49 days; 0 means never.
    pub const fn ms(number: u32) -> Exptime {
        Exptime {
            number,
            in_ms: true,
        }
    }

    /// The number for [`Expiry::from_memcached`].
    #[inline]
    fn exptime(self) -> i64 {
        match self.in_ms {
            false => self.number.into(),
            true => Expiry::exptime_of_ms(self.number),
        }
    }
}

impl From<u32> for Exptime {
    fn from(number: u32) -> Exptime {
        Exptime::memcached(number)
    }
}

/// A valid request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// What to do.
    pub action: Action<'a>,
    /// The key's hash as the client computed it.
    pub keyhash: Keyhash,
    /// 1 to [`KEY_BYTES_MAX`] arbitrary bytes; empty for `NOOP`.
    pub key: &'a [u8],
    /// Whether the reply shall show the item's CAS unique.
    pub shows_cas: bool,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action<'a> {
    /// Nothing.
    Noop,
    /// Read the value.
    Get,
    /// Read a long reply from some byte on.
    Read {
        /// The position of the first byte.
        offset: u32,
    },
    /// Change the store.
    Mutate {
        /// The mutation number. It counts the mutations that the client sends to this port and
        /// wraps.
        mutation: u32,
        /// How far back from this mutation the client may still retransmit others.
        reach: Reach,
        /// The change.
        change: Change<'a>,
    },
}

/// A change of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    /// `PUT`, `ADD`, `REPLACE`, `CAS`.
    Store {
        /// The condition: [`StoreMode::Set`], [`StoreMode::Add`], [`StoreMode::Replace`] or
        /// [`StoreMode::Cas`].
        mode: StoreMode,
        /// When the item is to expire.
        expiry: Exptime,
        /// The client's 32-bit flags.
        flags: u32,
        /// The value.
        value: &'a [u8],
    },
    /// `DELETE`.
    Delete,
    /// `INCREMENT`.
    Increment {
        /// The number to add.
        delta: u64,
    },
    /// `DECREMENT`.
    Decrement {
        /// The number to subtract.
        delta: u64,
    },
    /// `TOUCH`.
    Touch {
        /// When the item is to expire.
        expiry: Exptime,
    },
}

impl Change<'_> {
    fn opcode(&self) -> Opcode {
        match self {
            Change::Store { mode, .. } => match mode {
                StoreMode::Add => Opcode::Add,
                StoreMode::Replace => Opcode::Replace,
                StoreMode::Cas(_) => Opcode::Cas,
                _ => Opcode::Put,
            },
            Change::Delete => Opcode::Delete,
            Change::Increment { .. } => Opcode::Increment,
            Change::Decrement { .. } => Opcode::Decrement,
            Change::Touch { .. } => Opcode::Touch,
        }
    }
}

impl<'a> Record<'a> {
    /// Parses the request at the front of `bytes`. Also returns its length. `None` if it is
    /// malformed; the rest of the datagram cannot be read in that case.
    #[inline]
    pub fn read(bytes: &'a [u8]) -> Option<(Record<'a>, usize)> {
        let head: &[u8; RECORD_BYTES] = bytes.first_chunk()?;
        let opcode = Opcode::from_byte(head[0])?;
        let (flags, key_bytes) = (head[1], usize::from(head[2]));
        let value_bytes = u32_at(head, 4)? as usize;
        let key_at = RECORD_BYTES + opcode.extras_bytes();
        let value_at = key_at + key_bytes;
        let mut end = value_at.checked_add(value_bytes)?;
        if weakened("truncated_datagram_accepted") && bytes.len() >= value_at {
            end = end.min(bytes.len());
        }
        let is_key_right = match opcode {
            Opcode::Noop => key_bytes == 0,
            _ => (1..=KEY_BYTES_MAX).contains(&key_bytes),
        };
        let is_value_right = value_bytes == 0 || opcode.has_value();
        let flags_known = match opcode.has_expiry() {
            true => SHOW_CAS | IN_MS,
            false => SHOW_CAS,
        };
        if !is_key_right || !is_value_right || flags & !flags_known != 0 {
            return None;
        }
        let reach = Reach::from_byte(head[REACH_AT])?;
        if reach != Reach::UNKNOWN && !opcode.is_mutation() {
            return None;
        }
        let (extras, value) = (bytes.get(RECORD_BYTES..key_at)?, bytes.get(value_at..end)?);
        let record = Record {
            action: Action::read((opcode, flags), reach, extras, value)?,
            keyhash: Keyhash(u64_at(head, 8)?),
            key: &bytes[key_at..value_at],
            shows_cas: flags & SHOW_CAS != 0,
        };
        Some((record, end))
    }

    /// The operation.
    pub fn opcode(&self) -> Opcode {
        match &self.action {
            Action::Noop => Opcode::Noop,
            Action::Get => Opcode::Get,
            Action::Read { .. } => Opcode::Read,
            Action::Mutate { change, .. } => change.opcode(),
        }
    }

    /// Whether its expiry counts milliseconds.
    #[inline(always)]
    fn is_in_ms(&self) -> bool {
        match self.action {
            Action::Mutate {
                change: Change::Store { expiry, .. } | Change::Touch { expiry },
                ..
            } => expiry.in_ms,
            _ => false,
        }
    }

    /// Sets number and reach in an encoded mutation.
    ///
    /// # Panics
    ///
    /// If the bytes are shorter than a mutation.
    #[inline]
    pub fn renumber(bytes: &mut [u8], mutation: u32, reach: Reach) {
        bytes[REACH_AT] = reach.byte();
        bytes[RECORD_BYTES..][..4].copy_from_slice(&mutation.to_le_bytes());
    }

    /// Length of the encoded request in bytes.
    #[inline]
    pub fn bytes(&self) -> usize {
        let value_bytes = match self.action {
            Action::Mutate {
                change: Change::Store { value, .. },
                ..
            } => value.len(),
            _ => 0,
        };
        RECORD_BYTES + self.opcode().extras_bytes() + self.key.len() + value_bytes
    }

    /// Appends the request.
    ///
    /// # Panics
    ///
    /// If key or value is longer than its length field can express.
    #[inline(always)]
    pub fn write(&self, out: &mut Vec<u8>) {
        let value: &[u8] = match self.action {
            Action::Mutate {
                change: Change::Store { value, .. },
                ..
            } => value,
            _ => &[],
        };
        let key_bytes = u8::try_from(self.key.len()).expect("keys are short");
        let value_bytes = u32::try_from(value.len()).expect("values are bounded");
        let flags = u8::from(self.shows_cas) * SHOW_CAS + u8::from(self.is_in_ms()) * IN_MS;
        // In whole words, as the reader reads them.
        let reach = match self.action {
            Action::Mutate { reach, .. } => reach.byte(),
            _ => 0,
        };
        let first = u32::from_le_bytes([self.opcode() as u8, flags, key_bytes, reach]);
        let first = u64::from(first) | u64::from(value_bytes) << 32;
        let start = out.len();
        // A copy of constant length needs no call. The excess is cut off afterwards.
        out.extend_from_slice(&[0; RECORD_BYTES + EXTRAS_BYTES_MAX + KEY_BYTES_SHORT]);
        let record = &mut out[start..];
        record[..8].copy_from_slice(&first.to_le_bytes());
        record[8..16].copy_from_slice(&self.keyhash.0.to_le_bytes());
        let key_at = RECORD_BYTES + self.action.write_extras(&mut record[RECORD_BYTES..]);
        if let Some(place) = record.get_mut(key_at..key_at + self.key.len()) {
            short::copy(place, self.key);
            out.truncate(start + key_at + self.key.len());
        } else {
            out.truncate(start + key_at);
            out.extend_from_slice(self.key);
        }
        short::append(out, value);
    }

    /// The request as the engine executes it. `None` for `NOOP`, which needs no engine.
    #[inline]
    pub fn request(&self) -> Option<Request<'a>> {
        let verb = match self.action {
            Action::Noop => return None,
            Action::Get | Action::Read { .. } => Verb::Get,
            Action::Mutate { change, .. } => match change {
                Change::Store {
                    mode,
                    expiry,
                    flags,
                    value,
                } => Verb::Store {
                    mode,
                    flags,
                    exptime: expiry.exptime(),
                    value,
                },
                Change::Delete => Verb::Delete,
                Change::Increment { delta } => Verb::Increment { delta },
                Change::Decrement { delta } => Verb::Decrement { delta },
                Change::Touch { expiry } => Verb::Touch {
                    exptime: expiry.exptime(),
                },
            },
        };
        Some(Request {
            key: self.key,
            verb,
            form: self.form(),
        })
    }

    /// How to write the reply.
    #[inline(always)]
    pub fn form(&self) -> crate::Form<'a> {
        crate::Form::Native(Form {
            shows_cas: self.shows_cas,
            extent: super::Extent::ALL,
        })
    }
}

impl<'a> Action<'a> {
    /// Parses the extras, whose length matches the opcode.
    #[inline]
    fn read(
        (opcode, flags): (Opcode, u8),
        reach: Reach,
        extras: &[u8],
        value: &'a [u8],
    ) -> Option<Action<'a>> {
        let expiry = |at| {
            Some(Exptime {
                number: u32_at(extras, at)?,
                in_ms: flags & IN_MS != 0,
            })
        };
        let change = match opcode {
            Opcode::Noop => return Some(Action::Noop),
            Opcode::Get => return Some(Action::Get),
            Opcode::Read => {
                let offset = u32_at(extras, 0)?;
                return Some(Action::Read { offset });
            }
            Opcode::Put | Opcode::Add | Opcode::Replace | Opcode::Cas => Change::Store {
                mode: match opcode {
                    Opcode::Add => StoreMode::Add,
                    Opcode::Replace => StoreMode::Replace,
                    Opcode::Cas => StoreMode::Cas(u64_at(extras, 12)?),
                    _ => StoreMode::Set,
                },
                expiry: expiry(4)?,
                flags: u32_at(extras, 8)?,
                value,
            },
            Opcode::Delete => Change::Delete,
            Opcode::Increment => Change::Increment {
                delta: u64_at(extras, 4)?,
            },
            Opcode::Decrement => Change::Decrement {
                delta: u64_at(extras, 4)?,
            },
            Opcode::Touch => Change::Touch { expiry: expiry(4)? },
        };
        let mutation = u32_at(extras, 0)?;
        Some(Action::Mutate {
            mutation,
            reach,
            change,
        })
    }

    /// Writes the extras to the front of `out`. Returns their length.
    #[inline(always)]
    fn write_extras(&self, out: &mut [u8]) -> usize {
        let (mutation, change) = match *self {
            Action::Noop | Action::Get => return 0,
            Action::Read { offset } => {
                out[..4].copy_from_slice(&offset.to_le_bytes());
                return 4;
            }
            Action::Mutate {
                mutation, change, ..
            } => (mutation, change),
        };
        out[..4].copy_from_slice(&mutation.to_le_bytes());
        match change {
            Change::Store {
                mode,
                expiry,
                flags,
                ..
            } => {
                out[4..8].copy_from_slice(&expiry.number.to_le_bytes());
                out[8..12].copy_from_slice(&flags.to_le_bytes());
                if let StoreMode::Cas(unique) = mode {
                    out[12..20].copy_from_slice(&unique.to_le_bytes());
                }
            }
            Change::Delete => {}
            Change::Increment { delta } | Change::Decrement { delta } => {
                out[4..12].copy_from_slice(&delta.to_le_bytes());
            }
            Change::Touch { expiry } => out[4..8].copy_from_slice(&expiry.number.to_le_bytes()),
        }
        change.opcode().extras_bytes()
    }
}
