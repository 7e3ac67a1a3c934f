//! Transactions of RESP whose commands leave the input, or find no memory there: each command gets
//! one reply, however it arrives and whatever the caller cannot keep.

use glimmer_base::limits::RESP_QUEUE_BYTES_KEPT;
use glimmer_proto::control::{Answer, Control};
use glimmer_proto::{Accepts, After, Limits, Parser, Step};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// Transactions that a run of the random test tries.
const TRANSACTIONS: usize = 2_000;

const OK: &str = "+OK";
const QUEUED: &str = "+QUEUED";
const NESTED: &str = "-ERR MULTI calls can not be nested";
const WATCH_INSIDE: &str = "-ERR WATCH inside MULTI is not allowed";
const OUT_OF_MEMORY: &str = "-OOM command not allowed when used memory > 'maxmemory'.";
const EXEC_ABORT: &str = "-EXECABORT Transaction discarded because of previous errors.";

fn array(words: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len());
    for word in words {
        bytes += &format!("${}\r\n{word}\r\n", word.len());
    }
    bytes.into_bytes()
}

/// What happens to a transaction on its way.
struct Way {
    /// Bytes that arrive at a time.
    pieces: Vec<usize>,
    /// Refuses memory for the input once this many bytes have arrived.
    input_refused_at: usize,
    /// The [`Step::Queue`] whose bytes are not kept.
    refused: usize,
}

/// What is said to these bytes, without line ends: one line for each reply, and one for each
/// request. And how many [`Step::Queue`] there were. Nothing follows what closes the connection.
fn told(mut stream: Vec<u8>, way: &Way) -> (Vec<String>, usize) {
    let mut parser = Parser::accepting(Accepts::Resp, Limits::default());
    let (mut front, mut arrived, mut kept, mut steps) = (0, 0, Vec::new(), 0);
    let mut may_refuse_input = way.input_refused_at < stream.len();
    let mut pieces = way.pieces.iter().cycle();
    let mut lines = Vec::new();
    let mut say = |line: &str| match line.trim_ascii_end() {
        "" => {}
        line => lines.push(line.to_owned()),
    };
    while front < stream.len() {
        let mut replays = false;
        let input = &stream[front..arrived];
        let used = match parser.next(input) {
            Step::Need { .. } if arrived == stream.len() => panic!("all has arrived"),
            Step::Need { .. } => {
                if may_refuse_input && arrived >= way.input_refused_at && parser.keeps_commands() {
                    may_refuse_input = false;
                    parser.refuse_value();
                } else {
                    arrived = stream.len().min(arrived + pieces.next().unwrap());
                }
                0
            }
            Step::Queue { used, line } => {
                match steps == way.refused {
                    true => say(parser.refuse_queue(line)),
                    false => say(line),
                }
                steps += 1;
                kept.extend_from_slice(&input[..used]);
                used
            }
            Step::Refuse { used, line, then } => {
                say(line);
                if then == After::Close {
                    return (lines, steps);
                }
                used
            }
            Step::Answer {
                used,
                words,
                text,
                then,
            } => {
                let mut out = Vec::new();
                words.emit(&Control::Answered(text), Answer::Done, &mut out);
                say(&String::from_utf8(out).unwrap());
                replays = then == After::Replay;
                used
            }
            Step::Request { used, request } => {
                say(&format!("executes {}", request.key.escape_ascii()));
                used
            }
            Step::Swallowed { used } => used,
            Step::Admin { .. } => panic!("no command is one of the server's"),
        };
        front += used;
        if replays {
            stream = [&kept[..], &stream[front..]].concat();
            (front, arrived) = (0, kept.len());
        }
        if !parser.queues_apart() {
            kept.clear();
        }
    }
    (lines, steps)
}

/// Bytes that arrive at a time, and nothing is refused.
fn in_pieces(bytes: usize) -> Way {
    Way {
        pieces: vec![bytes],
        input_refused_at: usize::MAX,
        refused: usize::MAX,
    }
}

