//! `get`, `gets`, `gat`, `gats`, and the maximum length of a key in every command.

use crate::*;
use glimmer_proto::text::Reply;

#[test]
fn retrievals() {
    let key = |key, cas, last| Out::Key(key, None, cas, last);
    let touch = |key, exptime, cas, last| Out::Key(key, Some(exptime), cas, last);
    check(&[
        (b"get\r\n", &[BAD_LINE]),
        (b"get \r\n", &[BAD_LINE]),
        (b"gets\r\n", &[BAD_LINE]),
        (
            b"get  a   b\r\n",
            &[key(b"a", false, false), key(b"b", false, true)],
        ),
        (
            b"gets a b c \n",
            &[
                key(b"a", true, false),
                key(b"b", true, false),
                key(b"c", true, true),
            ],
        ),
        (
            b"get k noreply\r\n",
            &[key(b"k", false, false), key(b"noreply", false, true)],
        ),
        (b"gat\r\n", &[BAD_LINE]),
        (b"gats\r\n", &[BAD_LINE]),
        (b"gat 10\r\n", &[BAD_LINE]),
        (b"gat 10 \r\nget k\r\n", &[BAD_LINE, get(b"k")]),
        (b"gat abc\r\n", &[BAD_LINE]),
        (b"gat abc k\r\n", &[BAD_EXPTIME]),
        (b"gat 1x k\r\n", &[BAD_EXPTIME]),
        (b"gat +5 k\r\n", &[BAD_EXPTIME]),
        (b"gat - k\r\n", &[touch(b"k", 0, false, true)]),
        (b"gat 10 k\r\n", &[touch(b"k", 10, false, true)]),
        (
            b"gats -1 a b\r\n",
            &[touch(b"a", -1, true, false), touch(b"b", -1, true, true)],
        ),
        (
            b"gat 2147483647 k\r\n",
            &[touch(b"k", 2_147_483_647, false, true)],
        ),
        (b"gat 2147483648 k\r\n", &[BAD_EXPTIME]),
    ]);
}

#[test]
fn key_length() {
    let longest = [b'k'; 250];
    check(&[
        (&with_key("get ", 250, "\r\n"), &[get(&longest)]),
        (&with_key("get ", 251, "\r\n"), &[BAD_LINE]),
        (
            &with_key("get a ", 251, " b\r\nget k\r\n"),
            &[BAD_LINE, get(b"k")],
        ),
        (
            &with_key(&format!("get {}", "a ".repeat(30)), 251, "\r\n"),
            &[BAD_LINE],
        ),
        (&with_key("get ", 3000 - 6, "\r\n"), &[BAD_LINE]),
        (&with_key("gat 10 ", 251, "\r\n"), &[BAD_LINE]),
        (&with_key("gat 10 a ", 251, "\r\n"), &[BAD_LINE]),
        (&with_key("gat abc ", 251, "\r\n"), &[BAD_EXPTIME]),
        (
            &with_key("set ", 251, " 0 0 1\r\n1\r\nget k\r\n"),
            &[BAD_LINE, get(b"k")],
        ),
        (
            &with_key("set ", 251, " 0 0 1 noreply\r\n1\r\nget k\r\n"),
            &[SILENCE, get(b"k")],
        ),
        (
            &with_key("delete ", 250, "\r\n"),
            &[Out::Do(&longest, Verb::Delete, false)],
        ),
        (&with_key("delete ", 251, "\r\n"), &[BAD_LINE]),
        (&with_key("delete ", 251, " noreply\r\n"), &[SILENCE]),
        (&with_key("incr ", 251, " 1\r\n"), &[BAD_LINE]),
        (&with_key("incr ", 251, " 1 noreply\r\n"), &[SILENCE]),
        (&with_key("touch ", 251, " 1\r\n"), &[BAD_LINE]),
        (&with_key("touch ", 251, " 1 noreply\r\n"), &[SILENCE]),
    ]);
}

#[test]
fn a_long_multiget_is_used_up_key_by_key() {
    let keys = 30_000;
    let mut line = b"get".to_vec();
    for key in 0..keys {
        line.extend_from_slice(format!(" key{key}").as_bytes());
    }
    line.extend_from_slice(b"\r\nversion\r\n");
    assert!(line.len() > 128 << 10);
    let mut parser = Parser::new(Limits::default());
    let mut rest = &line[..];
    for key in 0..keys {
        // The worker may put a step back.
        let before = parser;
        let first = parser.next(rest);
        parser = before;
        let step = parser.next(rest);
        assert_eq!(step, first);
        let Step::Request { used, request } = step else {
            panic!("{step:?}")
        };
        assert_eq!(request.key, format!("key{key}").as_bytes());
        assert_eq!(
            request.form,
            Form::Text(Reply {
                cas: false,
                last: key + 1 == keys,
                quiet: true
            })
        );
        rest = &rest[used..];
    }
    assert_eq!(
        parser.next(rest),
        Step::Admin {
            used: 9,
            admin: Admin::Version
        }
    );
}
