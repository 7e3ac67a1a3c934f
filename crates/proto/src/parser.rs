//! One connection's protocol.

use crate::speak::Rest;
use crate::text::{Limits, Step};
use crate::{Request, Speak};
use std::fmt;
use std::str::FromStr;

macro_rules! make_parser {
    (
        $($(#[$doc:meta])* $name:ident($parser:ty)),* ;
        $(#[$rest_doc:meta])* $rest:ident($rest_parser:ty)
    ) => {
        /// Which protocols a connection may speak.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub enum Accepts {
            /// Whichever the first bytes say.
            #[default]
            Any,
            $(#[$rest_doc])* $rest,
            $($(#[$doc])* $name,)*
        }

        impl Accepts {
            /// Every value, in the order in which the command line names them.
            pub const ALL: &'static [Accepts] =
                &[Accepts::Any, Accepts::$rest, $(Accepts::$name,)*];

            /// The value's name on the command line.
            pub fn name(self) -> &'static str {
                match self {
                    Accepts::Any => "auto",
                    $(Accepts::$name => <$parser as Speak>::NAME,)*
                    Accepts::$rest => <$rest_parser as Speak>::NAME,
                }
            }

            /// The protocol that a connection speaks which may speak these and has sent this. None:
            /// more will tell.
            pub fn spoken(self, input: &[u8]) -> Option<Accepts> {
                match (self, input) {
                    (Accepts::Any, []) => None,
                    (Accepts::Any, input) => Accepts::of_beginning(input),
                    (accepts, _) => Some(accepts),
                }
            }

            /// The protocol of a connection that begins with these bytes. None: more will tell.
            #[inline]
            fn of_beginning(input: &[u8]) -> Option<Accepts> {
                $(if <$parser as Speak>::begins_with(input)? {
                    return Some(Accepts::$name);
                })*
                Some(Accepts::$rest)
            }
        }

        /// Reads one connection's bytes, in whichever protocol it speaks. Small and `Copy`; see
        /// [`crate::text::Parser`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Parser {
            /// Nothing has been received that would tell.
            Undecided(Limits),
            $(#[$rest_doc])* $rest($rest_parser),
            $($(#[$doc])* $name($parser),)*
        }

        impl Parser {
            /// A parser at the start of a connection that may speak any protocol.
            pub fn new(limits: Limits) -> Parser {
                Parser::Undecided(limits)
            }

            /// A parser at the start of a connection that may speak these.
            pub fn accepting(accepts: Accepts, limits: Limits) -> Parser {
                match accepts {
                    Accepts::Any => Parser::Undecided(limits),
                    Accepts::$rest => Parser::$rest(Speak::new(limits)),
                    $(Accepts::$name => Parser::$name(Speak::new(limits)),)*
                }
            }

            /// A parser of a datagram that begins with this byte. That of a datagram always tells,
            /// because no command there is an inline command of another protocol.
            pub fn of_datagram(accepts: Accepts, limits: Limits, first: u8) -> Parser {
                let accepts = match accepts {
                    Accepts::Any => Accepts::of_beginning(&[first]).unwrap_or(Accepts::$rest),
                    accepts => accepts,
                };
                Parser::accepting(accepts, limits)
            }

            /// Takes the next request from the front of `input`; see [`crate::text::Parser::next`].
            pub fn next<'a>(&mut self, input: &'a [u8]) -> Step<'a> {
                match self {
                    Parser::$rest(parser) => Speak::next(parser, input),
                    $(Parser::$name(parser) => Speak::next(parser, input),)*
                    Parser::Undecided(limits) => {
                        let Some(accepts) = Accepts::Any.spoken(input) else {
                            return Step::need(input.len() + 1);
                        };
                        *self = Parser::accepting(accepts, *limits);
                        self.next(input)
                    }
                }
            }

            /// See [`Speak::next_plain`].
            #[inline(always)]
            pub fn next_plain<'a>(&mut self, input: &'a [u8]) -> Option<(usize, Request<'a>)> {
                match self {
                    Parser::$rest(parser) => Speak::next_plain(parser, input),
                    $(Parser::$name(parser) => Speak::next_plain(parser, input),)*
                    Parser::Undecided(_) => None,
                }
            }

            /// Gives up on receiving the value that the last [`Step::Need`] asked room for; see
            /// [`crate::text::Parser::refuse_value`].
            pub fn refuse_value(&mut self) {
                match self {
                    Parser::Undecided(_) => {}
                    Parser::$rest(parser) => Speak::refuse_value(parser),
                    $(Parser::$name(parser) => Speak::refuse_value(parser),)*
                }
            }

            /// See [`Speak::keeps_commands`].
            pub fn keeps_commands(&self) -> bool {
                match self {
                    Parser::Undecided(_) => false,
                    Parser::$rest(parser) => parser.keeps_commands(),
                    $(Parser::$name(parser) => parser.keeps_commands(),)*
                }
            }

            /// See [`Speak::queues_apart`].
            pub fn queues_apart(&self) -> bool {
                match self {
                    Parser::Undecided(_) => false,
                    Parser::$rest(parser) => parser.queues_apart(),
                    $(Parser::$name(parser) => parser.queues_apart(),)*
                }
            }

            /// See [`Speak::refuse_queue`].
            pub fn refuse_queue(&mut self, line: &'static str) -> &'static str {
                match self {
                    Parser::Undecided(_) => "",
                    Parser::$rest(parser) => Speak::refuse_queue(parser, line),
                    $(Parser::$name(parser) => Speak::refuse_queue(parser, line),)*
                }
            }

            /// See [`Speak::is_in_keys`].
            pub fn is_in_keys(&self) -> bool {
                match self {
                    Parser::Undecided(_) => false,
                    Parser::$rest(parser) => parser.is_in_keys(),
                    $(Parser::$name(parser) => parser.is_in_keys(),)*
                }
            }

            /// The caller has taken the value that the last step announced
            /// ([`Announced`](crate::Announced)) out of the input, whether or not all of it had
            /// arrived. Call it before any other step.
            ///
            /// The next call, which makes sense once the whole value is there, must pass the bytes
            /// before the value, followed by those after it. [`Step::Need`] counts the bytes of
            /// this input. Any other step ends it: the request with an empty value, to which
            /// [`Request::with_value`] gives the value, or what became of the command otherwise.
            pub fn take_value(&mut self) {
                match self {
                    Parser::Undecided(_) => {}
                    Parser::$rest(parser) => Speak::take_value(parser),
                    $(Parser::$name(parser) => Speak::take_value(parser),)*
                }
            }

            /// See [`Speak::HAS_LOGIN`]; of a connection that has sent nothing, it is not known.
            pub fn has_login(&self) -> bool {
                match self {
                    Parser::Undecided(_) => false,
                    Parser::$rest(_) => <$rest_parser as Speak>::HAS_LOGIN,
                    $(Parser::$name(_) => <$parser as Speak>::HAS_LOGIN,)*
                }
            }

            /// See [`Speak::rest`].
            pub fn rest(&self) -> Rest {
                match self {
                    Parser::Undecided(_) => Rest::None,
                    Parser::$rest(parser) => Speak::rest(parser),
                    $(Parser::$name(parser) => Speak::rest(parser),)*
                }
            }

            /// See [`Speak::passes_over`].
            pub fn passes_over(&self) -> bool {
                match self {
                    Parser::Undecided(_) => false,
                    Parser::$rest(parser) => parser.passes_over(),
                    $(Parser::$name(parser) => parser.passes_over(),)*
                }
            }

            /// See [`Speak::take_back`].
            pub fn take_back(&mut self, before: &Parser) {
                match (self, before) {
                    (Parser::$rest(parser), Parser::$rest(before)) => parser.take_back(before),
                    $((Parser::$name(parser), Parser::$name(before)) => parser.take_back(before),)*
                    _ => {}
                }
            }

            /// See [`Speak::next_locked`].
            pub fn next_locked<'a>(&mut self, input: &'a [u8]) -> Step<'a> {
                match self {
                    Parser::$rest(parser) => Speak::next_locked(parser, input),
                    $(Parser::$name(parser) => Speak::next_locked(parser, input),)*
                    Parser::Undecided(limits) => {
                        let accepts = match input {
                            [] => None,
                            input => Accepts::of_beginning(input),
                        };
                        let Some(accepts) = accepts else {
                            return Step::need(input.len() + 1);
                        };
                        *self = Parser::accepting(accepts, *limits);
                        self.next_locked(input)
                    }
                }
            }
        }
    };
}

connections!(make_parser);

impl fmt::Display for Accepts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Accepts {
    type Err = UnknownProtocol;

    fn from_str(name: &str) -> Result<Accepts, UnknownProtocol> {
        let known = Accepts::ALL.iter().find(|accepts| accepts.name() == name);
        known.copied().ok_or(UnknownProtocol)
    }
}

/// No protocol has this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownProtocol;

impl Default for Parser {
    fn default() -> Parser {
        Parser::new(Limits::default())
    }
}

const _: () = assert!(
    size_of::<Parser>() <= 56,
    "every connection has one, and every step copies it"
);
