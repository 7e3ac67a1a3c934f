//! The words after a meta command's key.

use super::base64;
use super::command::WORDS_MAX;
use crate::text::lines;
use crate::text::number;
use glimmer_base::{Expiry, Moment};

/// The flags of a request, as they are in its line. They are valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags<'a> {
    /// The words, separated by spaces.
    pub text: &'a [u8],
    /// The request's key is base64 (flag `b`).
    pub base64_key: bool,
}

impl<'a> Flags<'a> {
    /// No flags.
    pub const NONE: Flags<'static> = Flags {
        text: &[],
        base64_key: false,
    };

    /// The flags without their text, and the text.
    pub fn detach(self) -> (Flags<'static>, &'a [u8]) {
        let flags = Flags {
            text: &[],
            base64_key: self.base64_key,
        };
        (flags, self.text)
    }

    /// The flags with this text.
    pub fn attach<'b>(self, text: &'b [u8]) -> Flags<'b> {
        Flags {
            text,
            base64_key: self.base64_key,
        }
    }

    /// Each flag with its token, in the order of the request.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = (u8, &'a [u8])> {
        let words = self.text.split(|&byte| byte == b' ');
        words.filter_map(|word| word.split_first().map(|(flag, token)| (*flag, token)))
    }

    /// Whether a flag is present.
    #[inline]
    pub fn has(self, flag: u8) -> bool {
        self.iter().any(|(other, _)| other == flag)
    }

    /// Parses the flags.
    #[inline]
    pub fn options(self) -> Options {
        let mut options = Options::default();
        if self.text.is_empty() {
            return options;
        }
        for (flag, token) in self.iter() {
            let read = options.take(flag, token, self);
            debug_assert!(read.is_ok(), "the flags were checked with the line");
        }
        options
    }
}

/// A set of flags: one bit per letter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Set(u64);

impl Set {
    /// A set of letters.
    pub const fn of(letters: &[u8]) -> Set {
        let (mut bits, mut i) = (0, 0);
        while i < letters.len() {
            bits |= Self::bit(letters[i]);
            i += 1;
        }
        Set(bits)
    }

    /// Letters of both cases differ in their lower six bits.
    const fn bit(letter: u8) -> u64 {
        1 << (letter & 0x3F)
    }

    /// Whether the letter is in the set.
    #[inline]
    pub const fn has(self, letter: u8) -> bool {
        self.0 & Self::bit(letter) != 0
    }

    /// Adds a letter. Returns whether it is new.
    #[inline]
    pub fn insert(&mut self, letter: u8) -> bool {
        let is_new = !self.has(letter);
        self.0 |= Self::bit(letter);
        is_new
    }
}

/// The flags of all meta commands. Like memcached, every command accepts any of them and ignores
/// those that do not apply to it. All but `m` are memcached's.
const KNOWN: Set = Set::of(b"bcCDEfFhIJklmLMNOPqRstTuvx");

/// The flag that has expiry times count milliseconds, in requests and in replies. memcached refuses
/// a line that has it.
pub const MILLISECONDS: u8 = b'm';

/// The parsed flags of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The flags that are present.
    pub set: Set,
    /// `T`: the new expiry time. This one and the two below are in the unit of
    /// [`Options::expiry`].
    pub exptime: Option<i64>,
    /// `N`: create an item with this expiry time if there is none.
    pub create_exptime: Option<i64>,
    /// `R`: win the right to recache the value if it expires before this expiry time would.
    pub recache_exptime: Option<i64>,
    /// `F`: the client's 32-bit flags.
    pub client_flags: u32,
    /// `C`: the CAS unique that the item must have.
    pub compare: Option<u64>,
    /// `E`: the new CAS unique of the item.
    pub unique: Option<u64>,
    /// `M`: the mode.
    pub mode: Option<u8>,
    /// `J`: the initial number for `ma` if there is no item.
    pub initial: u64,
    /// `D`: the number that `ma` adds or subtracts.
    pub delta: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            set: Set::default(),
            exptime: None,
            create_exptime: None,
            recache_exptime: None,
            client_flags: 0,
            compare: None,
            unique: None,
            mode: None,
            initial: 0,
            delta: 1,
        }
    }
}

