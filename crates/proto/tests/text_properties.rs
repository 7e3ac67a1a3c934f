//! Properties that hold for every input: no panic, progress, and independence of how bytes arrive.
//! Commands that an independent writer wrote are parsed back.

use glimmer_base::limits::LINE_BYTES_MAX;
use glimmer_proto::fuzzing::{Trace, trace};
use glimmer_proto::text::{Admin, Limits, Reply, Step};
use glimmer_proto::{Form, Request, StoreMode, Verb};
use proptest::collection::vec;
use proptest::prelude::*;

/// A command as its author means it. It shares no code with the parser.
#[derive(Clone, Debug)]
enum Command {
    Retrieve {
        cas: bool,
        exptime: Option<i32>,
        keys: Vec<Vec<u8>>,
    },
    Store {
        name: &'static str,
        key: Vec<u8>,
        flags: u32,
        exptime: i32,
        unique: u64,
        value: Vec<u8>,
        quiet: bool,
    },
    Count {
        up: bool,
        key: Vec<u8>,
        delta: u64,
        quiet: bool,
    },
    Touch {
        key: Vec<u8>,
        exptime: i32,
        quiet: bool,
    },
    Delete {
        key: Vec<u8>,
        zero: bool,
        quiet: bool,
    },
    FlushAll {
        delay: Option<i32>,
        quiet: bool,
    },
    Verbosity {
        level: u32,
        quiet: bool,
    },
    Version,
}

/// The layout of a line, which must not matter.
#[derive(Clone, Debug)]
struct Layout {
    between: usize,
    trailing: usize,
    bare_newline: bool,
}

impl Command {
    /// Writes the command as a client might.
    fn write(&self, layout: &Layout, out: &mut Vec<u8>) {
        let mut words: Vec<Vec<u8>> = Vec::new();
        let mut value = None;
        let mut noreply = false;
        let number = |n: &dyn ToString| n.to_string().into_bytes();
        match self {
            Command::Retrieve { cas, exptime, keys } => {
                let name = match (exptime, cas) {
                    (None, false) => "get",
                    (None, true) => "gets",
                    (Some(_), false) => "gat",
                    (Some(_), true) => "gats",
                };
                words.push(name.into());
                words.extend(exptime.iter().map(|exptime| number(exptime)));
                words.extend(keys.iter().cloned());
            }
            Command::Store {
                name,
                key,
                flags,
                exptime,
                unique,
                value: bytes,
                quiet,
            } => {
                words = vec![
                    (*name).into(),
                    key.clone(),
                    number(flags),
                    number(exptime),
                    number(&bytes.len()),
                ];
                if *name == "cas" {
                    words.push(number(unique));
                }
                noreply = *quiet;
                value = Some(bytes);
            }
            Command::Count {
                up,
                key,
                delta,
                quiet,
            } => {
                words = vec![
                    if *up { "incr" } else { "decr" }.into(),
                    key.clone(),
                    number(delta),
                ];
                noreply = *quiet;
            }
            Command::Touch {
                key,
                exptime,
                quiet,
            } => {
                words = vec!["touch".into(), key.clone(), number(exptime)];
                noreply = *quiet;
            }
            Command::Delete { key, zero, quiet } => {
                words = vec!["delete".into(), key.clone()];
                words.extend(zero.then(|| "0".into()));
                noreply = *quiet;
            }
            Command::FlushAll { delay, quiet } => {
                words.push("flush_all".into());
                words.extend(delay.iter().map(|delay| number(delay)));
                noreply = *quiet;
            }
            Command::Verbosity { level, quiet } => {
                words = vec!["verbosity".into(), number(level)];
                noreply = *quiet;
            }
            Command::Version => words.push("version".into()),
        }
        words.extend(noreply.then(|| "noreply".into()));
        let spaces = |n: usize| vec![b' '; n];
        out.extend(words.join(&spaces(layout.between)[..]));
        out.extend(spaces(layout.trailing));
        out.extend(if layout.bare_newline {
            &b"\n"[..]
        } else {
            b"\r\n"
        });
        if let Some(value) = value {
            out.extend(value);
            out.extend(b"\r\n");
        }
    }

