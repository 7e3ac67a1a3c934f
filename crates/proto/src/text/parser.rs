//! The state between two commands.

use super::line::{Limits, Line};
use super::open_line::{self, OpenLine};
use super::retrieval::Keys;
use super::tokens::{self, LINE_END, Words};
use super::value::Source;
use super::{After, Step, admin, change, config, lines, plain, retrieval, storage};
use crate::{Request, StoreMode, meta};
use glimmer_base::limits::{COMMAND_LINE_BYTES_MAX, LINE_BYTES_MAX};

/// Length of the shortest command, including its line end. A shorter line is not a command.
const COMMAND_LINE_BYTES_MIN: usize = 4;

/// Parses the bytes of one connection as memcached's text protocol.
///
/// Small and `Copy`. A worker that cannot execute a request yet restores the copy from before the
/// step, keeps the bytes, and gets the same request again later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parser {
    pub(crate) limits: Limits,
    pub(crate) state: State,
    /// The value that the last step asked room for will not be received.
    pub(super) no_memory: bool,
}

/// The position in the stream. Lines that are parsed as a whole are at most [`LINE_BYTES_MAX`] long
/// and values below 2 GiB, so 32 bits hold every count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// At the start of a line. Its first `searched` bytes contain no line end.
    Line { searched: u32 },
    /// At a key of a retrieval whose line is valid.
    Keys(Keys),
    /// In a retrieval whose line is too long to be parsed as a whole.
    Open(OpenLine),
    /// At the line of a store whose value the caller has taken out of the input.
    Taken,
    /// In a refused value: this many bytes, including its line end, are yet to be swallowed.
    Swallow { left: u32 },
}

impl State {
    pub const START: State = State::Line { searched: 0 };

    /// At the rest of a refused value.
    pub fn swallowing(value_bytes: usize) -> State {
        State::Swallow {
            left: (value_bytes + LINE_END.len()) as u32,
        }
    }
}

impl Default for State {
    fn default() -> Self {
        State::START
    }
}

impl Parser {
    /// A parser at the start of a connection.
    pub fn new(limits: Limits) -> Parser {
        Parser {
            limits,
            ..Parser::default()
        }
    }

