//! Answers to commands without a key, and errors that repeat what was sent.

use super::form::{Version, bulk, head};
use super::frame::{self, Style};
use super::lines;
use super::names::{self, NAMES};
use crate::control::{Answer, Control, Converse, Moved, Scan};
use crate::denial::Denial;

/// The version of Redis that clients are told: what they may expect of commands that are here.
pub const REDIS_VERSION: &str = "7.0.0";

/// The user that a client is which names none.
pub(super) const DEFAULT_USER: &[u8] = b"default";

/// Bytes of a command that an error repeats at most, as in Redis.
const REPEATED_BYTES_MAX: usize = 128;

/// How a command without a key is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Words {
    /// With `OK`, if it has been carried out.
    Status,
    /// With `OK`, if it has been carried out: an `AUTH` that names a user.
    Login,
    /// With a string that the command has sent.
    Text,
    /// With no elements.
    EmptyArray,
    /// With no entries.
    EmptyMap(Version),
    /// With how many of its keys were met.
    Count,
    /// With the connection's number.
    ConnectionId,
    /// With what the server is.
    Hello(Version),
    /// With figures.
    Info(Version),
    /// With a text.
    Words(Version),
    /// With a number.
    Number,
    /// With the time.
    Time,
    /// With keys.
    Keys,
    /// With a page that has no keys and is the last.
    NoKeys,
    /// With any key, or no value.
    RandomKey(Version),
    /// Whether an item was copied.
    Copied,
    /// With `OK`, or that there is no such item.
    Renamed,
    /// Whether an item was renamed, or that there is no such item.
    RenamedIfFree,
    /// With the beginning of an array of this many elements, which follow.
    Array(u32),
    /// With this many flags, of which the last is the lowest bit.
    Flags {
        /// The flags.
        are: u32,
        /// How many.
        count: u32,
    },
    /// With this error line, whatever its keys come to.
    SumRefused(&'static str),
    /// With the number of commands that there are.
    CommandCount,
    /// With those settings that the command names, which the answer is made of.
    Settings(Version),
    /// There is no such command: the answer repeats the command.
    UnknownCommand,
    /// With the subcommands of this command.
    Help(&'static str),
    /// There is no such subcommand of this command.
    UnknownSubcommand(&'static str),
    /// The command has another number of arguments.
    WrongArity(&'static str),
    /// An item cannot have this lifetime.
    BadLifetime(&'static str),
    /// `EXPIRE` has no such option.
    UnsupportedOption,
    /// `AUTH` has more than a user and a password.
    BadAuth,
    /// `HELLO` has no such option, or not with these arguments.
    BadHelloOption,
    /// Something else begins where a bulk string should; the connection is closed.
    ExpectedBulk,
}

impl From<Words> for crate::Words {
    fn from(words: Words) -> crate::Words {
        crate::Words::Resp(words)
    }
}

impl Words {
    /// Whether it says what is wrong with a command to a client that has yet to authenticate.
    pub(super) fn is_open_error(self) -> bool {
        matches!(
            self,
            Words::UnknownCommand
                | Words::UnknownSubcommand(_)
                | Words::WrongArity(_)
                | Words::BadAuth
                | Words::BadHelloOption
        )
    }

    /// Whether a client may ask for it before it has authenticated.
    pub(super) fn is_open_to_all(self, control: &Control<'_>) -> bool {
        matches!(control, Control::Login(_) | Control::Quit)
    }

    fn done(self, id: u64, text: &[u8], out: &mut Vec<u8>) {
        match self {
            Words::Status
            | Words::Login
            | Words::Info(_)
            | Words::Words(_)
            | Words::Number
            | Words::Time
            | Words::Keys
            | Words::RandomKey(_)
            | Words::Copied
            | Words::Renamed
            | Words::RenamedIfFree
            | Words::Count
            | Words::SumRefused(_)
            | Words::ConnectionId => out.extend_from_slice(lines::OK.as_bytes()),
            Words::NoKeys => out.extend_from_slice(b"*2\r\n$1\r\n0\r\n*0\r\n"),
            Words::Flags { are, count } => {
                head(out, b'*', count.into());
                for nth in (0..count).rev() {
                    head(out, b':', (are >> nth & 1).into());
                }
            }
            Words::Array(count) => head(out, b'*', count.into()),
            Words::CommandCount => head(out, b':', NAMES.len() as i64),
            Words::Settings(version) => settings(version, text, out),
            Words::UnsupportedOption => {
                out.extend_from_slice(b"-ERR Unsupported option ");
                printable(&text[..text.len().min(REPEATED_BYTES_MAX)], out);
                out.extend_from_slice(b"\r\n");
            }
            Words::Text => bulk(out, text),
            Words::EmptyArray | Words::EmptyMap(Version::Two) => head(out, b'*', 0),
            Words::EmptyMap(Version::Three) => head(out, b'%', 0),
            Words::Hello(version) => hello(version, id, out),
            Words::UnknownCommand => unknown(text, out),
            Words::Help(command) => {
                let subcommands = names::subcommands(command.as_bytes());
                head(out, b'*', subcommands.len() as i64);
                for subcommand in subcommands {
                    out.push(b'+');
                    out.extend_from_slice(command.as_bytes());
                    out.push(b' ');
                    out.extend_from_slice(subcommand.as_bytes());
                    out.extend_from_slice(b"\r\n");
                }
            }
            Words::UnknownSubcommand(command) => {
                out.extend_from_slice(b"-ERR unknown subcommand '");
                printable(&text[..text.len().min(REPEATED_BYTES_MAX)], out);
                out.extend_from_slice(b"'. Try ");
                out.extend_from_slice(command.as_bytes());
                out.extend_from_slice(b" HELP.\r\n");
            }
            Words::WrongArity(command) => {
                out.extend_from_slice(b"-ERR wrong number of arguments for '");
                out.extend_from_slice(command.as_bytes());
                out.extend_from_slice(b"' command\r\n");
            }
            Words::BadAuth => out.extend_from_slice(lines::SYNTAX.as_bytes()),
            Words::BadHelloOption => {
                out.extend_from_slice(b"-ERR Syntax error in HELLO option '");
                printable(&text[..text.len().min(REPEATED_BYTES_MAX)], out);
                out.extend_from_slice(b"'\r\n");
            }
            Words::ExpectedBulk => {
                out.extend_from_slice(b"-ERR Protocol error: expected '$', got '");
                printable(text, out);
                out.extend_from_slice(b"'\r\n");
            }
            Words::BadLifetime(command) => {
                out.extend_from_slice(b"-ERR invalid expire time in '");
                out.extend_from_slice(command.as_bytes());
                out.extend_from_slice(b"' command\r\n");
            }
        }
    }
}

impl Converse for Words {
    fn emit(&self, control: &Control<'_>, answer: Answer<'_>, out: &mut Vec<u8>) {
        let is_default = matches!(
            control,
            Control::Login(Some(credentials)) if credentials.user == DEFAULT_USER
        );
        let line = match answer {
            Answer::Done => {
                let text = match control {
                    Control::Answered(text) => text,
                    _ => &[][..],
                };
                return self.done(0, text, out);
            }
            Answer::ConnectionId(id) if *self == Words::ConnectionId => {
                return head(out, b':', id as i64);
            }
            Answer::ConnectionId(id) => return self.done(id, &[], out),
            Answer::Number(number) => return head(out, b':', number as i64),
            Answer::Text(text) => {
                return match self {
                    Words::Info(Version::Three) | Words::Words(Version::Three) => {
                        verbatim(text, out);
                    }
                    _ => bulk(out, text),
                };
            }
            Answer::Keys { cursor, count } => {
                if let Control::Scan(Scan { page: Some(_), .. }) = control {
                    head(out, b'*', 2);
                    bulk(out, itoa::Buffer::new().format(cursor).as_bytes());
                }
                return head(out, b'*', count.into());
            }
            Answer::Key(Some(key)) => return bulk(out, key),
            Answer::Key(None) => match self {
                Words::RandomKey(version) => version.null(),
                _ => lines::NULL_2,
            },
            Answer::Moved(Moved::Yes) if *self == Words::Renamed => lines::OK,
            Answer::Moved(Moved::Yes) => lines::ONE,
            Answer::Moved(Moved::NoSuchItem) if *self != Words::Copied => lines::NO_SUCH_KEY,
            Answer::Moved(Moved::NoSuchItem | Moved::Taken) => lines::ZERO,
            Answer::Moved(Moved::TooLarge) => lines::TOO_LARGE,
            Answer::Moved(Moved::OutOfMemory) => lines::OUT_OF_MEMORY,
            Answer::TooManyKeys => lines::TOO_MANY_KEYS,
            Answer::Denied if matches!(self, Words::Keys | Words::RandomKey(_)) => {
                lines::KEYS_NOT_ALLOWED
            }
            Answer::Time(ms) => {
                let mut buffer = itoa::Buffer::new();
                head(out, b'*', 2);
                bulk(out, buffer.format(ms / 1000).as_bytes());
                return bulk(out, buffer.format(ms % 1000 * 1000).as_bytes());
            }
            Answer::Sum(_) if matches!(self, Words::SumRefused(_)) => match self {
                Words::SumRefused(line) => line,
                _ => lines::OK,
            },
            Answer::Sum(sum) if sum.failed > 0 => lines::OUT_OF_MEMORY,
            Answer::Sum(sum) if *self == Words::Count => {
                return head(out, b':', sum.done.into());
            }
            Answer::Sum(_) => lines::OK,
            // As in Redis, the default user without a password may name any.
            Answer::NoLogin(id) if is_default && *self != Words::Status => {
                return self.done(id, &[], out);
            }
            Answer::NoLogin(_) if *self == Words::Status => lines::NO_PASSWORD,
            Answer::NoLogin(_) => lines::WRONG_PASS,
            Answer::Denied if matches!(control, Control::Login(_)) => lines::WRONG_PASS,
            Answer::NotPermitted(Denial::Command) => lines::COMMAND_DENIED,
            Answer::NotPermitted(Denial::Key) => lines::KEY_DENIED,
            Answer::NotPermitted(Denial::OverLimit) => lines::OVER_LIMIT,
            Answer::TooManyConnections => lines::USER_CONNECTIONS,
            Answer::Denied if matches!(self, Words::Info(_)) => lines::INFO_NOT_ALLOWED,
            Answer::Denied => lines::FLUSH_NOT_ALLOWED,
            // Redis has no datagrams.
            Answer::NotOverUdp | Answer::TooOften => lines::NOT_OVER_UDP,
            Answer::NoSuchFigures | Answer::Figure(..) => lines::NO_FIGURES,
        };
        out.extend_from_slice(line.as_bytes());
    }

    fn emit_key(&self, key: &[u8], out: &mut Vec<u8>) {
        bulk(out, key);
    }

    /// Nothing: this protocol asks for no lines of `stats`.
    fn emit_figures(&self, _lines: &[u8], _more: bool, _out: &mut Vec<u8>) {}
}

/// Settings of Redis that clients ask for and that always hold here.
const SETTINGS: &[(&str, &str)] = &[("save", ""), ("appendonly", "no"), ("databases", "1")];

/// Those settings whose names fit an argument of `CONFIG GET pattern ...`.
fn settings(version: Version, command: &[u8], out: &mut Vec<u8>) {
    let fits = |&&(name, _): &&(&str, &str)| {
        let fits =
            |pattern: &[u8]| pattern == b"*" || pattern.eq_ignore_ascii_case(name.as_bytes());
        arguments(command).skip(2).any(fits)
    };
    let count = SETTINGS.iter().filter(fits).count() as i64;
    match version {
        Version::Two => head(out, b'*', 2 * count),
        Version::Three => head(out, b'%', count),
    }
    for (name, value) in SETTINGS.iter().filter(fits) {
        bulk(out, name.as_bytes());
        bulk(out, value.as_bytes());
    }
}

/// What the server is, as `HELLO` says it.
fn hello(version: Version, id: u64, out: &mut Vec<u8>) {
    const ENTRIES: i64 = 7;
    let number = match version {
        Version::Two => {
            head(out, b'*', 2 * ENTRIES);
            2
        }
        Version::Three => {
            head(out, b'%', ENTRIES);
            3
        }
    };
    bulk(out, b"server");
    bulk(out, b"redis");
    bulk(out, b"version");
    bulk(out, REDIS_VERSION.as_bytes());
    bulk(out, b"proto");
    head(out, b':', number);
    bulk(out, b"id");
    head(out, b':', id as i64);
    bulk(out, b"mode");
    bulk(out, b"standalone");
    bulk(out, b"role");
    bulk(out, b"master");
    bulk(out, b"modules");
    head(out, b'*', 0);
}

/// The arguments of a command of which everything is there, its name among them.
fn arguments(command: &[u8]) -> impl Iterator<Item = &[u8]> {
    let style = match command.first() {
        Some(b'*') => Style::Array,
        _ => Style::Inline,
    };
    let mut rest = match style {
        Style::Array => match memchr::memchr(b'\n', command) {
            Some(newline) => &command[newline + 1..],
            None => &[],
        },
        Style::Inline => command,
    };
    std::iter::from_fn(move || {
        let (argument, used) = frame::next_argument(rest, style)?;
        rest = &rest[used.min(rest.len())..];
        Some(argument)
    })
}

/// There is no such command: its name and its first arguments, as Redis shows them.
fn unknown(command: &[u8], out: &mut Vec<u8>) {
    let mut arguments = arguments(command);
    let name = arguments.next().unwrap_or_default();
    out.extend_from_slice(b"-ERR unknown command '");
    printable(&name[..name.len().min(REPEATED_BYTES_MAX)], out);
    out.extend_from_slice(b"', with args beginning with: ");
    let begin = out.len();
    while out.len() - begin < REPEATED_BYTES_MAX
        && let Some(argument) = arguments.next()
    {
        let room = REPEATED_BYTES_MAX - (out.len() - begin);
        out.push(b'\'');
        printable(&argument[..argument.len().min(room)], out);
        out.extend_from_slice(b"' ");
    }
    out.extend_from_slice(b"\r\n");
}

/// Appends a text that version 3 has a type for.
fn verbatim(text: &[u8], out: &mut Vec<u8>) {
    const FORMAT: &[u8] = b"txt:";
    head(out, b'=', (FORMAT.len() + text.len()) as i64);
    out.extend_from_slice(FORMAT);
    out.extend_from_slice(text);
    out.extend_from_slice(b"\r\n");
}

/// Appends text of which nothing ends a line, as Redis does.
fn printable(text: &[u8], out: &mut Vec<u8>) {
    out.extend(text.iter().map(|&byte| match byte {
        b'\r' | b'\n' => b' ',
        byte => byte,
    }));
}

#[cfg(test)]
mod tests {
    use super::super::state::Parser;
    use super::*;
    use crate::sections::Sections;
    use crate::text::{Limits, Step};

    #[test]
    fn subcommands_that_are_listed_are_known() {
        for name in NAMES {
            for subcommand in names::subcommands(name.as_bytes()) {
                let command = format!("{name} {subcommand}\r\n");
                let step = Parser::new(Limits::default()).step(command.as_bytes());
                let is_unknown = matches!(
                    step,
                    Step::Answer {
                        words: crate::Words::Resp(Words::UnknownSubcommand(_)),
                        ..
                    }
                );
                assert!(!is_unknown, "{command}");
            }
        }
    }

    #[test]
    fn texts_have_a_type_of_their_own_in_version_3() {
        for (version, reply) in [
            (Version::Two, "$7\r\n# CPU\r\n\r\n"),
            (Version::Three, "=11\r\ntxt:# CPU\r\n\r\n"),
        ] {
            for (words, control) in [
                (Words::Info(version), Control::Info(Sections::of(&[]))),
                (Words::Words(version), Control::Clients),
            ] {
                let mut out = Vec::new();
                words.emit(&control, Answer::Text(b"# CPU\r\n"), &mut out);
                assert_eq!(out, reply.as_bytes());
            }
        }
    }
}
