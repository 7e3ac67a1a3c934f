//! One request for one key, independent of the protocol.

mod detach;
mod lifetime;

use crate::Form;
use crate::meta::base64;
use crate::meta::command::Command;
use crate::meta::flags::Flags;
use crate::text::lines;

pub use lifetime::Lifetime;

/// A valid request for one key. A command with several keys becomes several requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// 1 to [`glimmer_base::limits::KEY_BYTES_MAX`] bytes; in base64, if
    /// [`Request::has_base64_key`].
    pub key: &'a [u8],
    /// What to do with the item.
    pub verb: Verb<'a>,
    /// How to write the reply.
    pub form: Form<'a>,
}

impl<'a> Request<'a> {
    /// The flags of a meta command; empty for other commands.
    #[inline(always)]
    pub fn meta_flags(&self) -> Flags<'a> {
        match self.form {
            Form::Meta(flags) => flags,
            _ => Flags::NONE,
        }
    }

    /// Whether the key must be decoded before use.
    #[inline(always)]
    pub fn has_base64_key(&self) -> bool {
        matches!(self.form, Form::Meta(flags) if flags.base64_key)
    }

    /// Whether the reply to a touch shows the item's client flags and CAS unique.
    #[inline(always)]
    pub fn shows_touched(&self) -> bool {
        matches!(self.form, Form::Binary(_))
    }

    /// Passes the decoded key to `take`.
    #[inline(always)]
    pub fn with_key<T>(&self, take: impl FnOnce(&[u8]) -> T) -> T {
        base64::with_key(self.key, self.has_base64_key(), take)
    }

    /// The same store with this value.
    #[inline]
    pub fn with_value<'b>(self, value: &'b [u8]) -> Request<'b>
    where
        'a: 'b,
    {
        Request {
            verb: self.verb.attach(value),
            ..self
        }
    }
}

/// The operation. Expiry times follow memcached (see [`glimmer_base::Expiry::from_memcached`]);
/// they are interpreted when the request is executed, because the parser does not know the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb<'a> {
    /// Read the value.
    Get,
    /// Show the item without counting a read.
    Look,
    /// Read the value and set the item's expiry time.
    GetAndTouch {
        /// New expiry time.
        exptime: i64,
    },
    /// Store the value if the condition of the mode is met.
    Store {
        /// The condition.
        mode: StoreMode,
        /// The client's 32-bit flags, stored with the item.
        flags: u32,
        /// Expiry time.
        exptime: i64,
        /// The value, from 0 bytes to the item limit.
        value: &'a [u8],
    },
    /// Delete the item.
    Delete,
    /// Delete the item if it has this CAS unique.
    DeleteIf {
        /// The CAS unique; not zero.
        cas: u64,
    },
    /// Add to a decimal number, wrapping at 2^64.
    Increment {
        /// The number to add.
        delta: u64,
    },
    /// Subtract from a decimal number, stopping at zero.
    Decrement {
        /// The number to subtract.
        delta: u64,
    },
    /// Set the item's expiry time.
    Touch {
        /// New expiry time.
        exptime: i64,
    },
    /// Add to or subtract from a decimal number as the binary protocol does.
    Count {
        /// Subtract, stopping at zero, instead of adding, wrapping at 2^64.
        down: bool,
        /// The number to add or subtract.
        delta: u64,
        /// The CAS unique that the item must have, unless it is zero.
        cas: u64,
        /// The initial number if there is no item.
        create: Option<Create>,
    },
    /// Write the value on a condition. What is refused leaves the item as it was.
    Write(Write<'a>),
    /// Give the item another lifetime, on a condition.
    Expire {
        /// The lifetime.
        lifetime: Lifetime,
        /// The condition.
        when: ExpireWhen,
    },
    /// Read the value and give the item another lifetime.
    GetAndExpire {
        /// The lifetime.
        lifetime: Lifetime,
    },
    /// Read the value and delete the item.
    Take,
    /// Append to the value; an item that is not there has none, and stays for ever.
    Append {
        /// The bytes to append.
        value: &'a [u8],
    },
    /// Write over the value from a position on. A shorter value is filled up with zeros, and an
    /// item that is not there has none; nothing written leaves it as it was.
    Overlay {
        /// The position in bytes.
        from: u32,
        /// The bytes to write.
        value: &'a [u8],
    },
    /// Add to a decimal fraction, where a missing item holds zero; see [`crate::decimal`].
    AddDecimal {
        /// What to add, as text.
        number: &'a [u8],
    },
    /// Delete the item if it has this value.
    DeleteEqual {
        /// The value.
        value: &'a [u8],
    },
    /// Delete the item if it is as it was when it was [shown](crate::resp::Image): a value that was
    /// stored since, or another expiry, stays.
    DeleteUnchanged {
        /// The item's CAS unique. It is zero on a server without CAS uniques.
        cas: u64,
        /// When it expires, in milliseconds after the epoch; zero means never.
        expiry_ms: u64,
        /// The value.
        value: &'a [u8],
    },
    /// Give the item another lifetime if it has this value.
    ExpireEqual {
        /// The value.
        value: &'a [u8],
        /// Milliseconds from now; none of them left means that the item goes at once.
        ms: i64,
        /// What becomes of the milliseconds that it has left.
        renewal: Renewal,
    },
    /// Add to a signed decimal value, where a missing item holds zero. An overflow is an error.
    Add {
        /// What to add.
        delta: i64,
        /// The rule for the item's lifetime, and for a missing item.
        rule: AddRule,
    },
    /// A store whose value the parser refused. As in memcached, the item under the key is deleted,
    /// so that no stale value survives, and the reply states the reason.
    Refused {
        /// The reason.
        reason: Refusal,
    },
    /// A meta command that does more than read. Its flags are in [`Form::Meta`].
    Meta {
        /// The command.
        command: Command,
        /// The value to be stored; empty except for [`Command::Store`].
        value: &'a [u8],
    },
}

