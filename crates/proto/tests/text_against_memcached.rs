//! Random commands, well and badly formed, to memcached itself and to a small model behind our parser: the replies agree byte for byte.
//!
//! Needs the program (`memcached`, or what GLIMMER_MEMCACHED names), so it runs only when asked for:
//!
//! ```console
//! $ cargo test -p glimmer-proto --test text_against_memcached -- --ignored --nocapture
//! ```
//!
//! GLIMMER_SEED replays a run, GLIMMER_STREAMS lengthens it. The commands stay within what both do alike: no uniques are shown, no
//! time passes that matters, and memcached's own tuning commands are left out,
//! as is what makes it close, for it then drops replies that it has not sent.

use glimmer_base::{Expiry, Moment};
use glimmer_proto::text::{Admin, After, Limits, Parser, Step, emit, lines, number};
use glimmer_proto::{Form, Request, StoreMode, Verb};
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const STREAMS_DEFAULT: u64 = 3_000;

/// The store that a person would write in an afternoon.
struct Model {
    items: BTreeMap<Vec<u8>, Item>,
    now: Moment,
}

struct Item {
    flags: u32,
    value: Vec<u8>,
    expiry: Expiry,
}

impl Model {
    fn new() -> Model {
        let unix_ms = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_millis() as u64;
        Model {
            items: BTreeMap::new(),
            now: Moment {
                ms: 2_000,
                epoch_unix_ms: unix_ms - 2_000,
            },
        }
    }

    /// The replies to a stream.
    fn answer(&mut self, mut stream: &[u8]) -> Vec<u8> {
        let mut parser = Parser::new(Limits::default());
        let mut out = Vec::new();
        loop {
            let used = match parser.next(stream) {
                Step::Need { .. } => return out,
                Step::Swallowed { used } => used,
                Step::Fail { .. } => unreachable!("the text protocol has lines"),
                Step::Request { used, request } => {
                    self.execute(request, &mut out);
                    used
                }
                Step::Refuse {
                    line,
                    then: After::Close,
                    ..
                } => {
                    emit::line(&mut out, line);
                    return out;
                }
                Step::Refuse { used, line, .. } => {
                    emit::line(&mut out, line);
                    used
                }
                Step::Admin {
                    admin: Admin::Quit, ..
                } => return out,
                Step::Admin { used, admin } => {
                    self.administer(admin, &mut out);
                    used
                }
            };
            stream = &stream[used..];
        }
    }

    fn administer(&mut self, admin: Admin<'_>, out: &mut Vec<u8>) {
        let line = match admin {
            Admin::Verbosity { quiet, .. } if !quiet => lines::OK,
            Admin::FlushAll {
                delay_exptime,
                quiet,
            } => {
                let at = Expiry::from_memcached(delay_exptime, self.now);
                if at == Expiry::NEVER || at.is_due(self.now) {
                    self.items.clear();
                }
                if quiet { "" } else { lines::OK }
            }
            Admin::MetaNoop => lines::META_NOOP,
            Admin::Shutdown(_) => lines::SHUTDOWN_NOT_ENABLED,
            Admin::Stats(b"reset") => lines::RESET,
            Admin::Stats(_) => lines::ERROR,
            _ => "",
        };
        emit::line(out, line);
    }

    fn execute(&mut self, request: Request<'_>, out: &mut Vec<u8>) {
        let Request { key, verb, form } = request;
        let Form::Text { last, quiet, .. } = form else {
            unreachable!("no meta command is sent")
        };
        self.items.retain(|_, item| !item.expiry.is_due(self.now));
        let line = match verb {
            Verb::Get | Verb::GetAndTouch { .. } => {
                match self.items.get_mut(key) {
                    None if last => emit::line(out, lines::END),
                    None => {}
                    Some(item) => {
                        emit::value_head(out, key, item.flags, item.value.len(), None);
                        out.extend_from_slice(&item.value);
                        emit::value_tail(out, last);
                        if let Verb::GetAndTouch { exptime } = verb {
                            item.expiry = Expiry::from_memcached(exptime, self.now);
                        }
                    }
                }
                return;
            }
            Verb::Store {
                mode,
                flags,
                exptime,
                value,
            } => self.store(key, mode, flags, exptime, value),
            Verb::Delete if self.items.remove(key).is_some() => lines::DELETED,
            Verb::Delete => lines::NOT_FOUND,
            Verb::Touch { exptime } => match self.items.get_mut(key) {
                None => lines::NOT_FOUND,
                Some(item) => {
                    item.expiry = Expiry::from_memcached(exptime, self.now);
                    lines::TOUCHED
                }
            },
            Verb::Increment { delta } => {
                return self.count(key, quiet, out, |value| value.wrapping_add(delta));
            }
            Verb::Decrement { delta } => {
                return self.count(key, quiet, out, |value| value.saturating_sub(delta));
            }
            Verb::Refused { reason } => {
                self.items.remove(key);
                reason.line()
            }
            Verb::DeleteIf { .. } | Verb::Count { .. } | Verb::Meta { .. } => {
                unreachable!("the classic commands have none of these")
            }
        };
        emit::line(out, if quiet { "" } else { line });
    }

