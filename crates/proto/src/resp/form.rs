//! What a request says about its reply, and outcomes in the words of RESP.

use super::lines;
use crate::outcome::{Emit, Found, ItemView, Outcome};
use crate::{Request, integer};
use glimmer_base::{Expiry, Moment};

/// Versions of RESP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// The one that every connection begins with.
    Two,
    /// The one that `HELLO 3` asks for.
    Three,
}

impl Version {
    /// No value.
    pub(super) fn null(self) -> &'static str {
        match self {
            Version::Two => lines::NULL_2,
            Version::Three => lines::NULL_3,
        }
    }
}

/// How a request is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// In which version.
    pub version: Version,
    /// With what.
    pub shows: Shows,
}

/// What a reply shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    /// The value, or null.
    Value,
    /// The same, as an element of an array; before the first, the array begins.
    Element {
        /// Elements of the array that begins here.
        array: Option<u32>,
    },
    /// `OK`, or no value if the condition did not hold.
    Status,
    /// `OK`, or 0 if the condition did not hold.
    StatusOrZero,
    /// 1 or 0.
    Flag,
    /// 1 or 0, or -1 if there is no item.
    FlagOrMissing,
    /// The number that the item holds.
    Number,
    /// Seconds until the item expires.
    Seconds,
    /// Milliseconds until the item expires.
    Milliseconds,
    /// The second since 1970 at which the item expires.
    UnixSecond,
    /// The millisecond since 1970 at which the item expires.
    UnixMillisecond,
    /// The value or null, and milliseconds until the item expires, in an array.
    ValueAndMilliseconds,
    /// The number that the item holds, and milliseconds until it expires, in an array.
    NumberAndMilliseconds,
    /// A part of the value. A position that is negative counts from the end, as in Redis.
    Range {
        /// The first byte.
        from: i32,
        /// The last byte.
        to: i32,
    },
    /// The value, which is a number with a fraction.
    Decimal,
    /// Bytes that the item takes in memory.
    HeapBytes,
    /// How Redis would store the value.
    Encoding,
    /// How many names the value has: one.
    References,
    /// Bytes of the value.
    Length,
    /// The type of the value; there is one.
    Type,
    /// The item as the server itself takes it over, and nothing if there is none: its [`Image`].
    Image,
    /// Nothing: it is a part of a sum.
    Part,
}

/// An item as [`Shows::Image`] shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Image<'a> {
    /// Milliseconds after the epoch at which it expires; zero means never.
    pub expiry_ms: u64,
    /// Its CAS unique.
    pub cas: u64,
    /// The client's flags.
    pub flags: u32,
    /// Its value.
    pub value: &'a [u8],
}

impl<'a> Image<'a> {
    /// Reads an image; none if there is no item.
    pub fn read(bytes: &'a [u8]) -> Option<Image<'a>> {
        let (&expiry_ms, rest) = bytes.split_first_chunk()?;
        let (&cas, rest) = rest.split_first_chunk()?;
        let (&flags, value) = rest.split_first_chunk()?;
        Some(Image {
            expiry_ms: u64::from_le_bytes(expiry_ms),
            cas: u64::from_le_bytes(cas),
            flags: u32::from_le_bytes(flags),
            value,
        })
    }
}

impl Form {
    /// Whether its command has another reply.
    pub(super) fn follows_another(&self) -> bool {
        matches!(self.shows, Shows::Element { array: None } | Shows::Part)
    }
}

impl Emit for Form {
    #[inline(always)]
    fn emit<I: ItemView>(&self, _: &Request<'_>, outcome: Outcome<I>, out: &mut Vec<u8>) {
        if let Shows::Element { array: Some(count) } = self.shows {
            head(out, b'*', count.into());
        }
        let line = match (outcome, self.shows) {
            (_, Shows::Part) | (Outcome::Miss, Shows::Image) => return,
            (Outcome::Value(found), shows) => return self.found(found, shows, out),
            (Outcome::Counted(counted), Shows::NumberAndMilliseconds) => {
                head(out, b'*', 2);
                head(out, b':', counted.number as i64);
                return head(out, b':', left(counted.expiry, counted.now, 1));
            }
            (Outcome::Counted(counted), _) => return head(out, b':', counted.number as i64),
            (Outcome::Stored { value_bytes, .. }, Shows::Length) => {
                return head(out, b':', value_bytes as i64);
            }
            (Outcome::Stored { .. }, Shows::Status | Shows::StatusOrZero) => lines::OK,
            (Outcome::Stored { .. } | Outcome::Deleted | Outcome::Touched { .. }, _) => ":1\r\n",
            (
                Outcome::Miss,
                Shows::Seconds | Shows::Milliseconds | Shows::UnixSecond | Shows::UnixMillisecond,
            ) => ":-2\r\n",
            (Outcome::Miss, Shows::ValueAndMilliseconds) => {
                out.extend_from_slice(b"*2\r\n");
                out.extend_from_slice(self.version.null().as_bytes());
                ":-2\r\n"
            }
            (Outcome::NotFound, Shows::FlagOrMissing) => ":-1\r\n",
            (Outcome::Miss, Shows::Type) => "+none\r\n",
            (Outcome::Miss, Shows::Flag | Shows::Length) => ":0\r\n",
            (Outcome::Miss, Shows::Range { .. }) => "$0\r\n\r\n",
            (
                Outcome::NotStored | Outcome::NotFound | Outcome::Exists,
                Shows::Flag | Shows::FlagOrMissing | Shows::StatusOrZero,
            ) => ":0\r\n",
            (Outcome::Miss | Outcome::NotStored | Outcome::NotFound | Outcome::Exists, _) => {
                self.version.null()
            }
            (Outcome::NotANumber, Shows::Decimal) => lines::NOT_A_DECIMAL,
            (Outcome::NotANumber, _) => lines::NOT_AN_INTEGER,
            (Outcome::Overflow, Shows::Decimal) => lines::DECIMAL_OVERFLOW,
            (Outcome::Overflow, _) => lines::OVERFLOW,
            (Outcome::TooLarge, _) => lines::TOO_LARGE,
            (Outcome::OutOfMemory, _) => lines::OUT_OF_MEMORY,
        };
        out.extend_from_slice(line.as_bytes());
    }

