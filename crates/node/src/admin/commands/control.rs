//! Commands that name no key, that several protocols have, and that each answers in words of its
//! own.

use glimmer_proto::Words;
use glimmer_proto::control::{Answer, Control, Credentials};

use super::{Outcome, flush};
use crate::admin::handler::{Audited, Login};
use crate::admin::long_reply::LongReply;
use crate::core::Core;
use crate::stream::connection::Session;

/// What such a command may look at, or change, of its client.
pub(crate) struct Client<'c> {
    /// How far the conversation with it has come.
    pub session: &'c mut Session,
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
        Control::Stats(name) if !may_name_figures(name) => Answer::NoSuchFigures,
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
        Control::Sum => Answer::Sum(std::mem::take(&mut client.session.sum)),
        Control::ConnectionId => Answer::ConnectionId(client.id),
        Control::Mechanisms | Control::Login(_) if !core.shared.config.locked => {
            Answer::NoLogin(client.id)
        }
        Control::Mechanisms => Answer::Done,
        Control::Login(credentials) => {
            let id = client.id;
            // A wrong login ends the one before it as in memcached, and leaves it as in Redis.
            let keeps_login = matches!(words, Words::Resp(_));
            let found = log_in(credentials, keeps_login, client, core);
            match found {
                Login::Wrong => outcome = Outcome::Withheld,
                Login::Full => outcome = Outcome::Close,
                Login::Admitted(_) => {}
            }
            match found {
                Login::Wrong => Answer::Denied,
                Login::Full => Answer::TooManyConnections,
                Login::Admitted(_) => Answer::ConnectionId(id),
            }
        }
    };
    words.emit(&control, answer, out);
    outcome
}

/// Whether a packet may ask for figures by this name. As in memcached, nothing may precede it, and
/// nothing may follow the names that are compared to their end.
fn may_name_figures(name: &[u8]) -> bool {
    let first = name.split(|&byte| byte == b' ').next().unwrap_or_default();
    match first {
        b"extstore" => false,
        b"" | b"items" | b"slabs" | b"sizes" => first.len() == name.len(),
        _ => !name.starts_with(b"detail"),
    }
}

/// A client logs in, in place of the user that it was. If its login is wrong, it stays that user if
/// it `keeps_login`.
fn log_in(
    credentials: Option<Credentials<'_>>,
    keeps_login: bool,
    client: Client<'_>,
    core: &mut Core,
) -> Login {
    core.tally.auth_cmds += 1;
    // It leaves before it logs in: the same user may have no second connection.
    let is_right = |it: &Credentials<'_>| core.admin.admits(it.user, it.password);
    if !keeps_login || credentials.as_ref().is_some_and(is_right) {
        let before = client.session.lock();
        core.shared.config.tenants.leave(before);
    }
    let found = credentials.map_or(Login::Wrong, |it| core.log_in(it.user, it.password));
    let user = credentials.map_or(&b""[..], |it| it.user);
    let is_admitted = matches!(found, Login::Admitted(_));
    core.audit(client.number, Audited::Login { user, is_admitted });
    match found {
        Login::Admitted(user) => {
            // It may have become right only now.
            core.shared.config.tenants.leave(client.session.lock());
            client.session.admit(user);
        }
        Login::Full => core.tally.user_connections_refused += 1,
        Login::Wrong => {}
    }
    core.show_figures();
    found
}

/// Starts or stops to count requests by key prefix.
fn detail(is_on: bool, core: &Core) -> Answer<'static> {
    core.shared.observers().set_detail(is_on);
    Answer::Done
}
