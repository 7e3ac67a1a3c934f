//! What the parser of a protocol does.

use crate::Request;
use crate::text::{Limits, Step};

/// What is left of a command with several keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// Nothing: the next step begins a command.
    None,
    /// Keys that are in the input as a whole. The next steps hand them out.
    Here,
    /// Keys that may not have arrived.
    Arriving,
}

/// The parser of one protocol that connections speak. Small and `Copy`; see
/// [`crate::text::Parser`].
pub trait Speak: Copy {
    /// The protocol's name on the command line and in `stats settings`.
    const NAME: &'static str;

    /// Clients authenticate by commands of the protocol. If not, they send what
    /// [`crate::text::login`] reads before anything else.
    const HAS_LOGIN: bool;

    /// A parser at the start of a connection.
    fn new(limits: Limits) -> Self;

    /// Whether a connection that begins with these bytes, of which there is one at least, speaks
    /// the protocol. None: more bytes will tell.
    fn begins_with(input: &[u8]) -> Option<bool>;

    /// Takes the next request from the front of `input`; see [`crate::text::Parser::next`].
    fn next<'a>(&mut self, input: &'a [u8]) -> Step<'a>;

    /// The request at the front of `input` and the bytes it uses, if the parser has a short way to
    /// it that is worth compiling into the caller. Otherwise the parser is as before.
    /// [`Speak::next`] returns the same request.
    #[inline(always)]
    fn next_plain<'a>(&mut self, input: &'a [u8]) -> Option<(usize, Request<'a>)> {
        let _ = input;
        None
    }

    /// Gives up on receiving the value that the last [`Step::Need`] asked room for; see
    /// [`crate::text::Parser::refuse_value`].
    fn refuse_value(&mut self);

    /// Whether complete commands or arguments are kept in the input, which [`Speak::refuse_value`]
    /// has leave it.
    fn keeps_commands(&self) -> bool {
        false
    }

    /// Whether the caller keeps commands for [`Step::Queue`].
    fn queues_apart(&self) -> bool {
        false
    }

    /// The caller does not keep the bytes of the last step, which was a [`Step::Queue`] with this
    /// reply: the commands that it has kept are given up. Returns the complete reply, which is due
    /// now instead of that of the step; empty if all commands of the step were answered before.
    fn refuse_queue(&mut self, line: &'static str) -> &'static str {
        let _ = line;
        ""
    }

    /// Whether the next request is one of a line that has not arrived as a whole, and whose client
    /// may send all of it before it reads.
    fn is_in_keys(&self) -> bool {
        false
    }

    /// What is left of the command of the last step.
    fn rest(&self) -> Rest {
        Rest::None
    }

    /// Whether more of a refused command is to come, which is passed over.
    fn passes_over(&self) -> bool;

    /// The caller has taken the value that the last step announced out of the input; see
    /// [`crate::Parser::take_value`].
    fn take_value(&mut self);

    /// The server has refused the command of the last step: what the command would have changed for
    /// later steps is as it was `before`.
    fn take_back(&mut self, before: &Self) {
        let _ = before;
    }

    /// Takes the next request of a client that has yet to authenticate. It never asks for more than
    /// [`LOCKED_BYTES_MAX`](glimmer_base::limits::LOCKED_BYTES_MAX) bytes of input.
    fn next_locked<'a>(&mut self, input: &'a [u8]) -> Step<'a>;
}
