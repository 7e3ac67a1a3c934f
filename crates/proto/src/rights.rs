//! What a user may do: rights by kind of request, and the beginning that keys must have.

use std::fmt;
use std::str::FromStr;

use crate::binary::{self, Status};
use crate::denial::Denial;
use crate::meta::command::Command;
use crate::text::{Admin, After, Step, lines};
use crate::{Control, Form, Request, Verb, resp};

/// A set of rights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rights(u8);

impl Rights {
    /// No right.
    pub const NONE: Rights = Rights(0);
    /// To be shown values, and whether there is an item.
    pub const GET: Rights = Rights(1);
    /// To change items.
    pub const SET: Rights = Rights(1 << 1);
    /// To administer the server.
    pub const ADMIN: Rights = Rights(1 << 2);
    /// Every right.
    pub const ALL: Rights = Rights(Self::GET.0 | Self::SET.0 | Self::ADMIN.0);
    /// What a user may do for whom nothing else is said.
    pub const DEFAULT: Rights = Rights(Self::GET.0 | Self::SET.0);

    /// The rights of both sets.
    #[must_use]
    pub const fn and(self, other: Rights) -> Rights {
        Rights(self.0 | other.0)
    }

    /// Whether all rights of the other set are in this one.
    #[inline]
    pub const fn has(self, other: Rights) -> bool {
        self.0 & other.0 == other.0
    }
}

/// The rights by the names that operators use.
const NAMES: [(&str, Rights); 3] = [
    ("get", Rights::GET),
    ("set", Rights::SET),
    ("admin", Rights::ADMIN),
];

impl FromStr for Rights {
    type Err = UnknownRight;

    /// One right, by its name.
    fn from_str(name: &str) -> Result<Rights, UnknownRight> {
        let found = NAMES.iter().find(|(known, _)| *known == name);
        found.map(|&(_, right)| right).ok_or(UnknownRight)
    }
}

/// No right has this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownRight;

impl fmt::Display for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = NAMES.iter().filter(|(_, right)| self.has(*right));
        let names: Vec<&str> = names.map(|&(name, _)| name).collect();
        match names.is_empty() {
            true => f.write_str("none"),
            false => f.write_str(&names.join(",")),
        }
    }
}

impl Verb<'_> {
    /// The rights that the request needs. One that changes an item and shows what it held, or
    /// holds then, needs both.
    pub fn rights(&self) -> Rights {
        match self {
            Verb::Get | Verb::Look => Rights::GET,
            Verb::Meta {
                command: Command::Debug,
                ..
            } => Rights::GET,
            Verb::Store { .. }
            | Verb::Delete
            | Verb::DeleteIf { .. }
            | Verb::Touch { .. }
            | Verb::Expire { .. }
            | Verb::Append { .. }
            | Verb::Overlay { .. }
            | Verb::DeleteEqual { .. }
            | Verb::DeleteUnchanged { .. }
            | Verb::ExpireEqual { .. }
            | Verb::Refused { .. }
            | Verb::Meta {
                command: Command::Store | Command::Delete,
                ..
            } => Rights::SET,
            Verb::Write(write) if !write.shows_old => Rights::SET,
            Verb::GetAndTouch { .. }
            | Verb::Increment { .. }
            | Verb::Decrement { .. }
            | Verb::Count { .. }
            | Verb::Write(_)
            | Verb::GetAndExpire { .. }
            | Verb::Take
            | Verb::AddDecimal { .. }
            | Verb::Add { .. }
            | Verb::Meta {
                command: Command::Get | Command::Arithmetic,
                ..
            } => Rights::GET.and(Rights::SET),
        }
    }
}

impl Request<'_> {
    /// The rights that the request needs: those of its verb, but that `mg` changes nothing without
    /// one of the flags that do.
    pub fn rights(&self) -> Rights {
        match (&self.verb, &self.form) {
            (
                Verb::Meta {
                    command: Command::Get,
                    ..
                },
                Form::Meta(flags),
            ) if !b"NTR".iter().any(|&flag| flags.has(flag)) => Rights::GET,
            (verb, _) => verb.rights(),
        }
    }
}

/// The rights of one user, and the beginning that the keys of all requests must have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// The rights.
    pub rights: Rights,
    /// How keys must begin; empty: any key will do.
    pub prefix: Box<[u8]>,
}

