//! The names of all commands, and how many arguments each has.

/// Bytes of the longest name.
pub(super) const NAME_BYTES_MAX: usize = 12;

macro_rules! commands {
    ($($name:literal $least:tt $most:tt $lower:literal)*) => {
        /// How many arguments a command has, its name among them, and its name as errors show it.
        #[inline]
        pub(super) fn arity(name: &[u8]) -> Option<(u32, u32, &'static str)> {
            Some(match name {
                $($name => ($least, commands!(@most $most), $lower),)*
                _ => return None,
            })
        }

        /// All names in capitals.
        pub const NAMES: &[&str] = &[$(match std::str::from_utf8($name) {
            Ok(name) => name,
            Err(_) => unreachable!(),
        },)*];
    };
    (@most many) => { u32::MAX };
    (@most $most:literal) => { $most };
}

commands! {
    b"GET" 2 2 "get"
    b"SET" 3 many "set"
    b"DEL" 2 many "del"
    b"UNLINK" 2 many "unlink"
    b"EXISTS" 2 many "exists"
    b"MGET" 2 many "mget"
    b"MSET" 3 many "mset"
    b"INCR" 2 2 "incr"
    b"DECR" 2 2 "decr"
    b"INCRBY" 3 3 "incrby"
    b"DECRBY" 3 3 "decrby"
    b"INCRBYFLOAT" 3 3 "incrbyfloat"
    b"TTL" 2 2 "ttl"
    b"PTTL" 2 2 "pttl"
    b"EXPIRETIME" 2 2 "expiretime"
    b"PEXPIRETIME" 2 2 "pexpiretime"
    b"STRLEN" 2 2 "strlen"
    b"TYPE" 2 2 "type"
    b"TOUCH" 2 many "touch"
    b"EXPIRE" 3 many "expire"
    b"PEXPIRE" 3 many "pexpire"
    b"EXPIREAT" 3 many "expireat"
    b"PEXPIREAT" 3 many "pexpireat"
    b"PERSIST" 2 2 "persist"
    b"SETEX" 4 4 "setex"
    b"PSETEX" 4 4 "psetex"
    b"SETNX" 3 3 "setnx"
    b"GETSET" 3 3 "getset"
    b"GETEX" 2 many "getex"
    b"GETDEL" 2 2 "getdel"
    b"DELIFEQ" 3 3 "delifeq"
    b"APPEND" 3 3 "append"
    b"GETRANGE" 4 4 "getrange"
    b"SUBSTR" 4 4 "substr"
    b"SETRANGE" 4 4 "setrange"
    b"PING" 1 many "ping"
    b"ECHO" 2 2 "echo"
    b"AUTH" 2 many "auth"
    b"HELLO" 1 many "hello"
    b"SELECT" 2 2 "select"
    b"CLIENT" 2 many "client"
    b"COMMAND" 1 many "command"
    b"CONFIG" 2 many "config"
    b"INFO" 1 many "info"
    b"TIME" 1 1 "time"
    b"DBSIZE" 1 1 "dbsize"
    b"OBJECT" 2 many "object"
    b"MEMORY" 2 many "memory"
    b"SLOWLOG" 2 many "slowlog"
    b"LATENCY" 2 many "latency"
    b"FLUSHALL" 1 many "flushall"
    b"FLUSHDB" 1 many "flushdb"
    b"COPY" 3 many "copy"
    b"RENAME" 3 3 "rename"
    b"RENAMENX" 3 3 "renamenx"
    b"RANDOMKEY" 1 1 "randomkey"
    b"KEYS" 2 2 "keys"
    b"SCAN" 2 many "scan"
    b"EVAL" 3 many "eval"
    b"EVALSHA" 3 many "evalsha"
    b"SCRIPT" 2 many "script"
    b"MULTI" 1 1 "multi"
    b"EXEC" 1 1 "exec"
    b"DISCARD" 1 1 "discard"
    b"WATCH" 2 many "watch"
    b"UNWATCH" 1 1 "unwatch"
    b"QUIT" 1 many "quit"
}

