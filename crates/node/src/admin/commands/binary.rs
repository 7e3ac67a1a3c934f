//! Commands of the binary protocol that name no key.

use glimmer_proto::binary::{Command, Header, Status, emit};
use glimmer_proto::credentials;
use glimmer_proto::text::lines;

use super::{Outcome, flush_ms};
use crate::admin::report::Report;
use crate::core::Core;

/// The way in which a client says who it is: its name and its password, in clear (RFC 4616).
const MECHANISM: &[u8] = b"PLAIN";

/// Executes a command that names no key, and answers in the words of the binary protocol. `locked`
/// says that the client has yet to say who it is.
#[cold]
pub(crate) fn administer(
    header: Header,
    command: Command<'_>,
    locked: &mut bool,
    out: &mut Vec<u8>,
    core: &mut Core,
) -> Outcome {
    match command {
        Command::Noop => emit::success(out, header, 0),
        Command::Version => emit::success_with(out, header, lines::VERSION_NUMBER.as_bytes()),
        Command::Flush { exptime } => {
            core.tally.cmd_flush += 1;
            if core.shared.config.permits.flush {
                let at_ms = flush_ms(exptime.into(), core.now);
                core.engine.flush(core.now, at_ms);
                core.shared.switches.note_flush(at_ms);
                unless_quiet(out, header);
            } else {
                emit::error(out, header, Status::AuthError);
            }
        }
        Command::Stat(name) if name.starts_with(b"detail") => detail(header, name, out, core),
        Command::Stat(name) => return Outcome::Report(Report::stats(name, Some(header))),
        Command::Quit => {
            unless_quiet(out, header);
            return Outcome::Close;
        }
        // Where nobody needs to say who it is, memcached knows none of these commands.
        Command::SaslMechanisms | Command::SaslAuth { .. } | Command::SaslStep { .. }
            if !core.shared.config.locked =>
        {
            emit::error(out, header, Status::UnknownCommand);
        }
        Command::SaslMechanisms => emit::success_with(out, header, MECHANISM),
        Command::SaslAuth { mechanism, data } => {
            let is_admitted = mechanism == MECHANISM
                && credentials::plain(data)
                    .is_some_and(|(name, password)| core.admin.admits(name, password));
            *locked = !is_admitted;
            core.tally.auth_cmds += 1;
            if !is_admitted {
                emit::error(out, header, Status::AuthError);
                return Outcome::Withheld;
            }
            emit::success_with(out, header, b"Authenticated");
        }
        // The mechanism has one step, and it was taken.
        Command::SaslStep { .. } => {
            core.tally.auth_cmds += 1;
            emit::error(out, header, Status::AuthError);
            return Outcome::Withheld;
        }
    }
    Outcome::Done
}

/// Counts by key prefix: on, off, or shown as one figure.
fn detail(header: Header, name: &[u8], out: &mut Vec<u8>, core: &mut Core) {
    match name {
        _ if !core.shared.config.permits.dump => {
            return emit::error(out, header, Status::KeyNotFound);
        }
        b"detail on" => core.shared.observers.set_detail(true),
        b"detail off" => core.shared.observers.set_detail(false),
        b"detail dump" => {
            let mut counts = Vec::new();
            core.shared.observers.dump_prefixes(&mut counts);
            emit::stat(out, header, b"detailed", &counts);
        }
        _ => return emit::error(out, header, Status::KeyNotFound),
    }
    emit::stat(out, header, b"", b"");
}

fn unless_quiet(out: &mut Vec<u8>, header: Header) {
    if !header.is_quiet() {
        emit::success(out, header, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_stands_alone() {
        assert!(
            lines::VERSION_NUMBER.as_bytes().starts_with(b"1.6.")
                && !lines::VERSION_NUMBER.as_bytes().ends_with(b"\n")
        );
    }
}
