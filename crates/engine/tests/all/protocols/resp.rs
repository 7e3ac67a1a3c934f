//! RESP, command by command. What is compared with a real Redis is in tests/clients/test_resp.py.

use super::{Server, check, servers, shown};
use glimmer_engine::Uniques;
use glimmer_proto::resp::{Form, Image, Shows, Version};
use glimmer_proto::{Request, Verb};
use glimmer_store::access::Crcw;
use glimmer_store::evict::S3_FIFO;

/// A command as an array of bulk strings; its arguments are separated by spaces.
pub fn command(line: &str) -> Vec<u8> {
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

/// As in Redis, a command that shows what it replaces is a read.
#[test]
fn reads_are_counted() {
    for mut server in servers() {
        for (said, reads) in [
            ("SET a 1", (0, 0)),
            ("GETSET a 2", (1, 0)),
            ("GETSET b 1", (0, 1)),
            ("SET a 3 XX GET", (1, 0)),
            ("SET c 1 GET", (0, 1)),
            ("SET a 4 NX GET", (1, 0)),
            ("SET d 1 XX GET", (0, 1)),
            ("SETNX a 1", (0, 0)),
            ("GETDEL b", (1, 0)),
            ("MEMORY USAGE a", (0, 0)),
            ("MEMORY USAGE b", (0, 0)),
            ("OBJECT ENCODING a", (1, 0)),
        ] {
            let before = reads_of(&server);
            server.say(&command(said));
            let after = reads_of(&server);
            assert_eq!((after.0 - before.0, after.1 - before.1), reads, "{said}");
        }
    }
}

/// Reads that found an item, and those that did not.
fn reads_of(server: &Server) -> (u64, u64) {
    let tables = server.engines.iter().map(|engine| engine.figures().table());
    tables.fold((0, 0), |(hits, misses), table| {
        let requests = table.requests;
        (hits + requests.get_hits, misses + requests.get_misses)
    })
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

#[test]
fn values_are_taken_appended_to_and_written_over() {
    converse(&[
        ("APPEND a one", ":3\r\n"),
        ("APPEND a two", ":6\r\n"),
        ("GETRANGE a 1 3", "$3\r\nnet\r\n"),
        ("GETRANGE a -3 -1", "$3\r\ntwo\r\n"),
        ("GETRANGE a -100 100", "$6\r\nonetwo\r\n"),
        ("GETRANGE a 4 2", "$0\r\n\r\n"),
        ("GETRANGE a 6 9", "$0\r\n\r\n"),
        ("GETRANGE b 0 -1", "$0\r\n\r\n"),
        ("SETRANGE a 3 TW", ":6\r\n"),
        ("GET a", "$6\r\noneTWo\r\n"),
        ("SETRANGE b 2 x", ":3\r\n"),
        ("GET b", "$3\r\n\0\0x\r\n"),
        ("SETRANGE b -1 x", "-ERR offset is out of range\r\n"),
        (
            "SETRANGE b 999999999 x",
            "-ERR string exceeds maximum allowed size (see -I)\r\n",
        ),
        ("GETDEL a", "$6\r\noneTWo\r\n"),
        ("GETDEL a", "$-1\r\n"),
        ("EXISTS a", ":0\r\n"),
        ("GETEX b", "$3\r\n\0\0x\r\n"),
        ("GETEX c EX 5", "$-1\r\n"),
        (
            "GETEX b EX 0",
            "-ERR invalid expire time in 'getex' command\r\n",
        ),
        ("GETEX b EX", "-ERR syntax error\r\n"),
        ("OBJECT ENCODING b", "$6\r\nembstr\r\n"),
        ("OBJECT ENCODING c", "$-1\r\n"),
        ("OBJECT REFCOUNT b", ":1\r\n"),
        ("TOUCH b c", ":1\r\n"),
    ]);
}

#[test]
fn fractions() {
    converse(&[
        ("INCRBYFLOAT n 10.50", "$4\r\n10.5\r\n"),
        ("INCRBYFLOAT n 0.1", "$4\r\n10.6\r\n"),
        ("INCRBYFLOAT n -10.6", "$1\r\n0\r\n"),
        ("INCRBYFLOAT n 5.0e3", "$4\r\n5000\r\n"),
        ("INCRBYFLOAT n x", "-ERR value is not a valid float\r\n"),
        ("INCR n", ":5001\r\n"),
        ("SET n x", "+OK\r\n"),
        ("INCRBYFLOAT n 1", "-ERR value is not a valid float\r\n"),
        (
            "INCRBYFLOAT m 99999999999999999999999",
            "-ERR value is not a valid float\r\n",
        ),
        ("EXISTS m", ":0\r\n"),
    ]);
}

#[test]
fn conditions_on_lifetimes() {
    for mut server in servers() {
        let mut says = |said: &str, reply: &str| {
            assert_eq!(
                shown(&server.say(&command(said))),
                shown(reply.as_bytes()),
                "{said}"
            );
        };
        says("EXPIRE a 10 NX", ":0\r\n");
        says("SET a 1", "+OK\r\n");
        says("EXPIRE a 10 XX", ":0\r\n");
        says("EXPIRE a 10 GT", ":0\r\n");
        says("EXPIRE a 10 XX LT", ":0\r\n");
        says("TTL a", ":-1\r\n");
        says("EXPIRE a 10 LT", ":1\r\n");
        says("EXPIRE a 20 NX", ":0\r\n");
        says("EXPIRE a 20 LT", ":0\r\n");
        says("EXPIRE a 20 GT", ":1\r\n");
        says("EXPIRE a 15 XX GT", ":0\r\n");
        says("TTL a", ":20\r\n");
        says("EXPIRE a 15 XX LT", ":1\r\n");
        says("TTL a", ":15\r\n");
        says("EXPIRETIME b", ":-2\r\n");
        says("GETEX a PERSIST", "$1\r\n1\r\n");
        says("SET b 1 EXAT 1000", "+OK\r\n");
        says("EXISTS b", ":0\r\n");
        says("EXPIRETIME a", ":-1\r\n");
        says("GETEX a PXAT 1700000100500", "$1\r\n1\r\n");
        says("PEXPIRETIME a", ":1700000100500\r\n");
        says("EXPIRETIME a", ":1700000101\r\n");
        says(
            "EXPIRE a 1 NX GT",
            "-ERR NX and XX, GT or LT options at the same time are not compatible\r\n",
        );
        says(
            "EXPIRE a 1 GT LT",
            "-ERR GT and LT options at the same time are not compatible\r\n",
        );
        says("EXPIRE a 1 MAYBE", "-ERR Unsupported option MAYBE\r\n");
        says("EXPIRE a -1 LT", ":1\r\n");
        says("GET a", "$-1\r\n");
    }
}

/// As the holder of a lock releases it, and as a value is exchanged for another one.
#[test]
fn values_are_compared() {
    let long = "x".repeat(100);
    let other = format!("{}y", "x".repeat(99));
    let rows = [
        ("DELIFEQ a 1".into(), ":0\r\n"),
        ("SET a 1 IFEQ 1".into(), "$-1\r\n"),
        (format!("SET a {long}"), "+OK\r\n"),
        (format!("SET a 2 IFEQ {other}"), "$-1\r\n"),
        (format!("DELIFEQ a {other}"), ":0\r\n"),
        (format!("SET a two IFEQ {long}"), "+OK\r\n"),
        ("SET a three EX 50 IFEQ two GET".into(), "$3\r\ntwo\r\n"),
        ("SET a four IFEQ two GET".into(), "$5\r\nthree\r\n"),
        ("TTL a".into(), ":50\r\n"),
        ("SET a four IFEQ three NX".into(), "-ERR syntax error\r\n"),
        ("SET a four IFEQ".into(), "-ERR syntax error\r\n"),
        ("DELIFEQ a three".into(), ":1\r\n"),
        ("EXISTS a".into(), ":0\r\n"),
    ];
    let rows: Vec<(&str, &str)> = rows.iter().map(|(said, reply)| (&**said, *reply)).collect();
    converse(&rows);
}

#[test]
fn positions_from_the_end_may_be_in_the_wrong_order() {
    converse(&[
        ("SET a hello", "+OK\r\n"),
        ("GETRANGE a -1 -5", "$0\r\n\r\n"),
        ("GETRANGE a -5 -9", "$0\r\n\r\n"),
        ("SUBSTR a -8 -9", "$0\r\n\r\n"),
        (
            "GETRANGE a -9223372036854775807 -9223372036854775808",
            "$0\r\n\r\n",
        ),
        ("GETRANGE a -9 -9", "$1\r\nh\r\n"),
        ("GETRANGE a -9 -5", "$1\r\nh\r\n"),
        ("GETRANGE a 0 -9", "$1\r\nh\r\n"),
        ("GETRANGE a -2 0", "$0\r\n\r\n"),
        ("GETRANGE none -1 -5", "$0\r\n\r\n"),
        ("SET a x", "+OK\r\n"),
        ("GETRANGE a -1 -5", "$0\r\n\r\n"),
        ("GETRANGE a -1 0", "$1\r\nx\r\n"),
    ]);
}

#[test]
fn subcommands_have_their_arguments() {
    let wrong = |name: &str| format!("-ERR wrong number of arguments for '{name}' command\r\n");
    for (said, name) in [
        ("CLIENT GETNAME x", "client|getname"),
        ("CLIENT ID x", "client|id"),
        ("CLIENT NO-EVICT", "client|no-evict"),
        ("CLIENT NO-TOUCH", "client|no-touch"),
        ("CLIENT TRACKING", "client|tracking"),
        ("CLIENT CACHING", "client|caching"),
        ("SCRIPT EXISTS", "script|exists"),
        ("SCRIPT LOAD", "script|load"),
        ("OBJECT FREQ", "object|freq"),
        ("OBJECT IDLETIME a b", "object|idletime"),
        ("SLOWLOG LEN x", "slowlog|len"),
        ("SLOWLOG RESET x", "slowlog|reset"),
        ("LATENCY LATEST x", "latency|latest"),
        ("CONFIG GET", "config|get"),
        ("COMMAND COUNT x", "command|count"),
    ] {
        converse(&[(said, &wrong(name))]);
    }
    converse(&[
        ("SCRIPT FLUSH sync", "+OK\r\n"),
        (
            "SCRIPT FLUSH A",
            "-ERR SCRIPT FLUSH only support SYNC|ASYNC option\r\n",
        ),
        (
            "SCRIPT FLUSH SYNC B",
            "-ERR SCRIPT FLUSH only support SYNC|ASYNC option\r\n",
        ),
        (
            "LATENCY LEN",
            "-ERR unknown subcommand 'LEN'. Try LATENCY HELP.\r\n",
        ),
        (
            "LATENCY HELP",
            "*3\r\n+LATENCY HISTOGRAM\r\n+LATENCY LATEST\r\n+LATENCY RESET\r\n",
        ),
        ("LATENCY RESET", ":0\r\n"),
        ("SLOWLOG RESET", "+OK\r\n"),
        ("CLIENT LIST TYPE normal", "-ERR syntax error\r\n"),
        ("MEMORY USAGE none SAMPLES 0", "$-1\r\n"),
        ("MEMORY USAGE none FOO BAR", "-ERR syntax error\r\n"),
        ("MEMORY USAGE none SAMPLES", "-ERR syntax error\r\n"),
        ("MEMORY USAGE none SAMPLES -1", "-ERR syntax error\r\n"),
        (
            "MEMORY USAGE none SAMPLES x",
            "-ERR value is not an integer or out of range\r\n",
        ),
        (
            "CONFIG GET appendonly save save nope",
            "*4\r\n$4\r\nsave\r\n$0\r\n\r\n$10\r\nappendonly\r\n$2\r\nno\r\n",
        ),
    ]);
}

/// Each script by its digest. Libraries that send them are in tests/suites.
#[test]
fn scripts_are_executed() {
    for mut server in servers() {
        let mut says = |said: &str, reply: &str| {
            assert_eq!(
                shown(&server.say(&command(said))),
                shown(reply.as_bytes()),
                "{said}"
            );
        };
        for release in [
            "c3f8721cbb97f72bc19e972846bd7aaf91901658",
            "b70c2384248f88e6b75b9f89241a180f856ad852",
            "647c65a442733a1aa440f99908d249d13b4d6c4a",
            "ae3671744a5dbb24ea37ef607b8b10ac7856d43e",
            "E4612211C9F8F51C257E26E056B0A654B3187242",
        ] {
            says("SET lock mine PX 1000", "+OK\r\n");
            says(&format!("EVALSHA {release} 1 lock other"), ":0\r\n");
            says(&format!("EVALSHA {release} 1 lock mine"), ":1\r\n");
            says(&format!("EVALSHA {release} 1 lock mine"), ":0\r\n");
        }
        let release = "EVALSHA e950836ed1e694540c503ef9972b8de518044d3b 1 lock";
        says(&format!("{release} mine"), ":-1\r\n");
        // Locks that are extended: what is left is added to, or replaced.
        let extend = "EVALSHA a4e8783852e6b949f9ef3a97212805108459a890 1 lock";
        says(&format!("{extend} mine 1000 0"), ":0\r\n");
        says("SET lock mine PX 1000", "+OK\r\n");
        says(&format!("{extend} other 1000 0"), ":0\r\n");
        says(&format!("{extend} mine 1000 0"), ":1\r\n");
        says("PTTL lock", ":2000\r\n");
        says(&format!("{extend} mine 500 1"), ":1\r\n");
        says("PTTL lock", ":500\r\n");
        let reacquire = "EVALSHA 1cac51482acf5858da00f6d685d68f886cd6b6b2 1 lock";
        says(&format!("{reacquire} mine 700"), ":1\r\n");
        says("PTTL lock", ":700\r\n");
        says(
            &format!("{reacquire} mine x"),
            "-ERR value is not an integer or out of range\r\n",
        );
        says("PERSIST lock", ":1\r\n");
        // What stays for ever is not extended, in either way.
        says(&format!("{extend} mine 1000 0"), ":0\r\n");
        says(&format!("{extend} mine 1000 1"), ":0\r\n");
        says(&format!("{extend} mine -3 1"), ":0\r\n");
        says("PTTL lock", ":-1\r\n");
        says(&format!("{reacquire} mine 700"), ":1\r\n");
        says(&format!("{extend} mine -3 1"), ":1\r\n");
        says("EXISTS lock", ":0\r\n");
        says("SET lock mine", "+OK\r\n");
        // Values that are added, or stored in place of another.
        let add = "EVALSHA a08c9c69b7c07ae2485190873b90d128a23e502d 1 lock";
        says(&format!("{add} new 5"), "$-1\r\n");
        says("DEL lock", ":1\r\n");
        says(&format!("{add} new 5"), "+OK\r\n");
        says("PTTL lock", ":5000\r\n");
        let acquire = "EVALSHA 96da70f7716f27d278a5218544df37fd8b0a5e4c 1 lock";
        says(&format!("{acquire} mine 1000"), ":0\r\n");
        let cas = "EVALSHA 782e993d12091daacc7a3164ddf5c4624fe56042 1 lock";
        says(&format!("{cas} newer old"), ":0\r\n");
        says(&format!("{cas} newer new EX 7"), "+OK\r\n");
        says("PTTL lock", ":7000\r\n");
        says(&format!("{cas} newest newer"), "+OK\r\n");
        says("PTTL lock", ":-1\r\n");
        // Counters.
        let incr = "EVALSHA f4a7da3e5d8ea3b46642af08427151cae0190400 1 n";
        says(&format!("{incr} 2"), "$-1\r\n");
        says(
            "EVALSHA 4d15273b16b10c15e1d9202cbe93c959ab7d250b 1 n 2",
            ":2\r\n",
        );
        says(&format!("{incr} 2"), ":4\r\n");
        let window = "EVALSHA 628bd136a573a06b346879695681af12ccef300f 1 w";
        says(&format!("{window} 60 2"), ":2\r\n");
        says("TTL w", ":60\r\n");
        says(&format!("{window} 90 2"), ":4\r\n");
        says("TTL w", ":60\r\n");
        let consume = "EVALSHA a1de965f42e177aa339706bd580f049065eca79a 1 points";
        says(&format!("{consume} 3 10"), "*2\r\n:3\r\n:10000\r\n");
        says(&format!("{consume} 3 20"), "*2\r\n:6\r\n:10000\r\n");
        says("PERSIST points", ":1\r\n");
        says(&format!("{consume} 1 20"), "*2\r\n:7\r\n:20000\r\n");
        let count = "EVALSHA 895b92e1712734e1b464999be23953485475357b 1 hits";
        let show = "EVALSHA 6aeb97ed6086dcdeafdc6fda3999a0d0e38ec96a 1 hits";
        says(show, "*2\r\n$-1\r\n:-2\r\n");
        says(&format!("{count} 1000"), "*2\r\n:1\r\n:1000\r\n");
        says(&format!("{count} 2000"), "*2\r\n:2\r\n:1000\r\n");
        says(show, "*2\r\n$1\r\n2\r\n:1000\r\n");
        says("PERSIST hits", ":1\r\n");
        says(&format!("{count} 3000"), "*2\r\n:1\r\n:3000\r\n");
        // A window that begins does not look at what was there.
        says("SET hits none", "+OK\r\n");
        says(&format!("{count} 3000"), "*2\r\n:1\r\n:3000\r\n");
        says("SET hits none KEEPTTL", "+OK\r\n");
        says(
            &format!("{count} 3000"),
            "-ERR value is not an integer or out of range\r\n",
        );
    }
}

/// What `RENAME` removes is as it was read: another client's change stays, and so does its expiry.
#[test]
fn an_item_that_has_changed_is_not_removed() {
    fn request(verb: Verb<'_>, shows: Shows) -> Request<'_> {
        let version = Version::Two;
        Request {
            key: b"k",
            verb,
            form: glimmer_proto::Form::Resp(Form { version, shows }),
        }
    }
    for uniques in [Uniques::Kept, Uniques::Zero] {
        for (change, stays) in [
            ("GET k", false),
            ("EXPIRE k 9000", true),
            ("PERSIST k", true),
            ("SET k other KEEPTTL", true),
            ("APPEND k !", true),
        ] {
            let mut server = Server::new::<Crcw>(S3_FIFO, uniques);
            server.say(&command("SET k value EX 100"));
            let mut bytes = Vec::new();
            server.run(request(Verb::Get, Shows::Image), &mut bytes);
            server.say(&command(change));
            let image = Image::read(&bytes).unwrap();
            let remove = Verb::DeleteUnchanged {
                cas: image.cas,
                expiry_ms: image.expiry_ms,
                value: image.value,
            };
            server.run(request(remove, Shows::Flag), &mut Vec::new());
            let found = shown(&server.say(&command("EXISTS k")));
            let expected = format!(":{}\\r\\n", u8::from(stays));
            assert_eq!(found, expected, "{change}, {uniques:?}");
        }
    }
}

#[test]
fn other_scripts_are_refused() {
    let no = "-ERR this server has no Lua, and the script is none of those that it knows (see \
        docs/resp.md#scripts)\r\n";
    let release = "b70c2384248f88e6b75b9f89241a180f856ad852";
    let unknown = "0".repeat(40);
    let rows = [
        ("EVAL return 0 x".into(), no),
        (
            format!("EVALSHA {unknown} 0"),
            "-NOSCRIPT No matching script. Please use EVAL.\r\n",
        ),
        // With another number of keys.
        (format!("EVALSHA {release} 2 a b c"), no),
        ("SCRIPT LOAD return".into(), no),
        (
            format!("SCRIPT EXISTS {unknown} {release} {unknown}"),
            "*3\r\n:0\r\n:1\r\n:0\r\n",
        ),
        ("SCRIPT FLUSH".into(), "+OK\r\n"),
    ];
    let rows: Vec<(&str, &str)> = rows.iter().map(|(said, reply)| (&**said, *reply)).collect();
    converse(&rows);
}
