//! Where a line ends, how long it may be, and which lines are not commands.

use crate::*;
use glimmer_base::limits::{COMMAND_LINE_BYTES_MAX, LINE_BYTES_MAX};

#[test]
fn line_ends_and_spaces() {
    check(&[
        (b"get k\r\n", &[get(b"k")]),
        (b"get k\n", &[get(b"k")]),
        (b"get k \r\n", &[get(b"k")]),
        (b" get k\r\n", &[ERROR]),
        (
            b"  flush_all 0 noreply\r\n",
            &[Out::Admin(Admin::FlushAll {
                delay_exptime: 0,
                quiet: true,
            })],
        ),
        (b"get k\r\r\n", &[get(b"k\r")]),
        (b"get k\t\r\n", &[get(b"k\t")]),
        (b"get \xFF\x80\x7F\r\n", &[get(b"\xFF\x80\x7F")]),
        // Lines shorter than any command are not parsed.
        (b"\r\n", &[BAD_LINE]),
        (b"\n", &[BAD_LINE]),
        (b" \r\n", &[BAD_LINE]),
        (b"mn\n", &[BAD_LINE]),
        (b"  \r\n", &[ERROR]),
        (b"\n\nget k\r\n", &[BAD_LINE, BAD_LINE, get(b"k")]),
    ]);
}

#[test]
fn a_zero_byte_is_a_byte() {
    check(&[
        (b"get k\0b\r\nget l\r\n", &[get(b"k\0b"), get(b"l")]),
        (b"get \0\r\n", &[get(b"\0")]),
        (b"\0get k\r\n", &[ERROR]),
        (b"get\0 k\r\n", &[ERROR]),
        (b"set k 0 0 1\0 x\r\n1\r\n", &[BAD_LINE, BAD_LINE]),
        (b"set k 0 0 1 noreply\0x\r\n1\r\n", &[set(0, 0, b"1")]),
    ]);
}

#[test]
fn unknown_commands() {
    check(&[
        (b"bogus\r\n", &[ERROR]),
        (b"GET k\r\n", &[ERROR]),
        (b"bogus noreply\r\n", &[SILENCE]),
        (b"bget k\r\n", &[ERROR]),
        (b"g\r\n", &[BAD_LINE]),
        (b"ge\r\n", &[ERROR]),
        (b"gett k\r\n", &[ERROR]),
        (b"getsx k\r\n", &[ERROR]),
        (b"setx k 0 0 1\r\n", &[ERROR]),
        (b"Set k 0 0 1\r\n1\r\n", &[ERROR, BAD_LINE]),
        (b"versionx\r\n", &[ERROR]),
        (b"quitx\r\n", &[ERROR]),
        (b"misbehave\r\n", &[ERROR]),
        (b"m\r\n", &[BAD_LINE]),
        (b"mp k\r\n", &[ERROR]),
        (b"mnx\r\n", &[ERROR]),
    ]);
}

#[test]
fn http_is_shown_the_door() {
    check(&[
        (b"GET / HTTP/1.1\r\nversion\r\n", &[Out::Close]),
        (b"HTTP/\r\n", &[ERROR]),
        (b"mHTTP/ HTTP/1.1\r\n", &[Out::Close]),
        (b"options * HTTP/1.1\r\n", &[Out::Close]),
        (b"GET / HTTP/1.1 x\r\n", &[ERROR]),
        (b"POST /HTTP/ xHTTP/\r\n", &[ERROR]),
        (
            b"get / HTTP/1.1\r\n",
            &[Out::Key(b"/", None, false, false), get(b"HTTP/1.1")],
        ),
        (b"set HTTP/1.1\r\n", &[BAD_LINE]),
        (b"stat HTTP/1.1\r\n", &[Out::Close]),
        (b"mx HTTP/1.1\r\n", &[Out::Close]),
        (b"lru HTTP/1.1\r\n", &[ERROR]),
        (b"version HTTP/1.1\r\n", &[Out::Admin(Admin::Version)]),
    ]);
}

/// memcached answers these if they arrive together.
#[test]
fn long_lines_are_answered_like_short_ones() {
    for (line, answer) in [
        ("nosuch", ERROR),
        ("nosuch k ", ERROR),
        ("set ", BAD_LINE),
        ("mg ", BAD_LINE),
        ("delete ", BAD_LINE),
    ] {
        for length in [2047, 2048, 2049, 2100, 16_383] {
            let mut bytes = line.as_bytes().to_vec();
            bytes.resize(length, b'k');
            bytes.push(b'\n');
            check(&[(&bytes, &[answer])]);
        }
    }
}

/// The first step of a parser that receives all of this at once.
fn first_step(input: &[u8]) -> Step<'_> {
    Parser::new(Limits::default()).next(input)
}

#[test]
fn lines_that_are_too_long_close_the_connection() {
    let max = COMMAND_LINE_BYTES_MAX;
    let is_close = |input: &[u8]| {
        matches!(
            first_step(input),
            Step::Refuse {
                line: "",
                then: After::Close,
                ..
            }
        )
    };
    assert_eq!(first_step(&vec![b'k'; max]), Step::need(max + 1));
    assert!(is_close(&vec![b'k'; max + 1]));
    let line = |text: &str, length: usize, tail: &str| {
        let mut bytes = text.as_bytes().to_vec();
        bytes.resize(length, b' ');
        bytes.extend_from_slice(tail.as_bytes());
        bytes
    };
    // The result is the same whether or not the line end has arrived.
    assert_eq!(
        first_step(&line("version", max, "\n")),
        Step::Admin {
            used: max + 1,
            admin: Admin::Version
        }
    );
    assert!(is_close(&line("version", max + 1, "\n")));
    assert!(is_close(&line("version", max + 1, "")));
    for name in ["get k", "gets k", "gat 0 k", "gats 0 k"] {
        assert_eq!(first_step(&line(name, max + 1, "")), Step::need(max + 2));
        assert_eq!(
            first_step(&line(name, LINE_BYTES_MAX, "")),
            Step::need(LINE_BYTES_MAX + 1)
        );
        assert!(matches!(
            first_step(&line(name, LINE_BYTES_MAX, "\n")),
            Step::Request { .. }
        ));
        let longer = |tail: &str| match first_step(&line(name, LINE_BYTES_MAX + 1, tail)) {
            Step::Swallowed { used } => used,
            step => panic!("{step:?}"),
        };
        assert_eq!(longer(""), name.len() - " k".len());
        assert_eq!(longer("\n"), name.len() - " k".len());
    }
    let indented = |spaces: usize| line(&format!("{}get k", " ".repeat(spaces)), max + 1, "");
    assert!(!is_close(&indented(100)));
    assert!(is_close(&indented(101)));
}

#[test]
fn what_is_needed_is_known_as_soon_as_it_can_be() {
    for (input, need) in [
        (&b""[..], 1),
        (b"g", 2),
        (b"get k\r", 7),
        (b"set k 0 0 10", 13),
        (b"set k 0 0 10\r\n", 26),
        (b"set k 0 0 10\r\n0123456789", 26),
        (b"set k 0 0 10\r\n0123456789\r", 26),
        (b"cas k 0 0 10 5 noreply\r\n", 36),
    ] {
        assert_eq!(first_step(input), Step::need(need), "{:?}", text(input));
    }
}
