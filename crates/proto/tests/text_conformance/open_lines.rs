//! Retrievals whose line is too long to be parsed as a whole. memcached 1.6.45 answers them too,
//! but for `gat` and `gats`. If one of their keys is too long, it shows none of the others.

use crate::*;
use glimmer_base::limits::LINE_BYTES_MAX;

/// The first words of a line, enough keys to make it too long, and its last words.
fn long(first: &str, last: &str) -> Vec<u8> {
    let middle = "key ".repeat(LINE_BYTES_MAX / "key ".len());
    format!("{first}{middle}{last}").into_bytes()
}

/// The steps of a long line, of which the keys in the middle are left out.
fn ends(input: &[u8]) -> Vec<Out<'_>> {
    let mut out = steps(input);
    let middle = |out: &Out<'_>| matches!(out, Out::Key(b"key", ..));
    let count = out.iter().filter(|out| middle(out)).count();
    assert!(
        count == 0 || count >= LINE_BYTES_MAX / "key ".len(),
        "{count}"
    );
    out.retain(|out| !middle(out));
    out
}

#[test]
fn keys_are_handed_out() {
    let key = |key, exptime, cas, last| Out::Key(key, exptime, cas, last);
    for (name, exptime, cas) in [
        ("get ", None, false),
        ("gets ", None, true),
        ("gat 10 ", Some(10), false),
        ("gats  -1  ", Some(-1), true),
    ] {
        for end in ["\r\n", "\n", "   \r\n"] {
            let input = long(&format!("{name} first  "), &format!("last{end}get k\r\n"));
            let has_spaces = end.starts_with(' ');
            let mut expected = vec![
                key(b"first", exptime, cas, false),
                key(b"last", exptime, cas, !has_spaces),
            ];
            expected.extend(has_spaces.then_some(Out::Say(reply::END)));
            expected.push(get(b"k"));
            assert_eq!(ends(&input), expected, "{name:?} {end:?}");
        }
    }
}

#[test]
fn a_key_that_is_too_long_ends_the_command() {
    let longest = "k".repeat(250);
    let last = |text: &str| long("get ", &format!("{text}get k\r\n"));
    let input = last(&format!("{longest}\r\n"));
    assert_eq!(ends(&input), [get(longest.as_bytes()), get(b"k")]);
    for text in [
        format!("{longest}k\r\n"),
        format!("{longest}k\n"),
        format!("{longest}k a\r\n"),
        // A carriage return is the end of a line only before a line feed.
        format!("{longest}\r a\r\n"),
        format!("{}\r\n", "k".repeat(LINE_BYTES_MAX)),
    ] {
        assert_eq!(
            ends(&last(&text)),
            [BAD_LINE, get(b"k")],
            "{:?}",
            &text[240..]
        );
    }
}

#[test]
fn lines_without_a_key_are_refused() {
    let blank = " ".repeat(LINE_BYTES_MAX);
    for (first, answer) in [
        ("get ", BAD_LINE),
        ("gats ", BAD_LINE),
        ("gat 10 ", BAD_LINE),
        ("gat x ", BAD_EXPTIME),
        (" get ", ERROR),
    ] {
        let input = format!("{first}{blank}\r\nget k\r\n");
        assert_eq!(steps(input.as_bytes()), [answer, get(b"k")], "{first:?}");
    }
    let input = long("gat 1x ", "\r\nget k\r\n");
    assert_eq!(steps(&input), [BAD_EXPTIME, get(b"k")]);
    let input = long(" get ", "\r\nget k\r\n");
    assert_eq!(steps(&input), [ERROR, get(b"k")]);
}