/// The replies to a transaction, in which the bytes that are handed over first are not kept.
fn refused(commands: &[&[u8]], input_refused_at: usize) -> Vec<String> {
    let way = Way {
        pieces: vec![1_000],
        input_refused_at,
        refused: 0,
    };
    told(commands.concat(), &way).0
}

/// There is no memory for commands that were answered, because of a large one that follows: this
/// one is refused.
#[test]
fn a_refusal_is_told_to_the_command_that_arrives() {
    let (multi, exec) = (array(&["MULTI"]), array(&["EXEC"]));
    let large = array(&["SET", "b", &"x".repeat(5 * RESP_QUEUE_BYTES_KEPT)]);
    let (get, inline) = (array(&["GET", "c"]), &b"GET c\r\n"[..]);
    let get_d: &[u8] = b"GET d\r\n";
    let rest = [QUEUED, EXEC_ABORT, "executes d"];
    let said = refused(&[&multi, &get, &large, &get, &exec, get_d], usize::MAX);
    assert_eq!(said, [&[OK, QUEUED, OUT_OF_MEMORY][..], &rest].concat());
    // The input has no memory for another one.
    for next in [&get[..], inline] {
        for at in 0..next.len() {
            let at = multi.len() + get.len() + at;
            let pieces = (1..=next.len()).map(|pieces| Way {
                pieces: vec![pieces],
                input_refused_at: at,
                refused: 0,
            });
            for way in pieces {
                let all = [&multi, &get, next, &get, &exec, get_d].concat();
                let (said, steps) = told(all, &way);
                if steps > 0 {
                    let refusals = said.iter().filter(|line| *line == OUT_OF_MEMORY);
                    assert_eq!((refusals.count(), said.len()), (1, 6), "{said:?}");
                }
            }
        }
    }
}

/// What a transaction does not queue is answered as ever after such a refusal.
#[test]
fn a_refusal_waits_for_a_command_to_be_queued() {
    let get: &[u8] = b"GET a\r\n";
    let multi: &[u8] = b"MULTI\r\n";
    let watch: &[u8] = b"WATCH a\r\n";
    let (start, last) = ([OK, QUEUED], [EXEC_ABORT, "executes a"]);
    for (between, said) in [
        (&[][..], &[][..]),
        (&[watch, get, get], &[WATCH_INSIDE, OUT_OF_MEMORY, QUEUED]),
        (&[b"\r\n*0\r\n", multi, get], &[NESTED, OUT_OF_MEMORY]),
    ] {
        let all = [&[multi, get], between, &[b"EXEC\r\n", get]].concat();
        let way = Way {
            pieces: vec![1],
            input_refused_at: multi.len() + get.len(),
            refused: 0,
        };
        let (told, steps) = told(all.concat(), &way);
        assert_eq!(steps, 1);
        assert_eq!(told, [&start[..], said, &last].concat());
    }
}

/// A command that stores so much that a transaction leaves the input.
fn large() -> Vec<u8> {
    array(&["SET", "large", &"x".repeat(RESP_QUEUE_BYTES_KEPT)])
}

