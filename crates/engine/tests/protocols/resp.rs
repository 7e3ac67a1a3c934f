//! RESP, command by command. What is compared with a real Redis is in tests/clients/test_resp.py.

use crate::{check, servers, shown};

/// A command as an array of bulk strings; its arguments are separated by spaces.
fn command(line: &str) -> Vec<u8> {
    let words: Vec<&str> = line.split(' ').collect();
    let mut bytes = format!("*{}\r\n", words.len());
    for word in words {
        bytes += &format!("${}\r\n{word}\r\n", word.len());
    }
    bytes.into_bytes()
}

#[track_caller]
fn converse(rows: &[(&str, &str)]) {
    let rows: Vec<(Vec<u8>, &str)> = (rows.iter())
        .map(|(said, reply)| (command(said), *reply))
        .collect();
    let rows: Vec<(&[u8], &[u8])> = (rows.iter())
        .map(|(said, reply)| (said.as_slice(), reply.as_bytes()))
        .collect();
    check(&rows);
}

#[test]
fn strings_and_conditions() {
    converse(&[
        ("GET a", "$-1\r\n"),
        ("SET a one XX", "$-1\r\n"),
        ("SET a one NX", "+OK\r\n"),
        ("SET a two NX", "$-1\r\n"),
        ("GET a", "$3\r\none\r\n"),
        ("SET a two XX GET", "$3\r\none\r\n"),
        ("SET a three NX GET", "$3\r\ntwo\r\n"),
        ("SET b four GET", "$-1\r\n"),
        ("STRLEN b", ":4\r\n"),
        ("STRLEN c", ":0\r\n"),
        ("DEL b", ":1\r\n"),
        ("DEL b", ":0\r\n"),
        ("EXISTS a", ":1\r\n"),
        ("SET a x NX XX", "-ERR syntax error\r\n"),
        ("SETNX a x", ":0\r\n"),
        ("GETSET a x", "$3\r\ntwo\r\n"),
        ("TYPE a", "+string\r\n"),
        ("TYPE b", "+none\r\n"),
    ]);
}

#[test]
fn lifetimes() {
    for mut server in servers() {
        let mut says = |said: &str, reply: &str, wait_s| {
            assert_eq!(
                shown(&server.say(&command(said))),
                shown(reply.as_bytes()),
                "{said}"
            );
            server.wait(wait_s);
        };
        says("TTL a", ":-2\r\n", 0);
        says("SET a 1", "+OK\r\n", 0);
        says("TTL a", ":-1\r\n", 0);
        says("EXPIRE a 10", ":1\r\n", 4);
        says("TTL a", ":6\r\n", 0);
        says("PTTL a", ":6000\r\n", 0);
        says("SET a 2 KEEPTTL", "+OK\r\n", 0);
        says("INCR a", ":3\r\n", 0);
        says("PTTL a", ":6000\r\n", 6);
        says("GET a", "$-1\r\n", 0);
        says("SET a 1 PX 1500", "+OK\r\n", 1);
        says("TTL a", ":1\r\n", 0);
        says("PTTL a", ":500\r\n", 1);
        says("EXISTS a", ":0\r\n", 0);
        says("SET a 1 EX 4000000", "+OK\r\n", 0);
        says("TTL a", ":4000000\r\n", 0);
        says("PERSIST a", ":1\r\n", 0);
        says("PERSIST a", ":0\r\n", 0);
        says("TTL a", ":-1\r\n", 0);
        says("EXPIRE a -1", ":1\r\n", 0);
        says("EXISTS a", ":0\r\n", 0);
        says("EXPIRE a 1", ":0\r\n", 0);
        says("SET a 1 EXAT 1700000100", "+OK\r\n", 0);
        says("SET a 1", "+OK\r\n", 0);
        says("TTL a", ":-1\r\n", 0);
    }
}

#[test]
fn signed_numbers() {
    converse(&[
        ("DECR n", ":-1\r\n"),
        ("INCRBY n 11", ":10\r\n"),
        ("DECRBY n 1", ":9\r\n"),
        ("GET n", "$1\r\n9\r\n"),
        ("SET n 9223372036854775807", "+OK\r\n"),
        ("INCR n", "-ERR increment or decrement would overflow\r\n"),
        ("GET n", "$19\r\n9223372036854775807\r\n"),
        ("SET n 1x", "+OK\r\n"),
        ("INCR n", "-ERR value is not an integer or out of range\r\n"),
    ]);
}

/// Every part of a command with several keys is a request of its own; the reply is one.
#[test]
fn several_keys() {
    converse(&[
        ("MSET a 1 b 2", "+OK\r\n"),
        ("MGET a x b", "*3\r\n$1\r\n1\r\n$-1\r\n$1\r\n2\r\n"),
        ("EXISTS a b a x", ":3\r\n"),
        ("DEL a x b", ":2\r\n"),
        ("UNLINK a b", ":0\r\n"),
    ]);
}

#[test]
fn version_3_has_a_null_of_its_own() {
    check(&[(
        &[
            command("SET a 1"),
            b"*2\r\n$5\r\nHELLO\r\n$1\r\n4\r\n".to_vec(),
            command("GET b"),
        ]
        .concat(),
        b"+OK\r\n-NOPROTO unsupported protocol version\r\n$-1\r\n",
    )]);
}
