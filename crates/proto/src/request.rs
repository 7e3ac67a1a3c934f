//! One request for one key, whatever protocol it came by.

mod detach;

use crate::Form;
use crate::meta::{self, base64};
use crate::text::lines;

/// A valid request for one key. A command that names many keys becomes many requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// 1 to [`glimmer_base::limits::KEY_BYTES_MAX`] bytes; in base64, if [`Request::has_base64_key`].
    pub key: &'a [u8],
    /// What to do with the item.
    pub verb: Verb<'a>,
    /// How the answer is to be written.
    pub form: Form<'a>,
}

impl<'a> Request<'a> {
    /// The flags of a meta command; none for any other.
    #[inline(always)]
    pub fn meta_flags(&self) -> meta::Flags<'a> {
        match self.form {
            Form::Meta(flags) => flags,
            _ => meta::Flags::NONE,
        }
    }

    /// Whether the key has to be decoded before it names an item.
    #[inline(always)]
    pub fn has_base64_key(&self) -> bool {
        matches!(self.form, Form::Meta(flags) if flags.base64_key)
    }

    /// Whether the reply to a touch shows client flags and CAS unique of the item.
    #[inline(always)]
    pub fn shows_touched(&self) -> bool {
        matches!(self.form, Form::Binary(_))
    }

    /// Hands the key's own bytes to `take`.
    #[inline(always)]
    pub fn with_key<T>(&self, take: impl FnOnce(&[u8]) -> T) -> T {
        if self.has_base64_key() {
            let mut buffer = [0; base64::DECODED_BYTES_MAX];
            return take(base64::decode(self.key, &mut buffer).unwrap_or_default());
        }
        take(self.key)
    }
}

/// What is asked for. Expiry times are memcached's (see [`glimmer_base::Expiry::from_memcached`]): whoever executes knows the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb<'a> {
    /// Read the value.
    Get,
    /// Read the value and give the item a new expiry time.
    GetAndTouch {
        /// New expiry time.
        exptime: i64,
    },
    /// Write the value, on the condition that the mode states.
    Store {
        /// The condition.
        mode: StoreMode,
        /// The client's own 32 bits, kept with the item.
        flags: u32,
        /// Expiry time.
        exptime: i64,
        /// 0 bytes to the item limit.
        value: &'a [u8],
    },
    /// Remove the item.
    Delete,
    /// Remove the item, if its CAS unique is this one.
    DeleteIf {
        /// The unique, not zero.
        cas: u64,
    },
    /// Add to a decimal value; wraps at 2^64.
    Increment {
        /// What to add.
        delta: u64,
    },
    /// Subtract from a decimal value; stops at zero.
    Decrement {
        /// What to subtract.
        delta: u64,
    },
    /// Give the item a new expiry time.
    Touch {
        /// New expiry time.
        exptime: i64,
    },
    /// Add to or subtract from a decimal value, as the binary protocol does.
    Count {
        /// Subtract, stopping at zero, instead of adding, wrapping at 2^64.
        down: bool,
        /// What to add or subtract.
        delta: u64,
        /// The CAS unique that the item must have, if this is not zero.
        cas: u64,
        /// The number to begin with where there is none.
        create: Option<Create>,
    },
    /// A store whose value the protocol refused: the item under the key is removed,
    /// so that no stale value survives, and the reply says why. Memcached does the same.
    Refused {
        /// Why.
        reason: Refusal,
    },
    /// A meta command that does more than read; its flags are in [`Form::Meta`].
    Meta {
        /// Which one.
        command: meta::Command,
        /// What is to be stored; empty but for [`meta::Command::Store`].
        value: &'a [u8],
    },
}

/// A number to begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Create {
    /// The number.
    pub initial: u64,
    /// Its expiry time.
    pub exptime: u32,
}

/// Why a value was not received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is larger than the item limit.
    TooLarge,
    /// There is no memory to receive it.
    NoMemory,
}

impl Refusal {
    /// The line that says so.
    pub fn line(self) -> &'static str {
        match self {
            Refusal::TooLarge => lines::TOO_LARGE,
            Refusal::NoMemory => lines::NO_MEMORY_STORING,
        }
    }
}

impl Verb<'_> {
    /// Whether the request only reads, so that CREW may run it on any core.
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
    /// Put the value behind the item's; its flags and expiry stay.
    Append,
    /// Put the value before the item's; its flags and expiry stay.
    Prepend,
    /// If the item's CAS unique is this one.
    Cas(u64),
    /// [`Append`](StoreMode::Append), if the item's CAS unique is this one.
    AppendIf(u64),
    /// [`Prepend`](StoreMode::Prepend), if the item's CAS unique is this one.
    PrependIf(u64),
}

const _: () = assert!(
    size_of::<Request<'_>>() <= 96,
    "a batch holds many, and every one is copied a few times"
);