/// Subcommands are looked at before their commands are queued, as in Redis.
#[test]
fn wrong_subcommands_give_a_transaction_up() {
    let arity = |names| format!("-ERR wrong number of arguments for '{names}' command");
    let unknown = |name, command| format!("-ERR unknown subcommand '{name}'. Try {command} HELP.");
    let wrong: [(&[&str], String); 13] = [
        (&["CLIENT", "ID", "x"], arity("client|id")),
        (&["client", "setname"], arity("client|setname")),
        (&["CONFIG", "GET"], arity("config|get")),
        (&["COMMAND", "COUNT", "x"], arity("command|count")),
        (&["MEMORY", "USAGE"], arity("memory|usage")),
        (&["OBJECT", "ENCODING"], arity("object|encoding")),
        (&["SCRIPT", "LOAD"], arity("script|load")),
        (&["SLOWLOG", "LEN", "x"], arity("slowlog|len")),
        (&["CLIENT", "HELP", "x"], arity("client|help")),
        (&["slowlog", "help", "x"], arity("slowlog|help")),
        (&["LATENCY", "NOPE"], unknown("NOPE", "LATENCY")),
        (
            &["COMMAND", "longer-than-names"],
            unknown("longer-than-names", "COMMAND"),
        ),
        (&["CLIENT", ""], unknown("", "CLIENT")),
    ];
    for (words, error) in &wrong {
        let quoted: Vec<_> = words.iter().map(|word| format!("'{word}'")).collect();
        let inline = quoted.join(" ").into_bytes();
        for command in [array(words), [&inline[..], b"\r\n"].concat()] {
            for (before, queued) in [(Vec::new(), 0), (large(), 1)] {
                let all = [&b"MULTI\r\n"[..], &before, &command, b"EXEC\r\n"].concat();
                let expected = [&[OK][..], &[QUEUED][..queued], &[error, EXEC_ABORT]].concat();
                for piece in [1, 1_000] {
                    assert_eq!(told(all.clone(), &in_pieces(piece)).0, expected);
                }
            }
        }
    }
}

#[test]
fn right_subcommands_are_queued() {
    let commands = [
        array(&["OBJECT", "ENCODING", "k"]),
        array(&["client", "setname", "x"]),
        array(&["MEMORY", "USAGE", "k", "SAMPLES", "5"]),
        array(&["SCRIPT", "LOAD", &"x".repeat(2 * RESP_QUEUE_BYTES_KEPT)]),
        array(&["OBJECT", "ENCODING", "k"]),
        array(&["COMMAND"]),
        array(&["OBJECT", "help"]),
        array(&["PING", "a", "b"]),
    ];
    let all = [b"MULTI\r\n", &commands.concat()[..], b"EXEC\r\n"].concat();
    for piece in [1, 1_000] {
        let said = told(all.clone(), &in_pieces(piece)).0;
        let (queued, executed) = said.split_at(1 + commands.len());
        assert!(queued[1..].iter().all(|line| line == QUEUED), "{said:?}");
        assert_eq!(executed[..3], ["*8", "executes k", OK]);
        assert_eq!(executed[3..].len(), 6, "{said:?}");
        let help = "*2\r\n+OBJECT ENCODING\r\n+OBJECT REFCOUNT";
        let arity = "-ERR wrong number of arguments for 'ping' command";
        assert_eq!(executed[7..], [help, arity]);
    }
}

/// A transaction is not executed in part because of an argument that does not end as it should.
#[test]
fn an_argument_without_its_end_is_found_before_exec() {
    let broken = "-ERR Protocol error: invalid bulk length";
    for end in ["XX", "\rX", "X\n"] {
        let ping = format!("*2\r\n$4\r\nPING\r\n$3\r\nabc{end}").into_bytes();
        for (before, queued) in [(Vec::new(), 0), (large(), 1)] {
            for piece in [1, 2, 7, 1_000, usize::MAX / 2] {
                let all = [b"MULTI\r\n", &before[..], &ping, &array(&["EXEC"])].concat();
                let expected = [&[OK][..], &[QUEUED][..queued], &[broken]].concat();
                assert_eq!(told(all, &in_pieces(piece)).0, expected, "{end:?} {piece}");
            }
        }
    }
}

/// A command between `MULTI` and `EXEC`, and what is said to it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Queued,
    /// Nothing is said to it.
    Blank,
    Nested,
    Watch,
    Unknown,
}