/// A value to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write<'a> {
    /// The value and, with [`Condition::Equal`], what it is compared with: see [`Write::value`].
    pub bytes: &'a [u8],
    /// Whether it is written.
    pub condition: Condition,
    /// How long the item stays.
    pub lifetime: Lifetime,
    /// The reply shows the item that was there before, whether or not the value is written.
    pub shows_old: bool,
    /// With [`Condition::Equal`], bytes between the value and what it is compared with. The two
    /// numbers lie here, and not in the condition, so that a [`Verb`] is not longer for them.
    pub gap: u16,
    /// With [`Condition::Equal`], bytes of the value, which comes first, and the client flags are
    /// zero. Otherwise these flags.
    pub value_bytes_or_flags: u32,
}

/// The condition of a [`Write`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Always.
    Always,
    /// If the key has no item.
    Absent,
    /// If the key has an item.
    Present,
    /// If the key has an item with this value, which is the end of [`Write::bytes`].
    Equal,
}

impl<'a> Write<'a> {
    /// A write of these bytes that is always carried out, for an item that stays.
    pub fn of(bytes: &'a [u8]) -> Write<'a> {
        Write {
            bytes,
            condition: Condition::Always,
            lifetime: Lifetime::Unlimited,
            shows_old: false,
            gap: 0,
            value_bytes_or_flags: 0,
        }
    }

    /// The value to be written: 0 bytes to the item limit.
    #[inline(always)]
    pub fn value(&self) -> &'a [u8] {
        match self.condition {
            Condition::Equal => &self.bytes[..self.value_bytes_or_flags as usize],
            _ => self.bytes,
        }
    }

    /// The item's client flags.
    #[inline(always)]
    pub fn flags(&self) -> u32 {
        match self.condition {
            Condition::Equal => 0,
            _ => self.value_bytes_or_flags,
        }
    }

    /// The value that the item has to have, if it has to have one.
    pub fn expected(&self) -> Option<&'a [u8]> {
        let from = self.value_bytes_or_flags as usize + usize::from(self.gap);
        (self.condition == Condition::Equal).then(|| &self.bytes[from..])
    }
}

/// The condition of a [`Verb::Expire`]. An item without an expiry time has the latest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpireWhen {
    /// Always.
    Always,
    /// If the item stays for ever.
    Unlimited,
    /// If the item has an expiry time.
    Limited,
    /// If the new expiry time is later.
    Later,
    /// If the new expiry time is earlier.
    Earlier,
    /// If the item has an expiry time, and the new one is earlier.
    LimitedAndEarlier,
}

/// What a [`Verb::ExpireEqual`] does to the lifetime that an item has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// It is replaced.
    Replace,
    /// It is replaced. An item that stays for ever is left as it is.
    ReplaceLimited,
    /// It is added to. An item that stays for ever is left as it is.
    Add,
}

/// What a [`Verb::Add`] does to lifetimes and to missing items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddRule {
    /// A missing item is made, and stays for ever; the lifetime of another one stays.
    Make,
    /// A missing item stays missing.
    IfPresent,
    /// An item that was missing, or that held zero, gets this lifetime in milliseconds.
    ExpiresIfFirst {
        /// The milliseconds.
        ms: i64,
    },
    /// An item that was missing, or that stays for ever, gets this lifetime in milliseconds.
    ExpiresIfUnlimited {
        /// The milliseconds.
        ms: i64,
    },
    /// The same, and it holds zero before the sum.
    RestartsIfUnlimited {
        /// The milliseconds.
        ms: i64,
    },
}

/// An initial number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Create {
    /// The number.
    pub initial: u64,
    /// Its expiry time.
    pub exptime: u32,
}

/// Why a value was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is larger than the item limit.
    TooLarge,
    /// There is no memory for it.
    NoMemory,
}

impl Refusal {
    /// The error line.
    pub fn line(self) -> &'static str {
        match self {
            Refusal::TooLarge => lines::TOO_LARGE,
            Refusal::NoMemory => lines::NO_MEMORY_STORING,
        }
    }
}

impl Verb<'_> {
    /// Whether the request only reads, so that any core may execute it in CREW.
    #[inline]
    pub fn is_read(&self) -> bool {
        matches!(self, Verb::Get)
    }
}

/// The condition of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreMode {
    /// Always.
    Set,
    /// If the key has no item.
    Add,
    /// If the key has an item.
    Replace,
    /// Append to the item's value; its flags and expiry stay.
    Append,
    /// Prepend to the item's value; its flags and expiry stay.
    Prepend,
    /// If the item has this CAS unique.
    Cas(u64),
    /// [`Append`](StoreMode::Append), if the item has this CAS unique.
    AppendIf(u64),
    /// [`Prepend`](StoreMode::Prepend), if the item has this CAS unique.
    PrependIf(u64),
}

const _: () = assert!(
    size_of::<Request<'_>>() <= 88,
    "a batch holds many, and every one is copied a few times"
);
