//! Storage commands: words, numbers, values.

use crate::*;

#[test]
fn storage_commands() {
    check(&[
        (b"set k 0 0 1\r\n1\r\n", &[set(0, 0, b"1")]),
        (b"set k 0 0 0\r\n\r\n", &[set(0, 0, b"")]),
        (b"set k 0 0 2\r\n\r\n\r\n", &[set(0, 0, b"\r\n")]),
        (b"set k  0  0  1 \n1\r\n", &[set(0, 0, b"1")]),
        (b" set k 0 0 1\r\n1\r\n", &[ERROR, BAD_LINE]),
        (b"set k  5 0 1\r\n1\r\n", &[set(5, 0, b"1")]),
        (b"set k 5  6 1\r\n1\r\n", &[set(5, 6, b"1")]),
        (b"set k 5 6  1\r\n1\r\n", &[set(5, 6, b"1")]),
        (
            b"add k 1 2 3\r\nabc\r\n",
            &[store(StoreMode::Add, 1, 2, b"abc")],
        ),
        (
            b"replace k 1 2 3\r\nabc\r\n",
            &[store(StoreMode::Replace, 1, 2, b"abc")],
        ),
        (
            b"append k 1 2 3\r\nabc\r\n",
            &[store(StoreMode::Append, 1, 2, b"abc")],
        ),
        (
            b"prepend k 1 2 3\r\nabc\r\n",
            &[store(StoreMode::Prepend, 1, 2, b"abc")],
        ),
        (
            b"cas k 1 2 3 4\r\nabc\r\n",
            &[store(StoreMode::Cas(4), 1, 2, b"abc")],
        ),
        (b"set k 0 0 1 noreply\r\n1\r\n", &[quiet(set(0, 0, b"1"))]),
        (b"set k 0 0 1 noreply \r\n1\r\n", &[quiet(set(0, 0, b"1"))]),
        (
            b"cas k 1 2 3 4 noreply\r\nabc\r\n",
            &[quiet(store(StoreMode::Cas(4), 1, 2, b"abc"))],
        ),
    ]);
}

#[test]
fn storage_word_counts() {
    check(&[
        (b"set\r\n", &[BAD_LINE]),
        (b"set k\r\n", &[BAD_LINE]),
        (b"set k 0\r\n", &[BAD_LINE]),
        (b"set k 0 0\r\n", &[BAD_LINE]),
        (b"set k 0 0 noreply\r\n1\r\n", &[BAD_LINE, BAD_LINE]),
        (b"replace k\r\n", &[BAD_LINE]),
        (b"cas\r\n", &[BAD_LINE]),
        // The length of the value is known, so the value is swallowed.
        (b"cas k 0 0 1\r\n1\r\nget k\r\n", &[BAD_LINE, get(b"k")]),
        // Extra words are accepted, but only the last one can have a meaning.
        (b"set k 0 0 1 noreply x\r\n1\r\n", &[set(0, 0, b"1")]),
        (
            b"set k 0 0 1 a b c d e f g h i j k l m n noreply\r\n1\r\n",
            &[quiet(set(0, 0, b"1"))],
        ),
        (
            b"cas k 0 0 1 1 2 3\r\n1\r\n",
            &[store(StoreMode::Cas(1), 0, 0, b"1")],
        ),
        (b"set k 0 0 1 foo\r\n1\r\n", &[set(0, 0, b"1")]),
        (b"set k 0 0 1 noreplyx\r\n1\r\n", &[set(0, 0, b"1")]),
        (b"set k 0 0 1 xnoreply\r\n1\r\n", &[set(0, 0, b"1")]),
        (b"set k 0 0 1 NOREPLY\r\n1\r\n", &[set(0, 0, b"1")]),
        (
            b"cas k 0 0 1 1 foo\r\n1\r\n",
            &[store(StoreMode::Cas(1), 0, 0, b"1")],
        ),
    ]);
}