/// The subcommands of a command: what the argument after its name may be. Those that are always
/// refused are not among them.
pub(super) fn subcommands(name: &[u8]) -> &'static [&'static str] {
    match name {
        b"CLIENT" => &[
            "CACHING", "GETNAME", "ID", "LIST", "NO-EVICT", "NO-TOUCH", "SETINFO", "SETNAME",
            "TRACKING",
        ],
        b"COMMAND" => &["COUNT", "DOCS", "INFO", "LIST"],
        b"CONFIG" => &["GET"],
        b"LATENCY" => &["HISTOGRAM", "LATEST", "RESET"],
        b"MEMORY" => &["USAGE"],
        b"OBJECT" => &["ENCODING", "REFCOUNT"],
        b"SCRIPT" => &["EXISTS", "FLUSH", "LOAD"],
        b"SLOWLOG" => &["GET", "LEN", "RESET"],
        _ => &[],
    }
}

/// A word in capitals; empty if it is longer than the buffer.
#[inline]
pub(super) fn upper<'b>(word: &[u8], buffer: &'b mut [u8]) -> &'b [u8] {
    let Some(buffer) = buffer.get_mut(..word.len()) else {
        return &[];
    };
    for (upper, byte) in buffer.iter_mut().zip(word) {
        *upper = byte.to_ascii_uppercase();
    }
    buffer
}

/// Commands of memcached's text protocol that bear a name of these. The first word of a connection
/// that is one of them, in small letters, belongs to memcached.
const SHARED: &[&[u8]] = &[
    b"append", b"config", b"decr", b"get", b"incr", b"quit", b"set", b"touch", b"watch",
];

/// Whether a connection that begins with these bytes speaks RESP in inline commands, on a port that
/// memcached's clients share. None: more bytes will tell.
pub(super) fn begins_inline(input: &[u8]) -> Option<bool> {
    let word = &input[..input.len().min(NAME_BYTES_MAX + 1)];
    let Some(end) = word.iter().position(|byte| !byte.is_ascii_alphabetic()) else {
        return (word.len() > NAME_BYTES_MAX).then_some(false);
    };
    let (word, next) = (&word[..end], word[end]);
    let mut buffer = [0; NAME_BYTES_MAX];
    let name = upper(word, &mut buffer);
    let is_known = arity(name).is_some() && matches!(next, b' ' | b'\r' | b'\n');
    Some(is_known && !SHARED.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{Limits, Step, lines};

    /// A name that memcached's text protocol knows is in the list of those that are shared.
    #[test]
    fn shared_names_belong_to_memcached() {
        for name in NAMES {
            assert!(name.len() <= NAME_BYTES_MAX);
            let lower = name.to_ascii_lowercase();
            let line = format!("{lower} a b c\r\n");
            let mut parser = crate::text::Parser::new(Limits::default());
            let step = parser.next(line.as_bytes());
            let is_unknown = matches!(
                step,
                Step::Refuse {
                    line: lines::ERROR,
                    ..
                }
            );
            let bare = format!("{lower}\r\n");
            let mut parser = crate::text::Parser::new(Limits::default());
            let step = parser.next(bare.as_bytes());
            let is_unknown = is_unknown
                && matches!(
                    step,
                    Step::Refuse {
                        line: lines::ERROR,
                        ..
                    }
                );
            assert_eq!(!is_unknown, SHARED.contains(&lower.as_bytes()), "{lower}");
        }
    }

    #[test]
    fn the_first_word_tells() {
        for (input, is_resp) in [
            (&b"PING\r\n"[..], Some(true)),
            (b"ping\n", Some(true)),
            (b"PIN", None),
            (b"PINGS\r\n", Some(false)),
            (b"PING:\r\n", Some(false)),
            (b"QUIT\r\n", Some(true)),
            (b"quit\r\n", Some(false)),
            (b"GET a\r\n", Some(true)),
            (b"get a\r\n", Some(false)),
            (b"CONFIG GET a\r\n", Some(true)),
            (b"config get cluster\r\n", Some(false)),
            (b"set", None),
            (b"stats\r\n", Some(false)),
            (b"abcdefghijklmnop", Some(false)),
            (b"POST / HTTP/1.1\r\n", Some(false)),
            (b"\r\nPING\r\n", Some(false)),
        ] {
            assert_eq!(begins_inline(input), is_resp, "{}", input.escape_ascii());
        }
    }
}
