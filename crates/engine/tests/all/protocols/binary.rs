//! The binary protocol (protocol_binary.xml), with packets as in the document.

use super::{check, servers, shown};
use glimmer_proto::binary::opcode;

/// A request.
pub fn packet(opcode: u8, cas: u64, extras: &[u8], key: &[u8], value: &[u8]) -> Vec<u8> {
    let body = extras.len() + key.len() + value.len();
    let mut out = vec![0x80, opcode];
    out.extend_from_slice(&(key.len() as u16).to_be_bytes());
    out.extend_from_slice(&[extras.len() as u8, 0, 0, 0]);
    out.extend_from_slice(&(body as u32).to_be_bytes());
    out.extend_from_slice(&[opcode, b'q', b'u', b'e']);
    out.extend_from_slice(&cas.to_be_bytes());
    [&out[..], extras, key, value].concat()
}

/// A reply to a request with this command.
fn reply(opcode: u8, status: u16, cas: u64, extras: &[u8], key: &[u8], value: &[u8]) -> Vec<u8> {
    let mut out = packet(opcode, cas, extras, key, value);
    out[0] = 0x81;
    out[6..8].copy_from_slice(&status.to_be_bytes());
    out
}

fn error(opcode: u8, status: u16, text: &str) -> Vec<u8> {
    reply(opcode, status, 0, &[], &[], text.as_bytes())
}

fn store(opcode: u8, cas: u64, key: &[u8], value: &[u8]) -> Vec<u8> {
    packet(
        opcode,
        cas,
        &[0xde, 0xad, 0xbe, 0xef, 0, 0, 0, 0],
        key,
        value,
    )
}

fn get(opcode: u8, key: &[u8]) -> Vec<u8> {
    packet(opcode, 0, &[], key, &[])
}

fn count(opcode: u8, cas: u64, delta: u64, initial: u64, exptime: u32) -> Vec<u8> {
    let extras = [
        &delta.to_be_bytes()[..],
        &initial.to_be_bytes(),
        &exptime.to_be_bytes(),
    ];
    packet(opcode, cas, &extras.concat(), b"n", &[])
}

/// Splits the CAS unique from a reply.
fn split_unique(mut reply: Vec<u8>) -> (Vec<u8>, u64) {
    let unique = u64::from_be_bytes(reply[16..24].try_into().unwrap());
    reply[16..24].fill(0);
    (reply, unique)
}

const FLAGS: [u8; 4] = [0xde, 0xad, 0xbe, 0xef];
const NOT_FOUND: &str = "Not found";
const EXISTS: &str = "Data exists for key.";
const NOT_STORED: &str = "Not stored.";

#[test]
fn reads_show_flags_key_and_unique() {
    for mut server in servers() {
        let (stored, unique) = split_unique(server.say(&store(opcode::SET, 0, b"k", b"value")));
        assert_eq!(stored, reply(opcode::SET, 0, 0, &[], &[], &[]));
        assert!(unique > 0, "a store shows the unique");
        for (command, key) in [
            (opcode::GET, &b""[..]),
            (opcode::GETQ, b""),
            (opcode::GETK, b"k"),
            (opcode::GETKQ, b"k"),
        ] {
            let hit = reply(command, 0, unique, &FLAGS, key, b"value");
            assert_eq!(shown(&server.say(&get(command, b"k"))), shown(&hit));
        }
        for (command, key) in [
            (opcode::GAT, &b""[..]),
            (opcode::GATQ, b""),
            (opcode::GATK, b"k"),
            (opcode::GATKQ, b"k"),
        ] {
            let hit = reply(command, 0, unique, &FLAGS, key, b"value");
            let request = packet(command, 0, &[0, 0, 0, 60], b"k", &[]);
            assert_eq!(shown(&server.say(&request)), shown(&hit));
        }
        let touch = packet(opcode::TOUCH, 0, &[0, 0, 0, 60], b"k", &[]);
        let touched = reply(opcode::TOUCH, 0, unique, &FLAGS, &[], &[]);
        assert_eq!(shown(&server.say(&touch)), shown(&touched));
        server.wait(60);
        let gone = error(opcode::GET, 1, NOT_FOUND);
        assert_eq!(server.say(&get(opcode::GET, b"k")), gone);
    }
}

