//! Random connections with large values, many of which go wrong in some way.

use crate::heads::packet_head;
use glimmer_base::limits::LINE_BYTES_MAX;
use glimmer_proto::Accepts;
use rand::Rng;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use std::sync::LazyLock;

/// The largest item of the server.
pub const ITEM_BYTES_MAX: usize = 40_000;

/// What a connection sends.
pub struct Stream {
    pub accepts: Accepts,
    pub bytes: Vec<u8>,
}

/// The commands of one connection.
pub fn random_stream(rng: &mut SmallRng) -> Stream {
    let protocols = [
        (Accepts::Text, text as fn(&mut SmallRng, &mut Vec<u8>)),
        (Accepts::Text, meta),
        (Accepts::Binary, packet),
        (Accepts::Resp, resp),
    ];
    let (accepts, command) = *protocols.choose(rng).unwrap();
    let mut bytes = Vec::new();
    for _ in 0..rng.random_range(1..6) {
        command(rng, &mut bytes);
    }
    // The connection may end in the midst of a command.
    if rng.random_bool(0.2) {
        bytes.truncate(rng.random_range(0..=bytes.len()));
    }
    Stream { accepts, bytes }
}

/// Bytes of a value as a header says: often none of a large value, and at times too many.
fn length(rng: &mut SmallRng) -> usize {
    match rng.random_range(0..8) {
        0 => rng.random_range(0..50),
        1 => rng.random_range(16_380..=16_388),
        2 => rng.random_range(39_800..45_000),
        _ => rng.random_range(16_384..30_000),
    }
}

/// A value with many line ends, of a length that is often right.
fn value(rng: &mut SmallRng, said: usize) -> Vec<u8> {
    let length = match rng.random_range(0..12) {
        0 => said + 1,
        1 => said.saturating_sub(1),
        2 => said / 2,
        _ => said,
    };
    let words: [&[u8]; 5] = [b"\r\n", b"\n", b"get k\r\n", b"$3\r\n", b"\x80\x00\x00\x01"];
    let mut value = Vec::with_capacity(length + 8);
    while value.len() < length {
        match rng.random_range(0..4) {
            0 => value.extend(*words.choose(rng).unwrap()),
            _ => value.extend(rng.random::<u64>().to_ne_bytes()),
        }
    }
    value.truncate(length);
    value
}

fn line_end(rng: &mut SmallRng, out: &mut Vec<u8>) {
    let ends: [&[u8]; 6] = [b"\n\n", b"\r", b"\rx", b"", b"xx", b"\n"];
    match rng.random_bool(0.8) {
        true => out.extend(b"\r\n"),
        false => out.extend(*ends.choose(rng).unwrap()),
    }
}

fn key(rng: &mut SmallRng) -> String {
    match rng.random_range(0..10) {
        0 => "k".repeat(rng.random_range(249..253)),
        1 => "a2V5".into(),
        _ => format!("key{}", rng.random_range(0..9)),
    }
}

fn word<'a>(rng: &mut SmallRng, words: &[&'a str]) -> &'a str {
    words.choose(rng).unwrap()
}

fn text(rng: &mut SmallRng, out: &mut Vec<u8>) {
    if rng.random_bool(0.2) {
        out.extend(word(rng, &["get a b\r\n", "version\r\n", "no\r\n", "\r\n"]).bytes());
        return;
    }
    let names = ["set", "add", "replace", "append", "prepend", "cas"];
    let name = word(rng, &names);
    let (key, said) = (key(rng), length(rng));
    let flags = word(rng, &["0", "0", "7", "x"]);
    let unique = match name {
        "cas" => word(rng, &[" 5", " 5", ""]),
        _ => "",
    };
    let tail = word(rng, &["\r\n", "\r\n", " noreply\r\n", "\n", " \r\n"]);
    out.extend(format!("{name} {key} {flags} 0 {said}{unique}{tail}").bytes());
    out.extend(value(rng, said));
    line_end(rng, out);
}

