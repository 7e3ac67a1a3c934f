//! Answers to commands without a key.

use super::{Header, Status, emit, opcode};
use crate::control::{Answer, Control, Converse};
use crate::denial::Denial;
use crate::text::lines;

/// The mechanism by which clients authenticate: name and password in clear (RFC 4616).
pub(super) const MECHANISM: &[u8] = b"PLAIN";

/// How a command without a key is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words {
    /// What the reply repeats of the request.
    pub header: Header,
    /// What the parser has found wrong.
    pub status: Status,
}

impl Words {
    /// The words for a command that has been found good.
    pub fn of(header: Header) -> Words {
        let status = Status::Success;
        Words { header, status }
    }
}

impl From<Words> for crate::Words {
    fn from(words: Words) -> crate::Words {
        crate::Words::Binary(words)
    }
}

impl Converse for Words {
    fn emit(&self, control: &Control<'_>, answer: Answer<'_>, out: &mut Vec<u8>) {
        let header = self.header;
        let status = match answer {
            Answer::Done | Answer::Sum(_) | Answer::ConnectionId(_) => self.status,
            Answer::NotPermitted(Denial::OverLimit) | Answer::TooManyConnections => {
                Status::TemporaryFailure
            }
            Answer::Denied | Answer::NotPermitted(_) => Status::AuthError,
            Answer::NotOverUdp => Status::NotSupported,
            Answer::TooOften => Status::Busy,
            // Where no client needs to authenticate, memcached has none of these commands.
            Answer::NoLogin(_) => Status::UnknownCommand,
            Answer::NoSuchFigures => Status::KeyNotFound,
            // No command of this protocol asks for them.
            Answer::Number(_)
            | Answer::Time(_)
            | Answer::Text(_)
            | Answer::Keys { .. }
            | Answer::Key(_)
            | Answer::Moved(_)
            | Answer::TooManyKeys => Status::UnknownCommand,
            Answer::Figure(name, value) => {
                emit::stat(out, header, name.as_bytes(), value);
                return emit::stat(out, header, b"", b"");
            }
        };
        if status != Status::Success {
            return emit::error(out, header, status);
        }
        match control {
            Control::Mechanisms => emit::success_with(out, header, MECHANISM),
            Control::Login(_) => emit::success_with(out, header, b"Authenticated"),
            Control::Answered(_) if header.opcode == opcode::VERSION => {
                emit::success_with(out, header, lines::VERSION_NUMBER.as_bytes());
            }
            _ if header.is_quiet() => {}
            _ => emit::success(out, header, 0),
        }
    }

    /// One packet for each figure. Unless `more` follow, the empty packet comes after them; an
    /// unknown subject is an error.
    fn emit_figures(&self, lines: &[u8], more: bool, out: &mut Vec<u8>) {
        let header = self.header;
        let mut is_known = false;
        for line in lines.split(|&byte| byte == b'\n') {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let Some(figure) = line.strip_prefix(b"STAT ") else {
                is_known |= [&b"END"[..], b"RESET", b"OK"].contains(&line);
                continue;
            };
            let mut parts = figure.splitn(2, |&byte| byte == b' ');
            let mut part = || parts.next().unwrap_or_default();
            emit::stat(out, header, part(), part());
        }
        if more {
            return;
        }
        if is_known {
            emit::stat(out, header, b"", b"");
        } else {
            emit::error(out, header, Status::KeyNotFound);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: Header = Header {
        opcode: opcode::STAT,
        opaque: [1, 2, 3, 4],
    };

    #[test]
    fn figures_become_packets() {
        let (mut out, words) = (Vec::new(), Words::of(STAT));
        words.emit_figures(b"STAT pid 17\r\n", true, &mut out);
        words.emit_figures(b"STAT version a b\r\nEND\r\n", false, &mut out);
        let mut expected = Vec::new();
        emit::stat(&mut expected, STAT, b"pid", b"17");
        emit::stat(&mut expected, STAT, b"version", b"a b");
        emit::stat(&mut expected, STAT, b"", b"");
        assert_eq!(out, expected);
    }

    #[test]
    fn an_unknown_subject_is_not_found() {
        let (mut out, words) = (Vec::new(), Words::of(STAT));
        words.emit_figures(b"ERROR\r\n", false, &mut out);
        let mut expected = Vec::new();
        emit::error(&mut expected, STAT, Status::KeyNotFound);
        assert_eq!(out, expected);
        out.clear();
        words.emit_figures(b"RESET\r\n", false, &mut out);
        assert_eq!(out.len(), 24, "done, and nothing to tell");
    }

    #[test]
    fn the_version_stands_alone() {
        let number = lines::VERSION_NUMBER.as_bytes();
        assert!(number.starts_with(b"1.6.") && !number.ends_with(b"\n"));
    }
}