    fn store(
        &mut self,
        key: &[u8],
        mode: StoreMode,
        flags: u32,
        exptime: i64,
        value: &[u8],
    ) -> &'static str {
        let old = self.items.get_mut(key);
        if let (StoreMode::Append | StoreMode::Prepend, Some(old)) = (mode, &old)
            && old.value.len() + value.len()
                > Limits::default().value_bytes_max(key.len(), old.flags)
        {
            return lines::NOT_STORED;
        }
        match (mode, old) {
            (StoreMode::Append, Some(old)) => old.value.extend_from_slice(value),
            (StoreMode::Prepend, Some(old)) => drop(old.value.splice(..0, value.iter().copied())),
            (StoreMode::AppendIf(_) | StoreMode::PrependIf(_), _) => {
                unreachable!("the text protocol has no such mode")
            }
            (StoreMode::Cas(_), Some(_)) => return lines::EXISTS,
            (StoreMode::Cas(_), None) => return lines::NOT_FOUND,
            (StoreMode::Add, Some(_)) => return lines::NOT_STORED,
            (StoreMode::Replace | StoreMode::Append | StoreMode::Prepend, None) => {
                return lines::NOT_STORED;
            }
            (StoreMode::Set | StoreMode::Add | StoreMode::Replace, _) => {
                let expiry = Expiry::from_memcached(exptime, self.now);
                self.items.insert(
                    key.to_vec(),
                    Item {
                        flags,
                        value: value.to_vec(),
                        expiry,
                    },
                );
            }
        }
        lines::STORED
    }

    fn count(&mut self, key: &[u8], quiet: bool, out: &mut Vec<u8>, count: impl Fn(u64) -> u64) {
        let mut reply = Vec::new();
        match self.items.get_mut(key) {
            None => emit::line(&mut reply, lines::NOT_FOUND),
            Some(item) => match number::unsigned_64(&item.value) {
                None => emit::line(&mut reply, lines::NON_NUMERIC),
                Some(old) => {
                    emit::number(&mut reply, count(old));
                    let digits = &reply[..reply.len() - 2];
                    // The item keeps its length: a shorter number is followed by spaces.
                    let length = digits.len().max(item.value.len());
                    item.value = digits.to_vec();
                    item.value.resize(length, b' ');
                }
            },
        }
        if !quiet {
            out.append(&mut reply);
        }
    }
}

/// Memcached on a free port, ended with the test.
struct Memcached {
    process: Child,
    port: u16,
}

impl Memcached {
    fn start() -> Memcached {
        let program = std::env::var("GLIMMER_MEMCACHED").unwrap_or_else(|_| "memcached".into());
        let port = match std::env::var("GLIMMER_MEMCACHED_PORT") {
            Ok(port) => port.parse().unwrap(),
            Err(_) => TcpListener::bind("127.0.0.1:0")
                .unwrap()
                .local_addr()
                .unwrap()
                .port(),
        };
        let process = Command::new(&program)
            .args([
                "-u",
                "nobody",
                "-U",
                "0",
                "-l",
                "127.0.0.1",
                "-p",
                &port.to_string(),
            ])
            .spawn()
            .unwrap_or_else(|error| panic!("{program}: {error}"));
        let server = Memcached { process, port };
        for _ in 0..100 {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return server;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("memcached does not listen");
    }

    fn answer(&self, stream: &[u8]) -> Vec<u8> {
        let mut connection = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        connection
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        // It may close before it has read everything.
        let _ = connection.write_all(stream);
        let _ = connection.shutdown(std::net::Shutdown::Write);
        let mut replies = Vec::new();
        match connection.read_to_end(&mut replies) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                panic!("no end of replies")
            }
            _ => replies,
        }
    }
}