fn random_command(rng: &mut SmallRng, kinds: &[Kind]) -> (Kind, Vec<u8>) {
    let kind = match rng.random_range(0..4) {
        0 => kinds[rng.random_range(0..kinds.len())],
        _ => Kind::Queued,
    };
    let words = match kind {
        Kind::Queued => match rng.random_range(0..2) {
            0 => vec!["GET".into(), "k".into()],
            _ => {
                let most = [10, 1_000, 5_000, 50_000][rng.random_range(0..4)];
                let value = "v".repeat(rng.random_range(1..most));
                vec!["SET".into(), "k".into(), value]
            }
        },
        Kind::Blank => {
            let blanks: [&[u8]; 3] = [b"\r\n", b"*0\r\n", b"*-1\r\n"];
            return (kind, blanks[rng.random_range(0..3)].into());
        }
        Kind::Nested => vec!["MULTI".into()],
        Kind::Watch => vec!["WATCH".into(), "k".into()],
        Kind::Unknown => vec!["NOPE".into(), "v".repeat(rng.random_range(1..200))],
    };
    let bytes = match rng.random_bool(0.3) {
        true => [words.join(" ").as_bytes(), b"\r\n"].concat(),
        false => array(&words.iter().map(String::as_str).collect::<Vec<_>>()),
    };
    (kind, bytes)
}

#[test]
fn each_command_has_one_reply() {
    let mut rng = SmallRng::seed_from_u64(glimmer_seeds::seed());
    let (mut refusals, mut executed) = (0, 0);
    for _ in 0..TRANSACTIONS {
        let all = [Kind::Blank, Kind::Nested, Kind::Watch, Kind::Unknown];
        let kinds = &all[..all.len() - usize::from(rng.random_bool(0.8))];
        let commands: Vec<_> = (0..rng.random_range(0..12))
            .map(|_| random_command(&mut rng, kinds))
            .collect();
        let mut stream = array(&["MULTI"]);
        let start = stream.len();
        commands.iter().for_each(|(_, bytes)| stream.extend(bytes));
        let end = stream.len() + 1;
        stream.extend(b"EXEC\r\nGET end\r\n");
        let most = stream.len() / [1, 5, 20, 100][rng.random_range(0..4)];
        let mut way = Way {
            pieces: (0..5).map(|_| rng.random_range(1..=most.max(2))).collect(),
            input_refused_at: match rng.random() {
                true => rng.random_range(start..end),
                false => usize::MAX,
            },
            refused: usize::MAX,
        };
        let (_, steps) = told(stream.clone(), &way);
        if steps > 0 && rng.random_bool(0.7) {
            way.refused = rng.random_range(0..steps);
        }
        let (told, _) = told(stream, &way);
        let mut told = told.iter().map(String::as_str);
        let mut next = || told.next().unwrap_or("nothing");
        assert_eq!(next(), OK);
        let (mut count, mut errors, mut out_of_memory) = (0, 0, 0);
        for (kind, _) in commands.iter().filter(|(kind, _)| *kind != Kind::Blank) {
            match (kind, next()) {
                (_, OUT_OF_MEMORY) => out_of_memory += 1,
                (Kind::Queued, QUEUED) => count += 1,
                (Kind::Nested, NESTED) | (Kind::Watch, WATCH_INSIDE) => {}
                (Kind::Unknown, line) if line.starts_with("-ERR unknown command") => errors += 1,
                (kind, line) => panic!("{kind:?} is answered with {line}"),
            }
        }
        let is_refused = way.refused != usize::MAX;
        let refused_max = usize::from(is_refused) + usize::from(way.input_refused_at != usize::MAX);
        assert!(out_of_memory <= refused_max);
        refusals += out_of_memory;
        if errors > 0 || out_of_memory > 0 || is_refused {
            assert_eq!(next(), EXEC_ABORT);
        } else {
            executed += count;
            assert_eq!(next(), format!("*{count}"));
            (0..count).for_each(|_| assert_eq!(next(), "executes k"));
        }
        assert_eq!(next(), "executes end");
        assert_eq!(next(), "nothing");
    }
    assert!(
        refusals > 0 && executed > 0,
        "{refusals} refused, {executed} executed"
    );
}
