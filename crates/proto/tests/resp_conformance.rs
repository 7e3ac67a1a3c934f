//! What every kind of input does to the parser of RESP: bytes in, steps out. The replies to
//! malformed commands are those of Redis 7.0; where ours differ, the row says so.

use glimmer_base::limits::RESP_QUEUE_BYTES_KEPT;
use glimmer_proto::control::{Answer, Control};
use glimmer_proto::{Accepts, Admin, After, Limits, Parser, Step};
use std::borrow::Cow;

/// What becomes of the bytes, one line for each step.
fn steps(input: &[u8]) -> Vec<String> {
    let mut parser = Parser::accepting(Accepts::Resp, Limits::default());
    let (mut stream, mut at, mut kept) = (Cow::Borrowed(input), 0, Vec::new());
    let mut lines = Vec::new();
    while at < stream.len() {
        let (input, mut replays) = (&stream[at..], false);
        let (used, line) = match parser.next(input) {
            Step::Need { need, .. } => {
                lines.push(format!("needs {need} of {}", input.len()));
                return lines;
            }
            Step::Queue { used, line } => {
                kept.extend_from_slice(&input[..used]);
                let told = said(line.as_bytes(), After::Continue);
                (used, told.replacen("says ", "keeps", 1))
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
                replays = then == After::Replay;
                (used, said(&out, then))
            }
            Step::Admin { used, admin } => match admin {
                Admin::Control(control, _) => (used, format!("{control:?}")),
                other => panic!("{other:?} is memcached's"),
            },
        };
        lines.push(line);
        at += used;
        if replays {
            stream = Cow::Owned([&kept[..], &stream[at..]].concat());
            at = 0;
        }
        if !parser.queues_apart() {
            kept.clear();
        }
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
        After::Replay => " and replays",
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
        (
            "get a'b\r\n",
            &["says -ERR Protocol error: unbalanced quotes in request and closes"],
        ),
        (
            "get a'b'c\r\n",
            &["says -ERR Protocol error: unbalanced quotes in request and closes"],
        ),
        // Redis has `ab` here.
        (
            "get a\"b\"\r\nget a\r\n",
            &[
                "says -ERR quotes within inline arguments are not supported",
                "Get a",
            ],
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
        // In a transaction, MULTI and WATCH are refused and change nothing.
        (
            "MULTI\r\nMULTI\r\nGET a\r\nWATCH a\r\nGET b\r\nMULTI\r\nEXEC\r\nGET c\r\n",
            &[
                "says +OK",
                "says -ERR MULTI calls can not be nested",
                "keeps+QUEUED",
                "says -ERR WATCH inside MULTI is not allowed",
                "keeps+QUEUED",
                "says -ERR MULTI calls can not be nested",
                "says *2 and replays",
                "Get a",
                "Get b",
                "Get c",
            ],
        ),
        (
            "MULTI\r\n*0\r\nGET a\r\nWATCH a\r\nEXEC\r\nGET c\r\n",
            &[
                "says +OK",
                "says +QUEUED",
                "keeps",
                "says -ERR WATCH inside MULTI is not allowed",
                "says *1 and replays",
                "skips",
                "Get a",
                "Get c",
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

/// A command is refused as a whole where there is no memory for the rest of it, which may begin
/// between two arguments. The next command is read.
#[test]
fn a_command_without_memory_for_its_rest_is_skipped() {
    let input =
        b"*4\r\n$5\r\nSETEX\r\n$1\r\na\r\n$11\r\nnot-seconds\r\n$1\r\nx\r\n*1\r\n$4\r\nPING\r\n";
    let begin = b"*4\r\n".len();
    let end = input.len() - b"*1\r\n$4\r\nPING\r\n".len();
    for at in begin..end {
        let mut parser = Parser::accepting(Accepts::Resp, Limits::default());
        assert!(matches!(parser.next(&input[..at]), Step::Need { .. }));
        assert!(parser.keeps_commands(), "{at} bytes");
        parser.refuse_value();
        let (mut front, mut arrived, mut lines) = (0, at, Vec::new());
        while front < end {
            match parser.next(&input[front..arrived]) {
                Step::Refuse { used, line, .. } => {
                    lines.push(line);
                    front += used;
                }
                Step::Swallowed { used } => front += used,
                Step::Need { need, .. } => {
                    assert!(front + need > arrived);
                    arrived += 1;
                }
                other => panic!("{other:?} at {at}"),
            }
        }
        assert!(
            matches!(lines[..], [line] if line.starts_with("-OOM")),
            "{lines:?}"
        );
        assert_eq!(front, end);
        assert!(!parser.keeps_commands());
        assert!(matches!(
            parser.next(&input[front..]),
            Step::Answer { .. } | Step::Refuse { .. }
        ));
    }
}

/// A transaction that the input has no memory for leaves it, and one that the caller does not keep
/// is given up, whichever of its bytes that are. Its last command may have arrived in part.
#[test]
fn a_transaction_without_memory_is_given_up() {
    let first = b"MULTI\r\nSET a 1\r\nSET a 2\r\n";
    let last = format!("$100\r\n{}\r\nEXEC\r\n", "x".repeat(100));
    let last = format!("*3\r\n$3\r\nSET\r\n$1\r\na\r\n{last}");
    let all = [&first[..], last.as_bytes()].concat();
    for arrived in first.len()..first.len() + last.len() - 120 {
        let mut refusals = 0;
        for refused in 0.. {
            let mut parser = Parser::accepting(Accepts::Resp, Limits::default());
            let mut front = 0;
            while let Step::Refuse { used, .. } = parser.next(&all[front..arrived]) {
                front += used;
            }
            assert!(parser.keeps_commands() && !parser.queues_apart());
            parser.refuse_value();
            let (mut arrived, mut told, mut kept) = (arrived, Vec::new(), 0);
            while front < all.len() {
                front += match parser.next(&all[front..arrived]) {
                    Step::Queue { used, line } => {
                        let is_refused = kept == refused;
                        kept += 1;
                        told.push(match is_refused {
                            true => parser.refuse_queue(line),
                            false => line,
                        });
                        assert_eq!(parser.queues_apart(), kept <= refused);
                        used
                    }
                    Step::Refuse { used, line, .. } => {
                        told.push(line);
                        used
                    }
                    Step::Answer { used, then, .. } => {
                        assert_eq!(then, After::Replay);
                        used
                    }
                    Step::Swallowed { used } => used,
                    Step::Need { .. } => {
                        arrived = all.len().min(arrived + 9);
                        0
                    }
                    other => panic!("{other:?}"),
                };
            }
            told.retain(|line| !line.is_empty());
            if kept <= refused {
                assert_eq!(told, ["+QUEUED\r\n"]);
                break;
            }
            refusals += 1;
            let (last, before) = told.split_last().unwrap();
            assert!(last.starts_with("-EXECABORT"), "{told:?}");
            let refused = before.iter().filter(|line| line.starts_with("-OOM"));
            assert_eq!(refused.count(), 1, "{told:?}");
        }
        assert!(refusals > 5);
    }
}

/// The commands of a transaction leave the input with the first that would make it too long,
/// whatever they are: those that are arrays, those that are lines, and lines without a command, to
/// which nothing is said. They are executed in order, and so is what follows.
#[test]
fn a_long_transaction_leaves_the_input() {
    let value = "x".repeat(RESP_QUEUE_BYTES_KEPT / 2);
    let set = format!(
        "*3\r\n$3\r\nSET\r\n$1\r\na\r\n${}\r\n{value}\r\n",
        value.len()
    );
    let line = format!("GET {}\r\n", " ".repeat(9_000) + "b");
    let blank = " ".repeat(9_000) + "\r\n";
    let large = set.replace(&value, &"x".repeat(RESP_QUEUE_BYTES_KEPT));
    let large = large.replace(&value.len().to_string(), &RESP_QUEUE_BYTES_KEPT.to_string());
    let queued = "keeps+QUEUED";
    for (next, now, later) in [
        (&line, queued, vec!["Get b"]),
        (&blank, "skips", vec![]),
        (&set, queued, vec!["Write a"]),
        (&large, queued, vec!["Write a"]),
    ] {
        let input = format!("MULTI\r\n{set}{next}DEL c\r\n*1\r\n$4\r\nEXEC\r\nGET d\r\n");
        let told = steps(input.as_bytes());
        let told = told.iter().map(String::as_str);
        // In how many steps a command is kept depends on how it arrives.
        let all: Vec<&str> = told.filter(|step| *step != "keeps").collect();
        let mut expected = vec!["says +OK", "says +QUEUED", now];
        let commands = if later.is_empty() { 2 } else { 3 };
        let array = format!("says *{commands} and replays");
        expected.extend([queued, &array, "Write a"]);
        expected.extend(&later);
        expected.extend(["Delete c", "Get d"]);
        assert_eq!(all, expected);
    }
}

/// A long transaction is given up for what a short one is given up for.
#[test]
fn a_long_transaction_may_be_given_up() {
    let value = "x".repeat(RESP_QUEUE_BYTES_KEPT);
    let set = format!(
        "*3\r\n$3\r\nSET\r\n$1\r\na\r\n${}\r\n{value}\r\n",
        value.len()
    );
    let abort = "says -EXECABORT Transaction discarded because of previous errors.";
    for (bad, end, last) in [
        ("NOSUCH 1 2\r\n", "EXEC", abort),
        ("*2\r\n$3\r\nSET\r\n$1\r\na\r\n", "EXEC", abort),
        ("HELLO 3\r\n", "EXEC", abort),
        (
            "*2\r\n$5\r\nWATCH\r\n$1\r\na\r\n",
            "EXEC",
            "says *1 and replays",
        ),
        ("MULTI\r\n", "EXEC", "says *1 and replays"),
        ("*0\r\n", "EXEC", "says *1 and replays"),
        ("", "DISCARD", "says +OK"),
        ("GET b\r\n", "DISCARD", "says +OK"),
    ] {
        let all = steps(format!("MULTI\r\n{set}{bad}{end}\r\nGET d\r\n").as_bytes());
        let told: Vec<&str> = all.iter().map(String::as_str).collect();
        let at = told.len() - if last.ends_with("replays") { 3 } else { 2 };
        assert_eq!(told[at], last, "{told:?}");
        assert_eq!(told.last(), Some(&"Get d"), "{told:?}");
        assert_eq!(told.contains(&"Write a"), last.ends_with("replays"));
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

/// What is passed over has to end with CR and LF, as every argument has.
#[test]
fn the_end_of_what_is_passed_over_is_looked_at() {
    let large = "x".repeat(2 << 20);
    for command in ["*3\r\n$3\r\nSET\r\n$1\r\na", "*3\r\n$4\r\nMGET\r\n$1\r\na"] {
        let input = format!("{command}\r\n${}\r\n{large}XX", large.len());
        let last = steps(input.as_bytes()).pop().unwrap();
        let closes = "says -ERR Protocol error: invalid bulk length and closes";
        assert_eq!(last, closes);
    }
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
