//! Commands that name no key, that several protocols have, and that each answers in words of its
//! own.

use glimmer_proto::control::{Answer, Control, Credentials};
use glimmer_proto::{Sum, Words};

use super::{Outcome, flush};
use crate::admin::handler::Audited;
use crate::admin::long_reply::LongReply;
use crate::core::Core;

/// What such a command may look at, or change, of its client.
pub(crate) struct Client<'c> {
    /// It has yet to authenticate.
    pub locked: &'c mut bool,
    /// What the parts of the command come to.
    pub sum: &'c mut Sum,
    /// Its number in the registry.
    pub number: i32,
    /// A number that no other open connection has.
    pub id: u64,
}

/// Executes a command of this client that names no key.
#[cold]
pub(crate) fn administer(
    control: Control<'_>,
    words: Words,
    client: Client<'_>,
    out: &mut Vec<u8>,
    core: &mut Core,
) -> Outcome {
    let mut outcome = Outcome::Done;
    let answer = match control {
        Control::Answered(_) => Answer::Done,
        Control::Flush { exptime } => {
            flush(exptime, core);
            Answer::Done
        }
        Control::Stats(b"detail dump") => {
            return Outcome::LongReply(LongReply::prefixes(Some(words)));
        }
        Control::Stats(b"detail on") => detail(true, core),
        Control::Stats(b"detail off") => detail(false, core),
        Control::Stats(name) if name.starts_with(b"detail") => Answer::NoSuchFigures,
        Control::Stats(name) => return Outcome::LongReply(LongReply::stats(name, Some(words))),
        Control::Info(sections) => {
            let mut text = Vec::new();
            core.admin.info(sections, core.now, &mut text);
            let lines = text.iter().filter(|&&byte| byte == b'\n').count();
            (core.allowance).spend_on_figures(core.shared.workers(), lines);
            words.emit(&control, Answer::Text(&text), out);
            return outcome;
        }
        Control::Scan(_) | Control::RandomKey | Control::Move(_) => {
            unreachable!("they go from worker to worker")
        }
        Control::Clients => return Outcome::LongReply(LongReply::clients(words)),
        Control::Size => {
            (core.allowance).spend_on_figures(core.shared.workers(), 1);
            Answer::Number(core.admin.items())
        }
        Control::Time => Answer::Time(core.now.epoch_unix_ms + core.now.ms),
        Control::Quit => {
            outcome = Outcome::Close;
            Answer::Done
        }
        Control::Sum => Answer::Sum(std::mem::take(client.sum)),
        Control::ConnectionId => Answer::ConnectionId(client.id),
        Control::Mechanisms | Control::Login(_) if !core.shared.config.locked => Answer::NoLogin,
        Control::Mechanisms => Answer::Done,
        Control::Login(credentials) => {
            core.tally.auth_cmds += 1;
            let admits = |it: Credentials<'_>| core.admin.admits(it.user, it.password);
            let is_admitted = credentials.is_some_and(admits);
            let user = credentials.map_or(&b""[..], |it| it.user);
            core.audit(client.number, Audited::Login { user, is_admitted });
            *client.locked = !is_admitted;
            if *client.locked {
                outcome = Outcome::Withheld;
                Answer::Denied
            } else {
                Answer::Done
            }
        }
    };
    words.emit(&control, answer, out);
    outcome
}

/// Starts or stops to count requests by key prefix.
fn detail(is_on: bool, core: &Core) -> Answer<'static> {
    core.shared.observers().set_detail(is_on);
    Answer::Done
}