impl Rules {
    /// Whether the user may do everything, with every key.
    pub fn allow_all(&self) -> bool {
        self.rights == Rights::ALL && self.prefix.is_empty()
    }

    /// Why a request for one key is denied, if it is.
    pub fn judge(&self, request: &Request<'_>) -> Option<Denial> {
        if !self.rights.has(request.rights()) {
            return Some(Denial::Command);
        }
        let is_theirs = self.prefix.is_empty() || request.with_key(|key| self.owns(key));
        (!is_theirs).then_some(Denial::Key)
    }

    /// Whether the user may store a value under a key.
    pub fn may_store(&self, key: &[u8]) -> bool {
        self.rights.has(Rights::SET) && self.owns(key)
    }

    /// Whether a key begins as the user's keys must.
    pub fn owns(&self, key: &[u8]) -> bool {
        key.starts_with(&self.prefix)
    }

    /// Why a command without a key is denied, if it is. General statistics need the right to read,
    /// as clients ask for them to see whether a server is well. All other administrative commands
    /// need the right to administer, and listings show the keys of all users.
    pub fn judge_admin(&self, admin: &Admin<'_>) -> Option<Denial> {
        if let Admin::Control(Control::Move(wanted), _) = admin {
            let needed = Rights::GET.and(Rights::SET);
            return match self.rights.has(needed) {
                false => Some(Denial::Command),
                true if self.owns(wanted.from) && self.owns(wanted.to) => None,
                true => Some(Denial::Key),
            };
        }
        let needed = match admin {
            Admin::Stats(b"")
            | Admin::Control(Control::Stats(b"") | Control::Info(_) | Control::Size, _) => {
                Rights::GET
            }
            admin => match admin.command() {
                Some(_) => Rights::ADMIN,
                None => Rights::NONE,
            },
        };
        (!self.rights.has(needed)).then_some(Denial::Command)
    }
}

/// How a request that is denied is answered, in the words of its protocol.
impl Denial {
    /// The line of RESP.
    const fn resp_line(self) -> &'static str {
        match self {
            Denial::Command => resp::lines::COMMAND_DENIED,
            Denial::Key => resp::lines::KEY_DENIED,
            Denial::OverLimit => resp::lines::OVER_LIMIT,
        }
    }

    /// The status of the binary protocol.
    const fn status(self) -> Status {
        match self {
            Denial::Command | Denial::Key => Status::AuthError,
            Denial::OverLimit => Status::TemporaryFailure,
        }
    }

    /// The answer to a request, which uses these bytes of the input. A client that wants no reply
    /// to a classic text command gets none; the other protocols send errors all the same.
    pub fn answer(self, request: &Request<'_>, used: usize, then: After) -> Step<'static> {
        let line = match request.form {
            Form::Binary(header) => {
                let status = self.status();
                let words = binary::Words { header, status }.into();
                return Step::Answer {
                    used,
                    words,
                    text: &[],
                    then,
                };
            }
            Form::Resp(_) => self.resp_line(),
            // The keys of a retrieval before the last are quiet in another sense.
            Form::Text(reply) => match request.verb {
                Verb::Get | Verb::GetAndTouch { .. } => self.line(),
                _ => lines::unless(reply.quiet, self.line()),
            },
            Form::Meta(_) | Form::Native(_) => self.line(),
        };
        Step::Refuse { used, line, then }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Answer;

    /// Each protocol says the same of a request and of a command without a key.
    #[test]
    fn denials_of_commands_are_worded_as_those_of_requests() {
        let header = binary::Header {
            opcode: binary::opcode::FLUSH,
            opaque: [1, 2, 3, 4],
        };
        for denial in [Denial::Command, Denial::Key, Denial::OverLimit] {
            let said = |words: crate::Words| {
                let mut out = Vec::new();
                let control = Control::Flush { exptime: 0 };
                words.emit(&control, Answer::NotPermitted(denial), &mut out);
                out
            };
            assert_eq!(
                said(resp::Words::Status.into()),
                denial.resp_line().as_bytes()
            );
            let status = said(binary::Words::of(header).into())[6..8].to_vec();
            assert_eq!(status, (denial.status() as u16).to_be_bytes());
        }
    }
}
