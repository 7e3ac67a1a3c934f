//! A connection, or a datagram, while it is part of a burst.

use glimmer_base::limits::REPORT_DATAGRAM_BYTES_MAX;
use glimmer_proto::text::Dump;
use glimmer_proto::{Admin, After, Form, Parser, Step, binary};

use super::burst::Tools;
use super::connection::Connection;
use super::key::ConnectionKey;
use super::reorder::ReorderBuffer;
use crate::admin::commands::Outcome;
use crate::admin::report::Report;

/// Why a connection's requests are not parsed any further in this burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// They are.
    Live,
    /// Nothing is complete: so many unfinished bytes are needed.
    Hungry(usize),
    /// It had its share of the turn.
    Spent,
    /// Its replies have to be sent first.
    Full,
    /// Requests that crossed over have to be answered first.
    Reorder,
    /// It is out of credit: no batch for requests to another worker was free.
    OutOfCredit,
    /// Its next request has to cross over, which takes a connection; this is a datagram.
    Forward,
    /// All items are to be listed for it.
    Dump(Dump),
    /// The rest of a long reply is to be made.
    Report,
    /// It is to be shown what happens.
    Watch(u32),
    /// Its last login was wrong, and the answer has to wait.
    Withheld,
    /// It is to be closed, because it broke the protocol.
    Broken,
    /// It is to be closed.
    Close,
}

/// Where a member's bytes lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// In a connection's receive buffer.
    Connection(ConnectionKey),
    /// In a slot of the inbox.
    Datagram(u8),
}

/// A connection, or a datagram, while it is part of a burst.
pub(crate) struct Member {
    pub input: Input,
    pub parser: Parser,
    /// Bytes of its receive buffer that are finished.
    pub at: usize,
    pub stop: Stop,
    pub reorder: Option<Box<ReorderBuffer>>,
    /// What is left of a long reply, with [`Stop::Report`].
    pub report: Option<Box<Report>>,
    pub ask_owner: bool,
    /// It has yet to authenticate.
    pub locked: bool,
    /// Bytes that its replies are guessed to take, each; none if there is nothing to guess by.
    pub reply_bytes_guess: Option<usize>,
    /// Steps taken in this burst.
    pub requests: u32,
    /// Parser and position when the batch began, and steps taken since.
    pub batch_parser: Parser,
    pub batch_at: usize,
    pub steps: u16,
    /// The job that it added to the batch last.
    pub last_job: Option<u8>,
}

impl Member {
    pub fn new(key: ConnectionKey, connection: &Connection) -> Member {
        Member {
            reply_bytes_guess: connection.reply_bytes_guess,
            ask_owner: connection.ask_owner,
            locked: connection.locked,
            ..Member::at(
                Input::Connection(key),
                connection.rx_start,
                connection.parser,
            )
        }
    }

    /// A datagram in a slot of the inbox, whose request begins at offset `at`.
    pub fn datagram(slot: u8, at: usize, parser: Parser) -> Member {
        Member::at(Input::Datagram(slot), at, parser)
    }

    fn at(input: Input, at: usize, parser: Parser) -> Member {
        Member {
            reply_bytes_guess: None,
            input,
            parser,
            at,
            stop: Stop::Live,
            reorder: None,
            report: None,
            ask_owner: false,
            locked: false,
            requests: 0,
            batch_parser: parser,
            batch_at: 0,
            steps: 0,
            last_job: None,
        }
    }

    /// Begins the reply to a command without a key if it has not been made yet: the first piece, or
    /// for a datagram as much as a datagram's reply may take.
    #[cold]
    pub fn conclude(&mut self, outcome: Outcome, out: &mut Vec<u8>, tools: &mut Tools<'_>) -> Stop {
        let mut report = match outcome {
            Outcome::Done(stop) => return stop,
            Outcome::Report(report) => report,
        };
        let begin = out.len();
        while report.advance(tools.engine, tools.admin, tools.now, out) {
            if let Input::Connection(_) = self.input {
                self.report = Some(Box::new(report));
                return Stop::Report;
            }
            if out.len() - begin >= REPORT_DATAGRAM_BYTES_MAX.min(tools.room) {
                return Stop::Full;
            }
        }
        Stop::Live
    }

    /// Parses again from where the batch began, up to the step with this number.
    pub fn rewind(&mut self, input: &[u8], step: u16) {
        self.parser = self.batch_parser;
        self.at = self.batch_at;
        for _ in 0..step {
            match self.parser.next(&input[self.at..]) {
                Step::Request { used, .. }
                | Step::Admin { used, .. }
                | Step::Refuse { used, .. }
                | Step::Fail { used, .. }
                | Step::Swallowed { used } => self.at += used,
                Step::Need { .. } => unreachable!("the step was taken before"),
            }
        }
        self.requests = self.requests.saturating_sub(u32::from(self.steps - step));
        self.steps = step;
    }
}

/// What a client of the binary protocol gets for a step while it has yet to authenticate: only the
/// commands to authenticate with, and the version.
pub(super) fn locked_out(step: Step<'_>) -> Step<'_> {
    let (used, header) = match step {
        Step::Request { used, request } => match request.form {
            Form::Binary(header) => (used, header),
            _ => return step,
        },
        Step::Admin {
            used,
            admin: Admin::Binary(header, command),
        } if !command.is_open_to_all() => (used, header),
        _ => return step,
    };
    Step::Fail {
        used,
        header,
        status: binary::Status::AuthError,
        then: After::Close,
    }
}
