//! One connection's protocol.

use crate::binary;
use crate::text::{self, Limits, Step};

/// Which protocols a connection may speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Accepts {
    /// Whichever the first byte says.
    #[default]
    Any,
    /// The text protocol, the meta commands included.
    Text,
    /// The binary protocol.
    Binary,
}

/// Reads one connection's bytes, in whichever protocol it speaks. Small and `Copy`; see [`text::Parser`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parser {
    /// Nothing has been received that would tell.
    Undecided(Limits),
    /// The text protocol.
    Text(text::Parser),
    /// The binary protocol.
    Binary(binary::Parser),
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
            Accepts::Text => Parser::Text(text::Parser::new(limits)),
            Accepts::Binary => Parser::Binary(binary::Parser::new(limits)),
        }
    }

    /// Whether the connection speaks the binary protocol, as far as is known.
    #[inline]
    pub fn is_binary(&self) -> bool {
        matches!(self, Parser::Binary(_))
    }

    /// Takes the next request from the front of `input`; see [`text::Parser::next`].
    #[inline]
    pub fn next<'a>(&mut self, input: &'a [u8]) -> Step<'a> {
        match self {
            Parser::Text(parser) => parser.next(input),
            Parser::Binary(parser) => parser.next(input),
            Parser::Undecided(limits) => {
                let Some(&first) = input.first() else {
                    return Step::Need { need: 1 };
                };
                *self = Parser::accepting(
                    if first == binary::MAGIC_REQUEST {
                        Accepts::Binary
                    } else {
                        Accepts::Text
                    },
                    *limits,
                );
                self.next(input)
            }
        }
    }

    /// Gives up on receiving the value that the last [`Step::Need`] asked room for; see [`text::Parser::refuse_value`].
    pub fn refuse_value(&mut self) {
        match self {
            Parser::Text(parser) => parser.refuse_value(),
            Parser::Binary(parser) => parser.refuse_value(),
            Parser::Undecided(_) => {}
        }
    }
}

impl Default for Parser {
    fn default() -> Parser {
        Parser::new(Limits::default())
    }
}

const _: () = assert!(
    size_of::<Parser>() <= 48,
    "every connection has one, and every step copies it"
);