    /// Parses the next request at the front of `input`.
    ///
    /// After [`Step::Need`], the next call must pass the same bytes followed by more. After any
    /// other step, it must pass the bytes that follow the used ones. Used bytes are never needed
    /// again. Every step but `Need` uses at least one byte.
    pub fn next<'a>(&mut self, input: &'a [u8]) -> Step<'a> {
        match self.state {
            State::Line { searched } => self.next_line(input, searched as usize),
            State::Keys(keys) => match keys.next(input) {
                Some((used, request, state)) => {
                    self.state = state;
                    Step::Request { used, request }
                }
                None => Step::need(keys.line_bytes()),
            },
            State::Open(line) => self.stepped(line.next(input)),
            State::Taken => self.next_taken(input),
            State::Swallow { left } => self.swallow(input, left),
        }
    }

    /// The request at the front of `input` and the bytes it uses, if the request is of the most
    /// frequent kinds (see `plain`). Otherwise the parser is as before.
    #[inline(always)]
    pub fn next_plain<'a>(&mut self, input: &'a [u8]) -> Option<(usize, Request<'a>)> {
        match self.state {
            State::Line { .. } => {
                let found = plain::request(&self.limits, input)?;
                self.state = State::START;
                self.no_memory = false;
                Some(found)
            }
            State::Keys(keys) => {
                let (used, request, state) = keys.next(input)?;
                self.state = state;
                Some((used, request))
            }
            _ => None,
        }
    }

    /// A step in a line that is too long, and where in it the parser is after the step.
    fn stepped<'a>(&mut self, (step, line): (Step<'a>, Option<OpenLine>)) -> Step<'a> {
        self.state = line.map_or(State::START, State::Open);
        step
    }

    /// Refuses the value that the last [`Step::Need`] asked for. The next step refuses it as
    /// memcached does when it has no memory for an item, and the following steps swallow it.
    pub fn refuse_value(&mut self) {
        self.no_memory = true;
    }

    /// See [`crate::Parser::take_value`].
    pub fn take_value(&mut self) {
        self.state = State::Taken;
    }

    fn swallow(&mut self, input: &[u8], left: u32) -> Step<'static> {
        if input.is_empty() {
            return Step::need(1);
        }
        let used = input.len().min(left as usize);
        self.state = match left - used as u32 {
            0 => State::START,
            left => State::Swallow { left },
        };
        Step::Swallowed { used }
    }

    fn next_line<'a>(&mut self, input: &'a [u8], searched: usize) -> Step<'a> {
        let searched = searched.min(input.len());
        let newline = memchr::memchr(b'\n', &input[searched..]).map(|at| searched + at);
        let length = newline.unwrap_or(input.len());
        if length > COMMAND_LINE_BYTES_MAX {
            match is_retrieval(input) {
                true if length > LINE_BYTES_MAX => return self.stepped(open_line::begin(input)),
                true => {}
                false => {
                    return Step::Refuse {
                        used: input.len(),
                        line: "",
                        then: After::Close,
                    };
                }
            }
        }
        let Some(newline) = newline else {
            self.state = State::Line {
                searched: input.len() as u32,
            };
            return Step::need(input.len() + 1);
        };
        let no_memory = std::mem::take(&mut self.no_memory);
        self.state = State::START;
        self.command(line_up_to(input, newline), Source::Input { no_memory })
    }

    /// The line again, which was complete when its value was taken.
    #[cold]
    fn next_taken<'a>(&mut self, input: &'a [u8]) -> Step<'a> {
        let Some(newline) = memchr::memchr(b'\n', input) else {
            return Step::need(input.len() + 1);
        };
        let no_memory = std::mem::take(&mut self.no_memory);
        self.state = State::START;
        let step = self.command(line_up_to(input, newline), Source::Taken { no_memory });
        if let Step::Need { .. } = step {
            self.state = State::Taken;
        }
        step
    }

    fn command<'a>(&mut self, line: Line<'a>, source: Source) -> Step<'a> {
        if line.used < COMMAND_LINE_BYTES_MIN {
            return line.refuse(lines::BAD_LINE);
        }
        // memcached does not accept these commands after a space.
        let (name, rest) = line.text.split_at(tokens::word_len(line.text));
        let mut meta = |command| meta::read(self, &line, command, rest, source);
        let mode = match name {
            b"mg" => return meta(meta::Command::Get),
            b"ms" => return meta(meta::Command::Store),
            b"md" => return meta(meta::Command::Delete),
            b"ma" => return meta(meta::Command::Arithmetic),
            b"me" => return meta(meta::Command::Debug),
            b"get" => return retrieval::start(self, &line, rest, false),
            b"gets" => return retrieval::start(self, &line, rest, true),
            b"gat" => return retrieval::start_touching(self, &line, rest, false),
            b"gats" => return retrieval::start_touching(self, &line, rest, true),
            b"set" => StoreMode::Set,
            b"add" => StoreMode::Add,
            b"replace" => StoreMode::Replace,
            b"append" => StoreMode::Append,
            b"prepend" => StoreMode::Prepend,
            // The CAS unique is parsed with the other numbers.
            b"cas" => StoreMode::Cas(0),
            _ => {
                let words = Words::of(line.text);
                return match change::read(&line, name, &words) {
                    Some(step) => step,
                    None if name == b"config" => self.config(&line, source),
                    None => admin::read(&line, name, &words, rest),
                };
            }
        };
        storage::read(self, &line, mode, source)
    }

    /// A line that begins with `config`, which may have a value after it.
    #[cold]
    fn config<'a>(&mut self, line: &Line<'a>, source: Source) -> Step<'a> {
        let (step, refused) = config::read(line, source);
        self.state = refused.map_or(self.state, State::swallowing);
        step
    }
}

/// The line that ends at this line feed.
#[inline(always)]
fn line_up_to(input: &[u8], newline: usize) -> Line<'_> {
    let line = &input[..newline];
    Line {
        text: line.strip_suffix(b"\r").unwrap_or(line),
        used: newline + 1,
        input,
    }
}

/// Whether the line is of a command that may have any number of keys. Like memcached, this accepts
/// at most 100 spaces before such a command.
#[cold]
fn is_retrieval(line: &[u8]) -> bool {
    const LEADING_SPACES_MAX: usize = 100;
    let text = tokens::without_leading_spaces(line);
    let names = [&b"get "[..], b"gets ", b"gat ", b"gats "];
    names.iter().any(|name| text.starts_with(name)) && line.len() - text.len() <= LEADING_SPACES_MAX
}

const _: () = assert!(LINE_BYTES_MAX < u32::MAX as usize);
const _: () = assert!(
    size_of::<Parser>() <= 48,
    "every connection has one, and every step copies it"
);