impl Drop for Memcached {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

const KEYS: &[&str] = &["a", "b", "b", "c\t", "d\r", "\u{fc}", "noreply", "0", "1"];
const NUMBERS: &[&str] = &[
    "0",
    "0",
    "0",
    "1",
    "5",
    "10",
    "007",
    "+3",
    "-0",
    "-1",
    "4294967295",
    "4294967296",
    "4294967396",
    "2147483648",
    "-4294967295",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775809",
    "18446744073709551615",
    "18446744073709551616",
    "-18446744073709551615",
    "\t4",
    "6\tx",
    "8\u{b}",
    "1.5",
    "0x1",
    "abc",
    "-",
    "+",
    "\t",
    "3-",
    "5\t-",
];
/// Far from now, on either side: which second it is must not matter.
const EXPTIMES: &[&str] = &[
    "0",
    "0",
    "0",
    "0",
    "1000",
    "100000",
    "2147483647",
    "-1",
    "-100",
    "-2147483648",
    "2147483648",
    "4294968296",
    "3000000",
    "+900",
    "\t900",
    "abc",
    "1.5",
    "9223372036854775807",
    "9223372036854775808",
    "",
];
/// None is white space alone: memcached would look for digits in what lies behind the item.
const VALUES: &[&str] = &[
    "",
    "1",
    "9",
    "10",
    "99",
    "100",
    "18446744073709551615",
    "18446744073709551616",
    " 12",
    "12 ",
    "12 abc",
    "12abc",
    "+5",
    "-5",
    "-0",
    "0000000000000000000000000000001",
    "abc",
    "get a",
    "-18446744073709551615",
    "7\0",
    "\t\u{b}8\u{c}x",
];
const NOREPLY: &[&str] = &[
    "",
    "",
    "",
    "",
    " noreply",
    " noreply",
    " noreplyx",
    " 0",
    " noreply 0",
    " x noreply",
    " a b c",
];
const ENDS: &[&str] = &[
    "\r\n", "\r\n", "\r\n", "\r\n", "\n", " \r\n", "\r\r\n", "\t\r\n", "\0x\r\n",
];

/// Writes one command, rarely a good one.
fn write_command(rng: &mut SmallRng, out: &mut Vec<u8>) {
    let mut pick = |words: &[&'static str]| *words.choose(rng).unwrap();
    let (key, noreply, end) = (pick(KEYS), pick(NOREPLY), pick(ENDS));
    let start = pick(&["", "", "", "", " ", "  "]);
    let space = pick(&[" ", " ", " ", " ", "  "]);
    if rng.random_range(0..200) == 0 {
        let name = ["set", "add", "append"].choose(rng).unwrap();
        let length = 1_048_500 + rng.random_range(0..30);
        out.extend_from_slice(format!("{name} b 1 0 {length}\r\n").as_bytes());
        out.resize(out.len() + length, b'\n');
        out.extend_from_slice(b"\r\n");
    }
    let mut pick = |words: &[&'static str]| *words.choose(rng).unwrap();
    let kind = pick(&[
        "get", "gat", "store", "store", "store", "store", "count", "count", "delete", "touch",
        "other",
    ]);
    let line = match kind {
        "get" => format!(
            "{}{space}{key}{space}{} {}",
            pick(&["get", "bget", "get"]),
            pick(KEYS),
            pick(&["", "x", "b"])
        ),
        "gat" => format!(
            "gat{space}{}{space}{key}{space}{}",
            pick(EXPTIMES),
            pick(KEYS)
        ),
        "store" => {
            let name = pick(&[
                "set", "set", "set", "add", "replace", "append", "prepend", "cas",
            ]);
            let value = pick(VALUES);
            let length = match pick(&["good", "good", "good", "good", "good", "number", "off"]) {
                "good" => value.len().to_string(),
                "number" => pick(&[
                    "0",
                    "1",
                    "5",
                    "-1",
                    "abc",
                    "+2",
                    "2147483646",
                    "4294967297",
                    "-4294967295",
                    "",
                    "1.5",
                ])
                .into(),
                _ => (value.len() + 1).to_string(),
            };
            let unique = if name == "cas" {
                pick(&[
                    " 18446744073709551000",
                    " 18446744073709551000",
                    " abc",
                    " -1",
                    "",
                ])
            } else {
                ""
            };
            let flags = pick(NUMBERS);
            format!(
                "{name}{space}{key}{space}{flags}{space}{}{space}{length}{unique}{noreply}{end}{value}",
                pick(EXPTIMES)
            )
        }
        "count" => format!(
            "{}{space}{key}{space}{}{noreply}",
            pick(&["incr", "decr"]),
            pick(NUMBERS)
        ),
        "delete" => format!(
            "delete{space}{key}{}{noreply}",
            pick(&["", "", "", " 0", " 1", " 00"])
        ),
        "touch" => format!("touch{space}{key}{space}{}{noreply}", pick(EXPTIMES)),
        _ => pick(&[
            "",
            "get",
            "gat",
            "gat 0",
            "set",
            "set a",
            "incr a",
            "touch a",
            "delete",
            "verbosity 0",
            "verbosity",
            "verbosity 0 noreply",
            "verbosity abc",
            "verbosity 0 0 0",
            "flush_all",
            "flush_all noreply",
            "flush_all 0",
            "flush_all -1",
            "flush_all abc",
            "flush_all 0 0",
            "flush_all 0 0 0",
            "flush_all 2147483648 noreply",
            "mn",
            "mn x",
            "mx",
            "quitx",
            "shutdown",
            "shutdown x",
            "stats reset",
            "bogus",
            "g",
            "bogus\0",
            "\u{80}",
        ])
        .into(),
    };
    let end = if kind == "store" { "\r\n" } else { end };
    out.extend_from_slice(format!("{start}{line}{end}").as_bytes());
}

/// Appends line ends until no command is left unfinished: memcached keeps replies back while it waits for a value.
fn finish(stream: &mut Vec<u8>) {
    let mut parser = Parser::new(Limits::default());
    let mut front = 0;
    while front < stream.len() {
        front += match parser.next(&stream[front..]) {
            Step::Need { need } => {
                stream.resize(front + need, b'\n');
                0
            }
            Step::Request { used, .. }
            | Step::Admin { used, .. }
            | Step::Refuse { used, .. }
            | Step::Fail { used, .. }
            | Step::Swallowed { used } => used,
        }
    }
}

/// The bytes around a place.
fn excerpt(bytes: &[u8], at: usize) -> impl std::fmt::Display {
    bytes[at.saturating_sub(60)..bytes.len().min(at + 2000)].escape_ascii()
}

fn from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| {
        value
            .parse()
            .unwrap_or_else(|_| panic!("{name} is no number"))
    })
}

#[test]
#[ignore = "needs memcached"]
fn replies_agree_with_memcached() {
    let seed = from_environment("GLIMMER_SEED").unwrap_or_else(|| rand::rng().random());
    let streams = from_environment("GLIMMER_STREAMS").unwrap_or(STREAMS_DEFAULT);
    println!("GLIMMER_SEED={seed} GLIMMER_STREAMS={streams}");
    let memcached = Memcached::start();
    let mut rng = SmallRng::seed_from_u64(seed);
    for number in 0..streams {
        let mut stream = Vec::new();
        for _ in 0..rng.random_range(1..12) {
            write_command(&mut rng, &mut stream);
        }
        finish(&mut stream);
        // Memcached keeps nothing from one stream to the next, and sends what it has to say about a value that never ends.
        let mut ours = Model::new();
        let theirs = memcached.answer(&[b"flush_all noreply\r\n", &stream[..]].concat());
        let ours = ours.answer(&stream);
        let alike = ours.iter().zip(&theirs).take_while(|(a, b)| a == b).count();
        assert!(
            ours == theirs,
            "stream {number}: \"{}\"\n ours: \"{}\"\ntheir: \"{}\"",
            excerpt(&stream, 0),
            excerpt(&ours, alike),
            excerpt(&theirs, alike),
        );
    }
}
