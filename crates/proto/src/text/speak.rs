//! The text protocol among the protocols that connections speak.

use super::parser::State;
use super::{After, Limits, Parser, Step};
use crate::speak::Rest;
use crate::{Request, Speak};

impl Speak for Parser {
    const NAME: &'static str = "ascii";
    const HAS_LOGIN: bool = false;

    fn new(limits: Limits) -> Parser {
        Parser::new(limits)
    }

    /// A connection that begins as none of another protocol does speaks this one.
    fn begins_with(_input: &[u8]) -> Option<bool> {
        Some(true)
    }

    #[inline]
    fn next<'a>(&mut self, input: &'a [u8]) -> Step<'a> {
        Parser::next(self, input)
    }

    #[inline(always)]
    fn next_plain<'a>(&mut self, input: &'a [u8]) -> Option<(usize, Request<'a>)> {
        Parser::next_plain(self, input)
    }

    /// Nothing: [`login::read`](super::login::read) reads what such a client sends.
    fn next_locked<'a>(&mut self, input: &'a [u8]) -> Step<'a> {
        Step::Refuse {
            used: input.len(),
            line: "",
            then: After::Close,
        }
    }

    fn refuse_value(&mut self) {
        Parser::refuse_value(self);
    }

    fn is_in_keys(&self) -> bool {
        matches!(self.state, State::Open(_))
    }

    fn rest(&self) -> Rest {
        match self.state {
            State::Keys(_) => Rest::Here,
            State::Open(_) => Rest::Arriving,
            State::Line { .. } | State::Taken | State::Swallow { .. } => Rest::None,
        }
    }

    fn passes_over(&self) -> bool {
        matches!(self.state, State::Swallow { .. })
    }

    fn take_value(&mut self) {
        Parser::take_value(self);
    }
}
