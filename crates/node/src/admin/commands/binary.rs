//! Commands of the binary protocol that name no key.

use glimmer_proto::binary::{Command, Header, Status, emit};
use glimmer_proto::credentials;
use glimmer_proto::text::lines;

use super::{Outcome, flush_ms};
use crate::admin::report::Report;
use crate::stream::burst::Tools;
use crate::stream::member::Stop;

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
    tools: &mut Tools<'_>,
) -> Outcome {
    match command {
        Command::Noop => emit::success(out, header, 0),
        Command::Version => emit::success_with(out, header, lines::VERSION_NUMBER.as_bytes()),
        Command::Flush { exptime } => {
            tools.tally.cmd_flush += 1;
            if tools.permits.flush {
                let at_ms = flush_ms(exptime.into(), tools.now);
                tools.engine.flush(tools.now, at_ms);
                tools.switches.note_flush(at_ms);
                unless_quiet(out, header);
            } else {
                emit::error(out, header, Status::AuthError);
            }
        }
        Command::Stat(name) if name.starts_with(b"detail") => detail(header, name, out, tools),
        Command::Stat(name) => return Outcome::Report(Report::stats(name, Some(header))),
        Command::Quit => {
            unless_quiet(out, header);
            return Outcome::Done(Stop::Close);
        }
        // Where nobody needs to say who it is, memcached knows none of these commands.
        Command::SaslMechanisms | Command::SaslAuth { .. } | Command::SaslStep { .. }
            if !tools.locked =>
        {
            emit::error(out, header, Status::UnknownCommand);
        }
        Command::SaslMechanisms => emit::success_with(out, header, MECHANISM),
        Command::SaslAuth { mechanism, data } => {
            let is_admitted = mechanism == MECHANISM
                && credentials::plain(data)
                    .is_some_and(|(name, password)| tools.admin.admits(name, password));
            *locked = !is_admitted;
            tools.tally.auth_cmds += 1;
            if !is_admitted {
                emit::error(out, header, Status::AuthError);
                return Outcome::Done(Stop::Withheld);
            }
            emit::success_with(out, header, b"Authenticated");
        }
        // The mechanism has one step, and it was taken.
        Command::SaslStep { .. } => {
            tools.tally.auth_cmds += 1;
            emit::error(out, header, Status::AuthError);
            return Outcome::Done(Stop::Withheld);
        }
    }
    Outcome::Done(Stop::Live)
}

/// Counts by key prefix: on, off, or shown as one figure.
fn detail(header: Header, name: &[u8], out: &mut Vec<u8>, tools: &mut Tools<'_>) {
    match name {
        _ if !tools.permits.dump => return emit::error(out, header, Status::KeyNotFound),
        b"detail on" => tools.observers.set_detail(true),
        b"detail off" => tools.observers.set_detail(false),
        b"detail dump" => {
            let mut counts = Vec::new();
            tools.observers.dump_prefixes(&mut counts);
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

/// Appends lines of a `stats` command as packets. Unless `more` lines follow, the empty packet
/// comes after them; an unknown subject is an error.
pub(crate) fn stat_packets(out: &mut Vec<u8>, header: Header, lines: &[u8], more: bool) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use glimmer_proto::binary::opcode;

    const STAT: Header = Header {
        opcode: opcode::STAT,
        opaque: [1, 2, 3, 4],
    };

    #[test]
    fn figures_become_packets() {
        let mut out = Vec::new();
        stat_packets(&mut out, STAT, b"STAT pid 17\r\n", true);
        stat_packets(&mut out, STAT, b"STAT version a b\r\nEND\r\n", false);
        let mut expected = Vec::new();
        emit::stat(&mut expected, STAT, b"pid", b"17");
        emit::stat(&mut expected, STAT, b"version", b"a b");
        emit::stat(&mut expected, STAT, b"", b"");
        assert_eq!(out, expected);
    }

    #[test]
    fn an_unknown_subject_is_not_found() {
        let mut out = Vec::new();
        stat_packets(&mut out, STAT, b"ERROR\r\n", false);
        let mut expected = Vec::new();
        emit::error(&mut expected, STAT, Status::KeyNotFound);
        assert_eq!(out, expected);
        out.clear();
        stat_packets(&mut out, STAT, b"RESET\r\n", false);
        assert_eq!(out.len(), 24, "done, and nothing to tell");
    }

    #[test]
    fn the_version_stands_alone() {
        assert!(
            lines::VERSION_NUMBER.as_bytes().starts_with(b"1.6.")
                && !lines::VERSION_NUMBER.as_bytes().ends_with(b"\n")
        );
    }
}
