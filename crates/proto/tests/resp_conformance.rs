//! What every kind of input does to the parser of RESP: bytes in, steps out. The replies to
//! malformed commands are those of Redis 7.0; where ours differ, the row says so.

use glimmer_base::limits::RESP_QUEUE_BYTES_MAX;
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
        // Transactions: the commands are handed out after EXEC.
        (
            "MULTI\r\nSET a 1\r\n*0\r\nDEL a b\r\nEXEC\r\nGET c\r\n",
            &[
                "says +OK",
                "says +QUEUED",
                "says +QUEUED",
                "says *2",
                "Write a",
                "skips",
                "Delete a",
                "Delete b",
                "Sum",
                "skips",
                "Get c",
            ],
        ),
        (
            "MULTI\r\nGET a\r\n*0\r\n \r\nEXEC\r\nGET c\r\n",
            &[
                "says +OK",
                "says +QUEUED",
                "says *1",
                "Get a",
                "skips",
                "skips",
                "skips",
                "Get c",
            ],
        ),
        (
            "MULTI\r\nDEL a b\r\n*-1\r\n*1\r\n$4\r\nEXEC\r\n*-1\r\nGET c\r\n",
            &[
                "says +OK",
                "says +QUEUED",
                "says *1",
                "Delete a",
                "Delete b",
                "Sum",
                "skips",
                "skips",
                "skips",
                "Get c",
            ],
        ),
        (
            "MULTI\r\n*0\r\nEXEC\r\nGET c\r\n",
            &["says +OK", "says *0", "Get c"],
        ),
        (
            "MULTI\r\nGET a\r\n\r\nDISCARD\r\nGET c\r\n",
            &["says +OK", "says +QUEUED", "says +OK", "Get c"],
        ),
        (
            "MULTI\r\nEXEC\r\nEXEC\r\nDISCARD\r\n",
            &[
                "says +OK",
                "says *0",
                "says -ERR EXEC without MULTI",
                "says -ERR DISCARD without MULTI",
            ],
        ),
        (
            "MULTI\r\nGET a\r\nNOPE\r\nGET b\r\nEXEC\r\nGET c\r\n",
            &[
                "says +OK",
                "says +QUEUED",
                "says -ERR unknown command \\'NOPE\\', with args beginning with:",
                "says +QUEUED",
                "says -EXECABORT Transaction discarded because of previous errors.",
                "Get c",
            ],
        ),
        (
            "MULTI\r\nGET a\r\nDISCARD\r\nGET c\r\nMULTI\r\nGET d",
            &[
                "says +OK",
                "says +QUEUED",
                "says +OK",
                "Get c",
                "says +OK",
                "needs 6 of 5",
            ],
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

/// A transaction that there is no memory for is given up. Its last command may have arrived in
/// part.
#[test]
fn a_transaction_without_memory_is_given_up() {
    for tail in [
        "",
        "*3\r\n$3\r\nSET\r\n$1",
        "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$100\r\nx",
    ] {
        let mut parser = Parser::accepting(Accepts::Resp, Limits::default());
        let input = format!("MULTI\r\nSET a 1\r\nSET a 2\r\n{tail}");
        let mut rest = input.as_bytes();
        while let Step::Refuse { used, .. } = parser.next(rest) {
            rest = &rest[used..];
        }
        assert!(parser.keeps_commands());
        parser.refuse_value();
        let Step::Swallowed { used } = parser.next(rest) else {
            panic!("the queue is given up");
        };
        assert_eq!(&rest[used..], tail.as_bytes());
        rest = &rest[used..];
        if let Step::Refuse { used, line, .. } = parser.next(rest) {
            assert!(line.starts_with("-OOM"), "{line}");
            rest = &rest[used..];
        }
        let all = match tail.len() {
            0 => "EXEC\r\n".to_string(),
            1..20 => "\r\na\r\n$1\r\nx\r\nEXEC\r\n".to_string(),
            _ => format!("{}\r\nEXEC\r\n", "x".repeat(99)),
        };
        let all = [rest, all.as_bytes()].concat();
        let mut rest = &all[..];
        loop {
            match parser.next(rest) {
                Step::Refuse { used, line, .. } if line.starts_with("-EXECABORT") => {
                    assert_eq!(used, rest.len());
                    break;
                }
                Step::Refuse { used, .. } | Step::Swallowed { used } => rest = &rest[used..],
                other => panic!("{other:?}"),
            }
        }
    }
}

/// The commands of a transaction are bounded together, whatever they are: those that are arrays,
/// those that are lines, and lines without a command, to which nothing is said.
#[test]
fn a_transaction_is_as_long_as_it_may_be_and_no_longer() {
    let value = "x".repeat(RESP_QUEUE_BYTES_MAX - 100_000);
    let head = format!(
        "MULTI\r\n*3\r\n$3\r\nSET\r\n$1\r\na\r\n${}\r\n",
        value.len()
    );
    let line = format!("GET {}\r\n", " ".repeat(40_000) + "a");
    let blank = " ".repeat(40_000) + "\r\n";
    let array = format!("*2\r\n$4\r\nECHO\r\n$40000\r\n{}\r\n", "x".repeat(40_000));
    for (kind, is_told) in [(line, true), (blank, false), (array, true)] {
        let tail = kind.repeat(4) + "*1\r\n$4\r\nPING\r\nEXEC\r\nGET c\r\n";
        let all = steps(&[head.as_bytes(), value.as_bytes(), b"\r\n", tail.as_bytes()].concat());
        let refusal = "says -ERR the transaction is too large (see docs/resp.md)";
        let queued = 1 + if is_told { 2 } else { 0 };
        let mut expected = vec!["says +OK"];
        expected.extend(vec!["says +QUEUED"; queued]);
        expected.extend(is_told.then_some(refusal));
        assert!(
            all.iter().zip(&expected).all(|(it, other)| it == other),
            "{all:?}"
        );
        let abort = "says -EXECABORT Transaction discarded because of previous errors.";
        assert_eq!(all[all.len() - 2..], [abort, "Get c"], "{all:?}");
    }
}

/// Keys in a command that is too long to be kept, with something bad among them. What is said, and
/// how many requests there are.
fn long(name: &str, arguments: &[&[u8]]) -> (Vec<String>, usize) {
    let mut command = format!("*{}\r\n${}\r\n{name}\r\n", arguments.len() + 1, name.len());
    let mut bytes = std::mem::take(&mut command).into_bytes();
    for argument in arguments {
        bytes.extend(format!("${}\r\n", argument.len()).bytes());
        bytes.extend_from_slice(argument);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"PING\r\n");
    let all = steps(&bytes);
    let is_request = |line: &&String| {
        ["Get ", "Write ", "Delete "]
            .iter()
            .any(|it| line.starts_with(it))
    };
    let requests = all.iter().filter(is_request).count();
    let rest = all
        .iter()
        .filter(|line| !is_request(line) && *line != "skips");
    (rest.cloned().collect(), requests)
}

/// A command of any length is executed, and holds no more than its part that has arrived.
#[test]
fn long_commands_are_executed_as_they_arrive() {
    let keys: Vec<String> = (0..200_000)
        .map(|n| format!("key-number-{n:017}"))
        .collect();
    let mut keys: Vec<&[u8]> = keys.iter().map(|key| key.as_bytes()).collect();
    assert_eq!(
        long("DEL", &keys),
        (vec!["Sum".into(), "says +PONG".into()], 200_000)
    );
    let (says, requests) = long("MGET", &keys);
    assert_eq!(
        (says, requests),
        (vec!["says *200000".into(), "says +PONG".into()], 200_000)
    );
    assert_eq!(
        long("MSET", &keys),
        (vec!["Sum".into(), "says +PONG".into()], 100_000)
    );
    // Keys that no item can have.
    let wrong = vec![b'x'; 100_000];
    (keys[100_001], keys[199_999]) = (&wrong, b"");
    assert_eq!(
        long("EXISTS", &keys),
        (vec!["Sum".into(), "says +PONG".into()], 199_998)
    );
    let (says, requests) = long("MGET", &keys);
    assert_eq!((says.len(), requests), (4, 199_998));
    assert_eq!(says[1..3], ["says $-1", "says $-1"]);
    // Values of which one is too large.
    let wrong = vec![b'x'; 2 << 20];
    keys[100_001] = &wrong;
    assert_eq!(long("MSET", &keys).1, 99_999);
    keys[100_002] = b"";
    assert_eq!(long("MSET", &keys).1, 99_998);
}

/// However little of a long command is there, the parser asks for no more than the next argument.
#[test]
fn the_rest_of_a_long_command_is_not_waited_for() {
    let mut parser = Parser::accepting(Accepts::Resp, Limits::default());
    let mut input = b"*100001\r\n$3\r\nDEL\r\n".to_vec();
    let mut held_max = 0;
    for nth in 0..100_000 {
        input.extend(format!("$10\r\n{nth:010}\r\n").bytes());
        while !input.is_empty() {
            let used = match parser.next(&input) {
                Step::Need { need, .. } => {
                    assert!(need <= input.len() + 20);
                    break;
                }
                Step::Swallowed { used }
                | Step::Request { used, .. }
                | Step::Admin { used, .. } => used,
                other => panic!("{other:?}"),
            };
            input.drain(..used);
        }
        held_max = held_max.max(input.len());
    }
    assert!(input.is_empty() && held_max < 70_000, "{held_max}");
}
