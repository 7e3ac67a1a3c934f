//! One request for one key, whatever protocol it came by.

/// A valid request for one key. A command that names many keys becomes many requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// 1 to [`glimmer_base::limits::KEY_BYTES_MAX`] bytes.
    pub key: &'a [u8],
    /// What to do with the item.
    pub verb: Verb<'a>,
    /// How the answer is to be written.
    pub form: Form,
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
    /// A store whose value the protocol refused (too large, or no memory to receive it): the item under the key is removed,
    /// so that no stale value survives, and the reply is the line that says why. Memcached does the same.
    Refused {
        /// The full reply line, line end included.
        line: &'static str,
    },
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
}

/// How the answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The classic text protocol.
    Text {
        /// Show the CAS unique (`gets`, `gats`).
        cas: bool,
        /// This is the last key of its command: `END` follows.
        last: bool,
        /// The client wants no answer (`noreply`).
        quiet: bool,
    },
}
