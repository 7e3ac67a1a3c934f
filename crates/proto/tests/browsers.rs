//! A web page that has its visitor's browser send commands in the body of an HTTP request.

use glimmer_proto::text::login::{self, Login};
use glimmer_proto::{Accepts, After, Limits, Parser, Step};

/// What would be executed of a page's body.
const BODY: &str = "\r\nflush_all\r\nset owned 0 0 1\r\n1\r\nFLUSHALL\r\nSET owned 1\r\n\
    *3\r\n$3\r\nSET\r\n$5\r\nowned\r\n$1\r\n1\r\n";

/// Methods: those of browsers, and names of commands, which a page may use as methods on an
/// address that has become its own.
const METHODS: &[&str] = &[
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "DELETE",
    "OPTIONS",
    "PATCH",
    "post",
    "get",
    "gets",
    "gat",
    "mg",
    "ms",
    "md",
    "me",
    "ma",
    "mn",
    "set",
    "add",
    "SET",
    "PING",
    "ECHO",
    "MGET",
    "DEL",
    "stats",
    "version",
    "verbosity",
    "flush_all",
    "FLUSHALL",
    "lru_crawler",
    "dispatch",
    "watch",
    "incr",
    "delete",
    "touch",
    "cas",
    "*1",
    "*3",
    "$3",
    "POST'",
    "'x'",
    "nope",
];

const TARGETS: &[&str] = &["/", "/key", "*", "http://there/x", "/a'b", "/?noreply"];

/// Other spellings of the line that every browser sends first.
const HOSTS: &[&str] = &["Host: cache:11211", "host: x", "HOST:x", "hOsT: x"];

fn requests() -> impl Iterator<Item = String> {
    let ends = ["\r\n", "\n"];
    METHODS.iter().flat_map(move |method| {
        TARGETS.iter().flat_map(move |target| {
            HOSTS.iter().flat_map(move |host| {
                ends.map(|end| {
                    format!(
                        "{method} {target} HTTP/1.1{end}{host}{end}Content-Type: \
                         text/plain{end}Content-Length: 99{end}{BODY}"
                    )
                })
            })
        })
    })
}

/// How many bytes of the stream are used when the connection is closed; all of them if it is not.
fn used_until_closed(accepts: Accepts, locked: bool, stream: &[u8]) -> usize {
    let mut parser = Parser::accepting(accepts, Limits::default());
    let mut at = 0;
    while at < stream.len() {
        let input = &stream[at..];
        let step = match locked {
            true => parser.next_locked(input),
            false => parser.next(input),
        };
        match step {
            Step::Refuse {
                then: After::Close, ..
            }
            | Step::Answer {
                then: After::Close, ..
            } => {
                return at;
            }
            Step::Need { .. } => return stream.len(),
            Step::Request { used, .. }
            | Step::Admin { used, .. }
            | Step::Refuse { used, .. }
            | Step::Answer { used, .. }
            | Step::Queue { used, .. }
            | Step::Swallowed { used } => at += used,
        }
    }
    at
}

#[test]
fn nothing_of_a_body_is_executed() {
    for request in requests() {
        let body = request.find(BODY).unwrap();
        for &accepts in Accepts::ALL {
            for locked in [false, true] {
                let used = used_until_closed(accepts, locked, request.as_bytes());
                assert!(used < body, "{accepts}, {request:?}: {used} bytes are read");
            }
        }
        let mut rest = request.as_bytes();
        while let Login::Refuse { used, .. } = login::read(rest) {
            rest = &rest[used..];
        }
        assert!(
            rest.len() > request.len() - body,
            "{request:?}: the login goes on"
        );
    }
}

/// A redirect to `https` puts bytes of the page into a TLS hello, as the name of a session.
#[test]
fn nothing_in_a_tls_hello_is_executed() {
    for version in [1, 3] {
        for length in [[2, 0], [0, 0x0A], [0x0A, 0]] {
            let hello = [
                &[0x16, 3, version, length[0], length[1], 1, 0, 1][..],
                BODY.as_bytes(),
            ];
            let hello = hello.concat();
            for &accepts in Accepts::ALL {
                let used = used_until_closed(accepts, false, &hello);
                assert_eq!(used, 0, "{accepts}");
            }
        }
    }
}

/// As in Redis, also when it is no inline command.
#[test]
fn redis_closes_at_these_names() {
    for name in ["POST", "post", "Host:", "HOST:"] {
        let command = format!("*1\r\n${}\r\n{name}\r\nPING\r\n", name.len());
        assert_eq!(
            used_until_closed(Accepts::Resp, false, command.as_bytes()),
            0,
            "{name}"
        );
    }
}

/// What people type is answered.
#[test]
fn words_that_only_look_like_http_are_commands() {
    let rows: &[(Accepts, &str)] = &[
        (Accepts::Resp, "SET version HTTP/1.1\r\n"),
        (Accepts::Resp, "ECHO HTTP/1.1\r\n"),
        (Accepts::Resp, "GET host:1\r\n"),
        (Accepts::Text, "get host:1 HTTP/1.1\r\n"),
        (Accepts::Text, "hosts\r\n"),
    ];
    for (accepts, line) in rows {
        assert_eq!(
            used_until_closed(*accepts, false, line.as_bytes()),
            line.len(),
            "{line}"
        );
    }
}
