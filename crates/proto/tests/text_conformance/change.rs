//! `delete`, `incr`, `decr`, `touch`.

use crate::*;

#[test]
fn deletes() {
    let delete = verb(Verb::Delete);
    check(&[
        (b"delete\r\n", &[BAD_LINE]),
        (b"delete k\r\n", &[delete]),
        (b"delete k \r\n", &[delete]),
        (b"delete k 0\r\n", &[delete]),
        (b"delete k noreply\r\n", &[quiet(delete)]),
        (b"delete k 0 noreply\r\n", &[quiet(delete)]),
        (b"delete k 1 noreply\r\n", &[quiet(delete)]),
        (b"delete k noreply 0\r\n", &[delete]),
        (b"delete k foo\r\n", &[delete]),
        (b"delete k noreplyx\r\n", &[delete]),
        (b"delete k 0 x noreply\r\n", &[quiet(delete)]),
        // Only the last word counts, even if it is the key.
        (
            b"delete noreply\r\n",
            &[Out::Do(b"noreply", Verb::Delete, true)],
        ),
        (
            b"delete noreply 0\r\n",
            &[Out::Do(b"noreply", Verb::Delete, false)],
        ),
    ]);
}

#[test]
fn increments_and_decrements() {
    let incr = |delta| verb(Verb::Increment { delta });
    check(&[
        (b"incr\r\n", &[BAD_LINE]),
        (b"incr k\r\n", &[BAD_LINE]),
        (b"incr k 1\r\n", &[incr(1)]),
        (
            b"decr k 18446744073709551615\r\n",
            &[verb(Verb::Decrement { delta: u64::MAX })],
        ),
        (b"incr k 1 noreply\r\n", &[quiet(incr(1))]),
        (b"incr k 1 foo\r\n", &[incr(1)]),
        (b"incr k 1 foo bar\r\n", &[incr(1)]),
        (b"incr k 1 foo noreply\r\n", &[quiet(incr(1))]),
        (b"incr k noreply\r\n", &[SILENCE]),
        (b"incr k -1\r\n", &[BAD_DELTA]),
        (b"incr k abc\r\n", &[BAD_DELTA]),
        (b"incr k abc noreply\r\n", &[SILENCE]),
        (b"decr k 1.5\r\n", &[BAD_DELTA]),
        (b"decr k 0x10\r\n", &[BAD_DELTA]),
        (b"incr k 18446744073709551616\r\n", &[BAD_DELTA]),
        (b"incr k +1\r\n", &[BAD_DELTA]),
        (b"incr k 1\t\r\n", &[BAD_DELTA]),
        (b"incr k -0\r\n", &[BAD_DELTA]),
        (b"incr k 0000000000000000000001\r\n", &[incr(1)]),
        (b"incr k 00000000000000000000001\r\n", &[BAD_DELTA]),
    ]);
}

#[test]
fn touches() {
    let touch = |exptime| verb(Verb::Touch { exptime });
    check(&[
        (b"touch\r\n", &[BAD_LINE]),
        (b"touch k\r\n", &[BAD_LINE]),
        (b"touch k 10\r\n", &[touch(10)]),
        (b"touch k -1\r\n", &[touch(-1)]),
        (b"touch k 2147483648\r\n", &[BAD_EXPTIME]),
        (b"touch k +1\r\n", &[BAD_EXPTIME]),
        (b"touch k 10 noreply\r\n", &[quiet(touch(10))]),
        (b"touch k 10 foo\r\n", &[touch(10)]),
        (b"touch k 10 foo bar\r\n", &[touch(10)]),
        (b"touch k abc\r\n", &[BAD_EXPTIME]),
        (b"touch k abc noreply\r\n", &[SILENCE]),
        (b"touch k noreply\r\n", &[SILENCE]),
        (b"touch k 99999999999999999999\r\n", &[BAD_EXPTIME]),
        (
            b"touch noreply 1\r\n",
            &[Out::Do(b"noreply", Verb::Touch { exptime: 1 }, false)],
        ),
    ]);
}
