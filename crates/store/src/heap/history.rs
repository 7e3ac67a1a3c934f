//! What an item carries besides its key, its value and its expiry: its CAS unique, the marks of the
//! meta commands, and when it was last accessed.

pub(super) const CAS_HIGH_BYTES: usize = 3;
pub(super) const ACCESSED_BYTES: usize = 4;
pub(super) const EXTRA_BYTES: usize = CAS_HIGH_BYTES + ACCESSED_BYTES;

/// Bits of the CAS unique that every item has room for.
pub(super) const CAS_BITS: u32 = 40;
/// Largest CAS unique that a table makes; the one after it is 1. A client may give an item any of
/// 64 bits.
pub const CAS_MAX: u64 = (1 << CAS_BITS) - 1;

/// What the meta commands leave on an item: bits of its header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks(pub(super) u8);

impl Marks {
    /// Nothing.
    pub const NONE: Marks = Marks(0);
    /// The value is out of date; clients that read it are told so.
    pub const STALE: Marks = Marks(1 << 3);
    /// A client has been told that it is the one to compute the value again.
    pub const WON: Marks = Marks(1 << 4);
    /// The item has been read since it was stored.
    pub const FETCHED: Marks = Marks(1 << 5);
    /// The key came in base64 and is shown so.
    pub const BINARY_KEY: Marks = Marks(1 << 6);

    pub(super) const ALL: u8 = Self::STALE.0 | Self::WON.0 | Self::FETCHED.0 | Self::BINARY_KEY.0;

    /// Whether every mark of `other` is among these.
    #[inline]
    pub fn has(self, other: Marks) -> bool {
        self.0 & other.0 == other.0
    }

    /// These marks and those of `other`.
    #[inline]
    pub fn with(self, other: Marks) -> Marks {
        Marks(self.0 | other.0)
    }

    /// These marks but for those of `other`.
    #[inline]
    pub fn without(self, other: Marks) -> Marks {
        Marks(self.0 & !other.0)
    }

    /// Those of these marks that are among `other`.
    #[inline]
    pub fn only(self, other: Marks) -> Marks {
        Marks(self.0 & other.0)
    }

    pub(super) fn bits(self) -> u64 {
        self.0.into()
    }
}

/// What an item carries that neither its value nor its expiry says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct History {
    /// The CAS unique; without one the table draws a new one.
    pub cas: Option<u64>,
    /// What the meta commands have left on it.
    pub marks: Marks,
    /// The second of the last access, counted from the server's epoch; zero to note none.
    pub accessed_s: u32,
}

impl History {
    /// An item that has just been stored.
    pub const NEW: History = History {
        cas: None,
        marks: Marks::NONE,
        accessed_s: 0,
    };

    /// Whether it needs the item's extra field.
    #[inline(always)]
    pub(super) fn is_extra(&self) -> bool {
        self.accessed_s != 0 || self.cas.is_some_and(|cas| cas > CAS_MAX)
    }

    /// The extra field's bytes.
    pub(super) fn extra(&self) -> [u8; EXTRA_BYTES] {
        let high = self.cas.unwrap_or(0) >> CAS_BITS;
        let word = high | u64::from(self.accessed_s) << (8 * CAS_HIGH_BYTES);
        let mut bytes = [0; EXTRA_BYTES];
        bytes.copy_from_slice(&word.to_le_bytes()[..EXTRA_BYTES]);
        bytes
    }
}