impl Options {
    /// When an item expires that is given this expiry time now: in seconds as memcached counts
    /// them, or in milliseconds (`m`).
    pub fn expiry(&self, exptime: i64, now: Moment) -> Expiry {
        match self.set.has(MILLISECONDS) {
            false => Expiry::from_memcached(exptime, now),
            true => Expiry::from_memcached_ms(exptime, now),
        }
    }

    /// Parses one flag of `all`. The error is memcached's error line.
    fn take(&mut self, flag: u8, token: &[u8], all: Flags<'_>) -> Result<(), &'static str> {
        self.set.insert(flag);
        let exptime = || exptime(token, all).ok_or(lines::BAD_TOKEN);
        let unsigned = |line| number::digits_64(token).ok_or(line);
        match flag {
            b'T' => self.exptime = Some(exptime()?),
            b'N' => self.create_exptime = Some(exptime()?),
            b'R' => self.recache_exptime = Some(exptime()?),
            b'F' => self.client_flags = number::digits_32(token).ok_or(lines::BAD_LINE)?,
            b'C' => self.compare = Some(unsigned(lines::BAD_TOKEN)?),
            b'E' => self.unique = Some(unsigned(lines::BAD_TOKEN)?),
            b'M' => self.mode = Some(token.first().copied().unwrap_or(b' ')),
            b'J' => self.initial = unsigned(lines::BAD_INITIAL)?,
            b'D' => self.delta = unsigned(lines::BAD_META_DELTA)?,
            _ => {}
        }
        Ok(())
    }
}

/// An expiry time. memcached's have 32 bits, and those in milliseconds have 64.
#[inline]
pub(super) fn exptime(token: &[u8], all: Flags<'_>) -> Option<i64> {
    number::signed_digits_32(token)
        .map(i64::from)
        .or_else(|| long_exptime(token, all))
}

/// An expiry time of more than 32 bits, among flags that permit it.
#[cold]
#[inline(never)]
fn long_exptime(token: &[u8], all: Flags<'_>) -> Option<i64> {
    match all.has(MILLISECONDS) {
        true => number::signed_digits_64(token),
        false => None,
    }
}

/// Whether every word begins with a character that a flag could have. memcached checks this while
/// it splits the line, before anything else.
pub(super) fn could_be_flags(text: &[u8]) -> bool {
    let mut words = text.split(|&byte| byte == b' ');
    words.all(|word| matches!(word.first(), None | Some(b'A'..=b'z' | b'0'..=b'9')))
}

/// Parses the flags of a line, which memcached knows or which are `also` known; `words` is the
/// number of words before them. The error is memcached's
/// error line: an unknown or duplicate flag ends the search; of other errors, the last one is
/// reported.
pub(super) fn read<'a>(
    text: &'a [u8],
    (key, also): (&[u8], Set),
    mut words: usize,
) -> Result<(Flags<'a>, Options), &'static str> {
    let flags = Flags {
        text,
        base64_key: false,
    };
    words += flags.iter().count();
    if words > WORDS_MAX {
        return Err(lines::TOO_MANY_FLAGS);
    }
    let (mut options, mut fault) = (Options::default(), None);
    for (flag, token) in flags.iter() {
        if options.set.has(flag) && flag.is_ascii_alphabetic() {
            return Err(lines::DUPLICATE_FLAG);
        }
        // A lower-case `M`, which memcached refuses, is no `m`.
        let is_taken_for_mode = flag == MILLISECONDS && !token.is_empty();
        let is_known = KNOWN.has(flag) || also.has(flag);
        if !flag.is_ascii_alphabetic() || !is_known || is_taken_for_mode {
            return Err(lines::INVALID_FLAG);
        }
        if let Err(line) = options.take(flag, token, flags) {
            // memcached has no error line for flags that are not a number: it answers with the line
            // that it had prepared.
            let line = if flag == b'F' {
                fault.unwrap_or(line)
            } else {
                line
            };
            fault = Some(line);
        }
        if flag == b'b' && !base64::is_valid(key) {
            fault = Some(lines::BAD_BASE64);
        }
    }
    match fault {
        Some(line) => Err(line),
        None => Ok((
            Flags {
                text,
                base64_key: options.set.has(b'b'),
            },
            options,
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(text: &str) -> Result<Options, &'static str> {
        read(text.as_bytes(), (b"Zm9v", Set::default()), 2).map(|(flags, options)| {
            assert_eq!(flags.options(), options, "read again they say the same");
            options
        })
    }

    /// Each row was sent to memcached after `mg Zm9v`. Where 1.6.18 and 1.6.45 differ, the row is
    /// that of 1.6.45.
    #[test]
    fn faults() {
        let rows: &[(&str, Option<&str>)] = &[
            ("", None),
            ("v", None),
            ("b v t f s c h l k q u x I O P L MA", None),
            ("T30 N-1 R0 F7 C5 E9 J3 D2 M+", None),
            ("T2147483648", Some(lines::BAD_TOKEN)),
            ("Tx", Some(lines::BAD_TOKEN)),
            ("T", Some(lines::BAD_TOKEN)),
            ("C-1", Some(lines::BAD_TOKEN)),
            ("E", Some(lines::BAD_TOKEN)),
            ("F", Some(lines::BAD_LINE)),
            ("Tx Fx", Some(lines::BAD_TOKEN)),
            ("Tx Dx", Some(lines::BAD_META_DELTA)),
            ("Jx", Some(lines::BAD_INITIAL)),
            ("v v", Some(lines::DUPLICATE_FLAG)),
            ("Tx v v", Some(lines::DUPLICATE_FLAG)),
            ("Tx _", Some(lines::INVALID_FLAG)),
            ("a", Some(lines::INVALID_FLAG)),
            ("S2", Some(lines::INVALID_FLAG)),
            ("me", Some(lines::INVALID_FLAG)),
            ("b c C1 D1 E1 f F1 h I J1 k l L MI N0 O1 P q", None),
            (
                "b c C1 D1 E1 f F1 h I J1 k l L MI N0 O1 P q v",
                Some(lines::TOO_MANY_FLAGS),
            ),
        ];
        for (text, line) in rows {
            assert_eq!(options(text).err(), *line, "{text:?}");
        }
        assert_eq!(
            read(b"b", (b"foo", Set::default()), 2).unwrap_err(),
            lines::BAD_BASE64,
            "three digits are no base64"
        );
    }

    #[test]
    fn what_could_be_a_flag() {
        for (text, could_be) in [
            ("", true),
            (" v  T30 _ 5 [", true),
            ("v !", false),
            ("v \u{7f}", false),
            ("{", false),
            ("\u{e9}", false),
        ] {
            assert_eq!(could_be_flags(text.as_bytes()), could_be, "{text:?}");
        }
    }

    #[test]
    fn what_they_ask_for() {
        let all = options("T30 N-1 R5 F7 C5 E9 J3 D2 MA").unwrap();
        assert_eq!(
            (all.exptime, all.create_exptime, all.recache_exptime),
            (Some(30), Some(-1), Some(5))
        );
        assert_eq!(
            (all.client_flags, all.compare, all.unique),
            (7, Some(5), Some(9))
        );
        assert_eq!((all.initial, all.delta, all.mode), (3, 2, Some(b'A')));
        assert_eq!(options("").unwrap().delta, 1);
        for text in [
            "T2592000000 m N-9000000000 R",
            "m N-9000000000 R T2592000000",
        ] {
            assert_eq!(options(text).err(), Some(lines::BAD_TOKEN));
            let long = options(&text.replace('R', "R1700000000123")).unwrap();
            assert_eq!(
                long.exptime,
                Some(2_592_000_000),
                "longer with milliseconds"
            );
            assert_eq!(long.create_exptime, Some(-9_000_000_000));
            assert_eq!(long.recache_exptime, Some(1_700_000_000_123));
        }
        let flags = Flags {
            text: b"v  Oabc  t",
            base64_key: false,
        };
        let words: Vec<_> = flags.iter().collect();
        assert_eq!(
            words,
            [(b'v', &b""[..]), (b'O', b"abc"), (b't', b"")],
            "several spaces are one"
        );
        assert!(flags.has(b't') && !flags.has(b'T'));
    }
}