    #[inline(always)]
    fn is_part(&self) -> bool {
        self.shows == Shows::Part
    }
}

impl Form {
    #[inline(always)]
    fn found<I: ItemView>(&self, found: Found<I>, shows: Shows, out: &mut Vec<u8>) {
        let item = found.item;
        match shows {
            Shows::Value | Shows::Element { .. } | Shows::Status | Shows::Decimal => {
                head(out, b'$', item.value_bytes() as i64);
                item.append_value(out);
                out.extend_from_slice(b"\r\n");
            }
            Shows::Seconds => head(out, b':', left(item.expiry(), found.now, 1000)),
            Shows::Milliseconds => head(out, b':', left(item.expiry(), found.now, 1)),
            Shows::Length | Shows::Number => head(out, b':', item.value_bytes() as i64),
            Shows::Type => out.extend_from_slice(b"+string\r\n"),
            Shows::Flag | Shows::Part => out.extend_from_slice(b":1\r\n"),
            rare => rarely_found(found, rare, out),
        }
    }
}

/// What is shown less frequently of an item that was found.
#[inline(never)]
fn rarely_found<I: ItemView>(found: Found<I>, shows: Shows, out: &mut Vec<u8>) {
    let item = found.item;
    let bytes = item.value_bytes();
    match shows {
        Shows::UnixSecond => head(out, b':', unix(item.expiry(), found.now, 1000)),
        Shows::UnixMillisecond => head(out, b':', unix(item.expiry(), found.now, 1)),
        Shows::Range { from, to } => {
            let (from, to) = (
                position(from, bytes),
                position(to, bytes).min(bytes as i64 - 1),
            );
            let part = (to + 1 - from).max(0);
            head(out, b'$', part);
            item.append_part(from as usize, part as usize, out);
            out.extend_from_slice(b"\r\n");
        }
        Shows::ValueAndMilliseconds => {
            head(out, b'*', 2);
            head(out, b'$', bytes as i64);
            item.append_value(out);
            out.extend_from_slice(b"\r\n");
            head(out, b':', left(item.expiry(), found.now, 1));
        }
        Shows::Image => {
            out.extend_from_slice(&item.expiry().ms().to_le_bytes());
            out.extend_from_slice(&item.cas().to_le_bytes());
            out.extend_from_slice(&item.flags().to_le_bytes());
            item.append_value(out);
        }
        Shows::HeapBytes => head(out, b':', item.heap_bytes() as i64),
        Shows::Encoding => {
            let mut value = Vec::new();
            item.append_part(0, integer::DIGITS_MAX + 1, &mut value);
            let encoding: &[u8] = match bytes {
                ..=integer::DIGITS_MAX if integer::signed_64(&value).is_some() => b"int",
                ..=EMBEDDED_BYTES_MAX => b"embstr",
                _ => b"raw",
            };
            bulk(out, encoding);
        }
        _ => out.extend_from_slice(b":1\r\n"),
    }
}

/// Bytes of the longest value that Redis stores beside its head.
const EMBEDDED_BYTES_MAX: usize = 44;

/// A position in a value of this many bytes, from its beginning.
fn position(at: i32, bytes: usize) -> i64 {
    match i64::from(at) {
        at if at < 0 => (at + bytes as i64).max(0),
        at => at,
    }
}

/// When an item expires, in units of `unit` milliseconds since 1970; -1 for never.
fn unix(expiry: Expiry, now: Moment, unit: u64) -> i64 {
    match expiry {
        Expiry::NEVER => -1,
        expiry => ((now.epoch_unix_ms + expiry.ms() + unit / 2) / unit) as i64,
    }
}

/// How long an item stays, in units of `unit` milliseconds, rounded; -1 for ever.
fn left(expiry: Expiry, now: Moment, unit: u64) -> i64 {
    match expiry {
        Expiry::NEVER => -1,
        expiry => ((expiry.ms().saturating_sub(now.ms) + unit / 2) / unit) as i64,
    }
}

/// Appends a line with a mark and a number.
#[inline(always)]
pub(super) fn head(out: &mut Vec<u8>, mark: u8, number: i64) {
    out.push(mark);
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// Appends a string.
pub(super) fn bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    head(out, b'$', bytes.len() as i64);
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}