    /// The steps for this command.
    fn expected(&self) -> Vec<Step<'_>> {
        let request = |key, verb, cas, last, quiet| Step::Request {
            used: 0,
            request: Request {
                key,
                verb,
                form: Form::Text(Reply { cas, last, quiet }),
            },
        };
        let admin = |admin| vec![Step::Admin { used: 0, admin }];
        match self {
            Command::Retrieve { cas, exptime, keys } => {
                let verb = exptime.map_or(Verb::Get, |exptime| Verb::GetAndTouch {
                    exptime: exptime.into(),
                });
                let last = keys.len() - 1;
                keys.iter()
                    .enumerate()
                    .map(|(i, key)| request(key, verb, *cas, i == last, last > 0))
                    .collect()
            }
            Command::Store {
                name,
                key,
                flags,
                exptime,
                unique,
                value,
                quiet,
            } => {
                let mode = match *name {
                    "set" => StoreMode::Set,
                    "add" => StoreMode::Add,
                    "replace" => StoreMode::Replace,
                    "append" => StoreMode::Append,
                    "prepend" => StoreMode::Prepend,
                    _ => StoreMode::Cas(*unique),
                };
                let verb = Verb::Store {
                    mode,
                    flags: *flags,
                    exptime: (*exptime).into(),
                    value,
                };
                vec![request(key, verb, false, true, *quiet)]
            }
            Command::Count {
                up,
                key,
                delta,
                quiet,
            } => {
                let delta = *delta;
                let verb = if *up {
                    Verb::Increment { delta }
                } else {
                    Verb::Decrement { delta }
                };
                vec![request(key, verb, false, true, *quiet)]
            }
            Command::Touch {
                key,
                exptime,
                quiet,
            } => {
                vec![request(
                    key,
                    Verb::Touch {
                        exptime: (*exptime).into(),
                    },
                    false,
                    true,
                    *quiet,
                )]
            }
            Command::Delete { key, quiet, .. } => {
                vec![request(key, Verb::Delete, false, true, *quiet)]
            }
            Command::FlushAll { delay, quiet } => {
                let delay_exptime = delay.unwrap_or(0).into();
                admin(Admin::FlushAll {
                    delay_exptime,
                    quiet: *quiet,
                })
            }
            Command::Verbosity { level, quiet } => admin(Admin::Verbosity {
                level: *level,
                quiet: *quiet,
            }),
            Command::Version => admin(Admin::Version),
        }
    }
}

/// Any bytes that a key may contain. A carriage return at the end of the line would count as a part
/// of the line end, and a last word `noreply` as an option.
fn key() -> impl Strategy<Value = Vec<u8>> {
    let byte = any::<u8>().prop_filter("ends a word or a line", |byte| !b" \n\r".contains(byte));
    prop_oneof![
        vec(byte.clone(), 1..20),
        vec(byte, 250),
        "[a-z0-9:]{1,40}".prop_map(String::into_bytes)
    ]
    .prop_filter("is a word of its own", |key| key != b"noreply")
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        vec(any::<u8>(), 0..40),
        vec(
            prop_oneof![Just(b'\r'), Just(b'\n'), Just(b' '), Just(b'k')],
            0..10
        ),
        (0usize..3000).prop_map(|length| vec![b'v'; length]),
    ]
}

fn command() -> impl Strategy<Value = Command> {
    let quiet = any::<bool>();
    let name = prop::sample::select(vec!["set", "add", "replace", "append", "prepend", "cas"]);
    prop_oneof![
        4 => (any::<bool>(), any::<Option<i32>>(), vec(key(), 1..30))
            .prop_map(|(cas, exptime, keys)| Command::Retrieve { cas, exptime, keys }),
        4 => (name, key(), any::<u32>(), any::<i32>(), any::<u64>(), value(), quiet).prop_map(
            |(name, key, flags, exptime, unique, value, quiet)| Command::Store {
                name, key, flags, exptime, unique, value, quiet
            }
        ),
        1 => (any::<bool>(), key(), any::<u64>(), quiet)
            .prop_map(|(up, key, delta, quiet)| Command::Count { up, key, delta, quiet }),
        1 => (key(), any::<i32>(), quiet)
            .prop_map(|(key, exptime, quiet)| Command::Touch { key, exptime, quiet }),
        1 => (key(), any::<bool>(), quiet)
            .prop_map(|(key, zero, quiet)| Command::Delete { key, zero, quiet }),
        1 => (any::<Option<i32>>(), quiet)
            .prop_map(|(delay, quiet)| Command::FlushAll { delay, quiet }),
        1 => (any::<u32>(), quiet).prop_map(|(level, quiet)| Command::Verbosity { level, quiet }),
        1 => Just(Command::Version),
    ]
}

fn layout() -> impl Strategy<Value = Layout> {
    let plain = Layout {
        between: 1,
        trailing: 0,
        bare_newline: false,
    };
    let any =
        (1usize..4, 0usize..3, any::<bool>()).prop_map(|(between, trailing, bare_newline)| {
            Layout {
                between,
                trailing,
                bare_newline,
            }
        });
    prop_oneof![Just(plain), any]
}

