//! Clients that have yet to authenticate: they hold little, and nothing is stored for them.

use glimmer_base::limits::{
    LOCKED_ARGUMENTS_MAX, LOCKED_BYTES_MAX, LOGIN_BYTES_MAX, LOGIN_LINE_BYTES_MAX,
};
use glimmer_proto::control::Answer;
use glimmer_proto::text::login::{self, Login};
use glimmer_proto::{Accepts, Admin, After, Control, Limits, Parser, Step};
use proptest::prelude::*;

/// The reply to a step, if it is a line of RESP, and whether the connection goes on.
fn line(step: Step<'_>) -> (usize, &'static str, After) {
    match step {
        Step::Refuse { used, line, then } => (used, line, then),
        other => panic!("{other:?}"),
    }
}

const NO_AUTH: &str = "-NOAUTH Authentication required.\r\n";

/// A value of a stranger is refused before it arrives, and passed over without being kept.
#[test]
fn stores_are_refused_at_their_names() {
    let heads = [
        "*3\r\n$3\r\nSET\r\n",
        "*3\r\n$3\r\nset\r\n",
        "*4\r\n$5\r\nSETEX\r\n",
        "*4\r\n$6\r\nPSETEX\r\n",
        "*3\r\n$5\r\nSETNX\r\n",
        "*3\r\n$6\r\nGETSET\r\n",
        "*9\r\n$4\r\nMSET\r\n",
    ];
    for head in heads {
        let mut parser = Parser::accepting(Accepts::Resp, Limits::default());
        let Step::Need { need, .. } = parser.next_locked(&head.as_bytes()[..5]) else {
            panic!("{head:?} has begun");
        };
        assert!(need <= head.len());
        let step = parser.next_locked(head.as_bytes());
        assert_eq!(
            line(step),
            (head.len(), NO_AUTH, After::Continue),
            "{head:?}"
        );
        // Whatever follows of it leaves the receive buffer at once.
        assert_eq!(
            parser.next_locked(b"$900000\r\n"),
            Step::Swallowed { used: 9 }
        );
        let piece = [b'x'; 4096];
        assert_eq!(parser.next_locked(&piece), Step::Swallowed { used: 4096 });
    }
    // The next command is read where the refused one ends.
    let mut parser = Parser::accepting(Accepts::Resp, Limits::default());
    let mut rest =
        &b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\nvalue\r\n*2\r\n$4\r\nAUTH\r\n$1\r\np\r\n"[..];
    loop {
        match parser.next_locked(rest) {
            Step::Refuse { used, .. } | Step::Swallowed { used } => rest = &rest[used..],
            Step::Admin {
                admin: Admin::Control(Control::Login(Some(_)), _),
                ..
            } => break,
            other => panic!("{other:?}"),
        }
    }
}

/// What a stranger is answered to one command.
fn answered(input: &[u8]) -> String {
    let mut parser = Parser::accepting(Accepts::Resp, Limits::default());
    let (mut replies, mut rest) = (Vec::new(), input);
    while !rest.is_empty() {
        let used = match parser.next_locked(rest) {
            Step::Refuse { used, line, then } => {
                assert_eq!(then, After::Continue);
                replies.extend_from_slice(line.as_bytes());
                used
            }
            Step::Answer {
                used, words, text, ..
            } => {
                words.emit(&Control::Answered(text), Answer::Done, &mut replies);
                used
            }
            Step::Swallowed { used } => used,
            other => panic!("{other:?}"),
        };
        rest = &rest[used..];
    }
    String::from_utf8(replies).unwrap()
}