#[test]
fn storage_numbers() {
    check(&[
        (b"set k 0 0 a\r\n1\r\n", &[BAD_LINE, BAD_LINE]),
        (b"set k 0 a 1\r\n1\r\n", &[BAD_LINE]),
        (b"set k a 0 1\r\n1\r\n", &[BAD_LINE]),
        (b"set k a 0 1 noreply\r\n1\r\n", &[SILENCE]),
        (b"set k 0 0 a noreply\r\n1\r\n", &[BAD_LINE, BAD_LINE]),
        (b"set k 0 1.5 1\r\n1\r\n", &[BAD_LINE]),
        (b"set k 0x1 0 1\r\n1\r\n", &[BAD_LINE]),
        (b"set k +1 +2 1\r\n1\r\n", &[set(1, 2, b"1")]),
        (b"set k 1 2 +1\r\n1\r\n", &[BAD_LINE, BAD_LINE]),
        (b"set k 01 0 01\r\n1\r\n", &[set(1, 0, b"1")]),
        (b"set k -0 -0 -0\r\n\r\n", &[set(0, 0, b"")]),
        (b"set k \t5 0 1\r\n1\r\n", &[set(5, 0, b"1")]),
        (b"set k 5\tx 0 1\r\n1\r\n", &[set(5, 0, b"1")]),
        (b"set k 5 0 1\r\r\n1\r\n", &[BAD_LINE, BAD_LINE]),
        // Flags
        (b"set k -1 0 1\r\n1\r\n", &[BAD_LINE]),
        (b"set k 4294967295 0 1\r\n1\r\n", &[set(u32::MAX, 0, b"1")]),
        (b"set k 4294967296 0 1\r\n1\r\n", &[set(0, 0, b"1")]),
        (b"set k 4294967297 0 1\r\n1\r\n", &[set(1, 0, b"1")]),
        (b"set k 18446744073709551616 0 1\r\n1\r\n", &[BAD_LINE]),
        // Expiry time
        (b"set k 0 -5 1\r\n1\r\n", &[set(0, -5, b"1")]),
        (
            b"set k 0 2147483647 1\r\n1\r\n",
            &[set(0, 2_147_483_647, b"1")],
        ),
        (
            b"set k 0 2147483648 1\r\n1\r\n",
            &[set(0, -2_147_483_648, b"1")],
        ),
        (b"set k 0 4294967297 1\r\n1\r\n", &[set(0, 1, b"1")]),
        (b"set k 0 99999999999999999999 1\r\n1\r\n", &[BAD_LINE]),
        // Length
        (b"set k 0 0 -1\r\n1\r\n", &[BAD_LINE, BAD_LINE]),
        (b"set k 0 0 -1 noreply\r\n1\r\n", &[BAD_LINE, BAD_LINE]),
        (b"set k 0 0 2147483646\r\n1\r\n", &[BAD_LINE, BAD_LINE]),
        (b"set k 0 0 4294967297\r\n1\r\n", &[BAD_LINE, BAD_LINE]),
        // CAS unique
        (
            b"cas k 0 0 1 18446744073709551615\r\n1\r\n",
            &[store(StoreMode::Cas(u64::MAX), 0, 0, b"1")],
        ),
        (b"cas k 0 0 1 18446744073709551616\r\n1\r\n", &[BAD_LINE]),
        (b"cas k 0 0 1 -1\r\n1\r\n", &[BAD_LINE]),
        (b"cas k 0 0 1 abc\r\n1\r\n", &[BAD_LINE]),
        (b"cas k 0 0 1 abc noreply\r\n1\r\n", &[SILENCE]),
        (b"cas k 0 0 1 noreply\r\n1\r\n", &[SILENCE]),
    ]);
}

#[test]
fn values_without_their_line_end() {
    check(&[
        // Three bytes are taken as the value; the rest is parsed as a line.
        (
            b"set k 0 0 1\r\n12\r\nget k\r\n",
            &[BAD_CHUNK, BAD_LINE, get(b"k")],
        ),
        (
            b"set k 0 0 1\r\n12345678\r\nget k\r\n",
            &[BAD_CHUNK, ERROR, get(b"k")],
        ),
        (b"set k 0 0 3\r\n1\r\nget k\r\n", &[BAD_CHUNK, ERROR]),
        (
            b"set k 0 0 3 noreply\r\n12345\r\nget k\r\n",
            &[SILENCE, BAD_LINE, get(b"k")],
        ),
        (b"set k 0 0 1\r\n1\nget k\r\n", &[BAD_CHUNK, ERROR]),
        (b"set k 0 0 1\r\n1\rx", &[BAD_CHUNK]),
        (b"set k 0 0 1\r\n1x\n", &[BAD_CHUNK]),
        (b"append k 0 0 1\r\n\r\n\r\n", &[BAD_CHUNK, BAD_LINE]),
    ]);
}