/// Bytes that look like commands in places.
fn soup() -> impl Strategy<Value = Vec<u8>> {
    let words = prop::sample::select(vec![
        "get ",
        "gets ",
        "gat ",
        "set ",
        "add ",
        "cas ",
        "append ",
        "delete ",
        "incr ",
        "touch ",
        "flush_all",
        "verbosity ",
        "stats ",
        "k ",
        "key",
        "0 ",
        "1 ",
        "5",
        "-1 ",
        "900 ",
        "1100",
        "2147483647",
        "noreply",
        " ",
        "\r\n",
        "\r\n",
        "\n",
        "\r",
        "\0",
        "v",
    ]);
    let piece = prop_oneof![
        8 => words.prop_map(|word| word.as_bytes().to_vec()),
        1 => vec(any::<u8>(), 1..8),
        1 => (1usize..1200).prop_map(|length| vec![b'k'; length]),
    ];
    vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

fn parse<'a>(stream: &'a [u8], pieces: &[usize], patient: bool) -> Trace<'a> {
    trace(
        Limits {
            item_bytes_max: 1024,
        },
        stream,
        pieces,
        patient,
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// `trace` checks each step: progress, soundness, and that it can be undone.
    #[test]
    fn any_bytes_make_sound_steps(stream in vec(any::<u8>(), 0..600)) {
        parse(&stream, &[stream.len()], false);
    }

    #[test]
    fn steps_do_not_depend_on_how_bytes_arrive(
        stream in soup(),
        pieces in vec(prop_oneof![1usize..4, 1usize..200], 1..20),
        patient in any::<bool>(),
    ) {
        prop_assert_eq!(parse(&stream, &pieces, patient), parse(&stream, &[stream.len()], false));
    }

    #[test]
    fn what_was_written_is_read_back(
        commands in vec((command(), layout()), 1..8),
        pieces in vec(1usize..4000, 1..8),
        patient in any::<bool>(),
    ) {
        let mut stream = Vec::new();
        let mut expected = Vec::new();
        let mut ends = Vec::new();
        for (command, layout) in &commands {
            command.write(layout, &mut stream);
            expected.extend(command.expected());
            ends.push((expected.len(), stream.len()));
        }
        for pieces in [&pieces[..], &[stream.len()]] {
            let trace = trace(Limits::default(), &stream, pieces, patient);
            let steps: Vec<_> = trace.iter().map(|(_, step)| *step).collect();
            prop_assert_eq!(&steps, &expected);
            for (count, end) in &ends {
                let last = trace[count - 1].0;
                prop_assert_eq!(last, *end, "a command's last step ends where the command does");
            }
        }
    }
}

/// A retrieval that is too long to be parsed as a whole, with words and spaces of many lengths, and
/// what follows it.
fn long_retrieval() -> impl Strategy<Value = Vec<u8>> {
    let name = prop::sample::select(vec![
        "get ", "gets", "gat 5 ", "gats 5  ", "gat x ", " get ",
    ]);
    let word = prop_oneof![20 => 1usize..60, 5 => 240usize..251, 1 => 251usize..600];
    let words = vec(
        (word, prop_oneof![9 => Just(1usize), 1 => 1usize..300]),
        20..200,
    );
    let end = prop::sample::select(vec!["\r\n", "\n", " \r\n", "\r\r\n"]);
    (name, words, end, 0..2_000usize).prop_map(|(name, words, end, more)| {
        let mut stream = name.as_bytes().to_vec();
        // Most lines have no word that is too long before they are.
        let is_first = |length: usize| length.min(250);
        for round in 0.. {
            for &(length, spaces) in &words {
                let length = if round == 0 { is_first(length) } else { length };
                stream.resize(stream.len() + spaces, b' ');
                stream.resize(stream.len() + length, b'k');
                if stream.len() > LINE_BYTES_MAX + more {
                    stream.extend_from_slice(end.as_bytes());
                    stream.extend_from_slice(b"get after\r\n");
                    return stream;
                }
            }
        }
        unreachable!("words are not empty")
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn steps_of_a_long_line_do_not_depend_on_how_its_bytes_arrive(
        stream in long_retrieval(),
        pieces in vec(prop_oneof![1usize..300, 1usize..30_000], 1..20),
        patient in any::<bool>(),
    ) {
        let whole = parse(&stream, &[stream.len()], false);
        let last = whole.last().map(|(_, step)| *step);
        let Some(Step::Request { request, .. }) = last else {
            panic!("what follows is read, and not {last:?}");
        };
        prop_assert_eq!(request.key, b"after");
        prop_assert_eq!(parse(&stream, &pieces, patient), whole);
    }
}