#[test]
fn misses_show_the_key_or_nothing() {
    let touching = |command| packet(command, 0, &[0, 0, 0, 60], b"none", &[]);
    check(&[
        (
            &get(opcode::GET, b"none"),
            &error(opcode::GET, 1, NOT_FOUND),
        ),
        (
            &get(opcode::GETK, b"none"),
            &reply(opcode::GETK, 1, 0, &[], b"none", &[]),
        ),
        (&touching(opcode::GAT), &error(opcode::GAT, 1, NOT_FOUND)),
        (
            &touching(opcode::GATK),
            &reply(opcode::GATK, 1, 0, &[], b"none", &[]),
        ),
        (
            &touching(opcode::TOUCH),
            &error(opcode::TOUCH, 1, NOT_FOUND),
        ),
        (
            &[
                get(opcode::GETQ, b"none"),
                get(opcode::GETKQ, b"none"),
                touching(opcode::GATQ),
                touching(opcode::GATKQ),
                get(opcode::NOOP, b""),
            ]
            .concat(),
            &reply(opcode::NOOP, 0, 0, &[], &[], &[]),
        ),
    ]);
}

#[test]
fn conditions_of_stores() {
    for mut server in servers() {
        let mut say = |request: Vec<u8>| split_unique(server.say(&request)).0;
        let good = |command| reply(command, 0, 0, &[], &[], &[]);
        let replace = error(opcode::REPLACE, 1, NOT_FOUND);
        assert_eq!(say(store(opcode::REPLACE, 0, b"k", b"1")), replace);
        let append = packet(opcode::APPEND, 0, &[], b"k", b"2");
        assert_eq!(say(append.clone()), error(opcode::APPEND, 5, NOT_STORED));
        assert_eq!(say(store(opcode::ADD, 0, b"k", b"1")), good(opcode::ADD));
        let add = error(opcode::ADD, 2, EXISTS);
        assert_eq!(say(store(opcode::ADD, 0, b"k", b"1")), add);
        assert_eq!(say(append), good(opcode::APPEND));
        let prepend = packet(opcode::PREPEND, 0, &[], b"k", b"0");
        assert_eq!(say(prepend), good(opcode::PREPEND));
        let (hit, unique) = split_unique(server.say(&get(opcode::GET, b"k")));
        assert_eq!(hit, reply(opcode::GET, 0, 0, &FLAGS, &[], b"012"));
        let mut say = |request: Vec<u8>| split_unique(server.say(&request)).0;
        for command in [opcode::SET, opcode::ADD, opcode::REPLACE] {
            let other = store(command, unique + 1, b"k", b"x");
            assert_eq!(say(other), error(command, 2, EXISTS));
            let none = store(command, 7, b"none", b"x");
            assert_eq!(say(none), error(command, 1, NOT_FOUND));
        }
        let append = packet(opcode::APPEND, unique + 1, &[], b"k", b"3");
        assert_eq!(say(append), error(opcode::APPEND, 2, EXISTS));
        let append = packet(opcode::APPEND, unique, &[], b"k", b"3");
        assert_eq!(say(append), good(opcode::APPEND));
        let delete = packet(opcode::DELETE, unique, &[], b"k", &[]);
        assert_eq!(say(delete), error(opcode::DELETE, 2, EXISTS));
        let delete = packet(opcode::DELETE, 0, &[], b"k", &[]);
        assert_eq!(say(delete.clone()), good(opcode::DELETE));
        assert_eq!(say(delete), error(opcode::DELETE, 1, NOT_FOUND));
    }
}

#[test]
fn quiet_commands_speak_only_of_failures() {
    let noop = get(opcode::NOOP, b"");
    let done = reply(opcode::NOOP, 0, 0, &[], &[], &[]);
    check(&[
        (
            &[
                store(opcode::SETQ, 0, b"n", b"5"),
                store(opcode::REPLACEQ, 0, b"n", b"6"),
                store(opcode::ADDQ, 0, b"m", b"7"),
                packet(opcode::APPENDQ, 0, &[], b"m", b"8"),
                packet(opcode::PREPENDQ, 0, &[], b"m", b"9"),
                count(opcode::INCREMENTQ, 0, 1, 0, 0),
                count(opcode::DECREMENTQ, 0, 1, 0, 0),
                get(opcode::DELETEQ, b"m"),
                noop.clone(),
            ]
            .concat(),
            &done,
        ),
        (
            &[
                store(opcode::ADDQ, 0, b"n", b"5"),
                store(opcode::REPLACEQ, 0, b"none", b"6"),
                packet(opcode::APPENDQ, 0, &[], b"none", b"8"),
                get(opcode::DELETEQ, b"none"),
                noop,
            ]
            .concat(),
            &[
                error(opcode::ADDQ, 2, EXISTS),
                error(opcode::REPLACEQ, 1, NOT_FOUND),
                error(opcode::APPENDQ, 5, NOT_STORED),
                error(opcode::DELETEQ, 1, NOT_FOUND),
                done.clone(),
            ]
            .concat(),
        ),
    ]);
}