/// As in Redis, whatever else is wrong with it.
#[test]
fn each_command_is_answered_with_one_refusal() {
    let large = "v".repeat(100_000);
    for command in [
        "EXEC",
        "DISCARD",
        "MULTI",
        "UNWATCH",
        "WATCH a",
        "SELECT 0",
        "SELECT 1",
        "PING a",
        "PING a b",
        "OBJECT HELP",
        "EVAL text 0",
        "EVALSHA x 0",
        "SCRIPT LOAD x",
        "SCRIPT EXISTS x",
        "SCRIPT FLUSH",
        "GET ",
        "MGET a b",
        "DEL a b c",
        "EXPIRE a x",
        "EXPIRE a 1 NOPE",
        "SETEX a 0 x",
        "SET a 1 NX XX",
        "GETRANGE a x y",
        "INCRBY a x",
        "SCAN x",
        "COPY a a",
        "FLUSHALL x",
        "HELLO 3",
        "CLIENT GETNAME",
        "CLIENT SETNAME a",
        "CLIENT TRACKING ON",
        "CLIENT CACHING YES",
        "CONFIG GET save",
        "LATENCY RESET",
        "MEMORY USAGE a NOPE",
        "OBJECT FREQ a",
        &format!("SET a {large}"),
        &format!("SETRANGE a x {large}"),
        &format!("MSET a {large} b {large}"),
    ] {
        let said = answered(array(command).as_bytes());
        assert_eq!(said, NO_AUTH, "{command:.40}");
    }
    assert_eq!(
        answered(b"GET a\"b\"\r\n"),
        "-ERR quotes within inline arguments are not supported\r\n"
    );
    // These come before it, and faults of a login are told.
    for (command, line) in [
        ("NOPE", "-ERR unknown command 'NOPE'"),
        ("GET", "-ERR wrong number of arguments for 'get'"),
        ("CLIENT NOPE", "-ERR unknown subcommand 'NOPE'"),
        ("CLIENT ID x", "-ERR wrong number of arguments for 'cli"),
        ("AUTH a b c", "-ERR syntax error"),
        ("HELLO 9", "-NOPROTO"),
        ("HELLO x", "-ERR Protocol version"),
        ("HELLO 3 NOPE", "-ERR Syntax error in HELLO option"),
    ] {
        let said = answered(array(command).as_bytes());
        assert!(said.starts_with(line), "{command}: {said}");
        assert_eq!(said.matches("\r\n").count(), 1);
    }
}

/// A command as an array; its arguments are separated by spaces.
fn array(command: &str) -> String {
    let words: Vec<&str> = command.split(' ').collect();
    let bulk = |word: &&str| format!("${}\r\n{word}\r\n", word.len());
    let bulks: String = words.iter().map(bulk).collect();
    format!("*{}\r\n{bulks}", words.len())
}

#[test]
fn long_commands_close_the_connection() {
    let first =
        |input: &[u8]| line(Parser::accepting(Accepts::Resp, Limits::default()).next_locked(input));
    let (_, says, then) = first(b"*11\r\n");
    assert_eq!(
        (says, then),
        (
            "-ERR Protocol error: unauthenticated multibulk length\r\n",
            After::Close
        )
    );
    let (_, says, then) = first(b"*2\r\n$3\r\nGET\r\n$16384\r\n");
    assert_eq!(
        (says, then),
        (
            "-ERR Protocol error: unauthenticated bulk length\r\n",
            After::Close
        )
    );
    // A name that is a value.
    let (_, _, then) = first(b"*3\r\n$1000000\r\n");
    assert_eq!(then, After::Close);
    // Ten long arguments.
    let mut long = b"*10\r\n".to_vec();
    for _ in 0..LOCKED_ARGUMENTS_MAX {
        long.extend_from_slice(b"$2000\r\n");
        long.extend_from_slice(&[b'x'; 2000]);
        long.extend_from_slice(b"\r\n");
    }
    assert_eq!(first(&long).2, After::Close);
    assert_eq!(first(&[b'x'; LOCKED_BYTES_MAX]).2, After::Close);
    assert_eq!(first(b"a b c d e f g h i j k\r\n").2, After::Close);
}