fn meta(rng: &mut SmallRng, out: &mut Vec<u8>) {
    if rng.random_bool(0.2) {
        out.extend(word(rng, &["mg a v\r\n", "mn\r\n", "md a q\r\n", "ma\r\n"]).bytes());
        return;
    }
    let (key, said) = (key(rng), length(rng));
    out.extend(format!("ms {key} {said}").bytes());
    let flags = [
        " T10", " F5", " ME", " MA", " MP", " MR", " q", " b", " C9", " I", " Oq", " M!",
    ];
    for _ in 0..rng.random_range(0..4) {
        out.extend(word(rng, &flags).bytes());
    }
    out.extend(word(rng, &["\r\n", "\n"]).bytes());
    out.extend(value(rng, said));
    line_end(rng, out);
}

fn packet(rng: &mut SmallRng, out: &mut Vec<u8>) {
    let (opcodes, extras): (&[u8], &[u8]) = match rng.random_range(0..8) {
        // No command has this opcode.
        0 => (&[0x70], &[]),
        1..3 => (&[0x0e, 0x0f, 0x19, 0x1a], &[]),
        _ => (
            &[0x01, 0x02, 0x03, 0x11, 0x12, 0x13],
            &[0, 0, 0, 1, 0, 0, 0, 9],
        ),
    };
    let opcode = *opcodes.choose(rng).unwrap();
    let said = length(rng);
    out.extend(packet_head(opcode, extras, key(rng).as_bytes(), said));
    match rng.random_bool(0.9) {
        true => out.extend((0..said).map(|at| at as u8)),
        // What follows is no packet, most of the time.
        false => out.extend(value(rng, said)),
    }
}

/// A value with which another large one makes a command too long to be kept.
static LONG: LazyLock<String> = LazyLock::new(|| "v".repeat(38_000));

fn resp(rng: &mut SmallRng, out: &mut Vec<u8>) {
    let said = length(rng);
    let value = value(rng, said);
    let (name, before, mut after): (_, &[&str], Vec<&str>) = match rng.random_range(0..10) {
        0 => ("SETEX", &[word(rng, &["10", "0", "x"])], vec![]),
        1 => ("psetex", &["10"], vec![]),
        2 => (
            "SETRANGE",
            &[word(rng, &["0", "7", "x", "-1", "1040000", "4294967297"])],
            vec![],
        ),
        6 => ("SETNX", &[], vec![]),
        3 => ("GETSET", &[], vec![]),
        // One that is executed as it arrives, if the value is large.
        4 => ("MSET", &[LONG.as_str(), "key2"], vec![]),
        5 => (word(rng, &["NOSET", "Append"]), &[], vec![]),
        _ => ("Set", &[], vec![]),
    };
    if name == "Set" {
        let options = [
            "NX", "XX", "GET", "EX", "10", "KEEPTTL", "PX", "no", "", "ifeq",
        ];
        after.extend((0..rng.random_range(0..4)).map(|_| word(rng, &options)));
        if rng.random_bool(0.05) {
            after.resize(20, "NX");
        }
    }
    // One more option may make the command too long.
    let is_endless = name == "Set" && rng.random_bool(0.2);
    let count = 3 + before.len() + after.len() + usize::from(is_endless);
    let key = key(rng);
    out.extend(format!("*{count}\r\n").bytes());
    for argument in [name, &key].iter().chain(before) {
        out.extend(format!("${}\r\n{argument}\r\n", argument.len()).bytes());
    }
    out.extend(format!("${said}\r\n").bytes());
    out.extend(value);
    line_end(rng, out);
    for argument in after {
        out.extend(format!("${}\r\n{argument}\r\n", argument.len()).bytes());
    }
    if is_endless {
        let bytes = ITEM_BYTES_MAX + LINE_BYTES_MAX - rng.random_range(0..30_000);
        out.extend(format!("${bytes}\r\n").bytes());
    }
}
