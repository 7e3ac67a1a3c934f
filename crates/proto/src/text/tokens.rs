//! Splits a line into words. Only a space separates words; a tab, a form feed or a lone carriage
//! return belongs to its word.

use super::small_bytes;

/// The end of a line and of a value.
pub(crate) const LINE_END: &[u8] = b"\r\n";

/// Words of a line that are kept. No command uses more; further words are only counted.
const KEPT: usize = 8;
/// Words that memcached considers. Except for the keys of a retrieval, later words are ignored.
const SEEN: usize = 23;

/// The words of a line.
pub(super) struct Words<'a> {
    kept: [&'a [u8]; KEPT],
    count: usize,
    last: &'a [u8],
}

impl<'a> Words<'a> {
    pub fn of(line: &'a [u8]) -> Self {
        let mut words = Words {
            kept: [&[]; KEPT],
            count: 0,
            last: &[],
        };
        let mut rest = line;
        while let Some((word, tail)) = first(rest).filter(|_| words.count < SEEN) {
            if let Some(slot) = words.kept.get_mut(words.count) {
                *slot = word;
            }
            words.count += 1;
            words.last = word;
            rest = tail;
        }
        words
    }

    /// The number of words in the line, including the command's name.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The word at `index`, empty if there is none.
    pub fn at(&self, index: usize) -> &'a [u8] {
        self.kept.get(index).copied().unwrap_or_default()
    }

    /// The last word.
    pub fn last(&self) -> &'a [u8] {
        self.last
    }

    /// Whether the client wants no reply. Memcached looks only at the last word, and does so before
    /// it checks most of the others. A malformed command with `noreply` may therefore be refused
    /// silently.
    pub fn are_quiet(&self) -> bool {
        self.last == b"noreply"
    }
}

/// The first word and the text after it; `None` for an empty or blank line.
#[inline]
pub(crate) fn first(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let line = without_leading_spaces(line);
    if line.is_empty() {
        return None;
    }
    Some(line.split_at(word_len(line)))
}

/// The line from its first byte that is not a space.
#[inline]
pub(crate) fn without_leading_spaces(line: &[u8]) -> &[u8] {
    let spaces = line
        .iter()
        .position(|&byte| byte != b' ')
        .unwrap_or(line.len());
    &line[spaces..]
}

/// The number of bytes before the first space. Words are usually short and contain no control
/// characters, so that one call of [`plain_len`] usually suffices.
#[inline]
pub(super) fn word_len(bytes: &[u8]) -> usize {
    let mut len = plain_len(bytes);
    while bytes.get(len).is_some_and(|&byte| byte != b' ') {
        len += 1 + plain_len(&bytes[len + 1..]);
    }
    len
}

/// The number of bytes before the first space or control character, where a word of a well-formed
/// line ends. The slow path handles other words. Examines sixteen bytes at a time, then eight.
#[inline]
pub(crate) fn plain_len(bytes: &[u8]) -> usize {
    let (blocks, rest) = bytes.as_chunks::<16>();
    for (i, block) in blocks.iter().enumerate() {
        if let Some(at) = small_bytes::first_of_block(block) {
            return i * 16 + at;
        }
    }
    let (words, last) = rest.as_chunks::<8>();
    if let [word] = words
        && let Some(at) = small_bytes::first_of_word(*word)
    {
        return blocks.len() * 16 + at;
    }
    bytes.len() - last.len() + plain_len_bytewise(last)
}

/// The plain twin of [`plain_len`].
#[inline]
fn plain_len_bytewise(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .position(|&byte| byte <= b' ')
        .unwrap_or(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_spaces_separate() {
        let words = Words::of(b"  set  k\tx 1\r 2 ");
        assert_eq!(words.count(), 4);
        assert_eq!(words.at(0), b"set");
        assert_eq!(words.at(1), b"k\tx");
        assert_eq!(words.at(2), b"1\r");
        assert_eq!(words.last(), b"2");
        assert_eq!(words.at(4), b"");
        assert_eq!(Words::of(b"   ").count(), 0);
    }

    #[test]
    fn words_past_the_kept_ones_are_counted() {
        let words = Words::of(b"a b c d e f g h i j noreply");
        assert_eq!(words.count(), 11);
        assert_eq!(words.at(7), b"h");
        assert_eq!(words.at(8), b"");
        assert!(words.are_quiet());
        let words = |count: usize| [vec!["a"; count - 1], vec!["noreply"]].concat().join(" ");
        assert!(Words::of(words(23).as_bytes()).are_quiet());
        assert!(!Words::of(words(24).as_bytes()).are_quiet());
    }

    proptest! {
        #[test]
        fn words_end_where_plain_searches_say(
            bytes in proptest::collection::vec(
                prop_oneof![8 => 0x21u8.., 1 => any::<u8>(), 1 => 0x1Eu8..=0x23],
                0..72,
            ),
        ) {
            prop_assert_eq!(plain_len(&bytes), plain_len_bytewise(&bytes));
            let space = bytes.iter().position(|&byte| byte == b' ');
            prop_assert_eq!(word_len(&bytes), space.unwrap_or(bytes.len()));
        }
    }
}