/// memcached looks at the header alone, too.
#[test]
fn binary_stores_close_the_connection_at_their_headers() {
    for opcode in 0..=u8::MAX {
        let mut packet = [0; 24];
        (packet[0], packet[1], packet[3], packet[4]) = (0x80, opcode, 1, 8);
        packet[8..12].copy_from_slice(&1_000_009_u32.to_be_bytes());
        let mut parser = Parser::accepting(Accepts::Binary, Limits::default());
        match parser.next_locked(&packet) {
            Step::Answer {
                then: After::Close,
                used: 24,
                ..
            } => {}
            // A login has 8 KiB at most.
            Step::Answer {
                then: After::Continue,
                ..
            }
            | Step::Need { need: 33, .. } => {
                assert!(matches!(opcode, 0x0b | 0x20..=0x22), "{opcode:#x}");
            }
            other => panic!("{opcode:#x}: {other:?}"),
        }
    }
}

/// Bytes that look like commands, lengths that lie included.
fn commands() -> impl Strategy<Value = Vec<u8>> {
    let bulk = (0..40_000_usize, 0..60_usize).prop_map(|(said, sent)| {
        let mut bytes = format!("${said}\r\n").into_bytes();
        bytes.resize(bytes.len() + said.min(sent), b'v');
        bytes.extend_from_slice(b"\r\n");
        bytes
    });
    let name = prop_oneof![
        Just("SET"),
        Just("GET"),
        Just("AUTH"),
        Just("HELLO"),
        Just("DEL")
    ];
    let name = name.prop_map(|name| format!("${}\r\n{name}\r\n", name.len()).into_bytes());
    let array = (0..14_u32).prop_map(|count| format!("*{count}\r\n").into_bytes());
    let header = (any::<u8>(), 0..300_u16, any::<u8>(), 0..50_000_u32).prop_map(
        |(opcode, key, extras, body)| {
            let mut packet = vec![0; 24];
            (packet[0], packet[1], packet[4]) = (0x80, opcode, extras);
            packet[2..4].copy_from_slice(&key.to_be_bytes());
            packet[8..12].copy_from_slice(&body.to_be_bytes());
            packet
        },
    );
    let piece = prop_oneof![
        4 => bulk,
        2 => name,
        2 => array,
        1 => header,
        1 => (0..30_000_usize).prop_map(|length| vec![b'x'; length]),
        1 => "set k 0 0 [0-9]{1,6}\r\n".prop_map(String::into_bytes),
        1 => prop::collection::vec(any::<u8>(), 0..40),
    ];
    prop::collection::vec(piece, 1..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// However its bytes arrive, a stranger makes the server wait for few bytes, and nothing but
    /// logins is carried out.
    #[test]
    fn strangers_hold_little(
        stream in commands(),
        piece in 1..9_000_usize,
        accepts in prop_oneof![Just(Accepts::Resp), Just(Accepts::Binary)],
    ) {
        let mut parser = Parser::accepting(accepts, Limits::default());
        let (mut front, mut arrived) = (0, 0);
        'stream: while arrived < stream.len() {
            arrived = stream.len().min(arrived + piece);
            while front < arrived {
                match parser.next_locked(&stream[front..arrived]) {
                    Step::Need { need, announced } => {
                        prop_assert!(announced.is_none());
                        prop_assert!(need <= LOCKED_BYTES_MAX, "waits for {need} bytes");
                        break;
                    }
                    Step::Request { request, .. } => prop_assert!(false, "{request:?}"),
                    Step::Admin { used, admin } => {
                        let is_open = matches!(
                            admin,
                            Admin::Control(
                                Control::Login(_) | Control::Quit | Control::Mechanisms, _
                            )
                        );
                        prop_assert!(is_open, "{admin:?}");
                        front += used;
                    }
                    Step::Refuse { then: After::Close, .. }
                    | Step::Answer { then: After::Close, .. } => break 'stream,
                    Step::Refuse { used, .. }
                    | Step::Answer { used, .. }
                    | Step::Swallowed { used } => front += used,
                    step @ Step::Queue { .. } => prop_assert!(false, "{step:?}"),
                }
            }
        }
    }

    /// The text protocol has a login of its own.
    #[test]
    fn text_logins_are_short(stream in commands()) {
        if let Login::Need { need } = login::read(&stream) {
            prop_assert!(need <= LOGIN_LINE_BYTES_MAX + LOGIN_BYTES_MAX + 4);
        }
    }
}
