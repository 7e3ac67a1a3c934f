//! What every kind of input does to the parser of RESP: bytes in, steps out. The replies to
//! malformed commands are those of Redis 7.0; where ours differ, the row says so.

use glimmer_proto::control::{Answer, Control};
use glimmer_proto::{Accepts, Admin, After, Limits, Parser, Step};

/// What becomes of the bytes, one line for each step.
fn steps(mut input: &[u8]) -> Vec<String> {
    let mut parser = Parser::accepting(Accepts::Resp, Limits::default());
    let mut lines = Vec::new();
    while !input.is_empty() {
        let (used, line) = match parser.next(input) {
            Step::Need { need, .. } => {
                lines.push(format!("needs {need} of {}", input.len()));
                return lines;
            }
            Step::Swallowed { used } => (used, "skips".into()),
            Step::Request { used, request } => {
                let key = request.key.escape_ascii();
                (used, format!("{} {key}", name(&request)))
            }
            Step::Refuse { used, line, then } => (used, said(line.as_bytes(), then)),
            Step::Answer {
                used,
                words,
                text,
                then,
            } => {
                let mut out = Vec::new();
                words.emit(&Control::Answered(text), Answer::Done, &mut out);
                (used, said(&out, then))
            }
            Step::Admin { used, admin } => match admin {
                Admin::Control(control, _) => (used, format!("{control:?}")),
                other => panic!("{other:?} is memcached's"),
            },
        };
        lines.push(line);
        input = &input[used..];
    }
    lines
}

fn name(request: &glimmer_proto::Request<'_>) -> String {
    let verb = format!("{:?}", request.verb);
    let end = verb.find([' ', '(']).unwrap_or(verb.len());
    verb[..end].into()
}

fn said(line: &[u8], then: After) -> String {
    let end = match then {
        After::Continue => "",
        After::Close => " and closes",
    };
    format!("says {}{end}", line.trim_ascii_end().escape_ascii())
}

#[test]
fn each_input_has_its_steps() {
    let rows: &[(&str, &[&str])] = &[
        // Arrays.
        ("*2\r\n$3\r\nGET\r\n$1\r\na\r\n", &["Get a"]),
        ("*2\r\n$3\r\nget\r\n$3\r\na b\r\n", &["Get a b"]),
        (
            "*3\r\n$4\r\nMGET\r\n$1\r\na\r\n$1\r\nb\r\n",
            &["Get a", "Get b"],
        ),
        (
            "*3\r\n$3\r\nDEL\r\n$1\r\na\r\n$1\r\nb\r\n",
            &["Delete a", "Delete b", "Sum"],
        ),
        (
            "*0\r\n*-1\r\n*1\r\n$4\r\nPING\r\n",
            &["skips", "skips", "says +PONG"],
        ),
        // Not complete.
        ("*", &["needs 2 of 1"]),
        ("*2\r\n$3\r\nGET\r\n", &["needs 14 of 13"]),
        ("*2\r\n$3\r\nGET\r\n$5\r\nab", &["needs 24 of 19"]),
        // The last key of several is waited for before the first is executed.
        ("*3\r\n$4\r\nMGET\r\n$1\r\na\r\n", &["needs 22 of 21"]),
        // Malformed.
        (
            "*x\r\n",
            &["says -ERR Protocol error: invalid multibulk length and closes"],
        ),
        (
            "*1\r\n$-1\r\n",
            &["says -ERR Protocol error: invalid bulk length and closes"],
        ),
        (
            "*1\r\n+PING\r\n",
            &["says -ERR Protocol error: expected \\'$\\', got \\'+\\' and closes"],
        ),
        (
            "*1\r\n$600000000\r\n",
            &["says -ERR Protocol error: invalid bulk length and closes"],
        ),
        // Redis passes over two bytes, whatever they are.
        (
            "*1\r\n$4\r\nPING!!",
            &["says -ERR Protocol error: invalid bulk length and closes"],
        ),
        // Inline.
        ("PING\r\n", &["says +PONG"]),
        ("get  'a b' \n", &["Get a b"]),
        ("\r\nmget a b\r\n", &["skips", "Get a", "Get b"]),
        ("del a b\n", &["Delete a", "Delete b", "Sum"]),
        (
            "get \"a\r\n",
            &["says -ERR Protocol error: unbalanced quotes in request and closes"],
        ),
        // Redis replaces escapes.
        (
            "get \"\\x41\"\r\n",
            &["says -ERR escape sequences in inline commands are not supported"],
        ),
        // Keys that Redis takes.
        (
            "*2\r\n$3\r\nGET\r\n$0\r\n\r\n",
            &["says -ERR keys have 1 to 250 bytes"],
        ),
        (
            "*3\r\n$3\r\nDEL\r\n$1\r\na\r\n$0\r\n\r\n",
            &["says -ERR keys have 1 to 250 bytes"],
        ),
        // Larger than any item: the rest is skipped, and not received into memory.
        (
            "*4\r\n$3\r\nSET\r\n$1\r\na\r\n$2000000\r\nxxxx",
            &[
                "says -ERR string exceeds maximum allowed size (see -I)",
                "skips",
            ],
        ),
        (
            "*1\r\n$4\r\nNOPE\r\n",
            &["says -ERR unknown command \\'NOPE\\', with args beginning with:"],
        ),
        (
            "*1\r\n$3\r\nGET\r\n",
            &["says -ERR wrong number of arguments for \\'get\\' command"],
        ),
    ];
    for (input, expected) in rows {
        assert_eq!(steps(input.as_bytes()), *expected, "for {input:?}");
    }
}

/// Only a first byte that no command of memcached's begins with makes a connection speak RESP.
#[test]
fn the_first_byte_tells() {
    for first in 0..=u8::MAX {
        let mut parser = Parser::new(Limits::default());
        parser.next(&[first]);
        let is_resp = matches!(parser, Parser::Resp(_));
        assert_eq!(is_resp, first == b'*', "{first}");
    }
}

/// A value that there is no memory for is refused and skipped, and the next command is read.
#[test]
fn a_value_without_memory_is_skipped() {
    let mut parser = Parser::accepting(Accepts::Resp, Limits::default());
    let input = b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$6\r\nvalue!\r\n*1\r\n$4\r\nPING\r\n";
    let at = input.len() - 20;
    assert!(matches!(parser.next(&input[..at]), Step::Need { .. }));
    parser.refuse_value();
    let Step::Refuse { used, line, .. } = parser.next(&input[..at]) else {
        panic!("the value is refused");
    };
    assert!(line.starts_with("-OOM"));
    let mut rest = &input[used..];
    while let Step::Swallowed { used } = parser.next(rest) {
        rest = &rest[used..];
        if rest.first() == Some(&b'*') {
            break;
        }
    }
    assert_eq!(rest, b"*1\r\n$4\r\nPING\r\n");
}