#[test]
fn counting() {
    const NEVER: u32 = u32::MAX;
    for mut server in servers() {
        let mut say = |request: Vec<u8>| split_unique(server.say(&request)).0;
        let number = |command, n: u64| reply(command, 0, 0, &[], &[], &n.to_be_bytes());
        let none = error(opcode::INCREMENT, 1, NOT_FOUND);
        assert_eq!(say(count(opcode::INCREMENT, 0, 1, 9, NEVER)), none);
        assert_eq!(
            say(count(opcode::INCREMENT, 0, 1, 9, 100)),
            number(opcode::INCREMENT, 9)
        );
        assert_eq!(
            say(count(opcode::INCREMENT, 0, 5, 9, 100)),
            number(opcode::INCREMENT, 14)
        );
        assert_eq!(
            say(count(opcode::DECREMENT, 0, 20, 9, 100)),
            number(opcode::DECREMENT, 0)
        );
        let (_, unique) = split_unique(server.say(&count(opcode::INCREMENT, 0, 1, 0, 0)));
        assert!(unique > 0);
        let mut say = |request: Vec<u8>| split_unique(server.say(&request)).0;
        let other = count(opcode::INCREMENT, unique + 1, 1, 0, 0);
        assert_eq!(say(other), error(opcode::INCREMENT, 2, EXISTS));
        assert_eq!(
            say(count(opcode::INCREMENT, unique, 1, 0, 0)),
            number(opcode::INCREMENT, 2)
        );
        say(store(opcode::SET, 0, b"n", b"abc"));
        let text = "Non-numeric server-side value for incr or decr";
        assert_eq!(
            say(count(opcode::DECREMENT, 0, 1, 0, 0)),
            error(opcode::DECREMENT, 6, text)
        );
    }
}

#[test]
fn values_that_are_too_large_are_swallowed() {
    let value = vec![b'x'; 1_048_577];
    let large = |command| store(command, 0, b"k", &value);
    check(&[
        (&store(opcode::SETQ, 0, b"k", b"old"), b""),
        (&large(opcode::ADDQ), &error(opcode::ADDQ, 3, "Too large.")),
        (&get(opcode::DELETEQ, b"k"), b""),
        (&store(opcode::SETQ, 0, b"k", b"old"), b""),
        (&large(opcode::SET), &error(opcode::SET, 3, "Too large.")),
        // The refused store also deleted the old value.
        (&get(opcode::GET, b"k"), &error(opcode::GET, 1, NOT_FOUND)),
    ]);
}

#[test]
fn unknown_commands_and_their_bodies_are_passed_over() {
    check(&[(
        &[
            packet(0x77, 0, &[1, 2], b"key", b"value"),
            get(opcode::NOOP, b""),
        ]
        .concat(),
        &[
            error(0x77, 0x81, "Unknown command"),
            reply(opcode::NOOP, 0, 0, &[], &[], &[]),
        ]
        .concat(),
    )]);
}

#[test]
fn malformed_packets_end_the_connection() {
    for request in [
        packet(opcode::GET, 0, &[1], b"k", &[]),
        packet(opcode::GET, 0, &[], b"", &[]),
        packet(opcode::GET, 0, &[], b"k", b"v"),
        packet(opcode::SET, 0, &[0; 4], b"k", b"v"),
        packet(opcode::INCREMENT, 0, &[0; 19], b"k", &[]),
        packet(opcode::TOUCH, 0, &[], b"k", &[]),
        packet(opcode::NOOP, 0, &[], b"k", &[]),
        packet(opcode::GET, 0, &[], &[b'k'; 251], &[]),
    ] {
        let mut server = servers().into_iter().next().unwrap();
        let expected = error(request[1], 4, "Invalid arguments");
        assert_eq!(shown(&server.say(&request)), shown(&expected));
    }
}
